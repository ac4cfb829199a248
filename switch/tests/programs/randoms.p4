// Random numbers: never outside their bounds, and both bounds come.

#include <core.p4>
#include <v1model.p4>

header h_t {
    bit<8> low;
    bit<8> high;
    bit<8> outside;
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
    register<bit<8>>(256) seen;
    apply {
        standard_metadata.egress_spec = 1;
        bit<8> value = 0;
        random(value, hdr.h.low, hdr.h.high);
        if (value < hdr.h.low || value > hdr.h.high) {
            hdr.h.outside = 1;
        }
        seen.write((bit<32>) value, 1);
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
