// What travels with a frame inside the switch: through one gress, from ingress to egress, and back
// into ingress.

#ifndef WORMCAST_METADATA_P4
#define WORMCAST_METADATA_P4

#include "../../p4src/shared/headers.p4"
#include "../../p4src/shared/ids.p4"
#include "../../p4src/shared/sizes.p4"

// Bit of back_count: the head has crossed a switch that does not record the way back.
const bit<8> BACK_UNKNOWN = 0x80;

// There is no varbit: a route is kept in pieces of fixed size, largest first, one for each bit of its
// length. All but the last have an even length, so each lies at a known byte of the checksum's words.
// Words of 32 bits, so that a piece fits any container.
header route_64_t {
    bit<32> w0;
    bit<32> w1;
    bit<32> w2;
    bit<32> w3;
    bit<32> w4;
    bit<32> w5;
    bit<32> w6;
    bit<32> w7;
    bit<32> w8;
    bit<32> w9;
    bit<32> w10;
    bit<32> w11;
    bit<32> w12;
    bit<32> w13;
    bit<32> w14;
    bit<32> w15;
}

header route_32_t {
    bit<32> w0;
    bit<32> w1;
    bit<32> w2;
    bit<32> w3;
    bit<32> w4;
    bit<32> w5;
    bit<32> w6;
    bit<32> w7;
}

header route_16_t {
    bit<32> w0;
    bit<32> w1;
    bit<32> w2;
    bit<32> w3;
}

header route_8_t {
    bit<32> w0;
    bit<32> w1;
}

header route_4_t {
    bit<32> w0;
}

header route_2_t {
    bit<16> w0;
}

header route_1_t {
    bit<8> w0;
}

// From ingress to the egress of each copy.
header bridge_t {
    bit<8> as_is;       // not 0: leaves as it is, egress reads nothing behind this header
    bit<16> entry_port; // worm port by which the frame entered the switch
    bit<16> packet_in;  // the same as packet_in_t has it: a stage does not shift it there
    instance_t neighbour;
    bit<32> entered_at; // when it did, in ticks of 256 ns
}

// What the first pass of a TREE worm found out, for the second (Resubmit; 64 bits).
header tree_t {
    bit<32> ports;     // bit p: a branch names port p
    bit<8> malformed;  // not 0: the route breaks a rule of SPEC.md §3
    bit<8> beyond;     // not 0: the route is more than this target reads
    @padding bit<16> pad;
}

// In front of a frame that passes the switch once more: port byte 254, or it waits in wormhole mode.
header recirculated_t {
    bit<8> held;        // not 0: it waits, and a held_t follows
    bit<16> entry_port;
    bit<32> entered_at; // when it came first
}

// What is known of a frame that waits (wormhole.p4).
header held_t {
    bit<32> worm;        // number of its worm in its channel
    bit<32> seen;        // whose turn it was: a place in the line of its output, or a worm of its channel
    bit<16> number;      // of the frame in its train; of a head that closes the worm before, that of the lost tail
    bit<1> is_front;     // a head whose channel is its own
    bit<1> is_placed;    // a head with a place in the line of its output
    bit<1> closes;       // a head: the tail of the worm before is lost
    bit<1> ends;         // a frame before it is missing, or is not taken: the train ends here
    bit<1> expires;      // whoever has the turn at its output has been silent for too long
    bit<1> is_overdue;   // the same of its channel
    bit<1> full;         // too many frames of its channel wait
    bit<1> is_absorbed;  // its channel is that of what the switch has absorbed (port byte 254)
    bit<1> is_over;      // its worm is over: it ends in this pass
    bit<1> is_new;       // it goes round for the first time
    @padding bit<6> pad;
}

struct ingress_headers_t {
    bridge_t bridge;
    tree_t tree;
    packet_out_t packet_out;
    recirculated_t recirculated;
    held_t held;
    ethernet_t ethernet;
    worm_t worm;
    train_t train;
    hop_t hop;
    // Route bytes behind the hop; of TREE and of malformed routes, all.
    route_64_t route_64;
    route_32_t route_32;
    route_16_t route_16;
    route_8_t route_8;
    route_4_t route_4;
    route_2_t route_2;
    route_1_t route_1;
    group_number_t group;
    trace_t trace;
    ipv4_t ipv4;
}

// What part a frame has in wormhole mode.
enum bit<8> part_t {
    NONE = 0,
    REFUSED = 1,
    BEGINS = 2,  // a head that enters
    FOLLOWS = 3, // another frame of a train that enters
    WAITS = 4,
    OVER = 5     // it waits, and its worm is over
}

// What wormhole.p4 knows of a frame. Registers are given it from here.
struct asks_t {
    part_t part;
    drop_reason_t reason;
    bit<1> is_head;
    bit<1> is_last;
    bit<1> places;    // it takes a place in this pass
    bit<1> is_second; // this is its second pass
    port_t channel;
    bit<16> now;      // slot of time
    bit<16> until;    // slot until which what moves now may be silent
    bit<16> told;     // when too many waited, or 0
    bit<16> full_age; // since then
    bit<16> held_max; // frames
    bit<32> id;       // source and sequence
    bit<32> position; // in the train
    bit<32> asked;    // the worm that the frame is about: its own, or the one before, which it closes
    bit<32> mover;    // the worm whose turn in its channel is over, if it has it
    bit<32> way;
    bit<16> place;
}

struct ingress_metadata_t {
    drop_reason_t drop_reason;
    bool checksum_error;
    bit<1> route_beyond; // more route than this target reads

    // First pass of a TREE. It goes no further than to the second.
    bit<1> tree_pass;
    bit<32> tree_ports;
    bit<8> tree_malformed;
    bit<8> tree_beyond;

    // TREE: why there are no copies; the set of its ports, if all are below 8; and its branches to
    // ports that this switch does not have, while the others go on.
    drop_reason_t tree_reason;
    bit<8> port_set;
    bit<32> lost;

    // What the guard has for the port by which a worm entered.
    bool judged;         // hosts are behind it
    bool refused;        // nobody known is behind it
    bit<16> foreign;     // 0: the source is the host of the port
    bit<8> may_send;
    bit<1> may_reinject;
    bit<8> beyond_longest; // port bytes

    bit<8> port_role;

    port_t hop_port; // the port byte that is stripped; behind the head of a train, the port that this took
    bool follows;    // behind the head of a train, without a route
    bit<1> hold;     // it goes round as it came, and waits
    asks_t asks;

    // Worm port by which the frame leaves, if it is not copied.
    bool unicast;
    port_t out_port;
}

struct egress_headers_t {
    packet_in_t packet_in;
    recirculated_t recirculated;
    bridge_t bridge;
    ethernet_t ethernet;
    worm_t worm;
    train_t train; // of a traced worm
    group_number_t group;
    branch_t own; // the branch of this copy
    // Its sub-route; of a traced worm that goes by a path, the route behind this switch.
    route_64_t route_64;
    route_32_t route_32;
    route_16_t route_16;
    route_8_t route_8;
    route_4_t route_4;
    route_2_t route_2;
    route_1_t route_1;
    end_of_route_t end;
    trace_t trace;
    record_t record;
    ipv4_t ipv4;
}

struct egress_metadata_t {
    port_t exit_port; // worm port by which the copy leaves
    bit<1> tree;      // the route is new, and so is its checksum
}

#endif
