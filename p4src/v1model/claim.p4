// Purpose: the head of a worm claims the outputs of its route, one each time it comes round, and
//          waits for those that another worm has. Those that wait stand in line.
//
// Scheme B: a multicast that branches gives back what it has when the next output is not free, and
// begins again. After idle_us it stands in line as others do and keeps what it has, so that it gets all of
// them in the end (SPEC.md §3.1 says why nobody waits in a circle then). At the root it claims its turn first.
//
// Reads:   hdr.worm, hdr.hop, hdr.branches, hdr.train; meta.now; mode; channel.can_break, .turns.
// Writes:  channel.does, .leaves; meta.course, .drop_reason; registers.
// Tables:  none.
// TNA:     seven registers of an output and a channel that depend on each other: more stages than
//          there are, unless the claim goes round too.

#ifndef WORMCAST_CLAIM_P4
#define WORMCAST_CLAIM_P4

#define CLAIM_BRANCH(n, after) \
    if (branch == n) { \
        port = hdr.branches[n].port; \
        is_last = !hdr.branches[after].isValid(); \
    }

#define GIVE_BACK \
    channel_outputs.write(channel.index, 0); \
    channel_claimed.write(channel.index, channel.turns); \
    channel_stops.write(channel.index, 0); \
    COUNT_TRAIN(GIVEN_BACK);

