package org.wormcast.onos.fabric;

import java.util.List;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import org.wormcast.onos.controller.ControllerException;
import org.wormcast.onos.controller.FabricGroup;
import org.wormcast.onos.controller.FabricHost;

/**
 * The fabric, for commands and REST.
 */
public interface FabricService {

    /**
     * The application at a glance.
     *
     * @return status, as README.md describes it
     */
    ObjectNode status();

    /**
     * Hosts of the Wormcast controller, now.
     *
     * @return hosts
     * @throws ControllerException if there is no answer
     */
    List<FabricHost> hosts() throws ControllerException;

    /**
     * Groups of the Wormcast controller, now.
     *
     * @return groups
     * @throws ControllerException if there is no answer
     */
    List<FabricGroup> groups() throws ControllerException;

    /**
     * Makes a group at the Wormcast controller.
     *
     * @param body body of {@code POST /v1/groups}
     * @return the group
     * @throws ControllerException if it is refused
     */
    FabricGroup create(JsonNode body) throws ControllerException;

    /**
     * Adds members to a group of the Wormcast controller, or removes them.
     *
     * @param group   number or name
     * @param members body of {@code /v1/groups/…/members}
     * @param add     false: removes them
     * @throws ControllerException if it is refused
     */
    void changeMembers(String group, JsonNode members, boolean add) throws ControllerException;

    /**
     * Deletes a group of the Wormcast controller.
     *
     * @param group number or name
     * @throws ControllerException if it is refused
     */
    void delete(String group) throws ControllerException;
}
