// Purpose: scheme B of wormhole mode (WORM §3, SPEC.md §3.1): a multicast one of whose outputs stops ends
//          its fragment at all outputs and gives them up. When none of them stops any more it goes on, with
//          its route in front.
//
// The frame whose turn it is becomes the head of the next fragment while it waits; copies of it, cut short,
// end this one. So a fragment begins and waits as any worm does.
//
// TNA:     a route of 255 bytes fits into no register of a stage.

#ifndef WORMCAST_INTERRUPT_P4
#define WORMCAST_INTERRUPT_P4

// Ethernet, worm and train headers.
const bit<32> END_FRAME_BYTES = 46;

#define KEEP_WAY(size) \
    if (hdr.way##size.isValid()) { \
        channel_way##size.write(channel.index, hdr.way##size.bytes); \
    }

#define TAKE_WAY(size, bit) \
    if (length[bit:bit] == 1) { \
        hdr.way##size.setValid(); \
        channel_way##size.read(hdr.way##size.bytes, channel.index); \
    }

// The route of a head that branches, for the heads of later fragments. The parser reads a route as
// branches or as a whole, so this takes a pass of its own, while the head claims its outputs.
// Reads:   hdr.way*, hdr.worm.route_len.
// Writes:  meta.keep_route; registers.
control KeepRoute(in headers_t hdr, inout metadata_t meta, in channel_t channel) {
    apply {
        channel_route_len.write(channel.index, hdr.worm.route_len);
        KEEP_WAY(128) KEEP_WAY(64) KEEP_WAY(32) KEEP_WAY(16)
        KEEP_WAY(8) KEEP_WAY(4) KEEP_WAY(2) KEEP_WAY(1)
        meta.keep_route = 0;
    }
}

// Reads:   meta.now; registers.
// Writes:  hdr.worm, .train, .way*; meta.course, .train_ports; mcast_grp; channel.does; registers.
control Interrupt(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata,
                  inout channel_t channel) {
    apply {
        bit<128> back;
        bit<8> length;
        channel_outputs.read(meta.train_ports, channel.index);
        channel_outputs.write(channel.index, 0);
        channel_claimed.write(channel.index, channel.turns); // its turn at the root it keeps
        channel_stops.write(channel.index, 0);
        channel_moved_us.write(channel.index, meta.now);
        channel.does = channel_state_t.CLAIMING;

        channel_back.read(back, channel.index);
        hdr.train.back_count = back[127:120];
        hdr.train.back = back[119:0];
        channel_route_len.read(length, channel.index);
        TAKE_WAY(128, 7) TAKE_WAY(64, 6) TAKE_WAY(32, 5) TAKE_WAY(16, 4)
        TAKE_WAY(8, 3) TAKE_WAY(4, 2) TAKE_WAY(2, 1) TAKE_WAY(1, 0)
        hdr.worm.route_len = length;
        hdr.worm.flags = hdr.worm.flags | FLAG_HEAD | FLAG_RESUMED;
        hdr.worm.hops = hdr.worm.hops - 1; // it has not crossed this switch yet
        meta.course = course_t.INTERRUPT;
        standard_metadata.mcast_grp = MGID_INTERRUPT;
        COUNT_TRAIN(INTERRUPTED);
    }
}

// Makes a copy of the frame that is to be the head of the next fragment the end of this one. It carries
// nothing, and has the position of the frame that comes next.
// Writes:  hdr.*.
control EndFragment(inout headers_t hdr) {
    apply {
        hdr.worm.flags = hdr.worm.flags & ~(FLAG_HEAD | FLAG_TRACE) | FLAG_TAIL;
        hdr.worm.route_len = 0;
        hdr.worm.hops = hdr.worm.hops + 1;
        NO_WAY
        hdr.trace.setInvalid();
        truncate(END_FRAME_BYTES);
    }
}

#endif
