// Purpose: take a copy apart into the fields egress acts on; of a TREE, find its own branch. A route
//          that is no TREE's is read only where a trace stands behind it.
// Reads:   eg_intr_md.egress_rid: INSTANCE_BRANCH + the port whose branch this copy takes.
// Writes:  hdr.*, meta.tree.
// Cost:    parser only. A branch takes 3 cycles and one for each bit of its length.
//
// Match registers are as scarce as in ingress, so the counter remembers here too whether a trace
// stands behind the route: 1, or 0 where none does.
//
// All branches but its own leave the copy by being read. Ingress has seen that they are well formed.

#ifndef WORMCAST_EGRESS_PARSER_P4
#define WORMCAST_EGRESS_PARSER_P4

parser WormEgressParser(packet_in packet,
                        out egress_headers_t hdr,
                        out egress_metadata_t meta,
                        out egress_intrinsic_metadata_t eg_intr_md) {
    ParserCounter() traced;
    bit<8> length;        // of the branch that is skipped, in front of its own
    bit<8> length_behind; // and behind it: of one variable p4c keeps what nobody needs

    state start {
        packet.extract(eg_intr_md);
        meta.exit_port = 0;
        meta.tree = 0;
        packet.extract(hdr.bridge);
        transition select(hdr.bridge.as_is) {
            0: ethernet;
            default: accept;
        }
    }

    state ethernet {
        packet.extract(hdr.ethernet);
        transition worm;
    }

    // Of the first ten bytes of a worm_t: flags and next.
    state worm {
        transition select(packet.lookahead<bit<80>>()[71:64], packet.lookahead<bit<80>>()[15:0]) {
            (FLAG_TRACE &&& FLAG_TRACE, ETHERTYPE_HOST): traced_worm;
            default: plain_worm;
        }
    }

    state traced_worm {
        traced.set(8w1);
        transition worm_header;
    }

    state plain_worm {
        traced.set(8w0);
        transition worm_header;
    }

    state worm_header {
        packet.extract(hdr.worm);
        transition select(hdr.worm.kind) {
            KIND_GROUP: group;
            KIND_TREE: first_branch;
            default: path;
        }
    }

    state group {
        packet.extract(hdr.group);
        transition select(hdr.worm.next) {
            ETHERTYPE_IPV4: ipv4;
            default: behind_route;
        }
    }

    // Its route stays in the frame, unless a record has to go behind it.
    state path {
        transition select(traced.is_zero()) {
            true: accept;
            default: traced_path;
        }
    }

    state traced_path {
        transition select(hdr.worm.flags) {
            FLAG_TRAIN &&& FLAG_TRAIN: train;
            default: route;
        }
    }

    state train {
        packet.extract(hdr.train);
        transition route;
    }

    state ipv4 {
        packet.extract(hdr.ipv4);
        transition accept;
    }

    // What is left of a path, at most 63 bytes. A record goes behind it.
    state route {
        transition select(hdr.worm.route_len) {
            0x20 &&& 0x20: route_32;
            0x10 &&& 0x10: route_16;
            0x08 &&& 0x08: route_8;
            0x04 &&& 0x04: route_4;
            0x02 &&& 0x02: route_2;
            0x01 &&& 0x01: route_1;
            default: trace;
        }
    }

    state route_32 {
        packet.extract(hdr.route_32);
        transition select(hdr.worm.route_len) {
            0x10 &&& 0x10: route_16;
            0x08 &&& 0x08: route_8;
            0x04 &&& 0x04: route_4;
            0x02 &&& 0x02: route_2;
            0x01 &&& 0x01: route_1;
            default: trace;
        }
    }

    state route_16 {
        packet.extract(hdr.route_16);
        transition select(hdr.worm.route_len) {
            0x08 &&& 0x08: route_8;
            0x04 &&& 0x04: route_4;
            0x02 &&& 0x02: route_2;
            0x01 &&& 0x01: route_1;
            default: trace;
        }
    }

    state route_8 {
        packet.extract(hdr.route_8);
        transition select(hdr.worm.route_len) {
            0x04 &&& 0x04: route_4;
            0x02 &&& 0x02: route_2;
            0x01 &&& 0x01: route_1;
            default: trace;
        }
    }

    state route_4 {
        packet.extract(hdr.route_4);
        transition select(hdr.worm.route_len) {
            0x02 &&& 0x02: route_2;
            0x01 &&& 0x01: route_1;
            default: trace;
        }
    }

    state route_2 {
        packet.extract(hdr.route_2);
        transition select(hdr.worm.route_len) {
            0x01 &&& 0x01: route_1;
            default: trace;
        }
    }

    state route_1 {
        packet.extract(hdr.route_1);
        transition trace;
    }

    // Branches in front of its own. Is the next one its own? Port and instance are compared in two
    // steps, since a parser compares with constants alone.
    state first_branch {
        transition select(packet.lookahead<bit<8>>(), eg_intr_md.egress_rid[7:0]) {
            (END_OF_ROUTE, _): end; // nothing for this port
            (0x00 &&& 0xf8, 0x00 &&& 0xf8): first_compared;
            (0x08 &&& 0xf8, 0x08 &&& 0xf8): first_compared;
            (0x10 &&& 0xf8, 0x10 &&& 0xf8): first_compared;
            (0x18 &&& 0xf8, 0x18 &&& 0xf8): first_compared;
            default: other;
        }
    }

    state first_compared {
        transition select(packet.lookahead<bit<8>>(), eg_intr_md.egress_rid[7:0]) {
            (0 &&& 7, 0 &&& 7): own;
            (1 &&& 7, 1 &&& 7): own;
            (2 &&& 7, 2 &&& 7): own;
            (3 &&& 7, 3 &&& 7): own;
            (4 &&& 7, 4 &&& 7): own;
            (5 &&& 7, 5 &&& 7): own;
            (6 &&& 7, 6 &&& 7): own;
            (7 &&& 7, 7 &&& 7): own;
            default: other;
        }
    }

    state other {
        length = packet.lookahead<bit<16>>()[7:0];
        packet.advance(16);
        transition select(length) {
            0x40 &&& 0x40: other_64;
            0x20 &&& 0x20: other_32;
            0x10 &&& 0x10: other_16;
            0x08 &&& 0x08: other_8;
            0x04 &&& 0x04: other_4;
            0x02 &&& 0x02: other_2;
            default: next_branch;
        }
    }

    state other_64 {
        packet.advance(512);
        transition select(length) {
            0x20 &&& 0x20: other_32;
            0x10 &&& 0x10: other_16;
            0x08 &&& 0x08: other_8;
            0x04 &&& 0x04: other_4;
            0x02 &&& 0x02: other_2;
            default: next_branch;
        }
    }

    state other_32 {
        packet.advance(256);
        transition select(length) {
            0x10 &&& 0x10: other_16;
            0x08 &&& 0x08: other_8;
            0x04 &&& 0x04: other_4;
            0x02 &&& 0x02: other_2;
            default: next_branch;
        }
    }

    state other_16 {
        packet.advance(128);
        transition select(length) {
            0x08 &&& 0x08: other_8;
            0x04 &&& 0x04: other_4;
            0x02 &&& 0x02: other_2;
            default: next_branch;
        }
    }

    state other_8 {
        packet.advance(64);
        transition select(length) {
            0x04 &&& 0x04: other_4;
            0x02 &&& 0x02: other_2;
            default: next_branch;
        }
    }

    state other_4 {
        packet.advance(32);
        transition select(length) {
            0x02 &&& 0x02: other_2;
            default: next_branch;
        }
    }

    state other_2 {
        packet.advance(16);
        transition next_branch;
    }

    // The same as for the first. The compiler keeps the instance in its match register behind all
    // states that lead here, but does not look along loops; so the loop begins at `other`.
    state next_branch {
        transition select(packet.lookahead<bit<8>>(), eg_intr_md.egress_rid[7:0]) {
            (END_OF_ROUTE, _): end;
            (0x00 &&& 0xf8, 0x00 &&& 0xf8): next_compared;
            (0x08 &&& 0xf8, 0x08 &&& 0xf8): next_compared;
            (0x10 &&& 0xf8, 0x10 &&& 0xf8): next_compared;
            (0x18 &&& 0xf8, 0x18 &&& 0xf8): next_compared;
            default: other;
        }
    }

    state next_compared {
        transition select(packet.lookahead<bit<8>>(), eg_intr_md.egress_rid[7:0]) {
            (0 &&& 7, 0 &&& 7): own;
            (1 &&& 7, 1 &&& 7): own;
            (2 &&& 7, 2 &&& 7): own;
            (3 &&& 7, 3 &&& 7): own;
            (4 &&& 7, 4 &&& 7): own;
            (5 &&& 7, 5 &&& 7): own;
            (6 &&& 7, 6 &&& 7): own;
            (7 &&& 7, 7 &&& 7): own;
            default: other;
        }
    }

    state own {
        packet.extract(hdr.own);
        meta.tree = 1;
        transition select(hdr.own.length) {
            0x40 &&& 0x40: own_64;
            0x20 &&& 0x20: own_32;
            0x10 &&& 0x10: own_16;
            0x08 &&& 0x08: own_8;
            0x04 &&& 0x04: own_4;
            0x02 &&& 0x02: own_2;
            default: behind_own;
        }
    }

    state own_64 {
        packet.extract(hdr.route_64);
        transition select(hdr.own.length) {
            0x20 &&& 0x20: own_32;
            0x10 &&& 0x10: own_16;
            0x08 &&& 0x08: own_8;
            0x04 &&& 0x04: own_4;
            0x02 &&& 0x02: own_2;
            default: behind_own;
        }
    }

    state own_32 {
        packet.extract(hdr.route_32);
        transition select(hdr.own.length) {
            0x10 &&& 0x10: own_16;
            0x08 &&& 0x08: own_8;
            0x04 &&& 0x04: own_4;
            0x02 &&& 0x02: own_2;
            default: behind_own;
        }
    }

    state own_16 {
        packet.extract(hdr.route_16);
        transition select(hdr.own.length) {
            0x08 &&& 0x08: own_8;
            0x04 &&& 0x04: own_4;
            0x02 &&& 0x02: own_2;
            default: behind_own;
        }
    }

    state own_8 {
        packet.extract(hdr.route_8);
        transition select(hdr.own.length) {
            0x04 &&& 0x04: own_4;
            0x02 &&& 0x02: own_2;
            default: behind_own;
        }
    }

    state own_4 {
        packet.extract(hdr.route_4);
        transition select(hdr.own.length) {
            0x02 &&& 0x02: own_2;
            default: behind_own;
        }
    }

    state own_2 {
        packet.extract(hdr.route_2);
        transition behind_own;
    }

    // Branches behind its own.
    state behind_own {
        transition select(packet.lookahead<bit<8>>()) {
            END_OF_ROUTE: end;
            default: further;
        }
    }

    state further {
        length_behind = packet.lookahead<bit<16>>()[7:0];
        packet.advance(16);
        transition select(length_behind) {
            0x40 &&& 0x40: further_64;
            0x20 &&& 0x20: further_32;
            0x10 &&& 0x10: further_16;
            0x08 &&& 0x08: further_8;
            0x04 &&& 0x04: further_4;
            0x02 &&& 0x02: further_2;
            default: behind_own;
        }
    }

    state further_64 {
        packet.advance(512);
        transition select(length_behind) {
            0x20 &&& 0x20: further_32;
            0x10 &&& 0x10: further_16;
            0x08 &&& 0x08: further_8;
            0x04 &&& 0x04: further_4;
            0x02 &&& 0x02: further_2;
            default: behind_own;
        }
    }

    state further_32 {
        packet.advance(256);
        transition select(length_behind) {
            0x10 &&& 0x10: further_16;
            0x08 &&& 0x08: further_8;
            0x04 &&& 0x04: further_4;
            0x02 &&& 0x02: further_2;
            default: behind_own;
        }
    }

    state further_16 {
        packet.advance(128);
        transition select(length_behind) {
            0x08 &&& 0x08: further_8;
            0x04 &&& 0x04: further_4;
            0x02 &&& 0x02: further_2;
            default: behind_own;
        }
    }

    state further_8 {
        packet.advance(64);
        transition select(length_behind) {
            0x04 &&& 0x04: further_4;
            0x02 &&& 0x02: further_2;
            default: behind_own;
        }
    }

    state further_4 {
        packet.advance(32);
        transition select(length_behind) {
            0x02 &&& 0x02: further_2;
            default: behind_own;
        }
    }

    state further_2 {
        packet.advance(16);
        transition behind_own;
    }

    state end {
        packet.extract(hdr.end);
        transition behind_route;
    }

    state behind_route {
        transition select(traced.is_zero()) {
            true: accept;
            default: trace;
        }
    }

    state trace {
        packet.extract(hdr.trace);
        transition accept;
    }
}

#endif
