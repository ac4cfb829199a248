// Purpose: frames to and from the controller (CONTRACT.md): LLDP and IGMP in, anything out.
// Reads:   hdr.packet_out, hdr.bridge.packet_in.
// Writes:  meta.out_port, hdr.bridge.as_is, hdr.packet_in.
// Tables:  none.

#ifndef WORMCAST_PUNT_P4
#define WORMCAST_PUNT_P4

control PuntOut(inout ingress_headers_t hdr, inout ingress_metadata_t meta) {
    apply {
        meta.out_port = hdr.packet_out.egress_port;
        meta.unicast = true;
        hdr.bridge.as_is = 1;
    }
}

control PuntIn(inout egress_headers_t hdr) {
    apply {
        hdr.packet_in.setValid();
        hdr.packet_in.ingress_port = hdr.bridge.packet_in[15:7];
        hdr.packet_in.pad = hdr.bridge.packet_in[6:0];
    }
}

#endif
