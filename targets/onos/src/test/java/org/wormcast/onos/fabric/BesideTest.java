package org.wormcast.onos.fabric;

import static org.hamcrest.MatcherAssert.assertThat;
import static org.hamcrest.Matchers.is;
import static org.junit.Assert.assertThrows;

import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;

import com.fasterxml.jackson.databind.ObjectMapper;
import org.junit.Before;
import org.junit.Test;
import org.onlab.packet.Ip4Address;
import org.onlab.packet.IpAddress;
import org.onlab.packet.MacAddress;
import org.onosproject.TestApplicationId;
import org.onosproject.core.ApplicationId;
import org.onosproject.net.ConnectPoint;
import org.onosproject.net.HostId;
import org.onosproject.net.HostLocation;
import org.onosproject.net.config.InvalidFieldException;
import org.onosproject.net.host.HostDescription;
import org.onosproject.net.host.HostProvider;
import org.onosproject.net.host.HostProviderService;
import org.onosproject.net.provider.AbstractProviderService;
import org.wormcast.onos.controller.ControllerException;
import org.wormcast.onos.controller.FabricGroup;
import org.wormcast.onos.controller.FabricHost;
import org.wormcast.onos.controller.Place;
import org.wormcast.onos.multicast.Member;
import org.wormcast.onos.multicast.MulticastClaims;
import org.wormcast.onos.multicast.Source;

/**
 * Beside a Wormcast controller: hosts come from it, members go to it.
 */
public class BesideTest {

    private static final Ip4Address ONE = Ip4Address.valueOf("239.0.1.1");
    private static final Ip4Address TWO = Ip4Address.valueOf("239.0.1.2");
    private static final ApplicationId APP = new TestApplicationId(WormcastConfig.APP);

    private final FakeController controller = new FakeController();
    private final Claims claims = new Claims();
    private final AgentHosts provider = new AgentHosts();
    private final Hosts told = new Hosts(provider);
    private WormcastConfig config;
    private Beside beside;

    private static MacAddress mac(int host) {
        return MacAddress.valueOf(0x020000000000L + host);
    }

    private static WormcastConfig config(String json) throws Exception {
        WormcastConfig config = new WormcastConfig();
        config.init(APP, WormcastConfig.KEY, new ObjectMapper().readTree(json), new ObjectMapper(), changed -> { });
        return config;
    }

    @Before
    public void setUp() throws Exception {
        config = config("{\"switches\": {\"1\": \"device:leaf\"}}");
        beside = new Beside(controller, config, claims, provider, told);
        for (int host = 0; host < 4; host++) {
            controller.hosts.add(new FabricHost(host, "h" + host, "up", new Place(host / 2, host % 2), mac(host)));
        }
        controller.hosts.add(new FabricHost(9, "plain", "plain", new Place(1, 7), null));
    }

    private Map<String, Set<Integer>> groups() {
        return controller.groups.values().stream()
                .collect(Collectors.toMap(FabricGroup::name, group -> new HashSet<>(group.members())));
    }

    @Test
    public void onosIsToldOfHostsThatComeMoveAndGo() throws ControllerException {
        beside.run();
        assertThat(told.places, is(Map.of(mac(0), "wormcast:0/0", mac(1), "wormcast:0/1",
                mac(2), "device:leaf/0", mac(3), "device:leaf/1")));
        told.count = 0;
        beside.run();
        assertThat("what is known is not told again", told.count, is(0));
        controller.hosts.set(0, new FabricHost(0, "h0", "up", new Place(1, 5), mac(0)));
        controller.hosts.remove(1);
        beside.run();
        assertThat(told.places, is(Map.of(mac(0), "device:leaf/5", mac(2), "device:leaf/0",
                mac(3), "device:leaf/1")));
        beside.close();
        assertThat(told.places, is(Map.of()));
    }

    @Test
    public void membersBecomeHostsOfTheFabric() throws ControllerException {
        claims.members.put(ONE, Set.of(Member.host(mac(3)), Member.at(ConnectPoint.deviceConnectPoint("device:leaf/7")),
                Member.at(ConnectPoint.deviceConnectPoint("wormcast:0/1"))));
        beside.run();
        assertThat(groups(), is(Map.of("onos-239.0.1.1", Set.of(1, 3, 9))));
        claims.members.clear();
        beside.run();
        assertThat(groups(), is(Map.of()));
    }

