// Purpose: the RFC 1071 checksum over worm header and route (SPEC.md §2), verified
//          before the switch acts and computed anew for every copy that leaves.
// Reads:   hdr.*. Header order is wire order; headers that are not valid add nothing, and
//          BMv2 pads an odd number of bytes with a zero, as the format asks.
// Writes:  standard_metadata.checksum_error; hdr.worm.checksum.
// TNA:     verified by the parser's checksum engine; updated by the incremental form
//          (RFC 1624): hops grows by 0x0001 in its word, and stripping one byte of route
//          swaps the bytes of the sum of the route.

#ifndef WORMCAST_CHECKSUM_P4
#define WORMCAST_CHECKSUM_P4

// All of the header but the checksum itself.
#define HEADER_FIELDS \
    hdr.worm.version, hdr.worm.kind, hdr.worm.flags, hdr.worm.route_len, hdr.worm.hops, \
    hdr.worm.source, hdr.worm.sequence, hdr.worm.next, \
    hdr.train.position, hdr.train.back_count, hdr.train.order, hdr.train.back, \
    hdr.signal.op, hdr.signal.pad, hdr.signal.source, hdr.signal.sequence, hdr.signal.stop_us, \
    hdr.gather.op, hdr.gather.flags, hdr.gather.group, hdr.gather.origin, hdr.gather.port, \
    hdr.gather.pad, hdr.gather.epoch, hdr.gather.stream, hdr.gather.cumulative, hdr.gather.stable

#define BRANCH_FIELDS(i) \
    hdr.branches[i].port, hdr.branches[i].length, hdr.sub_routes[i].bytes

#define WAY_FIELDS \
    hdr.way128.bytes, hdr.way64.bytes, hdr.way32.bytes, hdr.way16.bytes, \
    hdr.way8.bytes, hdr.way4.bytes, hdr.way2.bytes, hdr.way1.bytes

control WormVerifyChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply {
        // Two lists, so that a worm without branches does not pay for sixteen.
        verify_checksum(
            hdr.worm.isValid() && hdr.worm.version == WORM_VERSION && hdr.worm.kind != KIND_TREE,
            {
                HEADER_FIELDS,
                hdr.group.number,
                hdr.hop.port,
                hdr.route.bytes
            },
            hdr.worm.checksum, HashAlgorithm.csum16);
        verify_checksum(
            hdr.worm.isValid() && hdr.worm.version == WORM_VERSION && hdr.worm.kind == KIND_TREE,
            {
                HEADER_FIELDS,
                WAY_FIELDS,
                BRANCH_FIELDS(0), BRANCH_FIELDS(1), BRANCH_FIELDS(2), BRANCH_FIELDS(3),
                BRANCH_FIELDS(4), BRANCH_FIELDS(5), BRANCH_FIELDS(6), BRANCH_FIELDS(7),
                BRANCH_FIELDS(8), BRANCH_FIELDS(9), BRANCH_FIELDS(10), BRANCH_FIELDS(11),
                BRANCH_FIELDS(12), BRANCH_FIELDS(13), BRANCH_FIELDS(14), BRANCH_FIELDS(15),
                hdr.end.marker,
                hdr.route.bytes
            },
            hdr.worm.checksum, HashAlgorithm.csum16);
    }
}

control WormComputeChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply {
        update_checksum(
            hdr.worm.isValid() && (meta.course != course_t.HOLD || hdr.signal.isValid()), // else it is as it came
            {
                HEADER_FIELDS,
                hdr.group.number,
                WAY_FIELDS,
                hdr.route.bytes,
                hdr.end.marker
            },
            hdr.worm.checksum, HashAlgorithm.csum16);
        // Records are outside the checksum of the worm, which every switch computes anew: their own
        // tells the host what a link or a switch on the way has damaged.
        update_checksum(
            hdr.record.isValid(),
            {
                hdr.record.switch_id, hdr.record.hop,
                hdr.record.ingress_port, hdr.record.egress_port, hdr.record.stay,
                hdr.record.queue, hdr.record.left_at
            },
            hdr.record.check, HashAlgorithm.csum16);
    }
}

#endif
