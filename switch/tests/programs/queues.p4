// What egress knows of the queue, and packets for queues there are not.

#include <core.p4>
#include <v1model.p4>

header h_t {
    bit<8> priority;
    bit<8> queue;
    bit<32> depth_before;
    bit<32> depth_after;
    bit<32> waited;
    bit<16> length;
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
        standard_metadata.priority = (bit<3>) hdr.h.priority;
    }
}

control egress(inout headers_t hdr, inout metadata_t meta,
               inout standard_metadata_t standard_metadata) {
    apply {
        hdr.h.depth_before = (bit<32>) standard_metadata.enq_qdepth;
        hdr.h.depth_after = (bit<32>) standard_metadata.deq_qdepth;
        hdr.h.waited = standard_metadata.deq_timedelta;
        hdr.h.length = (bit<16>) standard_metadata.packet_length;
        if (standard_metadata.egress_global_timestamp
                == standard_metadata.ingress_global_timestamp) {
            hdr.h.queue = 0xaa;
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
