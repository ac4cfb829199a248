// Purpose: STOP, GO and RESET between switches in wormhole mode (SPEC.md §3.1). SignalsIn acts on
//          what CONTROL worms say, SignalsOut makes a copy of a frame that waits a STOP or a GO.
// TNA:     two stages each way.

#ifndef WORMCAST_SIGNALS_P4
#define WORMCAST_SIGNALS_P4

#define NO_WAY \
    hdr.way128.setInvalid(); \
    hdr.way64.setInvalid(); \
    hdr.way32.setInvalid(); \
    hdr.way16.setInvalid(); \
    hdr.way8.setInvalid(); \
    hdr.way4.setInvalid(); \
    hdr.way2.setInvalid(); \
    hdr.way1.setInvalid();

// Ethernet, worm and control headers.
const bit<32> CONTROL_FRAME_BYTES = 36;

// Reads:   hdr.signal, hdr.hop; meta.entry_port, .now.
// Writes:  meta.course; registers.
control SignalsIn(in headers_t hdr, inout metadata_t meta) {
    EndTaken() end_taken;

    apply {
        if (hdr.signal.op == CONTROL_RESET) {
            if (hdr.hop.isValid()) {
                // Its route names the port by which the worm came.
                bit<32> channel = (bit<32>)hdr.hop.port;
                bit<32> known;
                bit<8> does;
                channel_worm.read(known, channel);
                if (known != hdr.signal.source ++ hdr.signal.sequence) {
                    // Which this switch may have taken itself.
                    channel = OWN_CHANNEL;
                    channel_worm.read(known, channel);
                    end_taken.apply(hdr.signal.source ++ hdr.signal.sequence, hdr.hop.port);
                }
                channel_state.read(does, channel);
                if (known == hdr.signal.source ++ hdr.signal.sequence
                    && (does == channel_state_t.OPEN || does == channel_state_t.CLAIMING)) {
                    channel_state.write(channel, channel_state_t.ENDED);
                    channel_outputs.write(channel, 0);
                }
                COUNT_TRAIN(RESET_PASSED);
            }
        } else if (!hdr.hop.isValid()) {
            // The neighbour at this port says how much it takes.
            bit<32> output = (bit<32>)meta.entry_port;
            port_set_t self = (port_set_t)1 << (bit<8>)meta.entry_port;
            port_set_t stops = 0;
            time_us_t until_us = 0;
            bit<16> owner;
            bit<32> channel = 0;
            output_owner.read(owner, output);
            if (owner != 0) {
                port_set_t outputs;
                channel = (bit<32>)(owner - 1);
                channel_outputs.read(outputs, channel);
                if (outputs & self == 0) {
                    owner = 0; // its worm has left this output, and the next one may need others alone
                }
                channel_stops.read(stops, channel);
            }
            if (hdr.signal.op == CONTROL_STOP) {
                until_us = meta.now + (time_us_t)hdr.signal.stop_us;
                stops = stops | self;
                COUNT_TRAIN(STOP_HEARD);
                if (owner != 0) {
                    channel_stops_us.write(channel, until_us);
                }
            } else {
                stops = stops & ~self;
                COUNT_TRAIN(GO_HEARD);
            }
            output_stop_us.write(output, until_us);
            if (owner != 0) {
                channel_stops.write(channel, stops);
            }
            meta.course = course_t.ABSORB;
        }
    }
}

#define KEEP_AS_IT_CAME(i) \
    hdr.kept_branches[i] = hdr.branches[i]; \
    hdr.kept_sub_routes[i] = hdr.sub_routes[i];

// A frame goes round as it came.
// Reads:   meta.course; egress_global_timestamp.
// Writes:  hdr.kept_*; meta.now.
control GoRound(inout headers_t hdr, inout metadata_t meta, in standard_metadata_t standard_metadata) {
    apply {
        meta.now = standard_metadata.egress_global_timestamp;
        if (meta.course == course_t.HOLD && hdr.worm.kind == KIND_TREE) {
            KEEP_AS_IT_CAME(0) KEEP_AS_IT_CAME(1) KEEP_AS_IT_CAME(2) KEEP_AS_IT_CAME(3)
            KEEP_AS_IT_CAME(4) KEEP_AS_IT_CAME(5) KEEP_AS_IT_CAME(6) KEEP_AS_IT_CAME(7)
            KEEP_AS_IT_CAME(8) KEEP_AS_IT_CAME(9) KEEP_AS_IT_CAME(10) KEEP_AS_IT_CAME(11)
            KEEP_AS_IT_CAME(12) KEEP_AS_IT_CAME(13) KEEP_AS_IT_CAME(14) KEEP_AS_IT_CAME(15)
        }
        recirculate_preserving_field_list(RECIRCULATED_FIELDS);
    }
}

// Reads:   meta.signal, .stop_us.
// Writes:  hdr.*.
control SignalsOut(inout headers_t hdr, in metadata_t meta) {
    apply {
        hdr.signal.setValid();
        hdr.signal.op = meta.signal;
        hdr.signal.pad = 0;
        hdr.signal.source = 0;
        hdr.signal.sequence = 0;
        hdr.signal.stop_us = meta.stop_us;
        hdr.worm.kind = KIND_CONTROL;
        hdr.worm.flags = FLAG_HEAD | FLAG_TAIL;
        hdr.worm.route_len = 0;
        hdr.worm.hops = 1;
        hdr.worm.source = 0;
        hdr.worm.sequence = 0;
        hdr.worm.next = NEXT_CONTROL;
        NO_WAY
        hdr.train.setInvalid();
        hdr.hop.setInvalid();
        hdr.route.setInvalid();
        hdr.end.setInvalid();
        hdr.trace.setInvalid();
        truncate(CONTROL_FRAME_BYTES);
    }
}

#endif
