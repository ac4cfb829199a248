// Purpose: take a frame apart into the fields ingress acts on, and verify its checksum.
// Reads:   ig_intr_md.ingress_port, .resubmit_flag.
// Writes:  hdr.*; meta.checksum_error, meta.route_beyond, meta.tree_*. A frame that ends too early
//          leaves ig_prsr_md.parser_err.
// Cost:    parser only. A branch takes 2 cycles and one for each bit of its length.
//
// A parser compares what is in its match registers alone: four bytes. So what is known once is not
// kept there. Whether a record of hops may stand behind the route is seen before the header is taken,
// and remembered by the counter; a second pass has states of its own.
//
// All that a parser reads leaves the frame, unless it is kept and put back. The branches of a TREE
// would have to be kept at different places for every route. So a TREE worm comes twice (Resubmit).
// The first pass walks the branches and keeps only which ports they name; the second has the frame
// as it came, keeps the route in pieces without looking into it, and verifies its checksum.
//
// The checksum is verified before the result of the walk is used: TREE_MALFORMED always means that a
// sender built it wrong.

#ifndef WORMCAST_PARSER_P4
#define WORMCAST_PARSER_P4

parser WormIngressParser(packet_in packet,
                         out ingress_headers_t hdr,
                         out ingress_metadata_t meta,
                         out ingress_intrinsic_metadata_t ig_intr_md) {
    Checksum() sum;
    Checksum() hop_sum; // of routes whose first byte is taken: odd numbers of bytes go before even ones
    // First pass of a TREE: route bytes in front of the marker, not taken yet. Else 1 where a trace
    // stands behind the route, 0 where none does.
    ParserCounter() left;
    bit<8> length; // of the branch that is skipped

    state start {
        packet.extract(ig_intr_md);
        meta.drop_reason = drop_reason_t.NONE;
        meta.checksum_error = false;
        meta.route_beyond = 0;
        meta.tree_pass = 0;
        meta.tree_ports = 0;
        meta.tree_malformed = 0;
        meta.tree_beyond = 0;
        meta.tree_reason = drop_reason_t.NONE;
        meta.port_set = 0;
        meta.lost = 0;
        meta.judged = false;
        meta.refused = false;
        meta.foreign = 0;
        meta.may_send = 0;
        meta.may_reinject = 0;
        meta.beyond_longest = 0;
        meta.port_role = ROLE_NONE;
        meta.hop_port = 0;
        meta.follows = false;
        meta.hold = 0;
        meta.asks.part = part_t.NONE;
        meta.asks.reason = drop_reason_t.NONE;
        meta.asks.is_head = 0;
        meta.asks.is_last = 0;
        meta.asks.places = 0;
        meta.asks.is_second = 0;
        meta.asks.told = 0;
        meta.asks.asked = 0;
        meta.asks.mover = 0;
        meta.asks.way = 0;
        meta.unicast = false;
        meta.out_port = 0;
        transition select(ig_intr_md.resubmit_flag) {
            1: second_pass;
            default: first_pass;
        }
    }

    state second_pass {
        packet.extract(hdr.tree);
        packet.advance(PORT_METADATA_SIZE - 64);
        transition tree_again;
    }

    // The first pass has seen that this is a worm, of this version and kind.
    state tree_again {
        packet.extract(hdr.ethernet);
        packet.extract(hdr.worm);
        sum.add(hdr.worm);
        transition select(hdr.worm.flags, hdr.worm.next) {
            (FLAG_TRACE &&& FLAG_TRACE, ETHERTYPE_HOST): traced_tree;
            default: plain_tree;
        }
    }

    state traced_tree { left.set(8w1); transition route; }

    state plain_tree { left.set(8w0); transition route; }

    state first_pass {
        packet.advance(PORT_METADATA_SIZE);
        transition select(ig_intr_md.ingress_port) {
            CPU_PORTS &&& CPU_PORTS_MASK: from_controller;
            RECIRCULATION_PORTS &&& RECIRCULATION_PORTS_MASK: once_more;
            default: ethernet;
        }
    }

    // What the controller sends leaves as it is: nothing behind this header is read.
    state from_controller {
        packet.extract(hdr.packet_out);
        transition accept;
    }

    state once_more {
        packet.extract(hdr.recirculated);
        transition select(hdr.recirculated.held) {
            0: ethernet;
            default: held;
        }
    }

    state held {
        packet.extract(hdr.held);
        transition ethernet;
    }

    state ethernet {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) {
            ETHERTYPE_WORM: worm;
            ETHERTYPE_IPV4: ipv4;
            default: accept;
        }
    }

    state ipv4 {
        packet.extract(hdr.ipv4);
        transition accept;
    }

    // Only worms between hosts are traced: IP stands right behind the route. The first ten bytes of a
    // worm_t, kind, flags and next in this order.
    state worm {
        transition select(packet.lookahead<bit<80>>()[75:72],
                          packet.lookahead<bit<80>>()[71:64],
                          packet.lookahead<bit<80>>()[15:0]) {
            (KIND_GATHER, _, _): plain_worm;
            (_, FLAG_TRACE &&& FLAG_TRACE, ETHERTYPE_HOST): traced_worm;
            default: plain_worm;
        }
    }

    state traced_worm { left.set(8w1); transition worm_header; }

    state plain_worm { left.set(8w0); transition worm_header; }

    state worm_header {
        packet.extract(hdr.worm);
        sum.add(hdr.worm);
        hop_sum.add(hdr.worm);
        transition select(hdr.worm.version, hdr.worm.kind, hdr.worm.flags, hdr.worm.route_len) {
            (WORM_VERSION, KIND_UNICAST, FLAG_TRAIN &&& FLAG_TRAIN, _): train;
            (WORM_VERSION, KIND_GROUP, _, 2): group;
            (WORM_VERSION, KIND_TREE, _, 0x80 &&& 0x80): beyond;
            (WORM_VERSION, KIND_TREE, _, _): tree;
            (WORM_VERSION, _, _, 0): summed;
            (WORM_VERSION, KIND_UNICAST, _, _): hop;
            (WORM_VERSION, KIND_CONTROL, _, _): hop;
            (WORM_VERSION, KIND_BROADCAST, _, _): hop;
            (WORM_VERSION, _, _, 0x80 &&& 0x80): beyond;
            (WORM_VERSION, _, _, _): route;
            default: accept; // another version may mean another format
        }
    }

    // Its head alone has a route.
    state train {
        packet.extract(hdr.train);
        sum.add(hdr.train);
        hop_sum.add(hdr.train);
        transition select(hdr.worm.route_len) {
            0: summed;
            default: hop;
        }
    }

    state beyond {
        meta.route_beyond = 1;
        transition accept;
    }

    state summed {
        meta.checksum_error = sum.verify();
        transition behind_route;
    }

    state hop_summed {
        meta.checksum_error = hop_sum.verify();
        transition behind_route;
    }

    state behind_route {
        transition select(left.is_zero()) {
            true: accept;
            default: trace;
        }
    }

    state trace {
        packet.extract(hdr.trace);
        transition accept;
    }

    state group {
        packet.extract(hdr.group);
        sum.add(hdr.group);
        meta.checksum_error = sum.verify();
        transition select(hdr.worm.next) {
            ETHERTYPE_IPV4: ipv4;
            default: behind_route;
        }
    }

    // The port byte that is stripped, and route_len - 1 bytes behind it: at most 63, since a worm
    // crosses at most MAX_HOPS switches. Of a length that ends in zeros the next smaller piece is
    // the first: 32 is 1 + 16 + 8 + 4 + 2 + 1.
    state hop {
        packet.extract(hdr.hop);
        hop_sum.add(hdr.hop);
        transition select(hdr.worm.route_len) {
            0x40: hop_32;
            0x40 &&& 0xc0: hop_beyond;
            0x80 &&& 0x80: hop_beyond;
            0x20 &&& 0x7f: hop_16;
            0x20 &&& 0x20: hop_32;
            0x10 &&& 0x7f: hop_8;
            0x10 &&& 0x10: hop_16;
            0x08 &&& 0x7f: hop_4;
            0x08 &&& 0x08: hop_8;
            0x04 &&& 0x7f: hop_2;
            0x04 &&& 0x04: hop_4;
            0x02 &&& 0x7f: hop_1;
            0x02 &&& 0x02: hop_2;
            0x01 &&& 0x7f: hop_summed;
        }
    }

    // Not the other state: the compiler wants to know of `hop_sum` whether it has an even number of bytes.
    state hop_beyond {
        meta.route_beyond = 1;
        transition accept;
    }

    state hop_32 {
        packet.extract(hdr.route_32);
        hop_sum.add(hdr.route_32);
        transition select(hdr.worm.route_len) {
            0x00 &&& 0x1f: hop_16;
            0x10 &&& 0x1f: hop_8;
            0x10 &&& 0x10: hop_16;
            0x08 &&& 0x1f: hop_4;
            0x08 &&& 0x08: hop_8;
            0x04 &&& 0x1f: hop_2;
            0x04 &&& 0x04: hop_4;
            0x02 &&& 0x1f: hop_1;
            0x02 &&& 0x02: hop_2;
            0x01 &&& 0x1f: hop_summed;
        }
    }

    state hop_16 {
        packet.extract(hdr.route_16);
        hop_sum.add(hdr.route_16);
        transition select(hdr.worm.route_len) {
            0x00 &&& 0x0f: hop_8;
            0x08 &&& 0x0f: hop_4;
            0x08 &&& 0x08: hop_8;
            0x04 &&& 0x0f: hop_2;
            0x04 &&& 0x04: hop_4;
            0x02 &&& 0x0f: hop_1;
            0x02 &&& 0x02: hop_2;
            0x01 &&& 0x0f: hop_summed;
        }
    }

    state hop_8 {
        packet.extract(hdr.route_8);
        hop_sum.add(hdr.route_8);
        transition select(hdr.worm.route_len) {
            0x00 &&& 0x07: hop_4;
            0x04 &&& 0x07: hop_2;
            0x04 &&& 0x04: hop_4;
            0x02 &&& 0x07: hop_1;
            0x02 &&& 0x02: hop_2;
            0x01 &&& 0x07: hop_summed;
        }
    }

    state hop_4 {
        packet.extract(hdr.route_4);
        hop_sum.add(hdr.route_4);
        transition select(hdr.worm.route_len) {
            0x00 &&& 0x03: hop_2;
            0x02 &&& 0x03: hop_1;
            0x02 &&& 0x02: hop_2;
            0x01 &&& 0x03: hop_summed;
        }
    }

    state hop_2 {
        packet.extract(hdr.route_2);
        hop_sum.add(hdr.route_2);
        transition select(hdr.worm.route_len) {
            0x00 &&& 0x01: hop_1;
            0x01 &&& 0x01: hop_summed;
        }
    }

    state hop_1 {
        packet.extract(hdr.route_1);
        hop_sum.add(hdr.route_1);
        transition hop_summed;
    }

    // Route bytes that are not looked into.
    state route {
        transition select(hdr.worm.route_len) {
            0x40 &&& 0x40: route_64;
            0x20 &&& 0x20: route_32;
            0x10 &&& 0x10: route_16;
            0x08 &&& 0x08: route_8;
            0x04 &&& 0x04: route_4;
            0x02 &&& 0x02: route_2;
            0x01 &&& 0x01: route_1;
            default: summed;
        }
    }

    state route_64 {
        packet.extract(hdr.route_64);
        sum.add(hdr.route_64);
        transition select(hdr.worm.route_len) {
            0x20 &&& 0x20: route_32;
            0x10 &&& 0x10: route_16;
            0x08 &&& 0x08: route_8;
            0x04 &&& 0x04: route_4;
            0x02 &&& 0x02: route_2;
            0x01 &&& 0x01: route_1;
            default: summed;
        }
    }

    state route_32 {
        packet.extract(hdr.route_32);
        sum.add(hdr.route_32);
        transition select(hdr.worm.route_len) {
            0x10 &&& 0x10: route_16;
            0x08 &&& 0x08: route_8;
            0x04 &&& 0x04: route_4;
            0x02 &&& 0x02: route_2;
            0x01 &&& 0x01: route_1;
            default: summed;
        }
    }

    state route_16 {
        packet.extract(hdr.route_16);
        sum.add(hdr.route_16);
        transition select(hdr.worm.route_len) {
            0x08 &&& 0x08: route_8;
            0x04 &&& 0x04: route_4;
            0x02 &&& 0x02: route_2;
            0x01 &&& 0x01: route_1;
            default: summed;
        }
    }

    state route_8 {
        packet.extract(hdr.route_8);
        sum.add(hdr.route_8);
        transition select(hdr.worm.route_len) {
            0x04 &&& 0x04: route_4;
            0x02 &&& 0x02: route_2;
            0x01 &&& 0x01: route_1;
            default: summed;
        }
    }

    state route_4 {
        packet.extract(hdr.route_4);
        sum.add(hdr.route_4);
        transition select(hdr.worm.route_len) {
            0x02 &&& 0x02: route_2;
            0x01 &&& 0x01: route_1;
            default: summed;
        }
    }

    state route_2 {
        packet.extract(hdr.route_2);
        sum.add(hdr.route_2);
        transition select(hdr.worm.route_len) {
            0x01 &&& 0x01: route_1;
            default: summed;
        }
    }

    state route_1 {
        packet.extract(hdr.route_1);
        sum.add(hdr.route_1);
        sum.add(8w0); // an even number of bytes on every way to `summed`
        transition summed;
    }

    state tree {
        meta.tree_pass = 1;
        left.set(hdr.worm.route_len);
        transition select(hdr.worm.route_len) {
            0: tree_empty;
            default: tree_start;
        }
    }

    // Malformed, whatever ports are noted. That it notes all of them is for the compiler: of writes in
    // a loop alone it does not see that they come one behind the other, and the chip takes a second
    // write of a container for an error unless it is told.
    state tree_empty {
        meta.tree_ports = meta.tree_ports | 0xffffffff;
        transition tree_start;
    }

    state tree_start {
        left.decrement(1); // the marker
        transition tree_byte;
    }

    state tree_byte {
        transition select(left.is_negative(), left.is_zero(), packet.lookahead<bit<8>>()) {
            (true, _, _): malformed; // a length past the end, or an empty route
            (_, true, END_OF_ROUTE): accept;
            (_, true, _): malformed; // no marker
            (_, _, END_OF_ROUTE): malformed; // bytes after the marker
            (_, _, RECIRCULATE_PORT): malformed;
            (_, _, 0): port_0;
            (_, _, 1): port_1;
            (_, _, 2): port_2;
            (_, _, 3): port_3;
            (_, _, 4): port_4;
            (_, _, 5): port_5;
            (_, _, 6): port_6;
            (_, _, 7): port_7;
            (_, _, 8): port_8;
            (_, _, 9): port_9;
            (_, _, 10): port_10;
            (_, _, 11): port_11;
            (_, _, 12): port_12;
            (_, _, 13): port_13;
            (_, _, 14): port_14;
            (_, _, 15): port_15;
            (_, _, 16): port_16;
            (_, _, 17): port_17;
            (_, _, 18): port_18;
            (_, _, 19): port_19;
            (_, _, 20): port_20;
            (_, _, 21): port_21;
            (_, _, 22): port_22;
            (_, _, 23): port_23;
            (_, _, 24): port_24;
            (_, _, 25): port_25;
            (_, _, 26): port_26;
            (_, _, 27): port_27;
            (_, _, 28): port_28;
            (_, _, 29): port_29;
            (_, _, 30): port_30;
            (_, _, 31): port_31;
            default: tree_beyond;
        }
    }

    state port_0 { meta.tree_ports = meta.tree_ports | 0x00000001; transition tree_branch; }
    state port_1 { meta.tree_ports = meta.tree_ports | 0x00000002; transition tree_branch; }
    state port_2 { meta.tree_ports = meta.tree_ports | 0x00000004; transition tree_branch; }
    state port_3 { meta.tree_ports = meta.tree_ports | 0x00000008; transition tree_branch; }
    state port_4 { meta.tree_ports = meta.tree_ports | 0x00000010; transition tree_branch; }
    state port_5 { meta.tree_ports = meta.tree_ports | 0x00000020; transition tree_branch; }
    state port_6 { meta.tree_ports = meta.tree_ports | 0x00000040; transition tree_branch; }
    state port_7 { meta.tree_ports = meta.tree_ports | 0x00000080; transition tree_branch; }
    state port_8 { meta.tree_ports = meta.tree_ports | 0x00000100; transition tree_branch; }
    state port_9 { meta.tree_ports = meta.tree_ports | 0x00000200; transition tree_branch; }
    state port_10 { meta.tree_ports = meta.tree_ports | 0x00000400; transition tree_branch; }
    state port_11 { meta.tree_ports = meta.tree_ports | 0x00000800; transition tree_branch; }
    state port_12 { meta.tree_ports = meta.tree_ports | 0x00001000; transition tree_branch; }
    state port_13 { meta.tree_ports = meta.tree_ports | 0x00002000; transition tree_branch; }
    state port_14 { meta.tree_ports = meta.tree_ports | 0x00004000; transition tree_branch; }
    state port_15 { meta.tree_ports = meta.tree_ports | 0x00008000; transition tree_branch; }
    state port_16 { meta.tree_ports = meta.tree_ports | 0x00010000; transition tree_branch; }
    state port_17 { meta.tree_ports = meta.tree_ports | 0x00020000; transition tree_branch; }
    state port_18 { meta.tree_ports = meta.tree_ports | 0x00040000; transition tree_branch; }
    state port_19 { meta.tree_ports = meta.tree_ports | 0x00080000; transition tree_branch; }
    state port_20 { meta.tree_ports = meta.tree_ports | 0x00100000; transition tree_branch; }
    state port_21 { meta.tree_ports = meta.tree_ports | 0x00200000; transition tree_branch; }
    state port_22 { meta.tree_ports = meta.tree_ports | 0x00400000; transition tree_branch; }
    state port_23 { meta.tree_ports = meta.tree_ports | 0x00800000; transition tree_branch; }
    state port_24 { meta.tree_ports = meta.tree_ports | 0x01000000; transition tree_branch; }
    state port_25 { meta.tree_ports = meta.tree_ports | 0x02000000; transition tree_branch; }
    state port_26 { meta.tree_ports = meta.tree_ports | 0x04000000; transition tree_branch; }
    state port_27 { meta.tree_ports = meta.tree_ports | 0x08000000; transition tree_branch; }
    state port_28 { meta.tree_ports = meta.tree_ports | 0x10000000; transition tree_branch; }
    state port_29 { meta.tree_ports = meta.tree_ports | 0x20000000; transition tree_branch; }
    state port_30 { meta.tree_ports = meta.tree_ports | 0x40000000; transition tree_branch; }
    state port_31 { meta.tree_ports = meta.tree_ports | 0x80000000; transition tree_branch; }

    // The list of branches at another switch has an even length.
    state tree_branch {
        length = packet.lookahead<bit<16>>()[7:0];
        packet.advance(16);
        left.decrement(2);
        transition select(length) {
            0x80 &&& 0x80: malformed;
            0x01 &&& 0x01: malformed;
            0x40 &&& 0x40: skip_64;
            0x20 &&& 0x20: skip_32;
            0x10 &&& 0x10: skip_16;
            0x08 &&& 0x08: skip_8;
            0x04 &&& 0x04: skip_4;
            0x02 &&& 0x02: skip_2;
            default: tree_byte;
        }
    }

    state skip_64 {
        packet.advance(512);
        left.decrement(64);
        transition select(length) {
            0x20 &&& 0x20: skip_32;
            0x10 &&& 0x10: skip_16;
            0x08 &&& 0x08: skip_8;
            0x04 &&& 0x04: skip_4;
            0x02 &&& 0x02: skip_2;
            default: tree_byte;
        }
    }

    state skip_32 {
        packet.advance(256);
        left.decrement(32);
        transition select(length) {
            0x10 &&& 0x10: skip_16;
            0x08 &&& 0x08: skip_8;
            0x04 &&& 0x04: skip_4;
            0x02 &&& 0x02: skip_2;
            default: tree_byte;
        }
    }

    state skip_16 {
        packet.advance(128);
        left.decrement(16);
        transition select(length) {
            0x08 &&& 0x08: skip_8;
            0x04 &&& 0x04: skip_4;
            0x02 &&& 0x02: skip_2;
            default: tree_byte;
        }
    }

    state skip_8 {
        packet.advance(64);
        left.decrement(8);
        transition select(length) {
            0x04 &&& 0x04: skip_4;
            0x02 &&& 0x02: skip_2;
            default: tree_byte;
        }
    }

    state skip_4 {
        packet.advance(32);
        left.decrement(4);
        transition select(length) {
            0x02 &&& 0x02: skip_2;
            default: tree_byte;
        }
    }

    state skip_2 {
        packet.advance(16);
        left.decrement(2);
        transition tree_byte;
    }

    state malformed {
        meta.tree_malformed = 1;
        transition accept;
    }

    state tree_beyond {
        meta.tree_beyond = 1;
        transition accept;
    }
}

#endif
