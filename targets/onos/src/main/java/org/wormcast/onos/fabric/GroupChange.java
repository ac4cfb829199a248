package org.wormcast.onos.fabric;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.SortedSet;
import java.util.TreeMap;

import com.google.common.base.MoreObjects;
import org.onlab.packet.Ip4Address;
import org.wormcast.onos.controller.ControllerException;
import org.wormcast.onos.controller.FabricGroup;
import org.wormcast.onos.controller.WormcastController;

/**
 * What to do at the Wormcast controller so that one address has the members that it should have.
 */
final class GroupChange {

    /** Groups with such names are this application's; it leaves all others alone. */
    static final String PREFIX = "onos-";

    /** What to do. */
    enum Kind { CREATE, SET, DELETE }

    private final Kind kind;
    private final String name;
    private final Ip4Address address;
    private final SortedSet<Integer> members;

    private GroupChange(Kind kind, String name, Ip4Address address, SortedSet<Integer> members) {
        this.kind = kind;
        this.name = name;
        this.address = address;
        this.members = members;
    }

    /**
     * What leads from the groups there are to those there should be.
     *
     * @param wanted members by address
     * @param groups all groups of the controller
     * @return changes, deletions first
     */
    static List<GroupChange> between(Map<Ip4Address, SortedSet<Integer>> wanted, List<FabricGroup> groups) {
        List<GroupChange> changes = new ArrayList<>();
        Map<Ip4Address, SortedSet<Integer>> missing = new TreeMap<>(wanted);
        missing.values().removeIf(SortedSet::isEmpty);
        for (FabricGroup group : groups) {
            if (!group.name().startsWith(PREFIX) || group.address().isEmpty()) {
                continue;
            }
            Ip4Address address = group.address().get();
            SortedSet<Integer> members = group.name().equals(PREFIX + address) ? missing.remove(address) : null;
            if (members == null) {
                changes.add(0, new GroupChange(Kind.DELETE, group.name(), address, group.members()));
            } else if (!members.equals(group.members())) {
                changes.add(new GroupChange(Kind.SET, group.name(), address, members));
            }
        }
        missing.forEach((address, members) ->
                changes.add(new GroupChange(Kind.CREATE, PREFIX + address, address, members)));
        return changes;
    }

    /**
     * Does it.
     *
     * @param controller the Wormcast controller
     * @param scheme     of groups that are made
     * @throws ControllerException if it is refused
     */
    void apply(WormcastController controller, String scheme) throws ControllerException {
        switch (kind) {
            case CREATE:
                controller.create(name, scheme, address, members);
                break;
            case SET:
                controller.setMembers(name, members);
                break;
            default:
                controller.delete(name);
                break;
        }
    }

    @Override
    public boolean equals(Object other) {
        if (!(other instanceof GroupChange)) {
            return false;
        }
        GroupChange that = (GroupChange) other;
        return kind == that.kind && name.equals(that.name) && address.equals(that.address)
                && members.equals(that.members);
    }

    @Override
    public int hashCode() {
        return Objects.hash(kind, name, address, members);
    }

    @Override
    public String toString() {
        return MoreObjects.toStringHelper(this).add("kind", kind).add("name", name).add("members", members)
                .toString();
    }
}
