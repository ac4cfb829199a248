package org.wormcast.onos.controller;

import java.util.Objects;
import java.util.Optional;

import com.google.common.base.MoreObjects;
import org.onlab.packet.MacAddress;

/**
 * A host as the Wormcast controller knows it.
 */
public final class FabricHost {

    private final int id;
    private final String name;
    private final String state;
    private final Place place;
    private final MacAddress mac;

    /**
     * A host.
     *
     * @param id    its number
     * @param name  its name
     * @param state a state of controller/OPERATION.md
     * @param place its port, or null if that is not known
     * @param mac   address, or null if that is not known
     */
    public FabricHost(int id, String name, String state, Place place, MacAddress mac) {
        this.id = id;
        this.name = name;
        this.state = state;
        this.place = place;
        this.mac = mac;
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
     * A state of controller/OPERATION.md.
     *
     * @return state
     */
    public String state() {
        return state;
    }

    /**
     * The port it is at.
     *
     * @return port, if it is known
     */
    public Optional<Place> place() {
        return Optional.ofNullable(place);
    }

    /**
     * Its address.
     *
     * @return address, if it is known
     */
    public Optional<MacAddress> mac() {
        return Optional.ofNullable(mac);
    }

    @Override
    public boolean equals(Object other) {
        if (!(other instanceof FabricHost)) {
            return false;
        }
        FabricHost that = (FabricHost) other;
        return id == that.id && name.equals(that.name) && state.equals(that.state)
                && Objects.equals(place, that.place) && Objects.equals(mac, that.mac);
    }

    @Override
    public int hashCode() {
        return Objects.hash(id, name, state, place, mac);
    }

    @Override
    public String toString() {
        return MoreObjects.toStringHelper(this).add("id", id).add("name", name).add("state", state)
                .add("place", place).add("mac", mac).toString();
    }
}
