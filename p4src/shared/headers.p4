// What the data plane reads and writes of a frame (SPEC.md §1–§4).

#ifndef WORMCAST_HEADERS_P4
#define WORMCAST_HEADERS_P4

#include "types.p4"

@controller_header("packet_in")
header packet_in_t {
    port_t ingress_port;
    bit<7> pad;
}

@controller_header("packet_out")
header packet_out_t {
    port_t egress_port;
    bit<7> pad;
}

header ethernet_t {
    mac_t dst;
    mac_t src;
    ethertype_t type;
}

header worm_t {
    bit<4> version;
    bit<4> kind;
    bit<8> flags;
    bit<8> route_len;
    bit<8> hops;
    bit<16> source;
    bit<16> sequence;
    ethertype_t next;
    bit<16> checksum;
}

// One frame of several that make a worm (FLAG_TRAIN).
header train_t {
    bit<16> position;   // 0 for the head
    bit<8> back_count;  // switches crossed so far, as far as `back` has room
    bit<16> order;      // number that the root gave the multicast, or 0
    bit<120> back;      // the ports by which it entered them, the last one in the lowest byte
}

// What a CONTROL worm says (NEXT_CONTROL).
header signal_t {
    bit<8> op;
    bit<8> pad;
    bit<16> source;     // RESET: of the worm that is reset
    bit<16> sequence;
    bit<32> stop_us;    // STOP: for how long
}

// What a GATHER worm says; its checksum covers it.
header gather_t {
    bit<8> op;
    bit<8> flags;
    group_t group;
    bit<16> origin;
    port_byte_t port;   // REQUEST: the branch behind this port
    bit<8> pad;
    bit<32> epoch;
    bit<32> stream;
    bit<32> cumulative;
    bit<32> stable;
}

// First port byte of a UNICAST, CONTROL or BROADCAST route: the one this switch strips.
header hop_t {
    port_byte_t port;
}

// Head of one branch of a TREE; its sub-route follows as a route_t of `length` bytes.
header branch_t {
    port_byte_t port;
    bit<8> length;
}

// Route bytes this switch does not look into.
header route_t {
    varbit<2040> bytes; // 8 * MAX_ROUTE
}

header end_of_route_t {
    bit<8> marker;
}

header group_number_t {
    group_t number;
}

// How many records of hops follow, and how many have room.
header trace_t {
    bit<8> count;
    bit<8> room;
}

// What a switch says of a traced worm that leaves it.
header record_t {
    bit<16> switch_id;
    bit<8> hop;
    port_byte_t ingress_port;
    port_byte_t egress_port;
    bit<24> stay;    // microseconds from arrival to the end of the queue
    bit<16> queue;   // frames left behind in it
    bit<32> left_at; // microseconds of the clock of the switch
    bit<16> check;
}

// The fixed part; options stay in the payload.
header ipv4_t {
    bit<4> version;
    bit<4> ihl;
    bit<8> tos;
    bit<16> total_length;
    bit<16> identification;
    bit<16> fragment;
    bit<8> ttl;
    bit<8> protocol;
    bit<16> checksum;
    ipv4_address_t src;
    ipv4_address_t dst;
}

#endif
