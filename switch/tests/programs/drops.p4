// Packets dropped through a copy of the standard metadata, as an action has it that is given
// them: in ingress, with and without a multicast group, and in egress.

#include <core.p4>
#include <v1model.p4>

header h_t {
    bit<8> op;
    bit<8> group;
}

struct headers_t {
    h_t h;
}

struct metadata_t {
}

action give_up(inout standard_metadata_t given) {
    mark_to_drop(given);
}

parser parse(packet_in packet, out headers_t hdr, inout metadata_t meta,
             inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.h);
        transition accept;
    }
}

control verify_checksums(inout headers_t hdr, inout metadata_t meta) {
    apply {}
}

control ingress(inout headers_t hdr, inout metadata_t meta,
                inout standard_metadata_t standard_metadata) {
    table dropped {
        key = { hdr.h.op: exact; }
        actions = { give_up(standard_metadata); NoAction; }
        const entries = { 1: give_up(standard_metadata); }
        default_action = NoAction();
    }
    apply {
        standard_metadata.egress_spec = 2;
        standard_metadata.mcast_grp = (bit<16>) hdr.h.group;
        dropped.apply();
    }
}

control egress(inout headers_t hdr, inout metadata_t meta,
               inout standard_metadata_t standard_metadata) {
    table dropped {
        key = { hdr.h.op: exact; }
        actions = { give_up(standard_metadata); NoAction; }
        const entries = { 2: give_up(standard_metadata); }
        default_action = NoAction();
    }
    apply {
        dropped.apply();
    }
}

control update_checksums(inout headers_t hdr, inout metadata_t meta) {
    apply {}
}

control deparse(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr);
    }
}

V1Switch(parse(), verify_checksums(), ingress(), egress(), update_checksums(), deparse()) main;
