package org.wormcast.onos.multicast;

import static org.hamcrest.MatcherAssert.assertThat;
import static org.hamcrest.Matchers.is;

import java.util.Map;

import org.junit.Test;
import org.onlab.packet.Ethernet;
import org.onlab.packet.IGMP;
import org.onlab.packet.IGMPMembership;
import org.onlab.packet.IGMPQuery;
import org.onlab.packet.IPv4;
import org.onlab.packet.Ip4Address;
import org.onlab.packet.MacAddress;
import org.onlab.packet.UDP;

/**
 * What hosts say by IGMP, in each version.
 */
public class IgmpReportsTest {

    static final Ip4Address GROUP = Ip4Address.valueOf("239.1.2.3");
    private static final Ip4Address OTHER = Ip4Address.valueOf("232.7.7.7");

    static Ethernet frame(IGMP igmp) {
        IPv4 ip = new IPv4();
        ip.setProtocol(IPv4.PROTOCOL_IGMP).setSourceAddress("10.0.0.1").setDestinationAddress("224.0.0.22")
                .setTtl((byte) 1).setPayload(igmp);
        Ethernet frame = new Ethernet();
        frame.setEtherType(Ethernet.TYPE_IPV4).setSourceMACAddress(MacAddress.ONOS)
                .setDestinationMACAddress(MacAddress.valueOf("01:00:5e:00:00:16")).setPayload(ip);
        return frame;
    }

    static IGMP v2(int type, Ip4Address group) {
        IGMP igmp = new IGMP.IGMPv2();
        igmp.setIgmpType((byte) type);
        igmp.addGroup(new IGMPQuery(group, 0));
        return igmp;
    }

    private static IGMP v3(Ip4Address group, int kind, String... sources) {
        IGMP igmp = new IGMP.IGMPv3();
        igmp.setIgmpType(IGMP.TYPE_IGMPV3_MEMBERSHIP_REPORT);
        IGMPMembership record = new IGMPMembership(group);
        record.setRecordType((byte) kind);
        for (String source : sources) {
            record.addSource(Ip4Address.valueOf(source));
        }
        igmp.addGroup(record);
        return igmp;
    }

    @Test
    public void reportsOfAllVersionsAreRead() {
        assertThat(IgmpReports.read(frame(v2(0x12, GROUP))), is(Map.of(GROUP, true)));
        assertThat(IgmpReports.read(frame(v2(0x16, GROUP))), is(Map.of(GROUP, true)));
        assertThat(IgmpReports.read(frame(v2(0x17, GROUP))), is(Map.of(GROUP, false)));
        assertThat(IgmpReports.read(frame(v3(GROUP, 4))), is(Map.of(GROUP, true)));
        assertThat(IgmpReports.read(frame(v3(GROUP, 3))), is(Map.of(GROUP, false)));
        assertThat(IgmpReports.read(frame(v3(OTHER, 1, "10.0.0.9"))), is(Map.of(OTHER, true)));
        assertThat(IgmpReports.read(frame(v3(OTHER, 5, "10.0.0.9"))), is(Map.of(OTHER, true)));
        assertThat(IgmpReports.read(frame(v3(OTHER, 6, "10.0.0.9"))), is(Map.of()));
    }

    @Test
    public void addressesThatStayOnALinkAreNone() {
        assertThat(IgmpReports.read(frame(v2(0x16, Ip4Address.valueOf("224.0.0.251")))), is(Map.of()));
        assertThat(IgmpReports.read(frame(v2(0x16, Ip4Address.valueOf("10.0.0.1")))), is(Map.of()));
    }

    @Test
    public void otherPacketsSayNothing() {
        assertThat(IgmpReports.read(null), is(Map.of()));
        assertThat(IgmpReports.read(frame(v2(0x11, GROUP))), is(Map.of()));
        Ethernet udp = frame(v2(0x16, GROUP));
        ((IPv4) udp.getPayload()).setProtocol(IPv4.PROTOCOL_UDP).setPayload(new UDP());
        assertThat(IgmpReports.read(udp), is(Map.of()));
        Ethernet lldp = new Ethernet();
        lldp.setEtherType(Ethernet.TYPE_LLDP);
        assertThat(IgmpReports.read(lldp), is(Map.of()));
    }
}
