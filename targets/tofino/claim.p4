// Purpose: the line of an output (wormhole.p4): the way that the head of a worm has kept for the frames behind it,
//          and whose turn it is. The one access that decides.
// Reads:   hdr.held, meta.asks, meta.drop_reason.
// Writes:  meta.hop_port, meta.hold, meta.asks; hdr.held; `turn_place`: the place whose turn it was; `moves`: the
//          turn goes on; `event`.
// Tables:  none but its own.

#ifndef WORMCAST_CLAIM_P4
#define WORMCAST_CLAIM_P4

#include "metadata.p4"

// The worm of a channel that has a place in the line of an output.
struct way_t {
    bit<32> worm;
    bit<32> way; // place, HAS_WAY, and the output
}

struct turn_t {
    bit<16> place;
    bit<16> number; // of the frame in its train
}

const bit<32> HAS_WAY = 0x8000;

control Claim(inout ingress_headers_t hdr,
              inout ingress_metadata_t meta,
              inout bit<16> turn_place,
              inout bit<1> moves,
              inout train_event_t event) {
    bit<16> turn_number = 0;
    bit<16> places_on = 0; // from its own to that whose turn it was
    bit<16> numbers_on = 0;

    @name(".channel_way")
    Register<way_t, port_t>(PORT_CELLS) channel_way;
    RegisterAction<way_t, port_t, bit<32>>(channel_way) keep_way = {
        void apply(inout way_t value) {
            value.worm = meta.asks.asked;
            value.way = meta.asks.way;
        }
    };
    // 0: it has no place yet.
    RegisterAction<way_t, port_t, bit<32>>(channel_way) find_way = {
        void apply(inout way_t value, out bit<32> result) {
            result = 0;
            if (value.worm == meta.asks.asked) {
                result = value.way;
            }
        }
    };

    @hidden
    action aim() {
        meta.hop_port = meta.asks.way[8:0];
        meta.asks.place = meta.asks.way[31:16];
    }

    // At whoever is silent.
    @hidden
    action aim_at_seen() {
        meta.hop_port = meta.asks.way[8:0];
        meta.asks.place = hdr.held.seen[15:0];
    }

    @hidden
    table aims {
        key = {
            meta.asks.way: ternary;
            hdr.held.expires: ternary;
        }
        actions = { aim; aim_at_seen; NoAction; }
        const entries = {
            (0 &&& HAS_WAY, _): NoAction();
            (_, 1): aim_at_seen();
            (_, _): aim();
        }
        const default_action = NoAction();
        size = 4;
    }

    // All are told whose turn it was.
    @name(".output_turn")
    Register<turn_t, port_t>(PORT_CELLS) output_turn;
    RegisterAction2<turn_t, port_t, bit<16>, bit<16>>(output_turn) go_on = {
        void apply(inout turn_t value, out bit<16> at_place, out bit<16> at_number) {
            at_place = value.place;
            at_number = value.number;
            if (value.place == meta.asks.place && value.number == hdr.held.number) {
                value.number = value.number + 1;
            }
        }
    };
    RegisterAction2<turn_t, port_t, bit<16>, bit<16>>(output_turn) go_last = {
        void apply(inout turn_t value, out bit<16> at_place, out bit<16> at_number) {
            at_place = value.place;
            at_number = value.number;
            if (value.place == meta.asks.place && value.number == hdr.held.number) {
                value.number = 0;
                value.place = value.place + 1;
            }
        }
    };
    // Whoever had the turn has been silent for too long.
    RegisterAction2<turn_t, port_t, bit<16>, bit<16>>(output_turn) expire = {
        void apply(inout turn_t value, out bit<16> at_place, out bit<16> at_number) {
            at_place = value.place;
            at_number = value.number;
            if (value.place == meta.asks.place) {
                value.number = 0;
                value.place = value.place + 1;
            }
        }
    };

    @hidden
    action turn_on() {
        turn_place = go_on.execute(meta.hop_port, turn_number);
    }

    @hidden
    action turn_last() {
        turn_place = go_last.execute(meta.hop_port, turn_number);
    }

    @hidden
    action turn_expires() {
        turn_place = expire.execute(meta.hop_port, turn_number);
    }

    @hidden
    table turns {
        key = {
            hdr.held.expires: ternary;
            hdr.held.closes: ternary;
            hdr.held.ends: ternary;
            meta.asks.is_last: ternary;
        }
        actions = { turn_on; turn_last; turn_expires; NoAction; }
        const entries = {
            (1, _, _, _): turn_expires();
            (_, 1, _, _): turn_last();
            (_, _, 1, _): turn_last();
            (_, _, _, 1): turn_last();
            (_, _, _, _): turn_on();
        }
        const default_action = NoAction();
        size = 8;
    }

    @hidden
    action measure_turn() {
        places_on = turn_place - meta.asks.place;
        numbers_on = turn_number - hdr.held.number;
    }

    @hidden
    table to_turn {
        actions = { measure_turn; }
        const default_action = measure_turn();
        size = 1;
    }

    @hidden
    action leaves() {
        moves = 1;
    }

    @hidden
    action leaves_as_last() {
        moves = 1;
        meta.asks.mover = meta.asks.asked;
    }

    @hidden
    action holds() {
        meta.hold = 1;
    }

    // The worm before has lost its tail, and its turn is over.
    @hidden
    action has_closed() {
        meta.hold = 1;
        moves = 1;
        meta.asks.mover = meta.asks.asked;
        hdr.held.closes = 0;
        hdr.held.number = 0;
        event = train_event_t.TAIL_LOST;
    }

    // Its own turn is over, and it did not leave.
    @hidden
    action has_passed() {
        meta.hold = 1;
        meta.asks.mover = meta.asks.asked;
        hdr.held.is_over = 1;
    }

    @hidden
    action has_expired() {
        meta.hold = 1;
        moves = 1;
        event = train_event_t.EXPIRED;
    }

    @hidden
    action is_overdue() {
        meta.hold = 1;
        meta.asks.mover = hdr.held.seen;
        event = train_event_t.TURN_LOST;
    }

    @hidden
    table judges {
        key = {
            meta.asks.way: ternary;
            hdr.held.is_overdue: ternary;
            hdr.held.expires: ternary;
            places_on: ternary;
            numbers_on: ternary;
            hdr.held.closes: ternary;
            hdr.held.ends: ternary;
            meta.asks.is_last: ternary;
        }
        actions = {
            leaves; leaves_as_last; holds; has_closed; has_passed; has_expired; is_overdue;
        }
        const entries = {
            (0 &&& HAS_WAY, 1, _, _, _, _, _, _): is_overdue();
            (0 &&& HAS_WAY, _, _, _, _, _, _, _): holds();
            (_, _, 1, 0, _, _, _, _): has_expired();
            (_, _, 1, _, _, _, _, _): holds();
            (_, _, _, 0, 0, 1, _, _): has_closed();
            (_, _, _, 0, 0, _, 1, _): leaves_as_last();
            (_, _, _, 0, 0, _, _, 1): leaves_as_last();
            (_, _, _, 0, 0, _, _, _): leaves();
            (_, _, _, 0, _, _, _, _): holds();
            (_, _, _, 0 &&& 0x8000, _, 1, _, _): has_closed();
            (_, _, _, 0 &&& 0x8000, _, _, _, _): has_passed();
        }
        const default_action = holds();
        size = 16;
    }

    apply {
        if (meta.asks.places == 1) {
            keep_way.execute(meta.asks.channel);
        } else if (meta.asks.part == part_t.BEGINS || meta.asks.part == part_t.FOLLOWS
                   || meta.asks.part == part_t.WAITS) {
            meta.asks.way = find_way.execute(meta.asks.channel);
        }
        aims.apply();
        if (meta.drop_reason == drop_reason_t.NONE
            && (meta.asks.part == part_t.BEGINS || meta.asks.part == part_t.FOLLOWS
                || meta.asks.part == part_t.WAITS)) {
            if (meta.asks.way[15:15] == 1) {
                turns.apply();
                to_turn.apply();
            }
            judges.apply();
        }
    }
}

#endif
