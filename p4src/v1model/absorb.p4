// Purpose: the switch takes a worm itself and re-injects it (port byte 254, SPEC.md §3): the place of
//          an in-transit host where there is none (ITB §III). It has room for ABSORBED_MAX frames at a
//          time. A worm is taken or refused at once, it never waits for room: so what it holds on its
//          way so far comes free, whatever stands still behind this switch.
//
// In wormhole mode what it takes is counted as that of a channel of its own, number 254: a ticket each. It
// leaves in that order, by itself, and no frame of the port by which it came is in its way. A channel carries
// one worm at a time, so the switch takes one at a time: while the rest of a train is still to come, no other.
// The head of a train finds room for ABSORBED_TRAIN frames or is refused. A longer train may find none for a
// later frame. Then that one goes back as RESET, and the last one that was taken ends the train.
//
// Reads:   hdr.*; meta.entry_port, .now, .absorbed, .has_ticket; mode; registers of channels.p4.
// Writes:  meta.absorbed, .ticket, .course, .drop_reason; egress_spec; channel.index; registers.
// TNA:     not there yet: what recirculates has no bound.

#ifndef WORMCAST_ABSORB_P4
#define WORMCAST_ABSORB_P4

const bit<32> OWN_CHANNEL = (bit<32>)RECIRCULATE_PORT;
// Worms that hold no channel are counted apart, since they wait for no turn.
const bit<32> OWN_PASSING = 255;
// + a port: the train that comes by it and is taken here.
const bit<32> TAKEN_BY_PORT = 256;

// The cell of `absorbed_broken` of a ticket.
#define ABSORBED_CELL(ticket) (bit<32>)((ticket) & (ABSORBED_MAX - 1))

