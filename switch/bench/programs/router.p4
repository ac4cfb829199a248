// A router with access lists in the manner of the SAI pipelines of data centres: VLAN to router
// interface, admission to layer 3, a ternary access list over the usual fields, longest prefixes
// by VRF, next hop, neighbour, rewriting. The measurement fills it with 10,000 prefixes and 500
// access list entries.
#include <core.p4>
#include <v1model.p4>

const bit<16> TYPE_VLAN = 0x8100;
const bit<16> TYPE_IPV4 = 0x0800;
const bit<16> TYPE_IPV6 = 0x86dd;
const bit<8> PROTOCOL_TCP = 6;
const bit<8> PROTOCOL_UDP = 17;

header ethernet_t {
    bit<48> dst;
    bit<48> src;
    bit<16> type;
}

header vlan_t {
    bit<3> pcp;
    bit<1> dei;
    bit<12> id;
    bit<16> type;
}

header ipv4_t {
    bit<4> version;
    bit<4> ihl;
    bit<6> dscp;
    bit<2> ecn;
    bit<16> length;
    bit<16> id;
    bit<3> flags;
    bit<13> offset;
    bit<8> ttl;
    bit<8> protocol;
    bit<16> checksum;
    bit<32> src;
    bit<32> dst;
}

header ipv6_t {
    bit<4> version;
    bit<6> dscp;
    bit<2> ecn;
    bit<20> flow;
    bit<16> length;
    bit<8> protocol;
    bit<8> ttl;
    bit<128> src;
    bit<128> dst;
}

// What TCP and UDP have in common.
header transport_t {
    bit<16> src;
    bit<16> dst;
}

struct headers_t {
    ethernet_t ethernet;
    vlan_t vlan;
    ipv4_t ipv4;
    ipv6_t ipv6;
    transport_t transport;
}

struct metadata_t {
    bit<12> vlan;
    bit<16> type;
    bit<16> rif;
    bit<16> vrf;
    bit<1> admitted;
    bit<6> dscp;
    bit<8> ttl;
    bit<8> protocol;
    bit<32> src4;
    bit<32> dst4;
    bit<16> nexthop;
    bit<16> neighbor;
    bit<16> rif_out;
}

parser parse(packet_in packet, out headers_t hdr, inout metadata_t meta,
             inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.ethernet);
        meta.type = hdr.ethernet.type;
        transition select(hdr.ethernet.type) {
            TYPE_VLAN: vlan;
            TYPE_IPV4: ipv4;
            TYPE_IPV6: ipv6;
            default: accept;
        }
    }
    state vlan {
        packet.extract(hdr.vlan);
        meta.vlan = hdr.vlan.id;
        meta.type = hdr.vlan.type;
        transition select(hdr.vlan.type) {
            TYPE_IPV4: ipv4;
            TYPE_IPV6: ipv6;
            default: accept;
        }
    }
    state ipv4 {
        packet.extract(hdr.ipv4);
        meta.dscp = hdr.ipv4.dscp;
        meta.ttl = hdr.ipv4.ttl;
        meta.protocol = hdr.ipv4.protocol;
        meta.src4 = hdr.ipv4.src;
        meta.dst4 = hdr.ipv4.dst;
        transition select(hdr.ipv4.ihl, hdr.ipv4.offset, hdr.ipv4.protocol) {
            (5, 0, PROTOCOL_TCP): transport;
            (5, 0, PROTOCOL_UDP): transport;
            default: accept;
        }
    }
    state ipv6 {
        packet.extract(hdr.ipv6);
        meta.dscp = hdr.ipv6.dscp;
        meta.ttl = hdr.ipv6.ttl;
        meta.protocol = hdr.ipv6.protocol;
        transition select(hdr.ipv6.protocol) {
            PROTOCOL_TCP: transport;
            PROTOCOL_UDP: transport;
            default: accept;
        }
    }
    state transport {
        packet.extract(hdr.transport);
        transition accept;
    }
}

control verify_checksums(inout headers_t hdr, inout metadata_t meta) {
    apply {
        verify_checksum(hdr.ipv4.isValid() && hdr.ipv4.ihl == 5,
            { hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.dscp, hdr.ipv4.ecn, hdr.ipv4.length,
              hdr.ipv4.id, hdr.ipv4.flags, hdr.ipv4.offset, hdr.ipv4.ttl, hdr.ipv4.protocol,
              hdr.ipv4.src, hdr.ipv4.dst },
            hdr.ipv4.checksum, HashAlgorithm.csum16);
    }
}

