// Purpose: write into a traced worm what this switch did with it (SPEC.md §2.2).
// Reads:   hdr.worm.hops, hdr.trace, hdr.bridge.entry_port, .entered_at; meta.exit_port;
//          eg_intr_md.deq_qdepth, eg_prsr_md.global_tstamp.
// Writes:  hdr.trace.count, hdr.record; the deparser computes its check.
// Tables:  trace, without a key: a switch that no controller gave its id writes no records.
// Cost:    six stages: ticks; ticks to microseconds (three); the bound; the record.
//
// The clock of the chip counts nanoseconds, and a stage neither divides nor subtracts 48 bits. So
// times are kept in ticks of 1,024 ns. A tick is 1 + 1/64 + 1/128 + 1/2048 microseconds, but for 72
// millionths, and each of the terms is rounded down.

#ifndef WORMCAST_TRACE_P4
#define WORMCAST_TRACE_P4

control Trace(inout egress_headers_t hdr,
              in egress_metadata_t meta,
              in egress_intrinsic_metadata_t eg_intr_md,
              in egress_intrinsic_metadata_from_parser_t eg_prsr_md) {
    bit<8> room_left = hdr.trace.room |-| hdr.trace.count;
    bit<32> ticks = eg_prsr_md.global_tstamp[41:10] - hdr.bridge.entered_at;
    bit<32> stay = 0;
    bit<32> left_at = 0;
    bit<16> queue = eg_intr_md.deq_qdepth[15:0];

    // A worm that recirculates leaves a record of each pass, so that hops have no gap.
    @name(".egress.trace_as") @id(0x01000013)
    action trace_as(@name("switch") bit<16> switch_id) {
        hdr.trace.count = hdr.trace.count + 1;
        hdr.record.setValid();
        hdr.record.switch_id = switch_id;
        hdr.record.hop = hdr.worm.hops;
        hdr.record.ingress_port = hdr.bridge.entry_port[7:0];
        hdr.record.egress_port = meta.exit_port[7:0];
        hdr.record.stay = stay[23:0];
        hdr.record.queue = queue;
        hdr.record.left_at = left_at;
    }

    @name(".egress.trace") @id(0x0200000b)
    table trace {
        actions = { trace_as; @defaultonly NoAction; }
        default_action = NoAction();
    }

    apply {
        if (hdr.trace.isValid() && room_left != 0) {
            stay = (ticks + (bit<32>)ticks[31:6]) + ((bit<32>)ticks[31:7] + (bit<32>)ticks[31:11]);
            if (stay[31:24] != 0) {
                stay = (bit<32>)TRACE_STAY_MAX;
            }
            // Of a tick all bits count here, so that it goes round where it should, at 2^32 microseconds.
            left_at = (eg_prsr_md.global_tstamp[41:10] + eg_prsr_md.global_tstamp[47:16])
                + ((bit<32>)eg_prsr_md.global_tstamp[47:17] + (bit<32>)eg_prsr_md.global_tstamp[47:21]);
            if (eg_intr_md.deq_qdepth[18:16] != 0) {
                queue = TRACE_QUEUE_MAX;
            }
            trace.apply();
        }
    }
}

#endif
