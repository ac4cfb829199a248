package org.wormcast.onos.controller;

import java.util.Comparator;
import java.util.Objects;

/**
 * A port of a switch of the Wormcast controller.
 */
public final class Place implements Comparable<Place> {

    private static final Comparator<Place> ORDER =
            Comparator.comparingInt((Place place) -> place.device).thenComparingLong(place -> place.port);

    private final int device;
    private final long port;

    /**
     * A port.
     *
     * @param device number of the switch
     * @param port   number of the port
     */
    public Place(int device, long port) {
        this.device = device;
        this.port = port;
    }

    /**
     * The switch.
     *
     * @return its number
     */
    public int device() {
        return device;
    }

    /**
     * The port.
     *
     * @return its number
     */
    public long port() {
        return port;
    }

    @Override
    public int compareTo(Place other) {
        return ORDER.compare(this, other);
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof Place && compareTo((Place) other) == 0;
    }

    @Override
    public int hashCode() {
        return Objects.hash(device, port);
    }

    @Override
    public String toString() {
        return device + "/" + port;
    }
}