// A frame that has just come: takes it where it is for the switch itself, or refuses it. Leaves others alone.
control Absorb(in headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata,
               in mode_t mode, inout channel_t channel) {
    apply {
        bool is_ours = hdr.hop.isValid() && hdr.hop.port == RECIRCULATE_PORT;
        bool holds_channel = hdr.worm.kind <= KIND_TREE;
        bool has_rest = hdr.train.isValid() && hdr.worm.flags & FLAG_TAIL == 0;
        bit<32> own = holds_channel ? OWN_CHANNEL : OWN_PASSING;
        bit<32> by_port = TAKEN_BY_PORT | (bit<32>)(bit<8>)meta.entry_port;
        bit<32> worm = hdr.worm.source ++ hdr.worm.sequence;
        bit<8> does = channel_state_t.FREE;
        bool in_order = mode.scheme != 0 && holds_channel;
        if (in_order) {
            channel_state.read(does, by_port);
        }
        if (is_ours || does != channel_state_t.FREE) {
            bit<32> known = 0;
            bit<16> open_by = 0; // the port, + 1, of the train whose rest is still to come
            bool follows = false;
            if (in_order) {
                channel_worm.read(known, by_port);
                absorbed_train.read(open_by, 0);
                follows = hdr.worm.kind == KIND_UNICAST && hdr.train.isValid() && hdr.worm.flags & FLAG_HEAD == 0
                    && does != channel_state_t.FREE && known == worm;
            }
            bool is_open = open_by == (bit<16>)meta.entry_port + 1;

            bit<16> came;
            bit<16> gone;
            time_us_t seen_us;
            channel_came.read(came, own);
            channel_gone.read(gone, own);
            channel_turn_us.read(seen_us, own);
            if (came != gone && meta.now > seen_us && meta.now - seen_us > TURN_LOST_US) {
                // Queues have lost what should have gone round.
                gone = came;
                channel_gone.write(own, gone);
                COUNT_TRAIN(TURN_LOST);
            }

            bool takes = false;
            bool refuses = false;
            bool breaks = false; // the train whose rest is still to come gets no more of it
            if ((is_ours || follows) && in_order && hdr.worm.hops >= MAX_HOPS) {
                meta.drop_reason = drop_reason_t.HOPS_EXCEEDED; // it would be, out of its turn, when it comes round
            } else if (follows) {
                if (does != channel_state_t.OPEN) {
                    meta.drop_reason = drop_reason_t.TRAIN_RESET; // its source knows
                } else if (is_open) {
                    takes = came - gone < ABSORBED_MAX;
                    breaks = !takes;
                    refuses = !takes;
                } else {
                    refuses = true; // another worm was taken instead
                }
            } else {
                bool is_free = true;
                breaks = is_open;
                if (breaks) {
                    COUNT_TRAIN(TAIL_LOST);
                }
                if (is_ours && open_by != 0 && !is_open) {
                    // It gives way when it has ended on the way out, or nothing has come of it for too long.
                    bit<32> other = TAKEN_BY_PORT + (bit<32>)(open_by - 1);
                    bit<32> other_worm;
                    bit<32> own_worm;
                    bit<8> own_does;
                    time_us_t other_us;
                    channel_worm.read(other_worm, other);
                    channel_moved_us.read(other_us, other);
                    channel_worm.read(own_worm, OWN_CHANNEL);
                    channel_state.read(own_does, OWN_CHANNEL);
                    breaks = own_worm == other_worm && own_does >= channel_state_t.RESET;
                    if (!breaks && meta.now > other_us && meta.now - other_us > (time_us_t)mode.silent_us) {
                        breaks = true;
                        COUNT_TRAIN(EXPIRED);
                    }
                    is_free = breaks;
                }
                if (is_ours) {
                    bit<16> room = ABSORBED_MAX - (came - gone);
                    takes = is_free && room >= (has_rest ? ABSORBED_TRAIN : 16w1);
                    refuses = !takes;
                }
                channel_state.write(by_port, channel_state_t.FREE);
            }

            if (breaks) {
                absorbed_train.write(0, 0);
                if (came != gone) {
                    // Since it began, nothing else was taken: its last frame is still here.
                    absorbed_broken.write(ABSORBED_CELL(came - 1), 1);
                } else {
                    bit<8> own_does;
                    channel_state.read(own_does, OWN_CHANNEL);
                    if (own_does == channel_state_t.OPEN) {
                        channel_state.write(OWN_CHANNEL, channel_state_t.FREE);
                        channel_outputs.write(OWN_CHANNEL, 0);
                    }
                }
            }
            if (takes) {
                meta.absorbed = 1;
                meta.ticket = came;
                channel_came.write(own, came + 1);
                if (came == gone) {
                    channel_turn_us.write(own, meta.now);
                }
                if (holds_channel) {
                    absorbed_broken.write(ABSORBED_CELL(came), 0);
                    absorbed_train.write(0, in_order && has_rest ? (bit<16>)meta.entry_port + 1 : 16w0);
                }
                if (follows) {
                    meta.course = course_t.FOLLOW;
                    standard_metadata.egress_spec = (port_t)RECIRCULATE_PORT;
                }
                if (in_order) {
                    channel_moved_us.write(by_port, meta.now);
                    channel_worm.write(by_port, worm);
                    channel_state.write(by_port, has_rest ? channel_state_t.OPEN : channel_state_t.FREE);
                }
            }
            if (is_ours && hdr.train.isValid()) {
                channel_back.write(by_port, hdr.train.back_count ++ hdr.train.back);
            }
            if (refuses) {
                channel.index = by_port;
                if (hdr.train.isValid()) {
                    meta.course = course_t.RETURN;
                    channel_worm.write(by_port, worm);
                    channel_state.write(by_port, has_rest ? channel_state_t.ENDED : channel_state_t.FREE);
                } else {
                    meta.drop_reason = drop_reason_t.ABSORB_FULL; // it does not know its way back
                }
            }
        }
    }
}

// The source of a worm knows that it goes no further: what still comes of it ends here.
control EndTaken(in bit<32> worm, in bit<8> port) {
    apply {
        bit<32> by_port = TAKEN_BY_PORT | (bit<32>)port;
        bit<32> known;
        channel_worm.read(known, by_port);
        if (known == worm) {
            channel_state.write(by_port, channel_state_t.ENDED);
        }
    }
}

// A worm that has gone round, and waits for nothing, makes room.
control Reinject(in headers_t hdr, inout metadata_t meta) {
    apply {
        bit<32> own = hdr.worm.kind <= KIND_TREE ? OWN_CHANNEL : OWN_PASSING;
        bit<16> came;
        bit<16> gone;
        meta.absorbed = 0;
        meta.has_ticket = 0;
        channel_came.read(came, own);
        channel_gone.read(gone, own);
        channel_turn_us.write(own, meta.now);
        if (came != gone) { // else it was taken for lost
            channel_gone.write(own, gone + 1);
        }
    }
}

#endif
