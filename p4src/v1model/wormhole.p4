// Purpose: wormhole mode (SPEC.md §3.1). A channel carries one worm at a time: the head of a worm
//          claims the outputs of its route, all branches of a tree, and the frames behind it follow
//          without a route. The tail gives the outputs up. What cannot go on waits.
//
// The frames of a channel are counted as they come (a ticket each) and leave in that order. A frame
// that has to wait goes round: egress recirculates it as it came. So the order of a channel does not
// depend on the order in which frames go round.
//
// Reads:   hdr.*; meta.entry_port, .ticket, .now, .tree_malformed; registers of channels.p4.
// Writes:  meta.course, .ticket, .absorbed, .signal, .train_ports, .drop_reason; egress_spec, mcast_grp.
// Tables:  wormhole.
// TNA:     see claim.p4.

#ifndef WORMCAST_WORMHOLE_P4
#define WORMCAST_WORMHOLE_P4

// The frame goes round, or carries STOP or GO to the neighbour and goes round.
control Hold(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata,
             in mode_t mode, in channel_t channel) {
    apply {
        bit<1> told;
        time_us_t told_us;
        bit<16> waiting = channel.came - channel.gone;
        channel_told.read(told, channel.index);
        channel_told_us.read(told_us, channel.index);
        standard_metadata.egress_spec = (port_t)RECIRCULATE_PORT;
        if (meta.absorbed == 1) {
            // No neighbour sends by this channel.
        } else if (waiting >= mode.stop_frames
            && (told == 0 || meta.now - told_us > (time_us_t)(mode.stop_us >> 2))) {
            meta.signal = CONTROL_STOP;
            meta.stop_us = mode.stop_us;
            channel_told.write(channel.index, 1);
            channel_told_us.write(channel.index, meta.now);
            COUNT_TRAIN(STOP_SENT);
        } else if (told == 1 && waiting <= mode.go_frames) {
            meta.signal = CONTROL_GO;
            channel_told.write(channel.index, 0);
            COUNT_TRAIN(GO_SENT);
        }
        if (meta.signal != 0) {
            standard_metadata.mcast_grp = MGID_HOLD + (bit<16>)meta.entry_port;
        }
        COUNT_TRAIN(HELD);
        hdr.worm.hops = hdr.worm.hops - 1; // it has not crossed this switch yet
    }
}

// The frame becomes a RESET that goes to the source of its worm.
control GoBack(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata,
               in channel_t channel) {
    apply {
        bit<128> way;
        channel_back.read(way, channel.index);
        bit<8> count = way[127:120];
        if (count > MAX_BACK) {
            meta.drop_reason = drop_reason_t.TRAIN_RESET; // the way is longer than a head can tell
        } else {
            // The port by which the worm came last is the lowest byte, and the first of the route.
            bit<128> rest = 8w0 ++ way[119:0];
            rest = rest >> 8 & 0x00ff00ff00ff00ff00ff00ff00ff00ff | (rest & 0x00ff00ff00ff00ff00ff00ff00ff00ff) << 8;
            rest = rest >> 16 & 0x0000ffff0000ffff0000ffff0000ffff | (rest & 0x0000ffff0000ffff0000ffff0000ffff) << 16;
            rest = rest >> 32 & 0x00000000ffffffff00000000ffffffff | (rest & 0x00000000ffffffff00000000ffffffff) << 32;
            rest = rest[63:0] ++ rest[127:64];
            NO_WAY
            if (count[3:3] == 1) {
                hdr.way8.setValid();
                hdr.way8.bytes = rest[127:64];
                rest = rest << 64;
            }
            if (count[2:2] == 1) {
                hdr.way4.setValid();
                hdr.way4.bytes = rest[127:96];
                rest = rest << 32;
            }
            if (count[1:1] == 1) {
                hdr.way2.setValid();
                hdr.way2.bytes = rest[127:112];
                rest = rest << 16;
            }
            if (count[0:0] == 1) {
                hdr.way1.setValid();
                hdr.way1.bytes = rest[127:120];
            }
            standard_metadata.egress_spec = meta.entry_port;
            hdr.signal.setValid();
            hdr.signal.op = CONTROL_RESET;
            hdr.signal.pad = 0;
            hdr.signal.source = hdr.worm.source;
            hdr.signal.sequence = hdr.worm.sequence;
            hdr.signal.stop_us = 0;
            hdr.worm.kind = KIND_CONTROL;
            hdr.worm.flags = FLAG_HEAD | FLAG_TAIL;
            hdr.worm.route_len = count;
            hdr.worm.hops = 1;
            hdr.worm.next = NEXT_CONTROL;
            hdr.train.setInvalid();
            hdr.hop.setInvalid();
            hdr.route.setInvalid();
            hdr.end.setInvalid();
            hdr.trace.setInvalid();
            COUNT_TRAIN(RESET_SENT);
            truncate(CONTROL_FRAME_BYTES + (bit<32>)count);
        }
    }
}

