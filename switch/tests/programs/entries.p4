// Entries of the program with priorities, and tables of every kind of key.

#include <core.p4>
#include <v1model.p4>

header h_t {
    bit<8> table_number;
    bit<8> a;
    bit<16> b;
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
    action mark(bit<8> value) {
        hdr.h.seen = value;
        standard_metadata.egress_spec = 1;
    }
    table fixed {
        key = {
            hdr.h.a: ternary;
            hdr.h.b: range;
        }
        actions = { mark; NoAction; }
        default_action = mark(0xff);
        entries = {
            priority = 20: (_, 7): mark(2);
            priority = 30: (0x10 &&& 0xf0, 5 .. 9): mark(1);
            priority = 10: (0x10 &&& 0xf0, _): mark(3);
        }
    }
    table ordered {
        key = { hdr.h.a: ternary; }
        actions = { mark; NoAction; }
        const default_action = NoAction();
        const entries = {
            0x01 &&& 0x01: mark(4);
            0x02 &&& 0x02: mark(5);
            _: mark(6);
        }
    }
    table optional_key {
        key = {
            hdr.h.a: optional;
            hdr.h.b: optional;
        }
        actions = { mark; NoAction; }
        default_action = NoAction();
    }
    table by_range {
        key = { hdr.h.b: range; }
        actions = { mark; NoAction; }
        default_action = NoAction();
    }
    table mixed {
        key = {
            hdr.h.a: exact;
            hdr.h.b: lpm;
        }
        actions = { mark; NoAction; }
        default_action = mark(0xee);
    }
    apply {
        standard_metadata.egress_spec = 2;
        if (hdr.h.table_number == 0) {
            fixed.apply();
        } else if (hdr.h.table_number == 1) {
            ordered.apply();
        } else if (hdr.h.table_number == 2) {
            if (optional_key.apply().miss) {
                hdr.h.seen = 0xdd;
            }
        } else if (hdr.h.table_number == 3) {
            by_range.apply();
        } else if (hdr.h.table_number == 4) {
            mixed.apply();
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
