// Purpose: take a copy apart into the fields egress acts on; of a TREE, find its own branch. A route
//          that is no TREE's is read only where a trace stands behind it.
// Reads:   eg_intr_md.egress_rid: INSTANCE_BRANCH + the port whose branch this copy takes.
// Writes:  hdr.*, meta.tree.
// Cost:    parser only. A branch takes 3 cycles and one for each bit of its length.
//
// All branches but its own leave the copy by being read. Ingress has seen that they are well formed.

#ifndef WORMCAST_EGRESS_PARSER_P4
#define WORMCAST_EGRESS_PARSER_P4

parser WormEgressParser(packet_in packet,
                        out egress_headers_t hdr,
                        out egress_metadata_t meta,
                        out egress_intrinsic_metadata_t eg_intr_md) {
    state start {
        packet.extract(eg_intr_md);
        meta.exit_port = 0;
        meta.tree = 0;
        packet.extract(hdr.bridge);
        transition select(hdr.bridge.as_is) {
            1: accept;
            default: ethernet;
        }
    }

    state ethernet {
        packet.extract(hdr.ethernet);
        transition worm;
    }

    state worm {
        packet.extract(hdr.worm);
        transition select(hdr.worm.flags, hdr.worm.kind, hdr.worm.next) {
            (_, KIND_GROUP, _): group;
            (_, KIND_TREE, _): before_own;
            (FLAG_TRACE &&& FLAG_TRACE, _, ETHERTYPE_HOST): route;
            default: accept; // all else stays in the frame
        }
    }

    state group {
        packet.extract(hdr.group);
        transition select(hdr.worm.next) {
            ETHERTYPE_IPV4: ipv4;
            default: behind_route;
        }
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
    state before_own {
        transition select(packet.lookahead<bit<8>>(), eg_intr_md.egress_rid[7:0]) {
            (END_OF_ROUTE, _): end; // nothing for this port
            (0x00 &&& 0xf8, 0x00 &&& 0xf8): compare;
            (0x08 &&& 0xf8, 0x08 &&& 0xf8): compare;
            (0x10 &&& 0xf8, 0x10 &&& 0xf8): compare;
            (0x18 &&& 0xf8, 0x18 &&& 0xf8): compare;
            default: other;
        }
    }

    state compare {
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
        packet.extract(hdr.branch);
        transition select(hdr.branch.length) {
            0x40 &&& 0x40: other_64;
            0x20 &&& 0x20: other_32;
            0x10 &&& 0x10: other_16;
            0x08 &&& 0x08: other_8;
            0x04 &&& 0x04: other_4;
            0x02 &&& 0x02: other_2;
            default: before_own;
        }
    }

    state other_64 {
        packet.advance(512);
        transition select(hdr.branch.length) {
            0x20 &&& 0x20: other_32;
            0x10 &&& 0x10: other_16;
            0x08 &&& 0x08: other_8;
            0x04 &&& 0x04: other_4;
            0x02 &&& 0x02: other_2;
            default: before_own;
        }
    }

    state other_32 {
        packet.advance(256);
        transition select(hdr.branch.length) {
            0x10 &&& 0x10: other_16;
            0x08 &&& 0x08: other_8;
            0x04 &&& 0x04: other_4;
            0x02 &&& 0x02: other_2;
            default: before_own;
        }
    }

    state other_16 {
        packet.advance(128);
        transition select(hdr.branch.length) {
            0x08 &&& 0x08: other_8;
            0x04 &&& 0x04: other_4;
            0x02 &&& 0x02: other_2;
            default: before_own;
        }
    }

    state other_8 {
        packet.advance(64);
        transition select(hdr.branch.length) {
            0x04 &&& 0x04: other_4;
            0x02 &&& 0x02: other_2;
            default: before_own;
        }
    }

    state other_4 {
        packet.advance(32);
        transition select(hdr.branch.length) {
            0x02 &&& 0x02: other_2;
            default: before_own;
        }
    }

    state other_2 {
        packet.advance(16);
        transition before_own;
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
        packet.extract(hdr.branch);
        transition select(hdr.branch.length) {
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
        transition select(hdr.branch.length) {
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
        transition select(hdr.branch.length) {
            0x10 &&& 0x10: further_16;
            0x08 &&& 0x08: further_8;
            0x04 &&& 0x04: further_4;
            0x02 &&& 0x02: further_2;
            default: behind_own;
        }
    }

    state further_16 {
        packet.advance(128);
        transition select(hdr.branch.length) {
            0x08 &&& 0x08: further_8;
            0x04 &&& 0x04: further_4;
            0x02 &&& 0x02: further_2;
            default: behind_own;
        }
    }

    state further_8 {
        packet.advance(64);
        transition select(hdr.branch.length) {
            0x04 &&& 0x04: further_4;
            0x02 &&& 0x02: further_2;
            default: behind_own;
        }
    }

    state further_4 {
        packet.advance(32);
        transition select(hdr.branch.length) {
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
        transition select(hdr.worm.flags, hdr.worm.next) {
            (FLAG_TRACE &&& FLAG_TRACE, ETHERTYPE_HOST): trace;
            default: accept;
        }
    }

    state trace {
        packet.extract(hdr.trace);
        transition accept;
    }
}

#endif
