// Checksums that are verified and updated, with and without the payload.

#include <core.p4>
#include <v1model.p4>

header h_t {
    bit<8> kind;
    bit<8> value;
    bit<16> plain;
    bit<16> whole;
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
    apply {
        verify_checksum(hdr.h.kind != 9, { hdr.h.kind, hdr.h.value }, hdr.h.plain, HashAlgorithm.csum16);
        verify_checksum_with_payload(hdr.h.kind == 1, { hdr.h.kind, hdr.h.value }, hdr.h.whole,
                                     HashAlgorithm.csum16);
    }
}

control ingress(inout headers_t hdr, inout metadata_t meta,
                inout standard_metadata_t standard_metadata) {
    apply {
        standard_metadata.egress_spec = 1;
        if (standard_metadata.checksum_error == 1) {
            standard_metadata.egress_spec = 2;
        }
        if (hdr.h.kind == 1) {
            hdr.h.value = hdr.h.value + 1;
        }
    }
}

control egress(inout headers_t hdr, inout metadata_t meta,
               inout standard_metadata_t standard_metadata) {
    apply {}
}

control update_checksums(inout headers_t hdr, inout metadata_t meta) {
    apply {
        update_checksum(true, { hdr.h.kind, hdr.h.value }, hdr.h.plain, HashAlgorithm.csum16);
        update_checksum_with_payload(hdr.h.kind == 1, { hdr.h.kind, hdr.h.value }, hdr.h.whole,
                                     HashAlgorithm.csum16);
    }
}

control deparse(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr);
    }
}

V1Switch(parse(), verify_checksums(), ingress(), egress(), update_checksums(), deparse()) main;