// The frame whose turn it is: a head begins a worm and claims outputs, others belong to the worm or not.
control Begin(in headers_t hdr, inout metadata_t meta, inout channel_t channel) {
    apply {
        if (channel.known != channel.worm
            && (channel.does == channel_state_t.OPEN || channel.does == channel_state_t.CLAIMING)) {
            COUNT_TRAIN(TAIL_LOST);
            channel.does = channel_state_t.FREE;
        }
        if (hdr.worm.kind == KIND_TREE && meta.tree_malformed == 1) {
            meta.drop_reason = drop_reason_t.TREE_MALFORMED;
        } else if (hdr.worm.kind == KIND_UNICAST && !hdr.hop.isValid()) {
            meta.drop_reason = drop_reason_t.ROUTE_EMPTY;
        } else if (hdr.hop.isValid() && hdr.hop.port == RECIRCULATE_PORT && hdr.worm.hops >= MAX_HOPS) {
            meta.drop_reason = drop_reason_t.HOPS_EXCEEDED; // it would be in its next pass
        } else if (channel.does >= channel_state_t.RESET && channel.known == channel.worm) {
            meta.drop_reason = drop_reason_t.TRAIN_RESET; // while it waited
        }
        if (meta.drop_reason != drop_reason_t.NONE
            || (channel.does != channel_state_t.CLAIMING && channel.does != channel_state_t.OPEN)) {
            channel_worm.write(channel.index, channel.worm);
            channel_kind.write(channel.index, (bit<8>)hdr.worm.kind);
            channel_outputs.write(channel.index, 0);
            channel_claimed.write(channel.index, 0);
            channel_place.write(channel.index, 0);
            channel_route_len.write(channel.index, 0);
            channel_stops.write(channel.index, 0);
            channel_moved_us.write(channel.index, meta.now);
            channel.does = channel_state_t.CLAIMING;
            if (channel.can_break && hdr.branches[1].isValid()) {
                meta.keep_route = 1; // from its next pass on
            }
        }
        if (meta.drop_reason != drop_reason_t.NONE) {
            channel.does = channel_state_t.ENDED;
            channel.leaves = true;
        }
    }
}

// The head of a train records its way back.
control AddWay(inout headers_t hdr, in metadata_t meta) {
    apply {
        hdr.train.back = hdr.train.back << 8 | (bit<120>)(bit<8>)meta.entry_port;
        hdr.train.back_count = hdr.train.back_count + 1;
    }
}

// At the root every frame of a multicast gets its number.
#define STAMP \
    if (channel.turns == 1 && hdr.train.isValid()) { \
        channel_order.read(hdr.train.order, channel.index); \
    }

