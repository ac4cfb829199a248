// What a switch remembers of its channels and outputs in wormhole mode. A channel is the port a worm
// comes in by, an output the port it leaves by. All cells are 0 at first.

#ifndef WORMCAST_CHANNELS_P4
#define WORMCAST_CHANNELS_P4

enum bit<8> channel_state_t {
    FREE = 0,
    CLAIMING = 1,  // its head waits for outputs
    OPEN = 2,      // the frames behind the head follow
    RESET = 3,     // its worm ended early; what still comes of it ends here, and says so once
    ENDED = 4      // as RESET, and the source knows
}

// By channel.
@name(".channel_came") register<bit<16>>(PORT_CELLS) channel_came;          // frames: the ticket of the next
@name(".channel_gone") register<bit<16>>(PORT_CELLS) channel_gone;          // frames that have left
@name(".channel_turn_us") register<time_us_t>(PORT_CELLS) channel_turn_us;  // when the next to leave was seen
@name(".channel_state") register<bit<8>>(PORT_CELLS) channel_state;
@name(".channel_worm") register<bit<32>>(PORT_CELLS) channel_worm;          // source and sequence
@name(".channel_kind") register<bit<8>>(PORT_CELLS) channel_kind;
@name(".channel_position") register<bit<16>>(PORT_CELLS) channel_position;  // of the next frame of the train
@name(".channel_claimed") register<bit<8>>(PORT_CELLS) channel_claimed;     // branches that have their output
@name(".channel_outputs") register<port_set_t>(PORT_CELLS) channel_outputs; // outputs it has
@name(".channel_target") register<bit<16>>(PORT_CELLS) channel_target;      // port, or multicast group
@name(".channel_moved_us") register<time_us_t>(PORT_CELLS) channel_moved_us; // when a frame left, or a head began to wait
@name(".channel_place") register<bit<17>>(PORT_CELLS) channel_place;        // 1 and its place in a line, or 0
@name(".channel_line") register<bit<8>>(PORT_CELLS) channel_line;             // the output of that line
@name(".channel_back") register<bit<128>>(PORT_CELLS) channel_back;         // back_count and back of the head
@name(".channel_stops") register<port_set_t>(PORT_CELLS) channel_stops;     // outputs that are to stop
@name(".channel_stops_us") register<time_us_t>(PORT_CELLS) channel_stops_us; // until when
@name(".channel_told") register<bit<1>>(PORT_CELLS) channel_told;           // the neighbour was told to stop
@name(".channel_told_us") register<time_us_t>(PORT_CELLS) channel_told_us;  // when

// By channel, scheme B: the route of the head of a multicast, in the pieces that its length needs.
@name(".channel_order") register<bit<16>>(PORT_CELLS) channel_order;        // number that the root gave it
@name(".channel_route_len") register<bit<8>>(PORT_CELLS) channel_route_len;
@name(".channel_way128") register<bit<1024>>(PORT_CELLS) channel_way128;
@name(".channel_way64") register<bit<512>>(PORT_CELLS) channel_way64;
@name(".channel_way32") register<bit<256>>(PORT_CELLS) channel_way32;
@name(".channel_way16") register<bit<128>>(PORT_CELLS) channel_way16;
@name(".channel_way8") register<bit<64>>(PORT_CELLS) channel_way8;
@name(".channel_way4") register<bit<32>>(PORT_CELLS) channel_way4;
@name(".channel_way2") register<bit<16>>(PORT_CELLS) channel_way2;
@name(".channel_way1") register<bit<8>>(PORT_CELLS) channel_way1;

// The number that the root gave last.
@name(".root_order") register<bit<16>>(1) root_order;

// By output. ROOT_TURN is one too: the turn of a multicast at the root.
@name(".output_owner") register<bit<16>>(PORT_CELLS) output_owner;          // channel + 1, which may have left it
@name(".output_line_end") register<bit<16>>(PORT_CELLS) output_line_end;    // places given to those that wait
@name(".output_line_head") register<bit<16>>(PORT_CELLS) output_line_head;  // the place that is next
@name(".output_line_us") register<time_us_t>(PORT_CELLS) output_line_us;    // when that one was seen
@name(".output_stop_us") register<time_us_t>(PORT_CELLS) output_stop_us;    // until when it is to stop

// Of what the switch takes itself (absorb.p4), beside cells 254 and more of `channel_*`.
@name(".absorbed_train") register<bit<16>>(1) absorbed_train;   // port + 1 by which more of a train is to come, or 0
@name(".absorbed_broken") register<bit<1>>((bit<32>)ABSORBED_MAX) absorbed_broken; // by ticket: its train ends here

@name(".trains") @id(0x12000006)
counter(TRAIN_CELLS, CounterType.packets) trains;

#define COUNT_TRAIN(event) trains.count((bit<32>)(bit<8>)train_event_t.event)

#endif
