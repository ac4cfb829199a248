// What travels with a frame inside the switch, and what the parser hands over.

#ifndef WORMCAST_METADATA_P4
#define WORMCAST_METADATA_P4

#include "../shared/headers.p4"
#include "../shared/ids.p4"
#include "../shared/sizes.p4"

// Values of standard_metadata.instance_type that matter here (BMv2 simple_switch).
const bit<32> INSTANCE_RECIRCULATED = 4;

// Colours that a meter gives.
const bit<8> METER_GREEN = 0;
const bit<8> METER_RED = 2;

// Index of the list of fields that outlive a recirculation.
const bit<8> RECIRCULATED_FIELDS = 1;

header back16_t { bit<128> ports; }
header back8_t { bit<64> ports; }
header back4_t { bit<32> ports; }
header back2_t { bit<16> ports; }
header back1_t { bit<8> ports; }

struct headers_t {
    packet_in_t packet_in;
    packet_out_t packet_out;
    ethernet_t ethernet;
    worm_t worm;
    train_t train;
    signal_t signal;
    gather_t gather;
    group_number_t group;
    hop_t hop;
    // A TREE route at this switch, in step: branch i and its sub-route.
    branch_t[16] branches;  // MAX_BRANCHES
    route_t[16] sub_routes; // MAX_BRANCHES
    // The same of a frame that waits, to be put together again as it came.
    branch_t[16] kept_branches;  // MAX_BRANCHES
    route_t[16] kept_sub_routes; // MAX_BRANCHES
    // Route of a RESET, of up to MAX_BACK = 16 bytes: those of these sizes that add up to its length.
    // Sixteen headers of a byte would cost every frame, which has none.
    back16_t back16;
    back8_t back8;
    back4_t back4;
    back2_t back2;
    back1_t back1;
    // What is left of a UNICAST route; of a TREE, the route of this copy once egress
    // has chosen it, and before that the bytes behind the point where parsing gave up.
    route_t route;
    end_of_route_t end;
    // Of a traced worm: the head of its trace, and the record that this switch adds. Older records are
    // not parsed.
    trace_t trace;
    record_t record;
    ipv4_t ipv4;
}

// What a worm does next in wormhole mode.
enum bit<8> course_t {
    ROUTE = 0,   // it goes by its route
    FOLLOW = 1,  // it follows the head of its train
    HOLD = 2,    // it waits
    RETURN = 3,  // it goes back as RESET
    ABSORB = 4   // it was for this switch
}

// What the controller has set for wormhole mode (CONTRACT.md).
struct mode_t {
    bit<8> scheme;
    bit<16> stop_frames;
    bit<16> go_frames;
    bit<16> held_max;
    bit<32> gap_us;
    bit<32> stop_us;
    bit<32> idle_us;
    bit<32> silent_us;
}

// A channel, and the frame of it that is at this switch now.
struct channel_t {
    bit<32> index;   // the port by which it comes
    bit<16> came;    // frames so far
    bit<16> gone;    // of these, those that have left
    bit<8> does;     // channel_state_t
    bit<32> known;   // its worm: source and sequence
    bit<32> worm;    // that of the frame
    bool is_head;
    bool is_tail;
    bool leaves;     // the frame does not wait any longer
}

struct metadata_t {
    drop_reason_t drop_reason;

    // The port by which the frame entered the switch; BMv2 forgets it when it recirculates.
    @field_list(RECIRCULATED_FIELDS)
    port_t entry_port;

    // When it did, in microseconds.
    @field_list(RECIRCULATED_FIELDS)
    bit<48> entered_at;
    // Wormhole mode: which frame of its channel this is, if it has been counted; the time when
    // it came or went round.
    @field_list(RECIRCULATED_FIELDS)
    bit<16> ticket;
    @field_list(RECIRCULATED_FIELDS)
    bit<1> has_ticket;
    @field_list(RECIRCULATED_FIELDS)
    time_us_t now;
    // The switch has taken the worm itself (absorb.p4); its ticket is one of channel 254.
    @field_list(RECIRCULATED_FIELDS)
    bit<1> absorbed;
    course_t course;
    bit<8> signal;             // CONTROL_STOP or CONTROL_GO goes to the neighbour, or 0
    bit<32> stop_us;
    port_set_t train_ports;    // copies of a TREE frame without route go there

    // What the entry port leads to: a role, and the number of the neighbour switch. Several ports
    // may lead to one neighbour.
    bit<8> port_role;
    instance_t neighbour;

    // TREE: ports named by the route, bit p for port p and bit p - 128 for p >= 128.
    bit<128> tree_ports_low;
    bit<128> tree_ports_high;
    bit<1> tree_malformed;

    // TREE: a branch names a port this switch does not have; the others go on.
    bit<1> branch_lost;
}

#endif
