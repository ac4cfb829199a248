// Purpose: wormhole mode (SPEC.md §3.1) of UNICAST worms. A channel, which is the port by which worms come
//          in, carries one worm at a time: its head takes a place in the line of its output, the frames
//          behind it follow without a route, and the tail passes the turn on. What has to wait goes round.
//          All else passes as in packet mode.
// Tables:  those of its parts, channels.p4 and claim.p4.
//
// A register is accessed once in a pass. So a frame can not look whether it may go, and write so into what
// it looked at before. Hence the order: what tells worms of a channel apart stands in front, then the line
// of the output, then whose turn it is there, then whose turn it is in the channel. One access decides: the
// turn of an output is a place in its line, and the number of a frame in its train. The frame that has both
// leaves, and makes it the turn of the next. All others go round, in any order. So a head learns in one pass
// that its channel is its own, and takes its place in the next. What a frame learns too late for a pass, it
// carries into the next (held_t).
//
// The stages are few. So all that the guard has no say in stands in WormholeEntry, beside the guard; and
// tables decide, whose entries are here, since of conditions each takes a stage.
//
// Times are slots of 2^24 ns. A register keeps until when it may be silent; how long that is, is told outside
// of it, where differences go round at 16 bits.
//
// All ports of a switch have to be in one pipe: each pipe has registers of its own.

#ifndef WORMCAST_WORMHOLE_P4
#define WORMCAST_WORMHOLE_P4

#include "metadata.p4"
#include "channels.p4"
#include "claim.p4"

