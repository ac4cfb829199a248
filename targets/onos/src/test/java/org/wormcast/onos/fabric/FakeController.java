package org.wormcast.onos.fabric;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.SortedSet;
import java.util.TreeMap;

import com.fasterxml.jackson.databind.JsonNode;
import org.onlab.packet.Ip4Address;
import org.wormcast.onos.controller.ControllerException;
import org.wormcast.onos.controller.FabricGroup;
import org.wormcast.onos.controller.FabricHost;
import org.wormcast.onos.controller.Place;
import org.wormcast.onos.controller.WormcastController;

/**
 * A Wormcast controller in memory; as strict as the real one where a test depends on it.
 */
class FakeController implements WormcastController {

    final List<FabricHost> hosts = new ArrayList<>();
    final Map<Integer, FabricGroup> groups;
    final Map<Ip4Address, Set<Place>> igmp = new TreeMap<>();
    Ip4Address refused;

    FakeController() {
        this(new TreeMap<>());
    }

    private FakeController(Map<Integer, FabricGroup> groups) {
        this.groups = groups;
    }

    static void apply(GroupChange change, Map<Integer, FabricGroup> groups) {
        try {
            change.apply(new FakeController(groups), "switch");
        } catch (ControllerException e) {
            throw new AssertionError(e);
        }
    }

    @Override
    public List<FabricHost> hosts() {
        return hosts;
    }

    @Override
    public List<FabricGroup> groups() {
        return new ArrayList<>(groups.values());
    }

    @Override
    public Map<Ip4Address, Set<Place>> igmpMembers() {
        return igmp;
    }

    @Override
    public FabricGroup create(JsonNode body) {
        throw new AssertionError("not asked for");
    }

    @Override
    public FabricGroup create(String name, String scheme, Ip4Address address, SortedSet<Integer> members)
            throws ControllerException {
        if (address.equals(refused) || members.isEmpty()) {
            throw new ControllerException(422, "refused");
        }
        if (groups.values().stream().anyMatch(group -> group.name().equals(name))) {
            throw new ControllerException(409, name + " is there");
        }
        int id = 0;
        while (groups.containsKey(id)) {
            id++;
        }
        groups.put(id, new FabricGroup(id, name, scheme, members, address));
        return groups.get(id);
    }

    @Override
    public void setMembers(String group, SortedSet<Integer> members) throws ControllerException {
        FabricGroup old = find(group);
        if (members.isEmpty()) {
            throw new ControllerException(422, "a group without members");
        }
        groups.put(old.id(), new FabricGroup(old.id(), old.name(), old.scheme(), members, old.address().orElse(null)));
    }

    @Override
    public void changeMembers(String group, JsonNode members, boolean add) {
        throw new AssertionError("not asked for");
    }

    @Override
    public void delete(String group) throws ControllerException {
        groups.remove(find(group).id());
    }

    @Override
    public JsonNode plan(JsonNode network) {
        throw new AssertionError("not asked for");
    }

    @Override
    public JsonNode status() {
        throw new AssertionError("not asked for");
    }

    private FabricGroup find(String name) throws ControllerException {
        return groups.values().stream().filter(group -> group.name().equals(name)).findFirst()
                .orElseThrow(() -> new ControllerException(404, "no group " + name));
    }
}
