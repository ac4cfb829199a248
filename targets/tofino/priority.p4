// Purpose: the priority of a frame, by which the traffic manager stops its sender (PFC) and queues
//          it. The same as wormcast-switch gives (switch/docs/lossless.md): worms of buffer class 1
//          have 3, of class 2 have 4, all else has 0.
// Reads:   hdr.worm.
// Writes:  ingress_cos, qid.
// Tables:  none.
// Cost:    no stage of its own.

#ifndef WORMCAST_PRIORITY_P4
#define WORMCAST_PRIORITY_P4

const bit<3> PRIORITY_CLASS1 = 3;
const bit<3> PRIORITY_CLASS2 = 4;

control Priority(in ingress_headers_t hdr, inout ingress_intrinsic_metadata_for_tm_t ig_tm_md) {
    apply {
        ig_tm_md.ingress_cos = 0;
        ig_tm_md.qid = 0;
        if (hdr.worm.isValid()) {
            if (hdr.worm.flags & FLAG_CLASS2 == 0) {
                ig_tm_md.ingress_cos = PRIORITY_CLASS1;
                ig_tm_md.qid = (QueueId_t)PRIORITY_CLASS1;
            } else {
                ig_tm_md.ingress_cos = PRIORITY_CLASS2;
                ig_tm_md.qid = (QueueId_t)PRIORITY_CLASS2;
            }
        }
    }
}

#endif
