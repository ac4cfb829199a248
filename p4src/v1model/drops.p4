// Purpose: the one place where ingress drops, so that everything dropped is counted
//          under exactly one reason.
// Reads:   meta.drop_reason, meta.branch_lost.
// Writes:  egress_spec, mcast_grp (mark_to_drop).
// Tables:  none; counter `drops`.
// TNA:     no stage of its own: a counter indexed by metadata, and drop_ctl.

#ifndef WORMCAST_DROPS_P4
#define WORMCAST_DROPS_P4

control Drops(in metadata_t meta, inout standard_metadata_t standard_metadata) {
    @name(".drops") @id(0x12000001)
    counter(DROPS_CELLS, CounterType.packets) drops;

    apply {
        if (meta.drop_reason != drop_reason_t.NONE) {
            drops.count((bit<32>)(bit<8>)meta.drop_reason);
            mark_to_drop(standard_metadata);
        } else if (meta.course == course_t.ABSORB) {
            mark_to_drop(standard_metadata);
        } else if (meta.branch_lost == 1) {
            drops.count((bit<32>)(bit<8>)drop_reason_t.PORT_UNKNOWN);
        }
    }
}

#endif
