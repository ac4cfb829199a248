// What of P4Runtime the program `objects` does not have: translated types, parser value
// sets, preinitialized tables, resources of default entries, one-rate meters, selectors
// with sizes, cells of every type.
#include <core.p4>
#define V1MODEL_VERSION 20200408
#include <v1model.p4>

@p4runtime_translation("example.org/entities/PortId_t", 32)
type bit<9> port_id_t;
@p4runtime_translation("example.org/entities/NextHop_t", string)
type bit<10> NextHop_t;
type bit<12> Plain_t;

enum bit<8> Level_t { LOW = 1, HIGH = 2 }

@controller_header("packet_out")
header packet_out_t {
    port_id_t egress_port;
    bit<7> pad;
}

@controller_header("packet_in")
header packet_in_t {
    port_id_t ingress_port;
    bit<7> pad;
}

header ethernet_t {
    bit<48> dst;
    bit<48> src;
    bit<16> type;
}

header probe_t {
    bit<8> kind;
    bit<8> parsed;
    bit<16> size;
    bit<32> address;
    bit<8> colour;
    bit<8> chosen;
}

struct headers_t {
    packet_out_t packet_out;
    packet_in_t packet_in;
    ethernet_t ethernet;
    probe_t probe;
}

struct metadata_t {
    bit<2> colour;
    bit<8> parsed;
}

struct select_t {
    bit<8> kind;
    @match(ternary) bit<16> size;
    @match(lpm) bit<32> address;
}

struct span_t {
    @match(range) bit<16> size;
    @match(optional) bit<8> kind;
}

parser parse(packet_in packet, out headers_t hdr, inout metadata_t meta,
             inout standard_metadata_t standard) {
    value_set<bit<16>>(4) types;
    value_set<select_t>(4) selected;
    value_set<span_t>(4) spans;
    state start {
        transition select(standard.ingress_port) {
            510: parse_packet_out;
            default: parse_ethernet;
        }
    }
    state parse_packet_out {
        packet.extract(hdr.packet_out);
        transition parse_ethernet;
    }
    state parse_ethernet {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) {
            types: parse_probe;
            default: accept;
        }
    }
    state parse_probe {
        packet.extract(hdr.probe);
        transition select(hdr.probe.kind, hdr.probe.size, hdr.probe.address) {
            selected: in_selected;
            default: try_spans;
        }
    }
    state in_selected {
        meta.parsed = 1;
        transition accept;
    }
    state try_spans {
        transition select(hdr.probe.size, hdr.probe.kind) {
            spans: in_spans;
            default: accept;
        }
    }
    state in_spans {
        meta.parsed = 2;
        transition accept;
    }
}

control verify_none(inout headers_t hdr, inout metadata_t meta) {
    apply {}
}

