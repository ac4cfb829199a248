// Purpose: write into a traced worm what this switch did with it (SPEC.md §2.2).
// Reads:   hdr.worm.hops, hdr.trace, hdr.bridge.entry_port, .entered_at; meta.exit_port;
//          eg_intr_md.deq_qdepth, eg_prsr_md.global_tstamp.
// Writes:  hdr.trace.count, hdr.record; the deparser computes its check.
// Tables:  trace, without a key: a switch that no controller gave its id writes no records.
// Cost:    six stages: ticks; ticks to microseconds (three); the bound; the record.
//
// The clock of the chip counts nanoseconds, and a stage neither divides nor subtracts 48 bits, nor
// takes a number from the middle of a byte. So times are kept in ticks of 256 ns. 1,024 ns are
// 1 + 1/64 + 1/128 + 1/2048 microseconds, but for 72 millionths, and each of the terms is rounded
// down. A stage does one operation with a number. Steps that are no tables p4c would put into one.

#ifndef WORMCAST_TRACE_P4
#define WORMCAST_TRACE_P4

control Trace(inout egress_headers_t hdr,
              in egress_metadata_t meta,
              in egress_intrinsic_metadata_t eg_intr_md,
              in egress_intrinsic_metadata_from_parser_t eg_prsr_md) {
    bit<8> room_left = 0;
    // In ticks, then in microseconds; and what is to be added.
    bit<32> stay = 0;
    bit<32> stay_64 = 0;
    bit<32> stay_128 = 0;
    bit<32> stay_2048 = 0;
    bit<32> left_at = 0;
    bit<32> left_64 = 0;
    bit<32> left_128 = 0;
    bit<32> left_2048 = 0;
    bit<16> queue = eg_intr_md.deq_qdepth[15:0];

    @hidden
    action count_room() {
        room_left = hdr.trace.room |-| hdr.trace.count;
    }

    @hidden
    table room {
        actions = { count_room; }
        const default_action = count_room();
        size = 1;
    }

    @hidden
    action read_clock() {
        stay = eg_prsr_md.global_tstamp[39:8] - hdr.bridge.entered_at;
        left_at = eg_prsr_md.global_tstamp[39:8] >> 2;
        left_64 = eg_prsr_md.global_tstamp[39:8] >> 8;
        left_128 = eg_prsr_md.global_tstamp[39:8] >> 9;
        left_2048 = eg_prsr_md.global_tstamp[39:8] >> 13;
    }

    @hidden
    table clock {
        actions = { read_clock; }
        const default_action = read_clock();
        size = 1;
    }

    @hidden
    action take_terms() {
        stay_64 = stay >> 8;
        stay_128 = stay >> 9;
        stay_2048 = stay >> 13;
        stay = stay >> 2;
        left_at = left_at + left_64;
        left_128 = left_128 + left_2048;
    }

    @hidden
    table terms {
        actions = { take_terms; }
        const default_action = take_terms();
        size = 1;
    }

    @hidden
    action add_half() {
        stay = stay + stay_64;
        stay_128 = stay_128 + stay_2048;
        left_at = left_at + left_128;
    }

    @hidden
    table halves {
        actions = { add_half; }
        const default_action = add_half();
        size = 1;
    }

    @hidden
    action add_rest() {
        stay = stay + stay_128;
    }

    @hidden
    table whole {
        actions = { add_rest; }
        const default_action = add_rest();
        size = 1;
    }

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
        if (hdr.trace.isValid()) {
            room.apply();
        }
        if (room_left != 0) {
            clock.apply();
            terms.apply();
            halves.apply();
            whole.apply();
            if (stay[31:24] != 0) {
                stay = (bit<32>)TRACE_STAY_MAX;
            }
            if (eg_intr_md.deq_qdepth[18:16] != 0) {
                queue = TRACE_QUEUE_MAX;
            }
            trace.apply();
        }
    }
}

#endif
