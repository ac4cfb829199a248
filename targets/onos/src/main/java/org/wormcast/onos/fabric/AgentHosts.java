package org.wormcast.onos.fabric;

import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

import org.onlab.packet.VlanId;
import org.onosproject.net.DefaultAnnotations;
import org.onosproject.net.Host;
import org.onosproject.net.HostId;
import org.onosproject.net.HostLocation;
import org.onosproject.net.host.DefaultHostDescription;
import org.onosproject.net.host.HostDescription;
import org.onosproject.net.host.HostProvider;
import org.onosproject.net.host.HostProviderService;
import org.onosproject.net.provider.AbstractProvider;
import org.onosproject.net.provider.ProviderId;
import org.wormcast.onos.controller.FabricHost;

/**
 * Tells ONOS of the hosts whose agents, or whose declarations, the Wormcast controller has.
 */
final class AgentHosts extends AbstractProvider implements HostProvider {

    private final Map<HostId, HostDescription> told = new HashMap<>();

    AgentHosts() {
        super(new ProviderId("wormcast", "org.wormcast.onos.host"));
    }

    @Override
    public void triggerProbe(Host host) {
        // Agents report by themselves.
    }

    // ONOS hears of what is new, has moved or is gone since it was told last.
    void tell(HostProviderService service, List<FabricHost> hosts, Places places) {
        Set<HostId> gone = new HashSet<>(told.keySet());
        for (FabricHost host : hosts) {
            if (host.mac().isEmpty() || host.place().isEmpty()) {
                continue;
            }
            HostId id = HostId.hostId(host.mac().get(), VlanId.NONE);
            gone.remove(id);
            HostLocation location = new HostLocation(places.connectPoint(host.place().get()), 0);
            HostDescription description = new DefaultHostDescription(host.mac().get(), VlanId.NONE, location,
                    DefaultAnnotations.builder().set("name", host.name())
                            .set("wormcast-id", Integer.toString(host.id())).set("state", host.state()).build());
            if (!description.equals(told.put(id, description))) {
                service.hostDetected(id, description, false);
            }
        }
        gone.forEach(id -> {
            told.remove(id);
            service.hostVanished(id);
        });
    }

    // ONOS forgets them all.
    void withdraw(HostProviderService service) {
        told.keySet().forEach(service::hostVanished);
        told.clear();
    }
}
