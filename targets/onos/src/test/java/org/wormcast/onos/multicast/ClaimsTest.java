package org.wormcast.onos.multicast;

import static org.hamcrest.MatcherAssert.assertThat;
import static org.hamcrest.Matchers.is;
import static org.wormcast.onos.multicast.IgmpReportsTest.GROUP;

import java.lang.reflect.Proxy;
import java.nio.ByteBuffer;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.atomic.AtomicInteger;

import com.google.common.collect.ImmutableSet;
import org.junit.Before;
import org.junit.Test;
import org.onlab.packet.Ethernet;
import org.onlab.packet.Ip4Address;
import org.onlab.packet.IpAddress;
import org.onlab.packet.MacAddress;
import org.onosproject.mcast.api.McastEvent;
import org.onosproject.mcast.api.McastListener;
import org.onosproject.mcast.api.McastRoute;
import org.onosproject.mcast.api.McastRouteData;
import org.onosproject.mcast.api.McastRouteUpdate;
import org.onosproject.mcast.api.MulticastRouteService;
import org.onosproject.net.ConnectPoint;
import org.onosproject.net.HostId;
import org.onosproject.net.packet.DefaultInboundPacket;
import org.onosproject.net.packet.InboundPacket;
import org.onosproject.net.packet.PacketContextAdapter;
import org.onosproject.net.packet.PacketProcessor;
import org.onosproject.net.packet.PacketServiceAdapter;
import org.onosproject.store.service.TestStorageService;

/**
 * Who wants what, from routes and IGMP; each source adds and removes its own members only.
 */
public class ClaimsTest {

    private static final ConnectPoint PORT = ConnectPoint.deviceConnectPoint("device:s1/4");
    private static final Member AT_PORT = Member.at(PORT);
    private static final MacAddress MAC = MacAddress.valueOf("02:00:00:00:00:07");
    private static final Member HOST = Member.host(MAC);
    private static final Ip4Address OTHER = Ip4Address.valueOf("239.9.9.9");

    private final ClaimStore claims = new ClaimStore();

    @Before
    public void setUp() {
        claims.storage = new TestStorageService();
        claims.activate();
    }

    @Test
    public void aMemberStaysWhileAnySourceSaysSo() {
        claims.join(Source.IGMP, GROUP, AT_PORT);
        claims.set(Source.ROUTE, GROUP, Set.of(AT_PORT, HOST));
        claims.leave(Source.IGMP, GROUP, AT_PORT);
        assertThat(claims.members(), is(Map.of(GROUP, Set.of(AT_PORT, HOST))));
        claims.set(Source.ROUTE, GROUP, Set.of(HOST));
        assertThat(claims.members(), is(Map.of(GROUP, Set.of(HOST))));
        claims.set(Source.ROUTE, GROUP, Set.of());
        assertThat(claims.members(), is(Map.of()));
    }

    @Test
    public void settingAllOfOneSourceLeavesTheOthers() {
        claims.join(Source.IGMP, GROUP, AT_PORT);
        claims.setAll(Source.FABRIC, Map.of(GROUP, Set.of(HOST), OTHER, Set.of(HOST)));
        claims.setAll(Source.FABRIC, Map.of(OTHER, Set.of(AT_PORT)));
        assertThat(claims.members(), is(Map.of(GROUP, Set.of(AT_PORT), OTHER, Set.of(AT_PORT))));
    }

    @Test
    public void whoRepeatsItselfWakesNobody() {
        AtomicInteger woken = new AtomicInteger();
        Runnable listener = woken::incrementAndGet;
        claims.addListener(listener);
        for (int again = 0; again < 3; again++) {
            claims.join(Source.IGMP, GROUP, AT_PORT);
            claims.leave(Source.IGMP, OTHER, AT_PORT);
        }
        assertThat(woken.get(), is(1));
        claims.removeListener(listener);
        claims.join(Source.IGMP, OTHER, AT_PORT);
        assertThat(woken.get(), is(1));
    }

    @Test
    public void moreThanIsKeptIsRefused() {
        for (int number = 0; number < MulticastClaims.ADDRESSES_MAX + 9; number++) {
            claims.join(Source.IGMP, Ip4Address.valueOf(0xef010000 + number), AT_PORT);
        }
        assertThat(claims.members().size(), is(MulticastClaims.ADDRESSES_MAX));
    }

    @Test
    public void membersAreWhatTheirTextSays() {
        assertThat(Member.parse(AT_PORT.toString()), is(AT_PORT));
        assertThat(Member.parse(HOST.toString()), is(HOST));
    }

