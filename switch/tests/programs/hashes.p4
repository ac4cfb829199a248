// Every hash algorithm of v1model, with base and size.

#include <core.p4>
#include <v1model.p4>

header h_t {
    bit<8> algorithm;
    bit<8> a;
    bit<32> b;
    bit<64> result;
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
    apply {
        standard_metadata.egress_spec = 1;
        if (hdr.h.algorithm == 0) {
            hash(hdr.h.result, HashAlgorithm.crc32, 64w0, { hdr.h.a, hdr.h.b }, 64w0x100000000);
        } else if (hdr.h.algorithm == 1) {
            hash(hdr.h.result, HashAlgorithm.crc16, 64w0, { hdr.h.a, hdr.h.b }, 64w0x100000000);
        } else if (hdr.h.algorithm == 2) {
            hash(hdr.h.result, HashAlgorithm.csum16, 64w0, { hdr.h.a, hdr.h.b }, 64w0x100000000);
        } else if (hdr.h.algorithm == 3) {
            hash(hdr.h.result, HashAlgorithm.xor16, 64w0, { hdr.h.a, hdr.h.b }, 64w0x100000000);
        } else if (hdr.h.algorithm == 4) {
            hash(hdr.h.result, HashAlgorithm.identity, 64w0, { hdr.h.b }, 64w0x100000000);
        } else if (hdr.h.algorithm == 5) {
            hash(hdr.h.result, HashAlgorithm.crc32_custom, 64w0, { hdr.h.a, hdr.h.b }, 64w0x100000000);
        } else if (hdr.h.algorithm == 6) {
            hash(hdr.h.result, HashAlgorithm.crc16_custom, 64w0, { hdr.h.a, hdr.h.b }, 64w0x100000000);
        } else if (hdr.h.algorithm == 7) {
            // Into the range from 100 to 109.
            hash(hdr.h.result, HashAlgorithm.identity, 64w100, { hdr.h.b }, 64w10);
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