control Claim(in headers_t hdr, inout metadata_t meta, in mode_t mode, inout channel_t channel) {
    apply {
        bit<8> claimed;
        port_byte_t port = hdr.hop.port;
        bool is_last = true;
        channel_claimed.read(claimed, channel.index);
        bit<8> branch = claimed - channel.turns;
        if (hdr.worm.kind == KIND_TREE) {
            CLAIM_BRANCH(0, 1) else CLAIM_BRANCH(1, 2) else CLAIM_BRANCH(2, 3) else CLAIM_BRANCH(3, 4)
            else CLAIM_BRANCH(4, 5) else CLAIM_BRANCH(5, 6) else CLAIM_BRANCH(6, 7) else CLAIM_BRANCH(7, 8)
            else CLAIM_BRANCH(8, 9) else CLAIM_BRANCH(9, 10) else CLAIM_BRANCH(10, 11)
            else CLAIM_BRANCH(11, 12) else CLAIM_BRANCH(12, 13) else CLAIM_BRANCH(13, 14)
            else CLAIM_BRANCH(14, 15) else { port = hdr.branches[15].port; }
        }
        bool is_turn = claimed < channel.turns;
        if (is_turn) {
            port = ROOT_TURN;
            is_last = false;
        }
        bit<32> output = (bit<32>)port;
        port_set_t self = (port_set_t)1 << port;

        // Who has it. A channel has the outputs in its own set; `output_owner` may be out of date.
        bit<16> owner;
        bit<32> other = 0;
        port_set_t others = 0;
        time_us_t other_moved_us = 0;
        output_owner.read(owner, output);
        if (owner != 0 && owner != (bit<16>)channel.index + 1) {
            other = (bit<32>)(owner - 1);
            channel_outputs.read(others, other);
            channel_moved_us.read(other_moved_us, other);
            if (is_turn) {
                // It has its turn as long as its multicast is there, between fragments too.
                bit<8> other_does;
                bit<8> other_kind;
                bit<8> other_claimed;
                channel_state.read(other_does, other);
                channel_kind.read(other_kind, other);
                channel_claimed.read(other_claimed, other);
                others = 0;
                if ((other_does == channel_state_t.CLAIMING || other_does == channel_state_t.OPEN)
                    && other_kind == (bit<8>)KIND_TREE && other_claimed != 0) {
                    others = self;
                }
            }
        }
        bool is_taken = others & self != 0;
        time_us_t quiet_us = 0;
        if (is_taken && meta.now > other_moved_us) {
            quiet_us = meta.now - other_moved_us;
            bit<16> other_came;
            bit<16> other_gone;
            channel_came.read(other_came, other);
            channel_gone.read(other_gone, other);
            if (other == OWN_CHANNEL && other_came != other_gone) {
                // Queues may have lost what waits. By another channel more comes, which finds it out.
                time_us_t other_seen_us;
                channel_turn_us.read(other_seen_us, other);
                if (meta.now > other_seen_us && meta.now - other_seen_us > 2 * TURN_LOST_US) {
                    other_gone = other_came;
                    channel_gone.write(other, other_gone);
                    COUNT_TRAIN(TURN_LOST);
                }
            }
            if (quiet_us > (time_us_t)mode.silent_us && other_came == other_gone) {
                // The rest of that worm does not come.
                channel_outputs.write(other, 0);
                channel_state.write(other, channel_state_t.RESET);
                is_taken = false;
                COUNT_TRAIN(EXPIRED);
            }
        }

        time_us_t until_us;
        time_us_t since_us;
        output_stop_us.read(until_us, output);
        channel_moved_us.read(since_us, channel.index);
        bool is_free = !is_taken && !(channel.can_break && until_us > meta.now);
        bool gives_back = channel.can_break && !is_turn && hdr.branches[1].isValid()
            && (meta.now <= since_us || meta.now - since_us <= (time_us_t)mode.idle_us);

        // The line of those that wait. Its head may be gone; then the next one takes its place.
        bit<17> place;
        bit<16> next;
        bool granted = false;
        channel_place.read(place, channel.index);
        output_line_head.read(next, output);
        if (place == 0) {
            bit<16> end;
            output_line_end.read(end, output);
            if (is_free && end == next) {
                granted = true;
            } else if (!gives_back) {
                place = 1w1 ++ end;
                channel_place.write(channel.index, place);
                channel_line.write(channel.index, port);
                output_line_end.write(output, end + 1);
            }
        }
        bit<16> number = place[15:0];
        if (place != 0) {
            if (number == next) {
                output_line_us.write(output, meta.now);
            } else if (number - next < 0x8000) {
                time_us_t seen_us;
                output_line_us.read(seen_us, output);
                if (meta.now > seen_us && meta.now - seen_us > LINE_LOST_US) {
                    next = next + 1;
                    output_line_head.write(output, next);
                    output_line_us.write(output, meta.now);
                }
            }
            if (is_free && next - number < 0x8000) {
                granted = true;
                if (number == next) {
                    output_line_head.write(output, next + 1);
                }
            }
        }

        if (granted) {
            port_set_t outputs;
            port_set_t stops;
            if (is_turn) {
                bit<16> order;
                root_order.read(order, 0);
                order = order == 0xffff ? 16w1 : order + 1; // 0 is no number
                root_order.write(0, order);
                channel_order.write(channel.index, order);
            } else {
                channel_outputs.read(outputs, channel.index);
                channel_outputs.write(channel.index, outputs | self);
            }
            output_owner.write(output, (bit<16>)channel.index + 1);
            channel_place.write(channel.index, 0);
            channel_claimed.write(channel.index, claimed + 1);
            if (is_turn || !channel.can_break) {
                channel_moved_us.write(channel.index, meta.now);
            }
            if (until_us > meta.now) {
                channel_stops.read(stops, channel.index);
                channel_stops.write(channel.index, stops | self);
                channel_stops_us.write(channel.index, until_us);
            }
            if (is_last) {
                channel.does = channel_state_t.OPEN;
            }
        } else if (gives_back && place == 0 && branch != 0) {
            GIVE_BACK
        } else if (mode.scheme == WORMHOLE_FLUSH && hdr.worm.kind == KIND_UNICAST && is_taken
                   && quiet_us > (time_us_t)mode.idle_us) {
            // Only a multicast that waits at another branch leaves an output idle so long (WORM §3).
            bit<8> other_kind;
            channel_kind.read(other_kind, other);
            if (other_kind == (bit<8>)KIND_TREE) {
                COUNT_TRAIN(FLUSHED);
                if (number == next) {
                    output_line_head.write(output, next + 1);
                }
                channel_back.write(channel.index, hdr.train.back_count ++ hdr.train.back);
                channel_outputs.write(channel.index, 0);
                channel.does = channel_state_t.ENDED;
                channel.leaves = true;
                meta.course = course_t.RETURN;
                if (!hdr.train.isValid()) {
                    meta.drop_reason = drop_reason_t.TRAIN_RESET; // it does not know its way back
                }
            }
        }
    }
}

#endif
