// Purpose: refuse frames the fabric cannot answer for, count the worms it takes and
//          count the switch crossing (SPEC.md §2).
// Reads:   hdr.worm, standard_metadata.parser_error, .checksum_error.
// Writes:  meta.drop_reason; hdr.worm.hops.
// Tables:  none; counter `kinds`.
// TNA:     one stage: a ternary table over the same fields, entries in the order below.

#ifndef WORMCAST_ADMISSION_P4
#define WORMCAST_ADMISSION_P4

control Admission(inout headers_t hdr,
                  inout metadata_t meta,
                  in standard_metadata_t standard_metadata) {
    @name(".kinds") @id(0x12000004)
    counter(KIND_CELLS, CounterType.packets) kinds;

    apply {
        if (standard_metadata.parser_error != error.NoError) {
            // The only error this parser can meet is running out of frame.
            meta.drop_reason = drop_reason_t.TRUNCATED;
        } else if (hdr.worm.isValid()) {
            if (hdr.worm.version != WORM_VERSION) {
                meta.drop_reason = drop_reason_t.VERSION_UNKNOWN;
            } else if (standard_metadata.checksum_error == 1) {
                meta.drop_reason = drop_reason_t.CHECKSUM;
            } else if (hdr.worm.hops >= MAX_HOPS) {
                meta.drop_reason = drop_reason_t.HOPS_EXCEEDED;
            } else {
                if (meta.has_ticket == 0) { // else it has waited, and was counted
                    kinds.count((bit<32>)hdr.worm.kind);
                }
                hdr.worm.hops = hdr.worm.hops + 1;
            }
        }
    }
}

#endif
