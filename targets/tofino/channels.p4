// Purpose: what part a frame has in wormhole mode (wormhole.p4), and which worm of its channel it is of.
// Tables:  those of its two controls.

#ifndef WORMCAST_CHANNELS_P4
#define WORMCAST_CHANNELS_P4

#include "metadata.p4"

// The worm of a channel that came in last, or the number of its frame that is to come; and which one it is.
struct of_worm_t {
    bit<32> number;
    bit<32> id; // source and sequence
}

// Number of no frame: the train has ended, or one of its frames is missing.
const bit<32> NO_NUMBER = 0xffff;
// The compiler puts two fields into containers that it cannot write as the program wants, unless it is told.
//
// Reads:   hdr.worm, hdr.train, hdr.hop, hdr.held, hdr.recirculated, hdr.bridge.entry_port; global_tstamp.
// Writes:  meta.asks; hdr.held.
// Tables:  wormhole.
@pa_container_type("ingress", "hdr.bridge.neighbour", "normal")
@pa_container_type("ingress", "hdr.bridge.packet_in", "normal")
control WormholeEntry(inout ingress_headers_t hdr,
                      inout ingress_metadata_t meta,
                      in ingress_intrinsic_metadata_from_parser_t ig_prsr_md) {
    bit<1> is_on = 0;
    bit<16> silent_slots = 0;

    @name(".ingress.packet_mode") @id(0x01000014)
    action packet_mode() {}

    @name(".ingress.wormhole_mode") @id(0x01000015)
    action wormhole_mode(bit<8> scheme, bit<16> stop_frames, bit<16> go_frames, bit<16> held_max,
                         bit<32> gap_us, bit<32> stop_us, bit<32> idle_us, bit<32> silent_us) {
        is_on = 1;
        meta.asks.held_max = held_max;
        silent_slots = 2w0 ++ silent_us[27:14]; // 2^14 microseconds are a slot, but for 2.4 %
    }

    @name(".ingress.wormhole") @id(0x0200000c)
    table wormhole {
        actions = { packet_mode; wormhole_mode; }
        default_action = packet_mode();
        size = 1;
    }

    @hidden
    action measure_until() {
        meta.asks.until = meta.asks.now + silent_slots;
    }

    @hidden
    table until {
        actions = { measure_until; }
        const default_action = measure_until();
        size = 1;
    }

    @hidden
    action passes() {
    }

    @hidden
    action refuse(drop_reason_t reason) {
        meta.asks.part = part_t.REFUSED;
        meta.asks.reason = reason;
    }

    @hidden
    action begins() {
        meta.asks.part = part_t.BEGINS;
        hdr.held.setValid();
        hdr.held.number = 0;
    }

    @hidden
    action follows() {
        meta.asks.part = part_t.FOLLOWS;
        hdr.held.setValid();
        hdr.held.number = hdr.train.position;
    }

    @hidden
    action waits() {
        meta.asks.part = part_t.WAITS;
    }

    @hidden
    action is_over() {
        meta.asks.part = part_t.OVER;
    }

    // What part a frame has.
    @hidden
    table parts {
        key = {
            hdr.held.isValid(): ternary;
            hdr.held.is_over: ternary;
            is_on: ternary;
            hdr.train.isValid(): ternary;
            hdr.worm.flags: ternary;
            hdr.hop.isValid(): ternary;
            hdr.hop.port: ternary;
        }
        actions = { passes; refuse; begins; follows; waits; is_over; }
        const entries = {
            (true, 1, _, _, _, _, _): is_over();
            (true, _, _, _, _, _, _): waits();
            // Packet mode.
            (_, _, 0, true, 6 &&& 6, _, _): passes();
            (_, _, 0, true, _, _, _): refuse(drop_reason_t.TRAIN_REFUSED);
            (_, _, 0, _, _, _, _): passes();
            // Frames without a train header are worms of one frame. What has no route is dropped elsewhere.
            (_, _, _, false, _, false, _): passes();
            (_, _, _, false, _, _, RECIRCULATE_PORT): passes();
            (_, _, _, false, _, _, _): begins();
            (_, _, _, _, 2 &&& 2, false, _): passes();
            (_, _, _, _, 6 &&& 6, _, RECIRCULATE_PORT): passes();
            (_, _, _, _, 2 &&& 2, _, RECIRCULATE_PORT): refuse(drop_reason_t.ABSORB_FULL);
            (_, _, _, _, 2 &&& 2, _, _): begins();
            (_, _, _, _, _, _, _): follows();
        }
        const default_action = passes();
        size = 16;
    }

    // When it was said that too many frames of a channel wait, or 0. It is believed in that slot and the next.
    @name(".channel_full")
    Register<bit<16>, port_t>(PORT_CELLS) channel_full;
    RegisterAction<bit<16>, port_t, bit<16>>(channel_full) ask_full = {
        void apply(inout bit<16> value, out bit<16> result) {
            result = value;
        }
    };
    RegisterAction<bit<16>, port_t, bit<16>>(channel_full) tell_full = {
        void apply(inout bit<16> value) {
            value = meta.asks.told;
        }
    };

    // Differences are tables, so that p4c does not put them into conditions, which compare alone.
    @hidden
    action measure_full() {
        meta.asks.full_age = meta.asks.now - meta.asks.told;
    }

    @hidden
    table since_full {
        actions = { measure_full; }
        const default_action = measure_full();
        size = 1;
    }

    @name(".output_line")
    Register<bit<16>, port_t>(PORT_CELLS) output_line;
    RegisterAction<bit<16>, port_t, bit<16>>(output_line) take_place = {
        void apply(inout bit<16> value, out bit<16> result) {
            result = value;
            value = value + 1;
        }
    };

    apply {
        meta.asks.now = ig_prsr_md.global_tstamp[39:24];
        meta.asks.id = hdr.worm.source ++ hdr.worm.sequence;
        meta.asks.position = 16w0 ++ hdr.train.position;
        wormhole.apply();
        until.apply();
        if (!hdr.train.isValid() || hdr.worm.flags & FLAG_HEAD != 0) {
            meta.asks.is_head = 1;
        }
        if (!hdr.train.isValid() || hdr.worm.flags & FLAG_TAIL != 0) {
            meta.asks.is_last = 1;
        }
        parts.apply();
        meta.asks.channel = hdr.bridge.entry_port[8:0];
        if (hdr.recirculated.isValid() && (meta.asks.part != part_t.WAITS && meta.asks.part != part_t.OVER
                                           || hdr.held.is_absorbed == 1)) {
            meta.asks.channel = (port_t)RECIRCULATE_PORT;
        }
        if (meta.asks.part == part_t.BEGINS || meta.asks.part == part_t.FOLLOWS) {
            meta.asks.told = ask_full.execute(meta.asks.channel);
            since_full.apply();
            hdr.held.is_front = 0;
            hdr.held.is_placed = 0;
            hdr.held.closes = 0;
            hdr.held.ends = 0;
            hdr.held.is_over = 0;
            hdr.held.is_new = 1;
            hdr.held.is_overdue = 0;
            hdr.held.expires = 0;
            hdr.held.full = 0;
            hdr.held.is_absorbed = 0;
            if (hdr.recirculated.isValid()) {
                hdr.held.is_absorbed = 1;
            }
            if (meta.asks.part == part_t.BEGINS) {
                // What is expected of its train.
                meta.asks.position = 1;
                if (meta.asks.is_last == 1) {
                    meta.asks.position = NO_NUMBER;
                }
            }
        } else if (meta.asks.part == part_t.WAITS || meta.asks.part == part_t.OVER) {
            if (hdr.held.full == 1) {
                meta.asks.told = meta.asks.now;
            }
            tell_full.execute(meta.asks.channel);
            meta.asks.is_second = hdr.held.is_new;
            hdr.held.is_new = 0;
            meta.asks.asked = hdr.held.worm;
            if (hdr.held.closes == 1) {
                meta.asks.asked = hdr.held.worm - 1;
            }
            if (meta.asks.part == part_t.WAITS && hdr.held.is_front == 1 && hdr.held.is_placed == 0) {
                meta.asks.places = 1;
                meta.asks.place = take_place.execute(meta.hop_port);
                meta.asks.way = meta.asks.place ++ 7w0x40 ++ meta.hop_port;
                hdr.held.is_placed = 1;
            }
        }
    }
}

