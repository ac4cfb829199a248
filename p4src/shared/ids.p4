// Every number that has a name outside the data plane. This file is their only home:
// the copies in Python (controller/wormcast/wire.py) and Rust are tested equal to it.
// Write one constant a line, as `const bit<N> NAME = value;`, because those tests read it.

#ifndef WORMCAST_IDS_P4
#define WORMCAST_IDS_P4

// Ethernet (SPEC.md §1)
const bit<48> WORM_MAC = 0x03574f524d00;
const bit<16> ETHERTYPE_WORM = 0x88b5;
const bit<16> ETHERTYPE_HOST = 0x88b6;
const bit<16> ETHERTYPE_IPV4 = 0x0800;
const bit<16> ETHERTYPE_LLDP = 0x88cc;

// Worm header (SPEC.md §2)
const bit<4> WORM_VERSION = 1;
const bit<4> KIND_UNICAST = 0;
const bit<4> KIND_TREE = 1;
const bit<4> KIND_BROADCAST = 2;
const bit<4> KIND_GROUP = 3;
const bit<4> KIND_CONTROL = 4;
const bit<4> KIND_GATHER = 5;
const bit<8> FLAG_CLASS2 = 0x01;
const bit<8> FLAG_HEAD = 0x02;
const bit<8> FLAG_TAIL = 0x04;
const bit<8> FLAG_RESUMED = 0x08;
const bit<8> FLAG_CE = 0x10;
const bit<8> FLAG_TRACE = 0x20;
const bit<8> FLAG_TRAIN = 0x40;
const bit<8> FLAG_ABORT = 0x80;

// Control headers (SPEC.md §3.1)
const bit<16> NEXT_CONTROL = 0x0001;
const bit<8> CONTROL_STOP = 1;
const bit<8> CONTROL_GO = 2;
const bit<8> CONTROL_RESET = 3;

// ACKs that switches gather (SPEC.md §3.2)
const bit<8> GATHER_ACK = 1;
const bit<8> GATHER_REQUEST = 2;
const bit<8> GATHER_ANSWER = 3;
const bit<8> GATHER_REFRESH = 0x01;
const bit<8> GATHER_KNOWN = 0x02;

// Routes (SPEC.md §3)
const bit<8> PORT_MAX = 253;
const bit<8> RECIRCULATE_PORT = 254;
const bit<8> END_OF_ROUTE = 255;
const bit<16> GROUP_BROADCAST = 255;

// Class D (SPEC.md §4)
const bit<16> CLASS_D_SOURCE = 0xffff;
const bit<24> CLASS_D_MAC_PREFIX = 0x01005e;
const bit<8> IP_PROTOCOL_IGMP = 2;

// Ports of the switch (CONTRACT.md)
const bit<9> CPU_PORT = 510;
const bit<9> DROP_PORT = 511;
const bit<8> ROLE_NONE = 0;
const bit<8> ROLE_SWITCH = 1;
const bit<8> ROLE_HOST = 2;

// Multicast groups (CONTRACT.md)
const bit<16> MGID_BROADCAST = 1;
const bit<16> MGID_TREE_ALL = 2;
const bit<16> MGID_INTERRUPT = 3;
const bit<16> MGID_TREE_SET = 0x0100;
const bit<16> MGID_PORT = 0x0200;
const bit<16> MGID_HOLD = 0x0300;
const bit<16> MGID_GROUP_FIRST = 0x4000;
const bit<16> MGID_GROUP_LAST = 0x7fff;

// Instances of replicas (CONTRACT.md)
const bit<16> INSTANCE_PLAIN = 1;
const bit<16> INSTANCE_BRANCH = 0x0100;
const bit<16> INSTANCE_NEIGHBOUR = 2;
const bit<16> NEIGHBOUR_NONE = 0;

