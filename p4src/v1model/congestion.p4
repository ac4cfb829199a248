// Purpose: mark worms that leave a queue past its threshold (flag CE, SPEC.md §2.1).
// Reads:   standard_metadata.deq_qdepth: frames the worm leaves behind in its queue.
// Writes:  hdr.worm.flags.
// Tables:  none.
// TNA:     one stage; deq_qdepth is in the egress intrinsic metadata, in cells.

#ifndef WORMCAST_CONGESTION_P4
#define WORMCAST_CONGESTION_P4

control Congestion(inout headers_t hdr, in standard_metadata_t standard_metadata) {
    apply {
        if (standard_metadata.deq_qdepth >= CE_QUEUE_DEPTH) {
            hdr.worm.flags = hdr.worm.flags | FLAG_CE;
        }
    }
}

#endif
