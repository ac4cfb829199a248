// Multicast groups: instances, several copies by one port, groups without copies.

#include <core.p4>
#include <v1model.p4>

header h_t {
    bit<16> group;
    bit<16> instance;
    bit<8> port;
    bit<8> kind;
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
        standard_metadata.mcast_grp = hdr.h.group;
    }
}

control egress(inout headers_t hdr, inout metadata_t meta,
               inout standard_metadata_t standard_metadata) {
    apply {
        hdr.h.instance = standard_metadata.egress_rid;
        hdr.h.port = (bit<8>) standard_metadata.egress_port;
        hdr.h.kind = (bit<8>) standard_metadata.instance_type;
        // A port does not hear itself.
        if (standard_metadata.egress_port == standard_metadata.ingress_port) {
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
