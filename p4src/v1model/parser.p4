// Purpose: take a frame apart into the fields this switch acts on.
// Reads:   standard_metadata.ingress_port; meta.keep_route.
// Writes:  hdr.*; meta.tree_ports_low/high, meta.tree_malformed. A frame that ends too
//          early leaves standard_metadata.parser_error (v1model goes on to ingress).
// TNA:     one parser state a branch, 16 unrolled, with the parser counter as `left`;
//          sub-routes need fixed-size pieces there, since varbit does not exist.
//
// A TREE route that breaks a rule is still read to its end, so that its checksum can be
// verified first: a corrupted frame counts as CHECKSUM, and TREE_MALFORMED always means
// that a sender built it wrong.

#ifndef WORMCAST_PARSER_P4
#define WORMCAST_PARSER_P4

#define WAY(size, bit, after) \
    state way##size { \
        transition select(hdr.worm.route_len[bit:bit]) { \
            1: take_way##size; \
            default: after; \
        } \
    } \
    state take_way##size { \
        packet.extract(hdr.way##size); \
        transition after; \
    }

parser WormParser(packet_in packet,
                  out headers_t hdr,
                  inout metadata_t meta,
                  inout standard_metadata_t standard_metadata) {
    bit<8> left = 0;     // route bytes not taken yet
    bit<8> branches = 0; // taken so far
    bit<8> lowest = 0;   // port the next branch may have
    bit<8> port = 0;     // the byte ahead
    bit<8> length = 0;   // of the sub-route ahead

    state start {
        transition select(standard_metadata.ingress_port) {
            CPU_PORT: from_controller;
            default: ethernet;
        }
    }

    // What the controller sends leaves as it is: nothing behind this header is read.
    state from_controller {
        packet.extract(hdr.packet_out);
        transition accept;
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

    state worm {
        packet.extract(hdr.worm);
        left = hdr.worm.route_len;
        transition select(hdr.worm.version, hdr.worm.flags[6:6]) {
            (WORM_VERSION, 1): train; // FLAG_TRAIN
            default: route;
        }
    }

    state train {
        packet.extract(hdr.train);
        transition route;
    }

    state route {
        transition select(hdr.worm.version, hdr.worm.kind, hdr.worm.route_len) {
            (WORM_VERSION, KIND_GROUP, 2): group;
            (WORM_VERSION, KIND_TREE, 0): no_route;
            (WORM_VERSION, KIND_TREE, _): tree_route;
            (WORM_VERSION, _, 0): behind_route;
            (WORM_VERSION, KIND_UNICAST, _): hop;
            (WORM_VERSION, KIND_CONTROL, _): hop;
            (WORM_VERSION, KIND_BROADCAST, _): hop;
            (WORM_VERSION, KIND_GATHER, _): hop;
            (WORM_VERSION, _, _): rest;
            default: accept; // another version may mean another format
        }
    }

    state hop {
        packet.extract(hdr.hop);
        left = left - 1;
        transition rest;
    }

    state rest {
        packet.extract(hdr.route, (bit<32>)left << 3);
        transition behind_route;
    }

    // Only worms between hosts are traced: IP stands right behind the route.
    state behind_route {
        transition select(hdr.worm.flags, hdr.worm.kind, hdr.worm.next) {
            (_, KIND_GATHER, _): gather;
            (FLAG_TRACE &&& FLAG_TRACE, _, ETHERTYPE_HOST): trace;
            (_, KIND_CONTROL, NEXT_CONTROL): signal;
            default: accept;
        }
    }

    state trace {
        packet.extract(hdr.trace);
        transition accept;
    }

    state signal {
        packet.extract(hdr.signal);
        transition accept;
    }

    state gather {
        packet.extract(hdr.gather);
        transition accept;
    }

    // The body of a train has none; anything else is malformed.
    state no_route {
        transition select(hdr.worm.flags[6:6], hdr.worm.flags[1:1]) {
            (1, 0): behind_route; // FLAG_TRAIN, not FLAG_HEAD
            default: malformed;
        }
    }

    state group {
        packet.extract(hdr.group);
        transition select(hdr.worm.next) {
            ETHERTYPE_IPV4: ipv4;
            default: behind_route;
        }
    }

    state tree_route {
        transition select(meta.keep_route) {
            1: way128;
            default: tree;
        }
    }

    // The route as a whole, as registers take it.
    WAY(128, 7, way64)
    WAY(64, 6, way32)
    WAY(32, 5, way16)
    WAY(16, 4, way8)
    WAY(8, 3, way4)
    WAY(4, 2, way2)
    WAY(2, 1, way1)
    WAY(1, 0, behind_route)

    state tree {
        transition select(left) {
            0: malformed; // no marker
            default: tree_byte;
        }
    }

    state tree_byte {
        port = packet.lookahead<bit<8>>();
        transition select(port, left, branches) {
            (END_OF_ROUTE, _, _): tree_end;
            (RECIRCULATE_PORT, _, _): malformed;
            (_, 1, _): malformed;              // no room for a length
            (_, _, MAX_BRANCHES): malformed;   // one branch too many
            default: tree_branch;
        }
    }

    state tree_branch {
        length = packet.lookahead<bit<16>>()[7:0];
        packet.extract(hdr.branches.next);
        left = left - 2;
        bit<1> fits = (bit<1>)(length <= left);
        bit<1> ascends = (bit<1>)(port >= lowest);
        lowest = port + 1;
        branches = branches + 1;
        meta.tree_ports_low = meta.tree_ports_low | (128w1 << port);
        // Wraps modulo 256, so ports below 128 shift the bit out.
        meta.tree_ports_high = meta.tree_ports_high | (128w1 << (port - 128));
        transition select(fits, ascends) {
            (1, 1): tree_sub_route;
            default: malformed;
        }
    }

    state tree_sub_route {
        packet.extract(hdr.sub_routes.next, (bit<32>)length << 3);
        left = left - length;
        transition tree;
    }

    state tree_end {
        packet.extract(hdr.end);
        left = left - 1;
        transition select(left, branches) {
            (_, 0): malformed;   // empty list
            (0, _): behind_route;
            default: malformed;  // bytes after the marker
        }
    }

    state malformed {
        meta.tree_malformed = 1;
        transition rest;
    }
}

#endif
