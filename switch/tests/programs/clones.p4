// Clones from ingress and egress, with lists of fields that survive.

#include <core.p4>
#include <v1model.p4>

header h_t {
    bit<8> op;
    bit<8> kept;
    bit<8> lost;
    bit<8> kind;
}

struct headers_t {
    h_t h;
}

struct metadata_t {
    @field_list(1) bit<8> kept;
    bit<8> lost;
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
        meta.kept = 0xaa;
        meta.lost = 0xbb;
        if (hdr.h.op == 1) {
            clone_preserving_field_list(CloneType.I2E, 5, 1);
        } else if (hdr.h.op == 2) {
            clone(CloneType.I2E, 5);
        } else if (hdr.h.op == 4) {
            clone(CloneType.I2E, 6);
        } else if (hdr.h.op == 5) {
            clone_preserving_field_list(CloneType.I2E, 7, 1);
            mark_to_drop(standard_metadata);
        }
    }
}

control egress(inout headers_t hdr, inout metadata_t meta,
               inout standard_metadata_t standard_metadata) {
    apply {
        if (hdr.h.op == 3 && standard_metadata.instance_type == 0) {
            clone_preserving_field_list(CloneType.E2E, 5, 1);
        }
        hdr.h.kept = meta.kept;
        hdr.h.lost = meta.lost;
        hdr.h.kind = (bit<8>) standard_metadata.instance_type;
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
