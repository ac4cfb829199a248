// Purpose: the one place where ingress drops, so that everything dropped is counted
//          under exactly one reason.
// Reads:   meta.drop_reason, meta.lost.
// Writes:  drop_ctl.
// Tables:  none; counter `drops`.
// Cost:    one stage, the last.

#ifndef WORMCAST_DROPS_P4
#define WORMCAST_DROPS_P4

const bit<3> DROP_ALL = 1; // bit 0 of drop_ctl: unicast, multicast and resubmission

control Drops(in ingress_metadata_t meta,
              inout ingress_intrinsic_metadata_for_deparser_t ig_dprsr_md) {
    @name(".drops") @id(0x12000001)
    Counter<bit<64>, bit<8>>(DROPS_CELLS, CounterType_t.PACKETS) drops;

    apply {
        if (meta.drop_reason != drop_reason_t.NONE) {
            drops.count((bit<8>)meta.drop_reason);
            ig_dprsr_md.drop_ctl = DROP_ALL;
        } else if (meta.lost != 0) {
            drops.count((bit<8>)drop_reason_t.PORT_UNKNOWN);
        }
    }
}

#endif
