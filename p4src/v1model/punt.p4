// Purpose: frames to and from the controller (CONTRACT.md): LLDP and IGMP in, anything out.
// Reads:   hdr.packet_out, meta.entry_port.
// Writes:  egress_spec, hdr.packet_in, meta.drop_reason.
// Tables:  none; meter `punts`.
// TNA:     no stage of its own; the CPU port of the pipe. The meter is of v1model alone.

#ifndef WORMCAST_PUNT_P4
#define WORMCAST_PUNT_P4

control PuntOut(in headers_t hdr, inout standard_metadata_t standard_metadata) {
    apply {
        standard_metadata.egress_spec = hdr.packet_out.egress_port;
    }
}

// How much a port may bring for the controller: what one host sends must not be all that it reads.
control PuntRate(inout metadata_t meta) {
    bit<8> colour = METER_GREEN;

    @name(".punts") @id(0x14000002)
    meter(PORT_CELLS, MeterType.packets) punts;

    apply {
        punts.execute_meter((bit<32>)meta.entry_port, colour);
        if (colour == METER_RED) {
            meta.drop_reason = drop_reason_t.RATE_EXCEEDED;
        }
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
