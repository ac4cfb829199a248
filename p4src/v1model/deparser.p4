// Purpose: put the frame together again. Branches, sub-routes, the stripped port byte and
//          the packet_out header are consumed by this switch and never emitted.
// Reads:   hdr.*. Writes: nothing. Tables: none.
// TNA:     no stage; the deparser also holds the checksum engine.

#ifndef WORMCAST_DEPARSER_P4
#define WORMCAST_DEPARSER_P4

control WormDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.packet_in);
        packet.emit(hdr.ethernet);
        packet.emit(hdr.worm);
        packet.emit(hdr.group);
        packet.emit(hdr.route);
        packet.emit(hdr.end);
        packet.emit(hdr.trace);
        packet.emit(hdr.record);
        packet.emit(hdr.ipv4);
    }
}

#endif