control ingress(inout headers_t hdr, inout metadata_t meta,
                inout standard_metadata_t standard) {
    counter<bit<32>>(8, CounterType.packets_and_bytes) both;
    counter<port_id_t>(512, CounterType.packets) by_port;
    @single_rate_three_color
    meter<bit<32>>(2, MeterType.packets) one_rate;
    @single_rate_two_color
    meter<bit<32>>(2, MeterType.packets) two_colours;
    register<bit<1>, bit<32>>(3) flags;
    register<bit<128>, bit<32>>(2) wide;
    register<int<12>, bit<32>>(2) signed_cells;
    register<NextHop_t, bit<32>>(2) hops;
    direct_counter(CounterType.packets_and_bytes) port_counter;
    direct_counter(CounterType.packets) fixed_counter;
    direct_meter<bit<2>>(MeterType.packets) hop_meter;

    action to_port(port_id_t port) {
        standard.egress_spec = (bit<9>)port;
    }
    action set_hop(NextHop_t hop) {
        hdr.probe.chosen = (bit<8>)(bit<10>)hop;
    }
    action metered() {
        hop_meter.read(meta.colour);
    }
    action metered_to(port_id_t port) {
        hop_meter.read(meta.colour);
        standard.egress_spec = (bit<9>)port;
    }
    action replicate(bit<16> group) {
        standard.mcast_grp = group;
    }
    action mirror(bit<32> session) {
        clone(CloneType.I2E, session);
        standard.egress_spec = 1;
    }
    action choose(bit<8> value) {
        hdr.probe.chosen = value;
    }
    action mark() {
        hdr.probe.parsed = 0xff;
    }

    // Typed values in every kind of match.
    table ports {
        key = {
            (port_id_t)standard.ingress_port: exact @name("in_port");
            (NextHop_t)hdr.ethernet.src[9:0]: optional @name("hop");
            (port_id_t)standard.egress_spec: ternary @name("out_port");
            (Plain_t)hdr.ethernet.src[21:10]: ternary @name("plain");
        }
        actions = { to_port; set_hop; NoAction; }
        const default_action = NoAction();
        counters = port_counter;
        size = 8;
    }

    table metered_hops {
        key = { hdr.ethernet.dst: exact @name("dst"); }
        actions = { metered; metered_to; NoAction; }
        default_action = metered();
        meters = hop_meter;
        size = 8;
    }

    // Entries that nobody can change, with counters that everybody can.
    table fixed {
        key = { hdr.probe.kind: ternary @name("kind"); }
        actions = { mark; NoAction; }
        const entries = {
            0x10 &&& 0xf0: mark();
            0x0f &&& 0x0f: NoAction();
        }
        default_action = NoAction();
        counters = fixed_counter;
    }

    // Entries that are there at the start and can be changed.
    table initial {
        key = { hdr.probe.kind: exact @name("kind"); }
        actions = { choose; NoAction; }
        entries = {
            0x21: choose(33);
            const 0x22: choose(34);
        }
        default_action = NoAction();
        size = 16;
    }

    // Of those, matches of any value: a prefix of no bits, the whole range.
    table prefixes {
        key = { hdr.probe.kind: lpm @name("kind"); }
        actions = { NoAction; }
        entries = {
            0x40 &&& 0xf0: NoAction();
            _: NoAction();
        }
        size = 8;
    }

    table bands {
        key = { hdr.probe.kind: range @name("kind"); }
        actions = { NoAction; }
        entries = {
            0x40 .. 0x4f: NoAction();
            _: NoAction();
        }
        size = 8;
    }

    table directed {
        key = { hdr.probe.kind: exact @name("kind"); }
        actions = { replicate; mirror; to_port; NoAction; }
        default_action = NoAction();
        size = 64;
    }

    @max_group_size(6)
    @selector_size_semantics("sum_of_weights")
    action_selector(HashAlgorithm.crc16, 16, 16) by_weight;
    table weighted {
        key = {
            hdr.probe.kind: exact @name("kind");
            hdr.probe.size: selector;
        }
        actions = { choose; mark; }
        implementation = by_weight;
        size = 16;
    }

    @max_group_size(3)
    @selector_size_semantics("sum_of_members")
    @max_member_weight(100)
    action_selector(HashAlgorithm.crc16, 8, 16) by_member;
    table counted {
        key = {
            hdr.probe.kind: exact @name("kind");
            hdr.probe.size: selector;
        }
        actions = { choose; }
        implementation = by_member;
        size = 16;
    }

    action_profile(4) unselected;
    table profiled {
        key = { hdr.probe.kind: exact @name("kind"); }
        actions = { choose; @defaultonly NoAction; }
        const default_action = NoAction();
        implementation = unselected;
        size = 16;
    }

    apply {
        if (hdr.packet_out.isValid()) {
            standard.egress_spec = (bit<9>)hdr.packet_out.egress_port;
            hdr.packet_out.setInvalid();
        } else {
            ports.apply();
        }
        metered_hops.apply();
        if (hdr.probe.isValid()) {
            hdr.probe.parsed = meta.parsed;
            fixed.apply();
            initial.apply();
            prefixes.apply();
            bands.apply();
            weighted.apply();
            counted.apply();
            profiled.apply();
            directed.apply();
            both.count((bit<32>)hdr.probe.kind & 7);
            bit<2> of_one_rate;
            one_rate.execute_meter<bit<2>>(0, of_one_rate);
            two_colours.execute_meter<bit<2>>(0, meta.colour);
            hdr.probe.colour = (bit<8>)of_one_rate;
            flags.write(0, 1);
            wide.write(0, (bit<128>)hdr.probe.address);
            signed_cells.write(0, -1);
            hops.write(0, (NextHop_t)10w7);
        }
        by_port.count((port_id_t)standard.ingress_port);
    }
}

control egress(inout headers_t hdr, inout metadata_t meta,
               inout standard_metadata_t standard) {
    apply {
        if (standard.egress_port == 510) {
            hdr.packet_in.setValid();
            hdr.packet_in.ingress_port = (port_id_t)standard.ingress_port;
            hdr.packet_in.pad = 0;
        }
        if (hdr.probe.isValid()) {
            hdr.probe.size = standard.egress_rid;
        }
    }
}

control update_none(inout headers_t hdr, inout metadata_t meta) {
    apply {}
}

control deparse(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.packet_in);
        packet.emit(hdr.ethernet);
        packet.emit(hdr.probe);
    }
}

V1Switch(parse(), verify_none(), ingress(), egress(), update_none(), deparse()) main;
