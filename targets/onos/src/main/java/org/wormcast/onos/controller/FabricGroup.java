package org.wormcast.onos.controller;

import java.util.Objects;
import java.util.Optional;
import java.util.SortedSet;

import com.google.common.base.MoreObjects;
import com.google.common.collect.ImmutableSortedSet;
import org.onlab.packet.Ip4Address;

/**
 * A group of the Wormcast controller.
 */
public final class FabricGroup {

    private final int id;
    private final String name;
    private final String scheme;
    private final SortedSet<Integer> members;
    private final Ip4Address address;

    /**
     * A group.
     *
     * @param id      its number
     * @param name    its name
     * @param scheme  how its messages travel
     * @param members numbers of hosts
     * @param address IP multicast address that it carries, or null
     */
    public FabricGroup(int id, String name, String scheme, Iterable<Integer> members, Ip4Address address) {
        this.id = id;
        this.name = name;
        this.scheme = scheme;
        this.members = ImmutableSortedSet.copyOf(members);
        this.address = address;
    }

    /**
     * Its number.
     *
     * @return number
     */
    public int id() {
        return id;
    }

    /**
     * Its name.
     *
     * @return name
     */
    public String name() {
        return name;
    }

    /**
     * How its messages travel.
     *
     * @return name of a scheme
     */
    public String scheme() {
        return scheme;
    }

    /**
     * Its members.
     *
     * @return numbers of hosts
     */
    public SortedSet<Integer> members() {
        return members;
    }

    /**
     * The IP multicast address that it carries.
     *
     * @return address, if it has one
     */
    public Optional<Ip4Address> address() {
        return Optional.ofNullable(address);
    }

    @Override
    public boolean equals(Object other) {
        if (!(other instanceof FabricGroup)) {
            return false;
        }
        FabricGroup that = (FabricGroup) other;
        return id == that.id && name.equals(that.name) && scheme.equals(that.scheme)
                && members.equals(that.members) && Objects.equals(address, that.address);
    }

    @Override
    public int hashCode() {
        return Objects.hash(id, name, scheme, members, address);
    }

    @Override
    public String toString() {
        return MoreObjects.toStringHelper(this).add("id", id).add("name", name).add("scheme", scheme)
                .add("members", members).add("address", address).toString();
    }
}
