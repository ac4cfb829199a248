// Fields of 128 and 256 bits: arithmetic, shifts, slices, comparisons, table keys.

#include <core.p4>
#include <v1model.p4>

header h_t {
    bit<8> op;
    bit<128> a;
    bit<128> b;
}

header wide_t {
    bit<256> both;
}

struct headers_t {
    h_t h;
    wide_t wide;
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
    action forward(bit<9> port, bit<128> value) {
        standard_metadata.egress_spec = port;
        hdr.h.b = value;
    }
    table prefixes {
        key = { hdr.h.a: lpm; }
        actions = { forward; NoAction; }
        default_action = NoAction();
    }
    apply {
        standard_metadata.egress_spec = 1;
        if (hdr.h.op == 0) {
            hdr.h.b = hdr.h.a + hdr.h.b;
        } else if (hdr.h.op == 1) {
            hdr.h.b = hdr.h.a - hdr.h.b;
        } else if (hdr.h.op == 2) {
            hdr.h.b = hdr.h.a << (bit<8>) hdr.h.b;
        } else if (hdr.h.op == 3) {
            hdr.h.b = hdr.h.a >> (bit<8>) hdr.h.b;
        } else if (hdr.h.op == 4) {
            hdr.h.b[99:28] = hdr.h.a[71:0];
        } else if (hdr.h.op == 5) {
            hdr.h.b = (hdr.h.a > hdr.h.b) ? 128w1 : 128w0;
        } else if (hdr.h.op == 6) {
            hdr.h.b = (bit<128>) ((int<128>) hdr.h.a >> 4);
        } else if (hdr.h.op == 7) {
            hdr.wide.setValid();
            hdr.wide.both = (hdr.h.a ++ hdr.h.b) ^ (256w1 << 255);
        } else if (hdr.h.op == 8) {
            prefixes.apply();
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
