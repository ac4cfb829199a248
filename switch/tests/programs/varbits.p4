// A varbit of every length, its copy into another header, and lengths that do not fit.

#include <core.p4>
#include <v1model.p4>

header fixed_t {
    bit<8> bytes;
}

header variable_t {
    varbit<64> data;
}

struct headers_t {
    fixed_t fixed;
    variable_t first;
    variable_t second;
}

struct metadata_t {}

parser parse(packet_in packet, out headers_t hdr, inout metadata_t meta,
             inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.fixed);
        packet.extract(hdr.first, (bit<32>) hdr.fixed.bytes << 3);
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
        if (standard_metadata.parser_error == error.HeaderTooShort) {
            standard_metadata.egress_spec = 2;
        } else if (standard_metadata.parser_error == error.PacketTooShort) {
            standard_metadata.egress_spec = 3;
        } else if (hdr.fixed.bytes == 3) {
            hdr.second = hdr.first;
            hdr.first.setInvalid();
        } else if (hdr.fixed.bytes == 4) {
            hdr.second = hdr.first;
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
