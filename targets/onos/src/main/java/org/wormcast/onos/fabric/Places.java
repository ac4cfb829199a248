package org.wormcast.onos.fabric;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalInt;

import com.google.common.collect.BiMap;
import com.google.common.collect.ImmutableBiMap;
import org.onlab.packet.MacAddress;
import org.onosproject.net.ConnectPoint;
import org.onosproject.net.DeviceId;
import org.onosproject.net.PortNumber;
import org.wormcast.onos.controller.FabricHost;
import org.wormcast.onos.controller.Place;
import org.wormcast.onos.multicast.Member;

/**
 * What ONOS calls the switches of the Wormcast controller, and which of its hosts is meant by an address or a port.
 */
final class Places {

    private static final String SCHEME = "wormcast";

    private final BiMap<Integer, DeviceId> devices;
    private final Map<MacAddress, Integer> byMac = new HashMap<>();
    private final Map<Place, Integer> byPlace = new HashMap<>();

    Places(BiMap<Integer, DeviceId> devices, List<FabricHost> hosts) {
        this.devices = ImmutableBiMap.copyOf(devices);
        for (FabricHost host : hosts) {
            host.mac().ifPresent(mac -> byMac.put(mac, host.id()));
            host.place().ifPresent(place -> byPlace.put(place, host.id()));
        }
    }

    // The port of ONOS that a port of the fabric is.
    ConnectPoint connectPoint(Place place) {
        DeviceId device = devices.getOrDefault(place.device(), DeviceId.deviceId(SCHEME + ":" + place.device()));
        return new ConnectPoint(device, PortNumber.portNumber(place.port()));
    }

    // The port of the fabric that a port of ONOS is, if its device is a switch of the fabric.
    Optional<Place> place(ConnectPoint port) {
        if (port.port().isLogical()) {
            return Optional.empty();
        }
        DeviceId device = port.deviceId();
        Integer number = devices.inverse().get(device);
        if (number == null && device.uri().getScheme().equals(SCHEME)) {
            try {
                number = Integer.valueOf(device.uri().getSchemeSpecificPart());
            } catch (NumberFormatException e) {
                return Optional.empty();
            }
        }
        return Optional.ofNullable(number).map(found -> new Place(found, port.port().toLong()));
    }

    // The host that is meant.
    OptionalInt host(Member member) {
        Integer host = member.isHost() ? byMac.get(member.mac())
                : place(member.port()).map(byPlace::get).orElse(null);
        return host == null ? OptionalInt.empty() : OptionalInt.of(host);
    }
}
