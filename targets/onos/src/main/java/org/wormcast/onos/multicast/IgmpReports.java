package org.wormcast.onos.multicast;

import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;

import org.onlab.packet.Ethernet;
import org.onlab.packet.IGMP;
import org.onlab.packet.IGMPGroup;
import org.onlab.packet.IGMPMembership;
import org.onlab.packet.IPv4;
import org.onlab.packet.Ip4Address;
import org.onlab.packet.Ip4Prefix;

/**
 * What a host says by IGMP (RFC 2236, RFC 3376).
 */
final class IgmpReports {

    private static final byte TYPE_IGMPV1_REPORT = 0x12;
    private static final Ip4Prefix CLASS_D = Ip4Prefix.valueOf("224.0.0.0/4");
    /** RFC 5771 §4: these never leave a link. */
    private static final Ip4Prefix LINK_LOCAL = Ip4Prefix.valueOf("224.0.0.0/24");

    private IgmpReports() {
    }

    /**
     * Addresses whose packets a host wants, or does not want any more.
     *
     * <p>The fabric knows no sources: who wants an address from some sources wants it, and who excludes some does too.
     *
     * @param packet a packet from a host
     * @return true: wants it; empty if the packet is no IGMP report
     */
    static Map<Ip4Address, Boolean> read(Ethernet packet) {
        Map<Ip4Address, Boolean> changes = new TreeMap<>();
        Optional<IGMP> igmp = igmp(packet);
        if (igmp.isEmpty()) {
            return changes;
        }
        for (IGMPGroup group : igmp.get().getGroups()) {
            Optional<Boolean> wants = wants(igmp.get().getIgmpType(), group);
            Ip4Address address = group.getGaddr().getIp4Address();
            if (wants.isPresent() && CLASS_D.contains(address) && !LINK_LOCAL.contains(address)) {
                changes.put(address, wants.get());
            }
        }
        return changes;
    }

    private static Optional<IGMP> igmp(Ethernet packet) {
        if (packet == null || packet.getEtherType() != Ethernet.TYPE_IPV4
                || ((IPv4) packet.getPayload()).getProtocol() != IPv4.PROTOCOL_IGMP
                || !(packet.getPayload().getPayload() instanceof IGMP)) {
            return Optional.empty();
        }
        return Optional.of((IGMP) packet.getPayload().getPayload());
    }

    private static Optional<Boolean> wants(byte type, IGMPGroup group) {
        switch (type) {
            case TYPE_IGMPV1_REPORT:
            case IGMP.TYPE_IGMPV2_MEMBERSHIP_REPORT:
                return Optional.of(true);
            case IGMP.TYPE_IGMPV2_LEAVE_GROUP:
                return Optional.of(false);
            case IGMP.TYPE_IGMPV3_MEMBERSHIP_REPORT:
                return wants((IGMPMembership) group);
            default:
                return Optional.empty();
        }
    }

    private static Optional<Boolean> wants(IGMPMembership group) {
        switch (group.getRecordType()) {
            case IGMPMembership.MODE_IS_EXCLUDE:
            case IGMPMembership.CHANGE_TO_EXCLUDE_MODE:
                return Optional.of(true);
            case IGMPMembership.MODE_IS_INCLUDE:
            case IGMPMembership.CHANGE_TO_INCLUDE_MODE:
                return Optional.of(!group.getSources().isEmpty());
            case IGMPMembership.ALLOW_NEW_SOURCES:
                return Optional.of(true);
            default:
                // BLOCK_OLD_SOURCES leaves open whether any source is left.
                return Optional.empty();
        }
    }
}
