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
const bit<8> FLAG_CLASS2 = 0x01;
const bit<8> FLAG_HEAD = 0x02;
const bit<8> FLAG_TAIL = 0x04;
const bit<8> FLAG_RESUMED = 0x08;
const bit<8> FLAG_CE = 0x10;
const bit<8> FLAG_TRACE = 0x20;

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
const bit<16> MGID_TREE_SET = 0x0100;
const bit<16> MGID_PORT = 0x0200;
const bit<16> MGID_GROUP_FIRST = 0x4000;
const bit<16> MGID_GROUP_LAST = 0x7fff;

// Instances of replicas (CONTRACT.md)
const bit<16> INSTANCE_PLAIN = 1;
const bit<16> INSTANCE_BRANCH = 0x0100;
const bit<16> INSTANCE_NEIGHBOUR = 2;
const bit<16> NEIGHBOUR_NONE = 0;

// Why a frame, or a branch of one, went no further: index of the counter `drops`.
// Only one is counted: TRUNCATED where it holds, else the first in this order.
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
    BEYOND_TARGET = 24       // more route or branches than the program of this target reads
}

#endif
