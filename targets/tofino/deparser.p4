// Purpose: put the frame together again, and compute the checksum of what ingress and egress made
//          new (SPEC.md §2, §2.2). The stripped port byte, branches that are not this copy's and the
//          packet_out header are consumed by this switch and never emitted. A frame that waits goes
//          round as it came, port byte and checksum too.
// Reads:   hdr.*, meta.tree_*, meta.hold; resubmit_type. Writes: hdr.worm.checksum, hdr.record.check. Tables: none.
// Cost:    no stage.
//
// Headers that are not there add nothing to a sum, and every piece of a route but the last has an
// even length. So one list of fields serves every shape of route.

#ifndef WORMCAST_DEPARSER_P4
#define WORMCAST_DEPARSER_P4

const bit<3> RESUBMIT_TREE = 1;

control WormIngressDeparser(packet_out packet,
                            inout ingress_headers_t hdr,
                            in ingress_metadata_t meta,
                            in ingress_intrinsic_metadata_for_deparser_t ig_dprsr_md) {
    Checksum() sum;
    Resubmit() resubmit;

    apply {
        if (ig_dprsr_md.resubmit_type == RESUBMIT_TREE) {
            resubmit.emit<tree_t>({ meta.tree_ports, meta.tree_malformed, meta.tree_beyond, 0 });
        }
        // Ingress has route, hops and, at the edge, the whole header new. Of a TREE, the only worm
        // that goes on with a piece of 64, egress computes it.
        if (meta.hold == 0) {
            hdr.worm.checksum = sum.update({
                hdr.worm.version, hdr.worm.kind, hdr.worm.flags, hdr.worm.route_len, hdr.worm.hops,
                hdr.worm.source, hdr.worm.sequence, hdr.worm.next,
                hdr.train.position, hdr.train.back_count, hdr.train.order, hdr.train.back,
                hdr.route_32.w0, hdr.route_32.w1, hdr.route_32.w2, hdr.route_32.w3,
                hdr.route_32.w4, hdr.route_32.w5, hdr.route_32.w6, hdr.route_32.w7,
                hdr.route_16.w0, hdr.route_16.w1, hdr.route_16.w2, hdr.route_16.w3,
                hdr.route_8.w0, hdr.route_8.w1,
                hdr.route_4.w0,
                hdr.route_2.w0,
                hdr.group.number,
                hdr.route_1.w0
            });
        }
        packet.emit(hdr.bridge);
        packet.emit(hdr.recirculated);
        packet.emit(hdr.held);
        packet.emit(hdr.ethernet);
        packet.emit(hdr.worm);
        packet.emit(hdr.train);
        packet.emit(hdr.hop);
        packet.emit(hdr.route_64);
        packet.emit(hdr.route_32);
        packet.emit(hdr.route_16);
        packet.emit(hdr.route_8);
        packet.emit(hdr.route_4);
        packet.emit(hdr.route_2);
        packet.emit(hdr.route_1);
        packet.emit(hdr.group);
        packet.emit(hdr.trace);
        packet.emit(hdr.ipv4);
    }
}

control WormEgressDeparser(packet_out packet,
                           inout egress_headers_t hdr,
                           in egress_metadata_t meta,
                           in egress_intrinsic_metadata_for_deparser_t eg_dprsr_md) {
    Checksum() sum;
    Checksum() record_sum;

    apply {
        if (meta.tree == 1) {
            hdr.worm.checksum = sum.update({
                    hdr.worm.version, hdr.worm.kind, hdr.worm.flags, hdr.worm.route_len, hdr.worm.hops,
                    hdr.worm.source, hdr.worm.sequence, hdr.worm.next,
                    hdr.route_64.w0, hdr.route_64.w1, hdr.route_64.w2, hdr.route_64.w3,
                    hdr.route_64.w4, hdr.route_64.w5, hdr.route_64.w6, hdr.route_64.w7,
                    hdr.route_64.w8, hdr.route_64.w9, hdr.route_64.w10, hdr.route_64.w11,
                    hdr.route_64.w12, hdr.route_64.w13, hdr.route_64.w14, hdr.route_64.w15,
                    hdr.route_32.w0, hdr.route_32.w1, hdr.route_32.w2, hdr.route_32.w3,
                    hdr.route_32.w4, hdr.route_32.w5, hdr.route_32.w6, hdr.route_32.w7,
                    hdr.route_16.w0, hdr.route_16.w1, hdr.route_16.w2, hdr.route_16.w3,
                    hdr.route_8.w0, hdr.route_8.w1,
                    hdr.route_4.w0,
                    hdr.route_2.w0,
                    hdr.end.marker
            });
        }
        if (hdr.record.isValid()) {
            hdr.record.check = record_sum.update({
                    hdr.record.switch_id, hdr.record.hop,
                    hdr.record.ingress_port, hdr.record.egress_port, hdr.record.stay,
                    hdr.record.queue, hdr.record.left_at
            });
        }
        packet.emit(hdr.packet_in);
        packet.emit(hdr.recirculated);
        packet.emit(hdr.ethernet);
        packet.emit(hdr.worm);
        packet.emit(hdr.train);
        packet.emit(hdr.route_64);
        packet.emit(hdr.route_32);
        packet.emit(hdr.route_16);
        packet.emit(hdr.route_8);
        packet.emit(hdr.route_4);
        packet.emit(hdr.route_2);
        packet.emit(hdr.route_1);
        packet.emit(hdr.group);
        packet.emit(hdr.end);
        packet.emit(hdr.trace);
        packet.emit(hdr.record);
        packet.emit(hdr.ipv4);
    }
}

#endif
