// An action selector: members alone, groups by hash, and groups without members.

#include <core.p4>
#include <v1model.p4>

header h_t {
    bit<8> key;
    bit<16> flow;
    bit<8> seen;
}

struct headers_t {
    h_t h;
}

struct metadata_t {}

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
    action_selector(HashAlgorithm.identity, 8, 4) choice;
    action_profile(4) single;
    action take(bit<9> port) {
        standard_metadata.egress_spec = port;
    }
    table spread {
        key = {
            hdr.h.key: exact;
            hdr.h.flow: selector;
        }
        actions = { take; NoAction; }
        implementation = choice;
        default_action = NoAction();
    }
    table alone {
        key = { hdr.h.key: exact; }
        actions = { take; NoAction; }
        implementation = single;
        default_action = NoAction();
    }
    apply {
        standard_metadata.egress_spec = 9;
        if (spread.apply().hit) {
            hdr.h.seen = hdr.h.seen + 1;
        }
        if (alone.apply().hit) {
            hdr.h.seen = hdr.h.seen + 2;
        }
    }
}

control egress(inout headers_t hdr, inout metadata_t meta,
               inout standard_metadata_t standard_metadata) {
    apply {}
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
