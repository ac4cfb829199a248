package org.wormcast.onos.multicast;

import java.util.Objects;

import org.onlab.packet.MacAddress;
import org.onosproject.net.ConnectPoint;

/**
 * Who wants packets: a host by its address, or whatever is at a port.
 */
public final class Member {

    private final MacAddress mac;
    private final ConnectPoint port;

    private Member(MacAddress mac, ConnectPoint port) {
        this.mac = mac;
        this.port = port;
    }

    /**
     * The host with this address, wherever it is.
     *
     * @param mac address
     * @return member
     */
    public static Member host(MacAddress mac) {
        return new Member(Objects.requireNonNull(mac), null);
    }

    /**
     * Whatever is at this port.
     *
     * @param port port of a device
     * @return member
     */
    public static Member at(ConnectPoint port) {
        return new Member(null, Objects.requireNonNull(port));
    }

    /**
     * The member that {@link #toString} describes.
     *
     * @param text a MAC address, or device/port
     * @return member
     */
    public static Member parse(String text) {
        return text.contains("/") ? at(ConnectPoint.deviceConnectPoint(text)) : host(MacAddress.valueOf(text));
    }

    /**
     * Whether it is meant by its address.
     *
     * @return false: by its port
     */
    public boolean isHost() {
        return mac != null;
    }

    /**
     * The address of a host.
     *
     * @return address, null if a port is meant
     */
    public MacAddress mac() {
        return mac;
    }

    /**
     * The port.
     *
     * @return port, null if a host is meant
     */
    public ConnectPoint port() {
        return port;
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof Member && Objects.equals(mac, ((Member) other).mac)
                && Objects.equals(port, ((Member) other).port);
    }

    @Override
    public int hashCode() {
        return Objects.hash(mac, port);
    }

    @Override
    public String toString() {
        return isHost() ? mac.toString() : port.toString();
    }
}
