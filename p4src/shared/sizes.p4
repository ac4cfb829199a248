// Every bound of the data plane. Same rules as ids.p4: one home, one constant a line.

#ifndef WORMCAST_SIZES_P4
#define WORMCAST_SIZES_P4

const bit<8> MAX_HOPS = 64;      // a worm that arrives with as many is dropped
const bit<8> MAX_BRANCHES = 16;  // branches of a TREE at one switch
const bit<8> MAX_ROUTE = 255;    // bytes of route

// Frames left in the output queue behind the one that leaves, from which CE is marked.
// Half of BMv2's default queue of 64 frames.
const bit<19> CE_QUEUE_DEPTH = 32;

// Largest numbers of a record of a hop (SPEC.md §2.2); they stand for this much or more.
const bit<24> TRACE_STAY_MAX = 0xffffff; // microseconds
const bit<16> TRACE_QUEUE_MAX = 0xffff;  // frames

// Frames that a switch has taken itself (port byte 254) and not sent on yet. A power of two.
const bit<16> ABSORBED_MAX = 32;
// Those of a train for which there is room, or it is refused. Agents send no longer ones.
const bit<16> ABSORBED_TRAIN = 8;

// Upstream switches that the head of a train can name.
const bit<8> MAX_BACK = 15;

// Longest silence, in microseconds, of a frame whose turn it is: it goes round, and was lost.
const bit<48> TURN_LOST_US = 1000000;
// The same of the frame behind one that was lost: what loses one may have lost many.
const bit<48> NEXT_TURN_LOST_US = 200000;
// The same for the next in line at an output: another one takes its place.
const bit<48> LINE_LOST_US = 20000;

// Entries of the tables
const bit<32> PORTS_SIZE = 256;
const bit<32> PORT_ROLES_SIZE = 256;
const bit<32> TREE_SETS_SIZE = 256;
const bit<32> GROUPS_SIZE = 16384;
const bit<32> CLASS_D_SIZE = 4096;
const bit<32> EDGE_PORTS_SIZE = 256;
const bit<32> GUARD_SIZE = 256;
const bit<32> SOURCES_SIZE = 4096;
const bit<32> OPEN_GROUPS_SIZE = 16384;
const bit<32> GROUP_SENDERS_SIZE = 65536;
const bit<32> GATHER_SIZE = 16384;

// Tofino: what its program reads of a route
const bit<8> TOFINO_MAX_PATH = 64;   // bytes of a UNICAST, CONTROL or BROADCAST route
const bit<8> TOFINO_MAX_ROUTE = 127; // bytes of any other
const bit<8> TOFINO_TREE_PORTS = 32; // TREE branches name ports below
const bit<32> DEVICE_PORTS_SIZE = 512;

// Cells of the counters
const bit<32> DROPS_CELLS = 32;
const bit<32> PORT_CELLS = 512;
const bit<32> KIND_CELLS = 16;
const bit<32> TRAIN_CELLS = 16;

// Trees of which a switch gathers ACKs at a time, and cells for 16 branches of each
const bit<32> GATHER_SLOTS = 1024;
const bit<32> GATHER_CELLS = 16384;

#endif