    @Test
    public void igmpPacketsJoinAndLeave() {
        Processors processors = new Processors();
        IgmpListener listener = new IgmpListener();
        listener.packets = processors;
        listener.claims = claims;
        listener.activate();
        processors.receive(IgmpReportsTest.frame(IgmpReportsTest.v2(0x16, GROUP)));
        assertThat(claims.members(), is(Map.of(GROUP, Set.of(AT_PORT))));
        processors.receive(IgmpReportsTest.frame(IgmpReportsTest.v2(0x17, GROUP)));
        assertThat(claims.members(), is(Map.of()));
        listener.deactivate();
        assertThat(processors.processors, is(Set.of()));
    }

    @Test
    public void routesComeChangeAndGo() {
        Routes routes = new Routes();
        McastRoute one = new McastRoute(IpAddress.valueOf("10.0.0.1"), GROUP, McastRoute.Type.STATIC);
        McastRoute two = new McastRoute(IpAddress.valueOf("10.0.0.2"), GROUP, McastRoute.Type.STATIC);
        McastRoute six = new McastRoute(null, IpAddress.valueOf("ff02::7"), McastRoute.Type.STATIC);
        routes.data.put(one, McastRouteData.empty());
        routes.data.get(one).addSinks(HostId.hostId(MAC), ImmutableSet.of(PORT));
        routes.data.put(six, McastRouteData.empty());
        claims.join(Source.ROUTE, OTHER, HOST);
        RouteListener listener = new RouteListener();
        listener.claims = claims;
        listener.bindRoutes(routes.service);
        listener.activate();
        // What routes said before is replaced by what they say now.
        assertThat(claims.members(), is(Map.of(GROUP, Set.of(HOST))));
        routes.data.put(two, McastRouteData.empty());
        routes.data.get(two).addNonHostSources(ImmutableSet.of(PORT));
        routes.tell(McastEvent.Type.SOURCES_ADDED, two);
        assertThat(claims.members(), is(Map.of(GROUP, Set.of(HOST, AT_PORT))));
        routes.data.remove(one);
        routes.tell(McastEvent.Type.ROUTE_REMOVED, one);
        assertThat(claims.members(), is(Map.of(GROUP, Set.of(AT_PORT))));
        routes.tell(McastEvent.Type.ROUTE_ADDED, six);
        assertThat(claims.members(), is(Map.of(GROUP, Set.of(AT_PORT))));
        listener.unbindRoutes(routes.service);
        assertThat(routes.listeners, is(Set.of()));
    }

    /** Packets that come from one port. */
    private static final class Processors extends PacketServiceAdapter {
        private final Set<PacketProcessor> processors = new HashSet<>();

        @Override
        public void addProcessor(PacketProcessor processor, int priority) {
            processors.add(processor);
        }

        @Override
        public void removeProcessor(PacketProcessor processor) {
            processors.remove(processor);
        }

        private void receive(Ethernet frame) {
            InboundPacket packet = new DefaultInboundPacket(PORT, frame, ByteBuffer.wrap(new byte[0]));
            processors.forEach(processor -> processor.process(new PacketContextAdapter(0, packet, null, false) {
                @Override
                public void send() {
                    throw new AssertionError("nothing is sent");
                }
            }));
        }
    }

    /** Routes, and who listens to them; ONOS has no test class for them. */
    private static final class Routes {
        private final Map<McastRoute, McastRouteData> data = new HashMap<>();
        private final Set<Object> listeners = new HashSet<>();
        private final MulticastRouteService service = (MulticastRouteService) Proxy.newProxyInstance(
                getClass().getClassLoader(), new Class<?>[] {MulticastRouteService.class},
                (proxy, method, arguments) -> answer(method.getName(), arguments));

        private Object answer(String method, Object[] arguments) {
            switch (method) {
                case "getRoutes":
                    return data.keySet();
                case "routeData":
                    return data.get(arguments[0]);
                case "addListener":
                    listeners.add(arguments[0]);
                    return null;
                case "removeListener":
                    listeners.remove(arguments[0]);
                    return null;
                default:
                    throw new AssertionError("nobody asks for " + method);
            }
        }

        private void tell(McastEvent.Type type, McastRoute route) {
            McastRouteUpdate update = McastRouteUpdate.mcastRouteUpdate(route, Map.of(), Map.of());
            boolean gone = type == McastEvent.Type.ROUTE_REMOVED;
            McastEvent event = new McastEvent(type, gone ? update : null, gone ? null : update);
            listeners.forEach(listener -> ((McastListener) listener).event(event));
        }
    }
}
