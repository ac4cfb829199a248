// Purpose: what a chip does with trains that has no room for wormhole mode: those of one frame pass.
// Reads:   hdr.worm, hdr.train.
// Writes:  hdr.train.back_count; meta.asks.
// Tables:  none.
// Cost:    no stage of its own.

#ifndef WORMCAST_PACKET_MODE_P4
#define WORMCAST_PACKET_MODE_P4

#include "metadata.p4"

control WormholeEntry(inout ingress_headers_t hdr,
                      inout ingress_metadata_t meta,
                      in ingress_intrinsic_metadata_from_parser_t ig_prsr_md) {
    apply {
        if (hdr.train.isValid() && hdr.worm.flags & (FLAG_HEAD | FLAG_TAIL) != FLAG_HEAD | FLAG_TAIL) {
            meta.asks.part = part_t.REFUSED;
            meta.asks.reason = drop_reason_t.TRAIN_REFUSED;
        }
    }
}

control Wormhole(inout ingress_headers_t hdr, inout ingress_metadata_t meta) {
    apply {
        if (hdr.train.isValid()) {
            hdr.train.back_count = hdr.train.back_count | BACK_UNKNOWN;
        }
    }
}

#endif
