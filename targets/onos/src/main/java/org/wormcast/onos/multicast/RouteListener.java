package org.wormcast.onos.multicast;

import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;

import org.onlab.packet.Ip4Address;
import org.onlab.packet.IpAddress;
import org.onosproject.mcast.api.McastEvent;
import org.onosproject.mcast.api.McastListener;
import org.onosproject.mcast.api.McastRoute;
import org.onosproject.mcast.api.McastRouteData;
import org.onosproject.mcast.api.MulticastRouteService;
import org.onosproject.net.ConnectPoint;
import org.onosproject.net.HostId;
import org.osgi.service.component.annotations.Activate;
import org.osgi.service.component.annotations.Component;
import org.osgi.service.component.annotations.Reference;
import org.osgi.service.component.annotations.ReferenceCardinality;
import org.osgi.service.component.annotations.ReferencePolicy;
import org.osgi.service.component.annotations.ReferencePolicyOption;

/**
 * Takes members from the multicast routes of ONOS, while the service that has them is there.
 *
 * <p>Sinks and sources both become members: the members of a Wormcast group are those who receive, and those who send
 * as agents. Whoever sends plain IP multicast needs no membership, but having it does no harm.
 */
@Component(immediate = true)
public class RouteListener {

    private final McastListener listener = this::changed;

    @Reference(cardinality = ReferenceCardinality.MANDATORY)
    protected MulticastClaims claims;

    private volatile MulticastRouteService routes;

    @Activate
    protected void activate() {
        takeAll();
    }

    @Reference(cardinality = ReferenceCardinality.OPTIONAL, policy = ReferencePolicy.DYNAMIC,
            policyOption = ReferencePolicyOption.GREEDY)
    protected void bindRoutes(MulticastRouteService service) {
        routes = service;
        service.addListener(listener);
        takeAll();
    }

    protected void unbindRoutes(MulticastRouteService service) {
        service.removeListener(listener);
        if (routes == service) {
            routes = null;
        }
    }

    // The service may come before the claims and after them.
    private void takeAll() {
        MulticastRouteService service = routes;
        if (service == null || claims == null) {
            return;
        }
        Map<Ip4Address, Set<Member>> members = new HashMap<>();
        for (McastRoute route : service.getRoutes()) {
            if (route.group().isIp4()) {
                members.put(route.group().getIp4Address(), members(service, route.group()));
            }
        }
        claims.setAll(Source.ROUTE, members);
    }

    // Several routes, one for each source, can lead to one address: it is taken whole at each event.
    private void changed(McastEvent event) {
        MulticastRouteService service = routes;
        McastRoute route = event.subject() == null ? event.prevSubject().route() : event.subject().route();
        if (service != null && route.group().isIp4()) {
            claims.set(Source.ROUTE, route.group().getIp4Address(), members(service, route.group()));
        }
    }

    private static Set<Member> members(MulticastRouteService service, IpAddress group) {
        Set<Member> members = new HashSet<>();
        for (McastRoute route : service.getRoutes()) {
            McastRouteData data = route.group().equals(group) ? service.routeData(route) : null;
            // A route may go while this looks at it; its own event follows.
            if (data != null) {
                add(members, data.sources());
                add(members, data.sinks());
            }
        }
        return members;
    }

    private static void add(Set<Member> members, Map<HostId, Set<ConnectPoint>> given) {
        given.forEach((host, ports) -> {
            if (host.equals(HostId.NONE)) {
                ports.forEach(port -> members.add(Member.at(port)));
            } else {
                members.add(Member.host(host.mac()));
            }
        });
    }
}
