// What p4c keeps in the P4Info and leaves out of the program, and keys whose width the P4Info does
// not have: a field of no bits, and one of type error. Packets for the CPU port 510 get a packet_in, those from there have a
// packet_out. A packet-out goes to its egress_port, or with do_forwarding through `addresses`.

#include <core.p4>
#include <v1model.p4>

@p4runtime_translation("", string)
type bit<9> port_id_t;

header ethernet_t {
    bit<48> dst;
    bit<48> src;
    bit<16> type;
}

@controller_header("packet_in")
header packet_in_t {
    port_id_t ingress_port;
    port_id_t target_port;
    @padding bit<6> unused;
}

@controller_header("packet_out")
header packet_out_t {
    bit<9> egress_port;
    bit<1> do_forwarding;
    @padding bit<6> unused;
}

struct headers_t {
    packet_in_t packet_in_header;
    packet_out_t packet_out_header;
    ethernet_t ethernet;
}

struct metadata_t {
    bit<0> nothing;
}

struct note_t {
    bit<48> dst;
}

parser parse(packet_in packet, out headers_t hdr, inout metadata_t meta,
             inout standard_metadata_t standard_metadata) {
    state start {
        transition select(standard_metadata.ingress_port) {
            510: controller;
            default: ethernet;
        }
    }
    state controller {
        packet.extract(hdr.packet_out_header);
        transition ethernet;
    }
    state ethernet {
        packet.extract(hdr.ethernet);
        transition accept;
    }
}

control verify_checksums(inout headers_t hdr, inout metadata_t meta) {
    apply {}
}

control ingress(inout headers_t hdr, inout metadata_t meta,
                inout standard_metadata_t standard_metadata) {
    counter(4, CounterType.packets) unreached_counter;
    meter(4, MeterType.packets) unreached_meter;
    register<bit<8>>(4) unreached_register;
    direct_counter(CounterType.packets) unreached_direct_counter;
    direct_meter<bit<8>>(MeterType.packets) unreached_direct_meter;

    action forward(port_id_t port) {
        standard_metadata.egress_spec = (bit<9>) port;
    }
    action note(bit<9> port) {
        bit<8> colour = 0;
        unreached_counter.count(1);
        unreached_meter.execute_meter(1, colour);
        unreached_register.write(1, colour);
        unreached_direct_counter.count();
        unreached_direct_meter.read(colour);
        digest<note_t>(1, { hdr.ethernet.dst });
        standard_metadata.egress_spec = port;
    }
    table addresses {
        key = {
            hdr.ethernet.dst: exact;
            meta.nothing: exact @name("nothing");
            standard_metadata.parser_error: exact @name("cause");
        }
        actions = { forward; NoAction; }
        default_action = NoAction;
    }
    table unreached {
        key = { hdr.ethernet.dst: ternary; }
        actions = { note; NoAction; }
        default_action = NoAction;
        counters = unreached_direct_counter;
        meters = unreached_direct_meter;
    }
    table unreached_choice {
        key = { hdr.ethernet.type: exact; hdr.ethernet.src: selector; }
        actions = { forward; NoAction; }
        @name("unreached_selector")
        implementation = action_selector(HashAlgorithm.crc16, 16, 8);
    }
    apply {
        // Never so, as p4c finds out after it has written the P4Info.
        bool reached = false;
        if (reached) {
            unreached.apply();
            unreached_choice.apply();
        }
        if (hdr.packet_out_header.isValid() && hdr.packet_out_header.do_forwarding == 0) {
            standard_metadata.egress_spec = hdr.packet_out_header.egress_port;
        } else {
            addresses.apply();
        }
        hdr.packet_out_header.setInvalid();
    }
}

control egress(inout headers_t hdr, inout metadata_t meta,
               inout standard_metadata_t standard_metadata) {
    apply {
        if (standard_metadata.egress_port == 510) {
            hdr.packet_in_header.setValid();
            hdr.packet_in_header.ingress_port = (port_id_t) standard_metadata.ingress_port;
            hdr.packet_in_header.target_port = (port_id_t) standard_metadata.egress_spec;
        }
    }
}

control update_checksums(inout headers_t hdr, inout metadata_t meta) {
    apply {}
}

control deparse(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.packet_in_header);
        packet.emit(hdr.ethernet);
    }
}

V1Switch(parse(), verify_checksums(), ingress(), egress(), update_checksums(), deparse()) main;