// Reads:   hdr.worm, hdr.train, hdr.held, meta.asks, meta.drop_reason.
// Writes:  meta.hold, meta.follows, meta.hop_port, meta.drop_reason; hdr.held, hdr.recirculated; hdr.worm.flags,
//          hdr.train.back_count.
// Tables:  none but its own; counter `trains`.
control Wormhole(inout ingress_headers_t hdr, inout ingress_metadata_t meta) {
    bit<16> turn_place = 0;
    bit<32> front = 0;       // the worm that has the turn in its channel
    bit<32> behind = 0;      // worms from that one to its own
    bit<32> not_mover = 0;   // 0: `mover` was in front
    bit<16> moved = 0;
    bit<16> left = 0;        // slots of silence
    bit<16> waiting = 0;
    bit<16> room = 0;
    bit<1> moves = 0;        // the turn of its output goes on
    train_event_t event = train_event_t.HELD;

    TakeIn() take_in;
    Claim() claim;

    @name(".channel_turn")
    Register<bit<32>, port_t>(PORT_CELLS, 1) channel_turn;
    RegisterAction<bit<32>, port_t, bit<32>>(channel_turn) turn = {
        void apply(inout bit<32> value, out bit<32> result) {
            result = value;
            if (value == meta.asks.mover) {
                value = value + 1;
            }
        }
    };

    @hidden
    action measure_worms() {
        behind = hdr.held.worm - front;
        not_mover = meta.asks.mover ^ front;
    }

    @hidden
    table to_front {
        actions = { measure_worms; }
        const default_action = measure_worms();
        size = 1;
    }

    // Until when an output, or a channel, may be silent.
    @name(".output_moved")
    Register<bit<16>, port_t>(PORT_CELLS) output_moved;
    RegisterAction<bit<16>, port_t, bit<16>>(output_moved) output_moves = {
        void apply(inout bit<16> value) {
            value = meta.asks.until;
        }
    };
    RegisterAction<bit<16>, port_t, bit<16>>(output_moved) output_last = {
        void apply(inout bit<16> value, out bit<16> result) {
            result = value;
        }
    };

    @name(".channel_seen")
    Register<bit<16>, port_t>(PORT_CELLS) channel_seen;
    RegisterAction<bit<16>, port_t, bit<16>>(channel_seen) channel_moves = {
        void apply(inout bit<16> value) {
            value = meta.asks.until;
        }
    };
    RegisterAction<bit<16>, port_t, bit<16>>(channel_seen) channel_last = {
        void apply(inout bit<16> value, out bit<16> result) {
            result = value;
        }
    };

    @hidden
    action measure_silence() {
        left = moved - meta.asks.now;
    }

    @hidden
    table silence {
        actions = { measure_silence; }
        const default_action = measure_silence();
        size = 1;
    }

    // Frames of a channel that wait. With a head that takes its place in its second pass, so it found its channel
    // its own, it begins anew: frames that were lost while they waited are forgotten.
    @name(".channel_held")
    Register<bit<16>, port_t>(PORT_CELLS) channel_held;
    RegisterAction<bit<16>, port_t, bit<16>>(channel_held) count_first = {
        void apply(inout bit<16> value, out bit<16> result) {
            value = 1;
            result = value;
        }
    };
    RegisterAction<bit<16>, port_t, bit<16>>(channel_held) count_more = {
        void apply(inout bit<16> value, out bit<16> result) {
            value = value + 1;
            result = value;
        }
    };
    RegisterAction<bit<16>, port_t, bit<16>>(channel_held) count_less = {
        void apply(inout bit<16> value, out bit<16> result) {
            value = value |-| 1;
            result = value;
        }
    };
    RegisterAction<bit<16>, port_t, bit<16>>(channel_held) count_same = {
        void apply(inout bit<16> value, out bit<16> result) {
            result = value;
        }
    };

    @hidden
    action one_waits() {
        waiting = count_first.execute(meta.asks.channel);
    }

    @hidden
    action one_more_waits() {
        waiting = count_more.execute(meta.asks.channel);
    }

    @hidden
    action one_less_waits() {
        waiting = count_less.execute(meta.asks.channel);
    }

    @hidden
    action as_many_wait() {
        waiting = count_same.execute(meta.asks.channel);
    }

    @hidden
    table counts {
        key = {
            meta.asks.part: ternary;
            meta.asks.places: ternary;
            meta.asks.is_second: ternary;
            meta.hold: ternary;
        }
        actions = { one_waits; one_more_waits; one_less_waits; as_many_wait; NoAction; }
        const entries = {
            (part_t.OVER, _, _, _): one_less_waits();
            (part_t.WAITS, _, _, 0): one_less_waits();
            (part_t.WAITS, 1, 1, _): one_waits();
            (part_t.BEGINS, _, _, 1): one_more_waits();
            (part_t.FOLLOWS, _, _, 1): one_more_waits();
            (_, _, _, _): as_many_wait();
        }
        const default_action = NoAction();
        size = 8;
    }

    @hidden
    action measure_room() {
        room = meta.asks.held_max |-| waiting;
    }

    @hidden
    table rooms {
        actions = { measure_room; }
        const default_action = measure_room();
        size = 1;
    }

    @name(".trains") @id(0x12000006)
    Counter<bit<64>, bit<8>>(TRAIN_CELLS, CounterType_t.PACKETS) trains;

    apply {
        take_in.apply(hdr, meta);
        claim.apply(hdr, meta, turn_place, moves, event);
        if (meta.drop_reason == drop_reason_t.NONE
            && (meta.asks.part == part_t.BEGINS || meta.asks.part == part_t.FOLLOWS
                || meta.asks.part == part_t.WAITS)) {
            front = turn.execute(meta.asks.channel);
            to_front.apply();
            moved = meta.asks.until;
            if (moves == 1 || meta.asks.places == 1) {
                output_moves.execute(meta.hop_port);
            } else if (meta.asks.way[15:15] == 1) {
                moved = output_last.execute(meta.hop_port);
            }
            if (not_mover == 0 || (behind == 0 && (meta.asks.is_head == 1 || meta.asks.way[15:15] == 1))) {
                channel_moves.execute(meta.asks.channel);
            } else if (meta.asks.way[15:15] == 0) { // also what has lost its head
                moved = channel_last.execute(meta.asks.channel);
            }
            if (meta.hold == 1) {
                silence.apply();
                hdr.worm.hops = hdr.worm.hops - 1; // it has not crossed this switch yet
                hdr.recirculated.setValid();
                hdr.recirculated.held = 1;
                hdr.recirculated.entry_port = hdr.bridge.entry_port;
                hdr.recirculated.entered_at = hdr.bridge.entered_at;
                if (meta.asks.way[15:15] == 1) {
                    hdr.held.seen = 16w0 ++ turn_place;
                } else {
                    hdr.held.seen = front;
                }
                hdr.held.expires = 0;
                hdr.held.is_overdue = 0;
                if (left[15:15] == 1) {
                    if (meta.asks.way[15:15] == 1) {
                        hdr.held.expires = 1;
                    } else {
                        hdr.held.is_overdue = 1;
                    }
                }
                if (behind[31:31] == 1) {
                    hdr.held.is_over = 1;
                } else if (behind == 0 && meta.asks.is_head == 1) {
                    hdr.held.is_front = 1;
                    hdr.held.closes = 0;
                    hdr.held.number = 0;
                }
            } else {
                if (hdr.held.ends == 1) {
                    hdr.worm.flags = hdr.worm.flags | (FLAG_TAIL | FLAG_ABORT);
                    event = train_event_t.ABORTED;
                }
                if (meta.asks.is_head == 0) {
                    meta.follows = true;
                }
            }
            if (meta.hold == 1 || hdr.held.ends == 1) {
                trains.count((bit<8>)event);
            }
        }
        if (meta.asks.part != part_t.NONE && meta.asks.part != part_t.REFUSED) {
            counts.apply();
            rooms.apply();
            hdr.held.full = 0;
            if (room == 0) {
                hdr.held.full = 1;
            }
        }
        if (meta.hold == 0) {
            hdr.held.setInvalid();
            if (hdr.train.isValid() && meta.asks.is_head == 1) {
                hdr.train.back_count = hdr.train.back_count | BACK_UNKNOWN;
            }
        }
    }
}

#endif
