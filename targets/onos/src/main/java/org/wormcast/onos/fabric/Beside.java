package org.wormcast.onos.fabric;

import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.OptionalInt;
import java.util.Set;
import java.util.SortedSet;
import java.util.TreeMap;
import java.util.TreeSet;

import com.google.common.collect.BiMap;
import com.google.common.collect.ImmutableSortedMap;
import org.onlab.packet.Ip4Address;
import org.onosproject.net.DeviceId;
import org.onosproject.net.host.HostProviderService;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.wormcast.onos.controller.ControllerException;
import org.wormcast.onos.controller.FabricHost;
import org.wormcast.onos.controller.Place;
import org.wormcast.onos.controller.WormcastController;
import org.wormcast.onos.multicast.Member;
import org.wormcast.onos.multicast.MulticastClaims;
import org.wormcast.onos.multicast.Source;

/**
 * The Wormcast controller has the switches: it is given the groups, and ONOS is told of its hosts.
 */
final class Beside implements Synchronization {

    private static final int NOT_FOUND = 404;

    private final Logger log = LoggerFactory.getLogger(getClass());
    private final WormcastController controller;
    private final String scheme;
    private final BiMap<Integer, DeviceId> devices;
    private final MulticastClaims claims;
    private final AgentHosts provider;
    private final HostProviderService hostService;
    /** Members that are no host of the fabric, by address; of the last round. */
    private volatile Map<Ip4Address, Set<Member>> unknown = ImmutableSortedMap.of();

    Beside(WormcastController controller, WormcastConfig config, MulticastClaims claims, AgentHosts provider,
           HostProviderService hostService) {
        this.controller = controller;
        this.scheme = config.scheme();
        this.devices = config.switches();
        this.claims = claims;
        this.provider = provider;
        this.hostService = hostService;
    }

    @Override
    public boolean run() throws ControllerException {
        List<FabricHost> hosts = controller.hosts();
        Places places = new Places(devices, hosts);
        provider.tell(hostService, hosts, places);
        claims.setAll(Source.FABRIC, igmpMembers(places));
        ControllerException failed = null;
        for (GroupChange change : GroupChange.between(resolve(places), controller.groups())) {
            try {
                change.apply(controller, scheme);
                log.info("{}", change);
            } catch (ControllerException e) {
                // One address that is refused holds up no other one.
                log.warn("{}: {}", change, e.getMessage());
                failed = e;
            }
        }
        if (failed != null) {
            throw failed;
        }
        return false;
    }

    @Override
    public void close() {
        provider.withdraw(hostService);
        // Its switches are not those of another mode or another controller.
        claims.setAll(Source.FABRIC, new HashMap<>());
    }

    Map<Ip4Address, Set<Member>> unknown() {
        return unknown;
    }

    private Map<Ip4Address, SortedSet<Integer>> resolve(Places places) {
        Map<Ip4Address, SortedSet<Integer>> wanted = new TreeMap<>();
        Map<Ip4Address, Set<Member>> missing = new TreeMap<>();
        claims.members().forEach((address, members) -> members.forEach(member -> {
            OptionalInt host = places.host(member);
            if (host.isPresent()) {
                wanted.computeIfAbsent(address, same -> new TreeSet<>()).add(host.getAsInt());
            } else {
                missing.computeIfAbsent(address, same -> new HashSet<>()).add(member);
            }
        }));
        if (!missing.equals(unknown)) {
            log.warn("No hosts of the fabric: {}", missing);
            unknown = missing;
        }
        return wanted;
    }

    private Map<Ip4Address, Set<Member>> igmpMembers(Places places) throws ControllerException {
        Map<Ip4Address, Set<Member>> members = new HashMap<>();
        try {
            for (Map.Entry<Ip4Address, Set<Place>> entry : controller.igmpMembers().entrySet()) {
                Set<Member> ports = members.computeIfAbsent(entry.getKey(), address -> new HashSet<>());
                entry.getValue().forEach(place -> ports.add(Member.at(places.connectPoint(place))));
            }
        } catch (ControllerException e) {
            if (e.status() != NOT_FOUND) {
                throw e;
            }
            // An older controller does not read IGMP.
        }
        return members;
    }
}
