// Purpose: write into a traced worm what this switch did with it (SPEC.md §2.2).
// Reads:   hdr.worm.hops, hdr.trace, meta.entry_port, meta.entered_at,
//          standard_metadata.egress_port, .deq_qdepth, .egress_global_timestamp.
// Writes:  hdr.trace.count, hdr.record; its check is computed with the checksums.
// Tables:  trace, without a key: a switch that no controller gave its id writes no records.
// TNA:     six stages: its clock counts nanoseconds, and no stage divides.

#ifndef WORMCAST_TRACE_P4
#define WORMCAST_TRACE_P4

control Trace(inout headers_t hdr,
              in metadata_t meta,
              in standard_metadata_t standard_metadata) {
    // A worm that recirculates leaves a record of each pass, so that hops have no gap.
    @name(".egress.trace_as") @id(0x01000013)
    action trace_as(@name("switch") bit<16> switch_id) {
        bit<48> stay = standard_metadata.egress_global_timestamp - meta.entered_at;
        hdr.trace.count = hdr.trace.count + 1;
        hdr.record.setValid();
        hdr.record.switch_id = switch_id;
        hdr.record.hop = hdr.worm.hops;
        hdr.record.ingress_port = (port_byte_t)meta.entry_port;
        hdr.record.egress_port = (port_byte_t)standard_metadata.egress_port;
        hdr.record.stay = stay > (bit<48>)TRACE_STAY_MAX ? TRACE_STAY_MAX : (bit<24>)stay;
        hdr.record.queue = standard_metadata.deq_qdepth > (bit<19>)TRACE_QUEUE_MAX
            ? TRACE_QUEUE_MAX : (bit<16>)standard_metadata.deq_qdepth;
        hdr.record.left_at = (bit<32>)standard_metadata.egress_global_timestamp;
    }

    @name(".egress.trace") @id(0x0200000b)
    table trace {
        actions = { trace_as; @defaultonly NoAction; }
        default_action = NoAction();
    }

    apply {
        if (hdr.trace.isValid() && hdr.trace.count < hdr.trace.room) {
            trace.apply();
        }
    }
}

#endif
