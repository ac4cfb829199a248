// Purpose: mark worms that leave a queue past its threshold (flag CE, SPEC.md §2.1).
// Reads:   eg_intr_md.deq_qdepth: cells left in the queue when the worm leaves it.
// Writes:  hdr.worm.flags, hdr.worm.checksum.
// Tables:  none.
// Cost:    two stages.
//
// The route is not in reach here, so the checksum is corrected (RFC 1624). CE adds FLAG_CE, 16, to
// the sum, and the checksum is its complement: it loses 16, and one more where the sum wraps.

#ifndef WORMCAST_CONGESTION_P4
#define WORMCAST_CONGESTION_P4

control Congestion(inout egress_headers_t hdr, in egress_intrinsic_metadata_t eg_intr_md) {
    apply {
        if (eg_intr_md.deq_qdepth >= CE_QUEUE_CELLS && hdr.worm.flags & FLAG_CE == 0) {
            hdr.worm.flags = hdr.worm.flags | FLAG_CE;
            if (hdr.worm.checksum[15:4] == 0) {
                hdr.worm.checksum = hdr.worm.checksum - 17;
            } else {
                hdr.worm.checksum = hdr.worm.checksum - 16;
            }
        }
    }
}

#endif
