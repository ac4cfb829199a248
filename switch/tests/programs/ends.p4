// What ends a packet early: exit, return, failed assertions, parser errors; and messages.

#include <core.p4>
#include <v1model.p4>

header h_t {
    bit<8> op;
    bit<8> a;
    bit<8> b;
}

header more_t {
    bit<32> value;
}

struct headers_t {
    h_t h;
    more_t more;
}

struct metadata_t {}
error { NotOne }

parser parse(packet_in packet, out headers_t hdr, inout metadata_t meta,
             inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.h);
        transition select(hdr.h.op) {
            6: more;
            7: check;
            8: nothing;
            default: accept;
        }
    }
    state more {
        packet.extract(hdr.more);
        transition accept;
    }
    state check {
        verify(hdr.h.a == 1, error.NotOne);
        transition more;
    }
    state nothing {
        transition select(hdr.h.a) {
            1: accept;
        }
    }
}

control verify_checksums(inout headers_t hdr, inout metadata_t meta) {
    apply {}
}

control ingress(inout headers_t hdr, inout metadata_t meta,
                inout standard_metadata_t standard_metadata) {
    action stop() {
        hdr.h.a = 0x11;
        exit;
    }
    action go_on() {
        hdr.h.a = 0x22;
    }
    table choose {
        key = { hdr.h.op: exact; }
        actions = { stop; go_on; }
        default_action = go_on();
        const entries = {
            1: stop();
        }
    }
    apply {
        standard_metadata.egress_spec = 1;
        if (standard_metadata.parser_error == error.PacketTooShort) {
            standard_metadata.egress_spec = 2;
        } else if (standard_metadata.parser_error == error.NotOne) {
            standard_metadata.egress_spec = 3;
        } else if (standard_metadata.parser_error == error.NoMatch) {
            standard_metadata.egress_spec = 4;
        }
        choose.apply();
        if (hdr.h.op == 2) {
            hdr.h.b = 0x33;
            return;
        }
        if (hdr.h.op == 3) {
            assert(hdr.h.b == 0);
        } else if (hdr.h.op == 4) {
            assume(hdr.h.b == 0);
        } else if (hdr.h.op == 5) {
            log_msg("op is five");
            log_msg("op {} and b {}", { hdr.h.op, hdr.h.b });
        }
        hdr.h.b = 0x44;
    }
}

control egress(inout headers_t hdr, inout metadata_t meta,
               inout standard_metadata_t standard_metadata) {
    apply {
        if (hdr.h.op == 9) {
            mark_to_drop(standard_metadata);
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
