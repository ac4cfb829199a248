package org.wormcast.onos.fabric;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import org.onlab.packet.Ip4Address;
import org.onlab.packet.MacAddress;
import org.wormcast.onos.controller.FabricGroup;
import org.wormcast.onos.controller.FabricHost;

/**
 * Hosts and groups as JSON, for REST and commands.
 */
public final class Views {

    private Views() {
    }

    /**
     * A host.
     *
     * @param mapper maker of nodes
     * @param host   host
     * @return JSON
     */
    public static ObjectNode show(ObjectMapper mapper, FabricHost host) {
        ObjectNode node = mapper.createObjectNode().put("id", host.id()).put("name", host.name())
                .put("state", host.state()).put("mac", host.mac().map(MacAddress::toString).orElse(null));
        host.place().ifPresentOrElse(
                place -> node.put("switch", place.device()).put("port", place.port()),
                () -> node.putNull("switch").putNull("port"));
        return node;
    }

    /**
     * A group.
     *
     * @param mapper maker of nodes
     * @param group  group
     * @return JSON
     */
    public static ObjectNode show(ObjectMapper mapper, FabricGroup group) {
        ObjectNode node = mapper.createObjectNode().put("id", group.id()).put("name", group.name())
                .put("scheme", group.scheme())
                .put("class_d", group.address().map(Ip4Address::toString).orElse(null));
        group.members().forEach(node.putArray("members")::add);
        return node;
    }
}
