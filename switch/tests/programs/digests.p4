// Digests, two kinds, with the values fields have where they are asked for.

#include <core.p4>
#include <v1model.p4>

header h_t {
    bit<8> op;
    bit<48> address;
    bit<16> value;
}

struct headers_t {
    h_t h;
}

struct metadata_t {}

struct learn_t {
    bit<48> address;
    bit<9> port;
}

struct note_t {
    bit<16> value;
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
    apply {
        standard_metadata.egress_spec = 1;
        if (hdr.h.op == 1) {
            digest<learn_t>(1, { hdr.h.address, standard_metadata.ingress_port });
        } else if (hdr.h.op == 2) {
            digest<note_t>(1, { hdr.h.value });
            hdr.h.value = hdr.h.value + 1;
        } else if (hdr.h.op == 3) {
            digest<note_t>(1, { hdr.h.value });
            mark_to_drop(standard_metadata);
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
