// Purpose: put the frame together again. Branches, sub-routes, the stripped port byte and
//          the packet_out header are consumed by this switch and never emitted.
// Reads:   hdr.*. Writes: nothing. Tables: none.
// TNA:     no stage; the deparser also holds the checksum engine.

#ifndef WORMCAST_DEPARSER_P4
#define WORMCAST_DEPARSER_P4

#define KEPT(i) \
    packet.emit(hdr.kept_branches[i]); \
    packet.emit(hdr.kept_sub_routes[i]);

control WormDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.packet_in);
        packet.emit(hdr.ethernet);
        packet.emit(hdr.worm);
        packet.emit(hdr.train);
        packet.emit(hdr.group);
        packet.emit(hdr.hop); // of a frame that waits
        KEPT(0) KEPT(1) KEPT(2) KEPT(3) KEPT(4) KEPT(5) KEPT(6) KEPT(7)
        KEPT(8) KEPT(9) KEPT(10) KEPT(11) KEPT(12) KEPT(13) KEPT(14) KEPT(15)
        packet.emit(hdr.way128);
        packet.emit(hdr.way64);
        packet.emit(hdr.way32);
        packet.emit(hdr.way16);
        packet.emit(hdr.way8);
        packet.emit(hdr.way4);
        packet.emit(hdr.way2);
        packet.emit(hdr.way1);
        packet.emit(hdr.route);
        packet.emit(hdr.end);
        packet.emit(hdr.trace);
        packet.emit(hdr.record);
        packet.emit(hdr.signal);
        packet.emit(hdr.gather);
        packet.emit(hdr.ipv4);
    }
}

#endif
