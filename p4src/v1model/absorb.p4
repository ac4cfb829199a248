// Purpose: the switch takes a worm itself and re-injects it (port byte 254, SPEC.md §3): the place of
//          an in-transit host where there is none (ITB §III). It has room for ABSORBED_MAX worms at a
//          time. A worm is taken or refused at once, it never waits for room: so what it holds on its
//          way so far comes free, whatever stands still behind this switch.
//
// What the switch holds is counted as that of a channel of its own, number 254: a ticket each. In wormhole
// mode it leaves in that order, by itself, and no frame of the port by which it came is in its way.
//
// Reads:   hdr.train; meta.absorbed, .now; registers of channels.p4, cells 254.
// Writes:  meta.absorbed, .ticket, .course, .drop_reason.
// TNA:     two stages; not there yet: what recirculates has no bound.

#ifndef WORMCAST_ABSORB_P4
#define WORMCAST_ABSORB_P4

const bit<32> OWN_CHANNEL = (bit<32>)RECIRCULATE_PORT;

control Absorb(in headers_t hdr, inout metadata_t meta) {
    apply {
        bit<16> came;
        bit<16> gone;
        time_us_t seen_us;
        channel_came.read(came, OWN_CHANNEL);
        channel_gone.read(gone, OWN_CHANNEL);
        channel_turn_us.read(seen_us, OWN_CHANNEL);
        if (meta.absorbed == 1) {
            // Another pass of a worm that is here already.
        } else {
            if (came != gone && meta.now > seen_us && meta.now - seen_us > TURN_LOST_US) {
                // Queues have lost what should have gone round.
                gone = came;
                channel_gone.write(OWN_CHANNEL, gone);
                COUNT_TRAIN(TURN_LOST);
            }
            if (came - gone < ABSORBED_MAX) {
                meta.absorbed = 1;
                meta.ticket = came;
                if (came == gone) {
                    channel_turn_us.write(OWN_CHANNEL, meta.now);
                }
                channel_came.write(OWN_CHANNEL, came + 1);
            } else if (hdr.train.isValid()) {
                channel_back.write(OWN_CHANNEL, hdr.train.back_count ++ hdr.train.back);
                meta.course = course_t.RETURN;
            } else {
                meta.drop_reason = drop_reason_t.ABSORB_FULL; // it does not know its way back
            }
        }
    }
}

// A worm that has gone round, and waits for nothing, makes room.
control Reinject(inout metadata_t meta) {
    apply {
        bit<16> came;
        bit<16> gone;
        meta.absorbed = 0;
        channel_came.read(came, OWN_CHANNEL);
        channel_gone.read(gone, OWN_CHANNEL);
        channel_turn_us.write(OWN_CHANNEL, meta.now);
        if (came != gone) { // else it was taken for lost
            channel_gone.write(OWN_CHANNEL, gone + 1);
        }
    }
}

#endif
