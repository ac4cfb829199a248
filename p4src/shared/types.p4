// Names for widths, so that a port is never mistaken for a port byte.

#ifndef WORMCAST_TYPES_P4
#define WORMCAST_TYPES_P4

typedef bit<9> port_t;          // a port of the switch
typedef bit<8> port_byte_t;     // a port as a route spells it
typedef bit<16> group_t;        // SPEC.md §3, GROUP
typedef bit<16> mgid_t;         // multicast group of the replication engine
typedef bit<16> instance_t;     // tells the replicas of a multicast group apart
typedef bit<48> mac_t;
typedef bit<48> time_us_t;      // microseconds since any start
typedef bit<256> port_set_t;    // bit p for port p
typedef bit<32> ipv4_address_t;
typedef bit<16> ethertype_t;

#endif