// Behind the guard: what enters takes a number, or is dropped.
//
// Reads:   hdr.held, meta.asks. Writes: meta.asks.asked, meta.drop_reason; hdr.held.
// Tables:  none but its own.
control TakeIn(inout ingress_headers_t hdr, inout ingress_metadata_t meta) {
    bit<32> expected = 0;

    @name(".channel_worm")
    Register<of_worm_t, port_t>(PORT_CELLS) channel_worm;
    RegisterAction<of_worm_t, port_t, bit<32>>(channel_worm) next_worm = {
        void apply(inout of_worm_t value, out bit<32> result) {
            value.number = value.number + 1;
            value.id = meta.asks.id;
            result = value.number;
        }
    };
    // 0: of a worm whose head did not come in.
    RegisterAction<of_worm_t, port_t, bit<32>>(channel_worm) same_worm = {
        void apply(inout of_worm_t value, out bit<32> result) {
            result = 0;
            if (value.id == meta.asks.id) {
                result = value.number;
            }
        }
    };

    @hidden
    action take_next() {
        meta.asks.asked = next_worm.execute(meta.asks.channel);
    }

    @hidden
    action take_same() {
        meta.asks.asked = same_worm.execute(meta.asks.channel);
    }

    // A head that finds the channel full takes no number, so what follows it is of no worm.
    @hidden
    table worms {
        key = {
            meta.asks.part: ternary;
            meta.asks.told: ternary;
            meta.asks.full_age: ternary;
        }
        actions = { take_next; take_same; NoAction; }
        const entries = {
            (part_t.FOLLOWS, _, _): take_same();
            (part_t.BEGINS, 0, _): take_next();
            (part_t.BEGINS, _, 0 &&& 0xfffe): NoAction();
            (part_t.BEGINS, _, _): take_next();
        }
        const default_action = NoAction();
        size = 4;
    }

    @name(".channel_position")
    Register<of_worm_t, port_t>(PORT_CELLS, { NO_NUMBER, 0 }) channel_position;
    // Heads are told what was expected of the worm before. `position` is what is expected of theirs.
    RegisterAction<of_worm_t, port_t, bit<32>>(channel_position) begin = {
        void apply(inout of_worm_t value, out bit<32> result) {
            result = value.number;
            value.number = meta.asks.position;
            value.id = meta.asks.id;
        }
    };
    // Other frames are told 0, or what was expected in their place.
    RegisterAction<of_worm_t, port_t, bit<32>>(channel_position) follow = {
        void apply(inout of_worm_t value, out bit<32> result) {
            result = 0;
            if (value.id != meta.asks.id || value.number != meta.asks.position) {
                result = value.number;
            }
            if (value.id == meta.asks.id && value.number == meta.asks.position) {
                value.number = value.number + 1;
            } else if (value.id == meta.asks.id) {
                value.number = NO_NUMBER;
            }
        }
    };
    RegisterAction<of_worm_t, port_t, bit<32>>(channel_position) follow_and_end = {
        void apply(inout of_worm_t value, out bit<32> result) {
            result = 0;
            if (value.id != meta.asks.id || value.number != meta.asks.position) {
                result = value.number;
            }
            if (value.id == meta.asks.id) {
                value.number = NO_NUMBER;
            }
        }
    };
    RegisterAction<of_worm_t, port_t, bit<32>>(channel_position) break_off = {
        void apply(inout of_worm_t value, out bit<32> result) {
            result = value.number;
            if (value.id == meta.asks.id) {
                value.number = NO_NUMBER;
            }
        }
    };

    @hidden
    action expect_first() {
        expected = begin.execute(meta.asks.channel);
    }

    @hidden
    action expect_next() {
        expected = follow.execute(meta.asks.channel);
    }

    @hidden
    action expect_last() {
        expected = follow_and_end.execute(meta.asks.channel);
    }

    @hidden
    action expect_none() {
        expected = break_off.execute(meta.asks.channel);
    }

    @hidden
    table positions {
        key = {
            meta.asks.part: ternary;
            meta.asks.told: ternary;
            meta.asks.full_age: ternary;
            meta.asks.is_last: ternary;
        }
        actions = { expect_first; expect_next; expect_last; expect_none; NoAction; }
        const entries = {
            (part_t.BEGINS, 0, _, _): expect_first();
            (part_t.BEGINS, _, 0 &&& 0xfffe, _): NoAction();
            (part_t.BEGINS, _, _, _): expect_first();
            (part_t.FOLLOWS, 0, _, 1): expect_last();
            (part_t.FOLLOWS, 0, _, _): expect_next();
            (part_t.FOLLOWS, _, 0 &&& 0xfffe, _): expect_none();
            (part_t.FOLLOWS, _, _, 1): expect_last();
            (part_t.FOLLOWS, _, _, _): expect_next();
        }
        const default_action = NoAction();
        size = 8;
    }

    @hidden
    action take_in() {
        hdr.held.worm = meta.asks.asked;
    }

    // The tail of the worm before is lost.
    @hidden
    action take_in_and_close() {
        hdr.held.worm = meta.asks.asked;
        hdr.held.closes = 1;
        hdr.held.number = expected[15:0];
    }

    // A frame before it is missing, or there is no room for it: the train ends with it.
    @hidden
    action take_in_and_end() {
        hdr.held.worm = meta.asks.asked;
        hdr.held.ends = 1;
        hdr.held.number = expected[15:0];
    }

    @hidden
    action drop_broken() {
        meta.drop_reason = drop_reason_t.TRAIN_BROKEN;
    }

    @hidden
    action drop_full() {
        meta.drop_reason = drop_reason_t.HELD_FULL;
    }

    @hidden
    table enters {
        key = {
            meta.asks.part: ternary;
            meta.asks.told: ternary;
            meta.asks.full_age: ternary;
            meta.asks.asked: ternary;
            expected: ternary;
        }
        actions = {
            take_in; take_in_and_close; take_in_and_end; drop_broken; drop_full; NoAction;
        }
        const entries = {
            (part_t.OVER, _, _, _, _): drop_broken();
            (part_t.BEGINS, 0, _, _, NO_NUMBER): take_in();
            (part_t.BEGINS, 0, _, _, _): take_in_and_close();
            (part_t.BEGINS, _, 0 &&& 0xfffe, _, _): drop_full();
            (part_t.BEGINS, _, _, _, NO_NUMBER): take_in();
            (part_t.BEGINS, _, _, _, _): take_in_and_close();
            (part_t.FOLLOWS, _, _, 0, _): drop_broken();
            (part_t.FOLLOWS, _, _, _, NO_NUMBER): drop_broken();
            (part_t.FOLLOWS, _, _, _, 0): take_in();
            (part_t.FOLLOWS, _, _, _, _): take_in_and_end();
        }
        const default_action = NoAction();
        size = 16;
    }

    apply {
        worms.apply();
        positions.apply();
        enters.apply();
    }
}

#endif
