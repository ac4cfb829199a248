// Loops of actions and parsers, those that end and those that do not; clones of clones without end.

#include <core.p4>
#include <v1model.p4>

header h_t {
    bit<8> op;
    bit<8> count;
    bit<32> sum;
}

header step_t {
    bit<8> next;
}

struct headers_t {
    h_t h;
    step_t step;
}

struct metadata_t {}

parser parse(packet_in packet, out headers_t hdr, inout metadata_t meta,
             inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.h);
        transition select(hdr.h.op) {
            5: walk;
            6: stand;
            default: accept;
        }
    }
    // As long as the next byte says so: the last one is left.
    state walk {
        packet.extract(hdr.step);
        transition select(hdr.step.next) {
            1: walk;
            default: accept;
        }
    }
    // For ever, where count is 255.
    state stand {
        transition select(hdr.h.count) {
            255: stand;
            0 .. 3: accept;
            default: accept;
        }
    }
}

control verify_checksums(inout headers_t hdr, inout metadata_t meta) {
    apply {}
}

control ingress(inout headers_t hdr, inout metadata_t meta,
                inout standard_metadata_t standard_metadata) {
    // No number of eight bits is greater than 255.
    action up_to() {
        for (bit<8> i = 1; i <= hdr.h.count; i = i + 1) {
            hdr.h.sum = hdr.h.sum + (bit<32>)i;
        }
    }
    action squared() {
        for (bit<8> i = 0; i < hdr.h.count; i = i + 1) {
            for (bit<8> j = 0; j < hdr.h.count; j = j + 1) {
                hdr.h.sum = hdr.h.sum + 1;
            }
        }
    }
    action odd_below_nine() {
        for (bit<8> i = 0; i < hdr.h.count; i = i + 1) {
            if (i & 1 == 0) {
                continue;
            }
            if (i == 9) {
                break;
            }
            hdr.h.sum = hdr.h.sum + (bit<32>)i;
        }
    }
    table choose {
        key = { hdr.h.op: exact; }
        actions = { up_to; squared; odd_below_nine; NoAction; }
        default_action = NoAction();
        const entries = {
            1: up_to();
            2: squared();
            3: odd_below_nine();
        }
    }
    apply {
        standard_metadata.egress_spec = 1;
        choose.apply();
    }
}

control egress(inout headers_t hdr, inout metadata_t meta,
               inout standard_metadata_t standard_metadata) {
    apply {
        // Each clone is cloned again.
        if (hdr.h.op == 7 && hdr.h.count == 255) {
            clone(CloneType.E2E, 7);
        }
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
