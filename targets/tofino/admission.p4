// Purpose: refuse frames the fabric cannot answer for, count the worms it takes and
//          count the switch crossing (SPEC.md §2).
// Reads:   hdr.worm, hdr.train, meta.checksum_error, meta.route_beyond, meta.asks.part, ig_prsr_md.parser_err.
// Writes:  meta.drop_reason; hdr.worm.hops.
// Tables:  none; counter `kinds`.

#ifndef WORMCAST_ADMISSION_P4
#define WORMCAST_ADMISSION_P4

control Admission(inout ingress_headers_t hdr,
                  inout ingress_metadata_t meta,
                  in ingress_intrinsic_metadata_from_parser_t ig_prsr_md) {
    @name(".kinds") @id(0x12000004)
    Counter<bit<64>, bit<4>>(KIND_CELLS, CounterType_t.PACKETS) kinds;

    apply {
        if (ig_prsr_md.parser_err != PARSER_ERROR_OK) {
            // The only error this parser can meet is running out of frame.
            meta.drop_reason = drop_reason_t.TRUNCATED;
        } else if (hdr.worm.isValid()) {
            if (hdr.worm.version != WORM_VERSION) {
                meta.drop_reason = drop_reason_t.VERSION_UNKNOWN;
            } else if (hdr.worm.flags & FLAG_TRAIN != 0 && !hdr.train.isValid()) {
                // UNICAST alone: of others the route was looked for where the train header stands.
                meta.drop_reason = drop_reason_t.TRAIN_REFUSED;
            } else if (meta.checksum_error || hdr.worm.checksum == 0xffff) {
                // Of the two zeros of ones' complement the engine takes either; the version is
                // not zero, so 0xffff is never right.
                meta.drop_reason = drop_reason_t.CHECKSUM;
            } else if (hdr.worm.hops >= MAX_HOPS) {
                meta.drop_reason = drop_reason_t.HOPS_EXCEEDED;
            } else if (meta.route_beyond == 1) {
                // Neither summed up nor counted by kind: its route was not read.
                meta.drop_reason = drop_reason_t.BEYOND_TARGET;
            } else {
                if (meta.asks.part != part_t.WAITS && meta.asks.part != part_t.OVER) {
                    kinds.count(hdr.worm.kind);
                }
                hdr.worm.hops = hdr.worm.hops + 1;
            }
        }
    }
}

#endif
