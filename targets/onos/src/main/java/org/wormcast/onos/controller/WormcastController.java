package org.wormcast.onos.controller;

import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.SortedSet;

import com.fasterxml.jackson.databind.JsonNode;
import org.onlab.packet.Ip4Address;

/**
 * What this application asks a Wormcast controller for.
 */
public interface WormcastController {

    /**
     * All hosts.
     *
     * @return hosts, by number
     * @throws ControllerException if there is no answer
     */
    List<FabricHost> hosts() throws ControllerException;

    /**
     * All groups.
     *
     * @return groups, by number
     * @throws ControllerException if there is no answer
     */
    List<FabricGroup> groups() throws ControllerException;

    /**
     * Ports whose hosts reported by IGMP to the controller's own switches.
     *
     * @return ports, by address
     * @throws ControllerException if there is no answer
     */
    Map<Ip4Address, Set<Place>> igmpMembers() throws ControllerException;

    /**
     * Makes a group.
     *
     * @param body body of {@code POST /v1/groups}
     * @return the group
     * @throws ControllerException if it is refused
     */
    FabricGroup create(JsonNode body) throws ControllerException;

    /**
     * Makes a group that carries an IP multicast address.
     *
     * @param name    its name
     * @param scheme  how messages of its agents travel
     * @param address the address
     * @param members numbers of hosts
     * @return the group
     * @throws ControllerException if it is refused
     */
    FabricGroup create(String name, String scheme, Ip4Address address, SortedSet<Integer> members)
            throws ControllerException;

    /**
     * Sets the members of a group.
     *
     * @param group   number or name
     * @param members numbers of hosts
     * @throws ControllerException if it is refused
     */
    void setMembers(String group, SortedSet<Integer> members) throws ControllerException;

    /**
     * Adds members to a group, or removes them.
     *
     * @param group   number or name
     * @param members body of {@code /v1/groups/…/members}
     * @param add     false: removes them
     * @throws ControllerException if it is refused
     */
    void changeMembers(String group, JsonNode members, boolean add) throws ControllerException;

    /**
     * Deletes a group.
     *
     * @param group number or name
     * @throws ControllerException if it is refused
     */
    void delete(String group) throws ControllerException;

    /**
     * What every switch of a network must hold.
     *
     * @param network body of {@code POST /v1/plan}
     * @return the plan file
     * @throws ControllerException if it is refused
     */
    JsonNode plan(JsonNode network) throws ControllerException;

    /**
     * The controller at a glance.
     *
     * @return answer of {@code /v1/status}
     * @throws ControllerException if there is no answer
     */
    JsonNode status() throws ControllerException;
}
