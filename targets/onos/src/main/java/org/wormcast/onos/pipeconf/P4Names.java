package org.wormcast.onos.pipeconf;

import org.onosproject.net.pi.model.PiActionId;
import org.onosproject.net.pi.model.PiActionParamId;
import org.onosproject.net.pi.model.PiMatchFieldId;
import org.onosproject.net.pi.model.PiPacketMetadataId;
import org.onosproject.net.pi.model.PiTableId;

/**
 * Names of the P4 program; a test compares them with the P4Info. p4src/CONTRACT.md says what they mean.
 */
public final class P4Names {

    /** Egress ports that exist. */
    public static final PiTableId PORTS = PiTableId.of("ingress.ports");
    /** Whether a port leads to a switch or to a host. */
    public static final PiTableId PORT_ROLES = PiTableId.of("ingress.port_roles");
    /** Sets of branch ports of TREE worms. */
    public static final PiTableId TREE_SETS = PiTableId.of("ingress.tree_sets");
    /** Group numbers. */
    public static final PiTableId GROUPS = PiTableId.of("ingress.groups");
    /** IP multicast addresses. */
    public static final PiTableId CLASS_D = PiTableId.of("ingress.class_d");
    /** Ports that lead to hosts. */
    public static final PiTableId EDGE_PORTS = PiTableId.of("egress.edge_ports");
    /** By which number a switch signs records of hops; has no key, and no objective means it. */
    public static final PiTableId TRACE = PiTableId.of("egress.trace");
    /** Packet or wormhole mode; has no key, and no objective means it. */
    public static final PiTableId WORMHOLE = PiTableId.of("ingress.wormhole");
    /** What the guard lets in by a port; no objective means it or the other three tables of the guard. */
    public static final PiTableId GUARD = PiTableId.of("ingress.guard");
    /** Whose worms may be in transit. */
    public static final PiTableId SOURCES = PiTableId.of("ingress.sources");
    /** Groups that everybody may send to. */
    public static final PiTableId OPEN_GROUPS = PiTableId.of("ingress.open_groups");
    /** Ports whose hosts may send to a group; has two keys. */
    public static final PiTableId GROUP_SENDERS = PiTableId.of("ingress.group_senders");
    /** Branches by which ACKs are gathered; has three keys, and no objective means it. */
    public static final PiTableId GATHER = PiTableId.of("ingress.gather");

    /** Key of PORTS and GATHER. */
    public static final PiMatchFieldId PORT = PiMatchFieldId.of("port");
    /** Key of PORT_ROLES, GUARD and GROUP_SENDERS. */
    public static final PiMatchFieldId INGRESS_PORT = PiMatchFieldId.of("standard_metadata.ingress_port");
    /** Key of TREE_SETS. */
    public static final PiMatchFieldId PORT_SET = PiMatchFieldId.of("port_set");
    /** Key of GROUPS, OPEN_GROUPS, GROUP_SENDERS and GATHER. */
    public static final PiMatchFieldId GROUP = PiMatchFieldId.of("group");
    /** Key of GATHER. */
    public static final PiMatchFieldId ORIGIN = PiMatchFieldId.of("origin");
    /** Key of SOURCES. */
    public static final PiMatchFieldId SOURCE = PiMatchFieldId.of("source");
    /** Key of CLASS_D. */
    public static final PiMatchFieldId IPV4_DST = PiMatchFieldId.of("hdr.ipv4.dst");
    /** Key of EDGE_PORTS. */
    public static final PiMatchFieldId EGRESS_PORT = PiMatchFieldId.of("standard_metadata.egress_port");

    /** Copies to a replication group. */
    public static final PiActionId REPLICATE = PiActionId.of("ingress.replicate");
    /** Copies to all ports, filtered at egress; default of TREE_SETS. */
    public static final PiActionId REPLICATE_FILTERED = PiActionId.of("ingress.replicate_filtered");
    /** Makes an IP multicast packet a GROUP worm. */
    public static final PiActionId ENTER_GROUP = PiActionId.of("ingress.enter_group");

    /** Number of a replication group, of REPLICATE. */
    public static final PiActionParamId MGID = PiActionParamId.of("mgid");
    /** Group number, of ENTER_GROUP. */
    public static final PiActionParamId GROUP_NUMBER = PiActionParamId.of("group");
    /** Ports 0 to 127, of REPLICATE_FILTERED. */
    public static final PiActionParamId LOW = PiActionParamId.of("low");
    /** Ports 128 to 255, of REPLICATE_FILTERED. */
    public static final PiActionParamId HIGH = PiActionParamId.of("high");

    /** Of packet-in: the port a packet came from. */
    public static final PiPacketMetadataId PACKET_IN_PORT = PiPacketMetadataId.of("ingress_port");
    /** Of packet-out: the port a packet leaves by. */
    public static final PiPacketMetadataId PACKET_OUT_PORT = PiPacketMetadataId.of("egress_port");

    /** Of packet-out: fills the header up to whole bytes. */
    public static final PiPacketMetadataId PACKET_OUT_PAD = PiPacketMetadataId.of("pad");

    /** Bits of a port number. */
    public static final int PORT_BITS = 9;
    /** Bits of PACKET_OUT_PAD. */
    public static final int PAD_BITS = 7;
    /** Bits of a group number and of the number of a replication group. */
    public static final int GROUP_BITS = 16;
    /** Port of the controller, of packet-in and packet-out. */
    public static final int CPU_PORT = 510;
    /** Greatest number of a replication group that BMv2 takes. */
    public static final int MGID_MAX = 0x7fff;

    private P4Names() {
    }
}