control ingress(inout headers_t hdr, inout metadata_t meta,
                inout standard_metadata_t standard_metadata) {
    direct_counter(CounterType.packets_and_bytes) access_list_counter;

    action drop() {
        mark_to_drop(standard_metadata);
    }
    action set_rif(bit<16> rif, bit<16> vrf) {
        meta.rif = rif;
        meta.vrf = vrf;
    }
    table vlan_to_rif {
        key = {
            standard_metadata.ingress_port: exact;
            meta.vlan: exact;
        }
        actions = { set_rif; drop; }
        const default_action = drop();
        size = 1024;
    }

    action admit() {
        meta.admitted = 1;
    }
    table l3_admit {
        key = {
            hdr.ethernet.dst: ternary;
            standard_metadata.ingress_port: ternary;
        }
        actions = { admit; NoAction; }
        const default_action = NoAction();
        size = 64;
    }

    action permit() {
        access_list_counter.count();
    }
    action deny() {
        access_list_counter.count();
        mark_to_drop(standard_metadata);
        exit;
    }
    table access_list {
        key = {
            standard_metadata.ingress_port: ternary @name("port_in");
            hdr.ethernet.src: ternary @name("mac_src");
            hdr.ethernet.dst: ternary @name("mac_dst");
            meta.type: ternary @name("type");
            meta.src4: ternary @name("src4");
            meta.dst4: ternary @name("dst4");
            hdr.ipv6.dst[127:64]: ternary @name("dst6");
            meta.protocol: ternary @name("protocol");
            meta.dscp: ternary @name("dscp");
            meta.ttl: ternary @name("ttl");
            hdr.transport.src: ternary @name("port_src");
            hdr.transport.dst: ternary @name("port_dst");
        }
        actions = { permit; deny; NoAction; }
        const default_action = NoAction();
        counters = access_list_counter;
        size = 1024;
    }

    action set_nexthop(bit<16> nexthop) {
        meta.nexthop = nexthop;
    }
    table routes4 {
        key = {
            meta.vrf: exact;
            hdr.ipv4.dst: lpm;
        }
        actions = { set_nexthop; drop; }
        const default_action = drop();
        size = 32768;
    }
    table routes6 {
        key = {
            meta.vrf: exact;
            hdr.ipv6.dst: lpm;
        }
        actions = { set_nexthop; drop; }
        const default_action = drop();
        size = 16384;
    }

    action resolve(bit<16> rif_out, bit<16> neighbor) {
        meta.rif_out = rif_out;
        meta.neighbor = neighbor;
    }
    table nexthops {
        key = { meta.nexthop: exact; }
        actions = { resolve; drop; }
        const default_action = drop();
        size = 4096;
    }

    action rewrite_destination(bit<48> dst) {
        hdr.ethernet.dst = dst;
    }
    table neighbors {
        key = {
            meta.rif_out: exact;
            meta.neighbor: exact;
        }
        actions = { rewrite_destination; drop; }
        const default_action = drop();
        size = 4096;
    }

    action leave(bit<9> port, bit<48> src) {
        standard_metadata.egress_spec = port;
        hdr.ethernet.src = src;
    }
    table router_interfaces {
        key = { meta.rif_out: exact; }
        actions = { leave; drop; }
        const default_action = drop();
        size = 1024;
    }

    apply {
        vlan_to_rif.apply();
        l3_admit.apply();
        access_list.apply();
        if (meta.admitted == 1 && meta.ttl > 1 && standard_metadata.checksum_error == 0) {
            if (hdr.ipv4.isValid()) {
                routes4.apply();
                hdr.ipv4.ttl = hdr.ipv4.ttl - 1;
            } else if (hdr.ipv6.isValid()) {
                routes6.apply();
                hdr.ipv6.ttl = hdr.ipv6.ttl - 1;
            }
            nexthops.apply();
            neighbors.apply();
            router_interfaces.apply();
        } else {
            drop();
        }
    }
}

control egress(inout headers_t hdr, inout metadata_t meta,
               inout standard_metadata_t standard_metadata) {
    counter(512, CounterType.packets_and_bytes) ports;
    apply {
        ports.count((bit<32>) standard_metadata.egress_port);
    }
}

control compute_checksums(inout headers_t hdr, inout metadata_t meta) {
    apply {
        update_checksum(hdr.ipv4.isValid() && hdr.ipv4.ihl == 5,
            { hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.dscp, hdr.ipv4.ecn, hdr.ipv4.length,
              hdr.ipv4.id, hdr.ipv4.flags, hdr.ipv4.offset, hdr.ipv4.ttl, hdr.ipv4.protocol,
              hdr.ipv4.src, hdr.ipv4.dst },
            hdr.ipv4.checksum, HashAlgorithm.csum16);
    }
}

control deparse(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr);
    }
}

V1Switch(parse(), verify_checksums(), ingress(), egress(), compute_checksums(), deparse()) main;