// The worm has its outputs: the frame leaves, unless an output stops.
control Advance(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata,
                in mode_t mode, inout channel_t channel) {
    Interrupt() interrupt;
    AddWay() add_way;

    apply {
        port_set_t stops;
        time_us_t until_us;
        time_us_t moved_us;
        bit<1> told;
        bit<1> broken = 0; // no more of its train is taken
        if (meta.absorbed == 1) {
            absorbed_broken.read(broken, ABSORBED_CELL(meta.ticket));
        }
        channel_stops.read(stops, channel.index);
        channel_moved_us.read(moved_us, channel.index);
        channel_stops_us.read(until_us, channel.index);
        channel_told.read(told, channel.index);
        bit<16> at = 0;
        bit<16> next;
        bit<8> route_len;
        channel_position.read(next, channel.index);
        channel_route_len.read(route_len, channel.index);
        if (hdr.train.isValid()) {
            at = hdr.train.position;
        }
        bool is_stopped = stops != 0 && until_us > meta.now;
        // Scheme B: what ends a fragment leaves in any case. It is one frame, and frees outputs.
        bool is_end = channel.can_break && !channel.is_head
            && (at != next || channel.is_tail && hdr.worm.flags & FLAG_RESUMED != 0);
        if (told == 1 && channel.came - channel.gone <= mode.go_frames) {
            // It carries GO to the neighbour first.
        } else if (is_stopped && channel.can_break && channel.is_head && hdr.branches[1].isValid()) {
            GIVE_BACK
            channel.does = channel_state_t.CLAIMING;
        } else if (is_stopped && channel.can_break && !channel.is_head && !is_end && route_len != 0
                   && hdr.train.isValid() && hdr.worm.route_len == 0) {
            interrupt.apply(hdr, meta, standard_metadata, channel);
            STAMP
        } else if (is_stopped && !is_end) {
            // An output that stops stops all branches (WORM §3).
        } else if (!channel.is_head && meta.now - moved_us < (time_us_t)mode.gap_us) {
            // Those that have waited do not leave faster than a link carries them: they would fill
            // the next switch before it can say STOP.
        } else {
            channel.leaves = true;
            channel_stops.write(channel.index, 0);
            channel_moved_us.write(channel.index, meta.now);
            channel_outputs.read(meta.train_ports, channel.index);
            STAMP
            if (channel.is_head) {
                meta.course = course_t.ROUTE;
                channel_target.write(channel.index, (bit<16>)hdr.hop.port);
                if (hdr.train.isValid()) {
                    channel_back.write(channel.index, hdr.train.back_count ++ hdr.train.back);
                    add_way.apply(hdr, meta);
                }
            } else {
                bit<16> target;
                channel_target.read(target, channel.index);
                meta.course = course_t.FOLLOW;
                if (hdr.worm.kind == KIND_TREE) {
                    standard_metadata.mcast_grp = target;
                } else {
                    standard_metadata.egress_spec = (port_t)target;
                }
            }
            if (broken == 1 || (!channel.is_head && at != next)) {
                // A frame before it is missing, or what would follow: the train ends with this one.
                hdr.worm.flags = hdr.worm.flags | FLAG_TAIL | FLAG_ABORT;
                channel.does = channel_state_t.RESET;
                channel.is_tail = true;
                COUNT_TRAIN(ABORTED);
            }
            channel_position.write(channel.index, at + 1);
            if (channel.is_tail) {
                channel_outputs.write(channel.index, 0);
                if (channel.does == channel_state_t.OPEN) {
                    channel.does = channel_state_t.FREE;
                }
            }
        }
    }
}

