// Packets that pass again, by resubmission and recirculation, and cut packets.

#include <core.p4>
#include <v1model.p4>

header h_t {
    bit<8> op;
    bit<8> passes;
    bit<8> kept;
    bit<8> lost;
    bit<16> length;
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
        if (hdr.h.op == 1 && meta.kept < 3) {
            meta.kept = meta.kept + 1;
            meta.lost = meta.lost + 1;
            resubmit_preserving_field_list(1);
        } else if (hdr.h.op == 4) {
            resubmit_preserving_field_list(1);
        }
        hdr.h.kept = meta.kept;
        hdr.h.lost = meta.lost;
        hdr.h.passes = hdr.h.passes + 1;
        if (hdr.h.op == 1 || hdr.h.op == 6) {
            hdr.h.length = (bit<16>) standard_metadata.packet_length;
        }
    }
}

control egress(inout headers_t hdr, inout metadata_t meta,
               inout standard_metadata_t standard_metadata) {
    apply {
        if (hdr.h.op == 2 && hdr.h.passes < 3) {
            meta.kept = meta.kept + 1;
            recirculate_preserving_field_list(1);
        } else if (hdr.h.op == 3) {
            truncate(8);
        } else if (hdr.h.op == 5) {
            recirculate_preserving_field_list(1);
        } else if (hdr.h.op == 6) {
            truncate(8);
            if (hdr.h.passes < 3) {
                recirculate_preserving_field_list(1);
            }
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