// Why a frame, or a branch of one, went no further: index of the counter `drops`.
// Only one is counted: TRUNCATED where it holds, else the first in this order, in which those of
// the guard, 18 to 23 and 28, stand behind HOPS_EXCEEDED, 28 in front of 21.
enum bit<8> drop_reason_t {
    NONE = 0,                // not dropped; never counted
    NOT_A_WORM = 1,          // EtherType that the fabric does not carry
    TRUNCATED = 2,           // the frame ends inside its headers (IPv4 ones included) or its route
    VERSION_UNKNOWN = 3,     // version is not WORM_VERSION
    CHECKSUM = 4,            // checksum of header and route
    HOPS_EXCEEDED = 5,       // arrived with MAX_HOPS or more
    KIND_UNKNOWN = 6,        // kind has no meaning
    ROUTE_EMPTY = 7,         // UNICAST or CONTROL with no port byte left
    PORT_UNKNOWN = 8,        // port byte names no port of this switch
    TREE_MALFORMED = 9,      // TREE route breaks a rule of SPEC.md §3
    GROUP_MALFORMED = 10,    // GROUP route is not two bytes
    GROUP_UNKNOWN = 11,      // no entry for the group
    CLASS_D_LINK_LOCAL = 12, // 224.0.0.0/24 never leaves its link
    CLASS_D_UNKNOWN = 13,    // class D packet of a host to no known group
    TRAIN_REFUSED = 14,      // a train, which this switch does not carry in its mode or of this kind
    TRAIN_BROKEN = 15,       // frame of a train whose frames before it are missing
    TRAIN_RESET = 16,        // frame of a worm that was reset
    HELD_FULL = 17,          // as many frames of its channel wait as may
    SOURCE_REFUSED = 18,     // guard: source is not the host of the port, nor one whose worms it re-injects
    KIND_REFUSED = 19,       // guard: the host may not send worms of this kind
    ROUTE_TOO_LONG = 20,     // guard: more port bytes than any route of the fabric has, or more of a TREE than any of the host's
    GROUP_REFUSED = 21,      // guard: a closed group that the host is no member of
    RATE_EXCEEDED = 22,      // guard: the host sends more than it may
    HOST_UNKNOWN = 23,       // guard: nothing known is behind the port
    BEYOND_TARGET = 24,      // more route or branches than the program of this target reads
    GATHER_UNKNOWN = 25,     // no entry for this group, origin and port, or from another source; no such op
    GATHER_STALE = 26,       // of another plan than the entry's, or of a stream that is over
    ABSORB_FULL = 27,        // port byte 254 where the switch holds ABSORBED_MAX worms, and no way back is known
    ROUTE_REFUSED = 28       // guard: the worm would go back where it came from, or round in the switch (port byte 254)
}

// What happened to trains and channels: index of the counter `trains`.
enum bit<8> train_event_t {
    HELD = 0,       // a frame that has to wait went round once
    STOP_SENT = 1,
    GO_SENT = 2,
    STOP_HEARD = 3,
    GO_HEARD = 4,
    RESET_SENT = 5,
    RESET_PASSED = 6,
    ABORTED = 7,    // a train ended early, because a frame of it is missing
    TAIL_LOST = 8,  // the next worm of a channel came before the tail of the last
    EXPIRED = 9,    // a reservation ended, because nothing had come for too long
    FLUSHED = 10,   // unicast gave way to a multicast that waits (scheme C)
    TURN_LOST = 11, // a frame that waited is gone
    INTERRUPTED = 12, // a multicast gave its outputs up, because one of them stops (scheme B)
    GIVEN_BACK = 13 // the head of a multicast gave its outputs back, because it cannot have all (scheme B)
}

// Deadlock schemes of wormhole mode (WORM §3)
const bit<8> WORMHOLE_PLAIN = 1;
const bit<8> WORMHOLE_FLUSH = 2;
const bit<8> WORMHOLE_INTERRUPT = 3;
const bit<8> WORMHOLE_INTERRUPT_ROOT = 4; // the same, at the root of the spanning tree
// What a multicast claims at the root before any output, in place of a port.
const bit<8> ROOT_TURN = 254;

#endif