control Wormhole(inout headers_t hdr, inout metadata_t meta,
                 inout standard_metadata_t standard_metadata) {
    mode_t mode = { 0, 0, 0, 0, 0, 0, 0, 0 };
    channel_t channel = { 0, 0, 0, 0, 0, 0, false, false, false, false, 0 };
    SignalsIn() signals;
    Begin() begin;
    KeepRoute() keep_route;
    Claim() claim;
    Advance() advance;
    Hold() hold;
    GoBack() go_back;
    AddWay() add_way;
    Absorb() absorb;
    EndTaken() end_taken;
    Reinject() reinject;

    @name(".ingress.packet_mode") @id(0x01000014)
    action packet_mode() {}

    @name(".ingress.wormhole_mode") @id(0x01000015)
    action wormhole_mode(bit<8> scheme, bit<16> stop_frames, bit<16> go_frames, bit<16> held_max,
                         bit<32> gap_us, bit<32> stop_us, bit<32> idle_us, bit<32> silent_us) {
        mode.scheme = scheme;
        mode.stop_frames = stop_frames;
        mode.go_frames = go_frames;
        mode.held_max = held_max;
        mode.gap_us = gap_us;
        mode.stop_us = stop_us;
        mode.idle_us = idle_us;
        mode.silent_us = silent_us;
    }

    @name(".ingress.wormhole") @id(0x0200000c)
    table wormhole {
        actions = { packet_mode; wormhole_mode; }
        default_action = packet_mode();
    }

    apply {
        wormhole.apply();
        bool may_train = hdr.worm.kind == KIND_UNICAST || hdr.worm.kind == KIND_TREE;
        bool is_ours = hdr.hop.isValid() && hdr.hop.port == RECIRCULATE_PORT;
        bool is_taken = false; // it goes round before all else
        bool is_whole = hdr.worm.flags & (FLAG_HEAD | FLAG_TAIL) == FLAG_HEAD | FLAG_TAIL;
        channel.index = (bit<32>)meta.entry_port;
        if (meta.absorbed == 1) {
            if (mode.scheme == 0 || !may_train) {
                reinject.apply(hdr, meta);
            } else {
                channel.index = OWN_CHANNEL;
            }
        }
        if (hdr.train.isValid() && (!may_train || (mode.scheme == 0 && !is_whole)
                                    || (is_ours && hdr.worm.flags & FLAG_HEAD == 0))) {
            meta.drop_reason = drop_reason_t.TRAIN_REFUSED;
        } else if (meta.absorbed == 0 && meta.has_ticket == 0 && (is_ours || (mode.scheme != 0 && may_train))) {
            absorb.apply(hdr, meta, standard_metadata, mode, channel);
            is_taken = meta.absorbed == 1;
        }
        if (meta.drop_reason != drop_reason_t.NONE || meta.course != course_t.ROUTE || is_taken) {
            // It is decided.
        } else if (hdr.worm.kind == KIND_CONTROL && mode.scheme != 0) {
            if (hdr.signal.isValid()) {
                signals.apply(hdr, meta);
            }
        } else if (mode.scheme == 0) {
            if (hdr.train.isValid()) {
                add_way.apply(hdr, meta);
            }
        } else if (may_train) {
            channel_came.read(channel.came, channel.index);
            channel_gone.read(channel.gone, channel.index);
            if (meta.absorbed == 1) {
                meta.has_ticket = 1;
            } else if (meta.has_ticket == 0) {
                if (channel.came - channel.gone >= mode.held_max) {
                    // Queues may have lost them all. Then none is left to take its turn.
                    time_us_t front_us;
                    channel_turn_us.read(front_us, channel.index);
                    if (meta.now > front_us && meta.now - front_us > 2 * TURN_LOST_US) {
                        channel.gone = channel.came;
                        channel_gone.write(channel.index, channel.gone);
                        COUNT_TRAIN(TURN_LOST);
                    }
                }
                if (channel.came - channel.gone >= mode.held_max) {
                    meta.drop_reason = drop_reason_t.HELD_FULL;
                } else {
                    meta.has_ticket = 1;
                    meta.ticket = channel.came;
                    channel.came = channel.came + 1;
                    channel_came.write(channel.index, channel.came);
                }
            }
            if (meta.drop_reason == drop_reason_t.NONE) {
                bit<16> before = meta.ticket - channel.gone; // frames that have to leave first
                if (before != 0 && before < 0x8000) {
                    // A frame that goes round can be lost in a queue; the next one then takes its turn.
                    time_us_t seen_us;
                    channel_turn_us.read(seen_us, channel.index);
                    if (meta.now > seen_us && meta.now - seen_us > TURN_LOST_US) {
                        channel.gone = channel.gone + 1;
                        channel_gone.write(channel.index, channel.gone);
                        channel_turn_us.write(channel.index, meta.now - TURN_LOST_US + NEXT_TURN_LOST_US);
                        before = before - 1;
                        COUNT_TRAIN(TURN_LOST);
                    }
                }
                meta.course = course_t.HOLD;
                if (before >= 0x8000) {
                    meta.drop_reason = drop_reason_t.TRAIN_BROKEN; // its turn went to another
                } else if (before == 0) {
                    channel_turn_us.write(channel.index, meta.now);
                    channel_state.read(channel.does, channel.index);
                    channel_worm.read(channel.known, channel.index);
                    channel.worm = hdr.worm.source ++ hdr.worm.sequence;
                    channel.is_head = hdr.worm.flags & FLAG_HEAD != 0;
                    channel.can_break = mode.scheme >= WORMHOLE_INTERRUPT && hdr.worm.kind == KIND_TREE;
                    if (mode.scheme == WORMHOLE_INTERRUPT_ROOT && channel.can_break) {
                        channel.turns = 1;
                    }
                    if (hdr.worm.flags & FLAG_RESUMED != 0 && channel.known == channel.worm
                        && channel.does >= channel_state_t.RESET) {
                        channel.is_head = false; // of a worm that has ended: its source is told
                    }
                    channel.is_tail = hdr.worm.flags & FLAG_TAIL != 0;
                    if (channel.is_head) {
                        begin.apply(hdr, meta, channel);
                        if (!channel.leaves && is_ours) {
                            meta.course = course_t.ROUTE; // another pass, in its turn
                        } else if (!channel.leaves && meta.keep_route == 1 && !hdr.branches[0].isValid()) {
                            keep_route.apply(hdr, meta, channel);
                        } else if (!channel.leaves && channel.does == channel_state_t.CLAIMING) {
                            claim.apply(hdr, meta, mode, channel);
                        }
                        // An open channel has the head's worm now.
                    } else if (channel.does != channel_state_t.OPEN || channel.known != channel.worm) {
                        // The frames before it are missing.
                        channel.leaves = true;
                        if (channel.does >= channel_state_t.RESET && channel.known == channel.worm) {
                            if (channel.does == channel_state_t.RESET) {
                                meta.course = course_t.RETURN;
                                channel.does = channel_state_t.ENDED;
                            } else {
                                meta.drop_reason = drop_reason_t.TRAIN_RESET;
                            }
                        } else {
                            meta.drop_reason = drop_reason_t.TRAIN_BROKEN;
                            if (channel.does != channel_state_t.FREE) {
                                channel_outputs.write(channel.index, 0);
                                channel.does = channel_state_t.FREE;
                                COUNT_TRAIN(TAIL_LOST);
                            }
                        }
                    }
                    if (channel.does == channel_state_t.OPEN && meta.course == course_t.HOLD && !channel.leaves) {
                        advance.apply(hdr, meta, standard_metadata, mode, channel);
                    }
                    channel_state.write(channel.index, channel.does);
                    if (channel.leaves) {
                        channel_gone.write(channel.index, channel.gone + 1);
                    }
                }
                if (meta.drop_reason == drop_reason_t.NONE) {
                    if (meta.course == course_t.HOLD) {
                        hold.apply(hdr, meta, standard_metadata, mode, channel);
                    }
                }
            }
        }
        if (meta.drop_reason == drop_reason_t.NONE && meta.course == course_t.RETURN) {
            if (meta.absorbed == 1) {
                end_taken.apply(channel.worm, (bit<8>)meta.entry_port);
            }
            go_back.apply(hdr, meta, standard_metadata, channel);
        }
    }
}

// What a worm in wormhole mode leaves behind once its route has been looked at. The frames of a tree
// go on by the multicast group of its head; a head that was dropped gives its outputs up.
control WormholeAfter(in metadata_t meta, in standard_metadata_t standard_metadata) {
    apply {
        bit<32> index = meta.absorbed == 1 ? OWN_CHANNEL : (bit<32>)meta.entry_port;
        if (meta.drop_reason != drop_reason_t.NONE) {
            channel_outputs.write(index, 0);
            channel_state.write(index, channel_state_t.ENDED);
        } else if (standard_metadata.mcast_grp != 0) {
            channel_target.write(index, standard_metadata.mcast_grp);
        }
    }
}

#endif
