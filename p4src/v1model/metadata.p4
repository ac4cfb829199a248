// What travels with a frame inside the switch, and what the parser hands over.

#ifndef WORMCAST_METADATA_P4
#define WORMCAST_METADATA_P4

#include "../shared/headers.p4"
#include "../shared/ids.p4"
#include "../shared/sizes.p4"

// Values of standard_metadata.instance_type that matter here (BMv2 simple_switch).
const bit<32> INSTANCE_RECIRCULATED = 4;

// Index of the list of fields that outlive a recirculation.
const bit<8> RECIRCULATED_FIELDS = 1;

struct headers_t {
    packet_in_t packet_in;
    packet_out_t packet_out;
    ethernet_t ethernet;
    worm_t worm;
    group_number_t group;
    hop_t hop;
    // A TREE route at this switch, in step: branch i and its sub-route.
    branch_t[16] branches;  // MAX_BRANCHES
    route_t[16] sub_routes; // MAX_BRANCHES
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

struct metadata_t {
    drop_reason_t drop_reason;

    // The port by which the frame entered the switch; BMv2 forgets it when it recirculates.
    @field_list(RECIRCULATED_FIELDS)
    port_t entry_port;

    // When it did, in microseconds.
    @field_list(RECIRCULATED_FIELDS)
    bit<48> entered_at;

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
