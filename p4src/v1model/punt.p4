// Purpose: frames to and from the controller (CONTRACT.md): LLDP and IGMP in, anything out.
// Reads:   hdr.packet_out, meta.entry_port.
// Writes:  egress_spec, hdr.packet_in.
// Tables:  none.
// TNA:     no stage of its own; the CPU port of the pipe.

#ifndef WORMCAST_PUNT_P4
#define WORMCAST_PUNT_P4

control PuntOut(in headers_t hdr, inout standard_metadata_t standard_metadata) {
    apply {
        standard_metadata.egress_spec = hdr.packet_out.egress_port;
    }
}

control PuntIn(inout headers_t hdr, in metadata_t meta) {
    apply {
        hdr.packet_in.setValid();
        hdr.packet_in.ingress_port = meta.entry_port;
        hdr.packet_in.pad = 0;
    }
}

#endif