    @Test
    public void whoIsNoHostIsNamedAndWaits() throws ControllerException {
        Member later = Member.host(mac(77));
        Member elsewhere = Member.at(ConnectPoint.deviceConnectPoint("of:0000000000000001/2"));
        claims.members.put(ONE, Set.of(later, elsewhere));
        beside.run();
        assertThat(beside.unknown(), is(Map.of(ONE, Set.of(later, elsewhere))));
        assertThat(groups(), is(Map.of()));
        controller.hosts.add(new FabricHost(77, "late", "up", new Place(0, 5), mac(77)));
        beside.run();
        assertThat(beside.unknown(), is(Map.of(ONE, Set.of(elsewhere))));
        assertThat(groups(), is(Map.of("onos-239.0.1.1", Set.of(77))));
    }

    @Test
    public void igmpOfTheFabricIsTaken() throws ControllerException {
        controller.igmp.put(TWO, Set.of(new Place(1, 7), new Place(0, 0)));
        beside.run();
        Set<Member> ports = Set.of(Member.at(ConnectPoint.deviceConnectPoint("device:leaf/7")),
                Member.at(ConnectPoint.deviceConnectPoint("wormcast:0/0")));
        assertThat(claims.all, is(Map.of(TWO, ports)));
        beside.close();
        assertThat(claims.all, is(Map.of()));
    }

    @Test
    public void anAddressThatIsRefusedHoldsUpNoOther() {
        controller.refused = ONE;
        claims.members.put(ONE, Set.of(Member.host(mac(0))));
        claims.members.put(TWO, Set.of(Member.host(mac(1))));
        assertThrows(ControllerException.class, beside::run);
        assertThat(groups(), is(Map.of("onos-239.0.1.2", Set.of(1))));
    }

    @Test
    public void configurationsThatCannotBeAreRefused() throws Exception {
        assertThat(config("{\"mode\": \"alone\", \"controller\": \"http://h:1/\"}").isValid(), is(true));
        assertThat(config("{\"controller\": \"http://h:1/\"}").controller().toString(), is("http://h:1"));
        for (String wrong : List.of("{\"mode\": \"both\"}", "{\"pollMs\": 99}", "{\"controller\": \"h:1\"}",
                "{\"switches\": {\"x\": \"device:1\"}}",
                "{\"switches\": {\"1\": \"device:1\", \"2\": \"device:1\"}}")) {
            assertThrows(wrong, InvalidFieldException.class, () -> config(wrong).isValid());
        }
        assertThrows(InvalidFieldException.class, () -> config("{\"colour\": 1}").isValid());
        assertThat(WormcastConfig.defaults(APP).mode(), is(Mode.BESIDE));
    }

    /** Claims in memory. */
    private static final class Claims implements MulticastClaims {
        private final Map<Ip4Address, Set<Member>> members = new HashMap<>();
        private Map<Ip4Address, Set<Member>> all = Map.of();

        @Override
        public void join(Source source, Ip4Address address, Member member) {
            throw new AssertionError("not asked for");
        }

        @Override
        public void leave(Source source, Ip4Address address, Member member) {
            throw new AssertionError("not asked for");
        }

        @Override
        public void set(Source source, Ip4Address address, Set<Member> wanted) {
            throw new AssertionError("not asked for");
        }

        @Override
        public void setAll(Source source, Map<Ip4Address, Set<Member>> wanted) {
            all = wanted;
        }

        @Override
        public Map<Ip4Address, Set<Member>> members() {
            return members;
        }

        @Override
        public void addListener(Runnable listener) {
            throw new AssertionError("not asked for");
        }

        @Override
        public void removeListener(Runnable listener) {
            throw new AssertionError("not asked for");
        }
    }

    /** What ONOS is told. */
    private static final class Hosts extends AbstractProviderService<HostProvider> implements HostProviderService {
        private final Map<MacAddress, String> places = new HashMap<>();
        private int count;

        private Hosts(HostProvider provider) {
            super(provider);
        }

        @Override
        public void hostDetected(HostId host, HostDescription description, boolean replaceIps) {
            places.put(host.mac(), description.location().toString());
            count++;
        }

        @Override
        public void hostVanished(HostId host) {
            places.remove(host.mac());
            count++;
        }

        @Override
        public void removeIpFromHost(HostId host, IpAddress address) {
            throw new AssertionError("not asked for");
        }

        @Override
        public void removeLocationFromHost(HostId host, HostLocation location) {
            throw new AssertionError("not asked for");
        }
    }
}
