// Purpose: one step along a list of port bytes: UNICAST, CONTROL and the way of a
//          BROADCAST to the root (SPEC.md §3). An ejection to an in-transit host is no
//          different here from any other port.
// Reads:   hdr.hop, hdr.worm.
// Writes:  hdr.worm.route_len, hdr.hop; egress_spec or mcast_grp; meta.drop_reason.
// Tables:  ports.
// TNA:     one stage; byte 254 goes to the recirculation port of the pipe.

#ifndef WORMCAST_UNICAST_P4
#define WORMCAST_UNICAST_P4

control Unicast(inout headers_t hdr,
                inout metadata_t meta,
                inout standard_metadata_t standard_metadata) {
    port_t port = (port_t)hdr.hop.port;

    @name(".ingress.port_known") @id(0x01000001)
    action port_known() {
        standard_metadata.egress_spec = port;
    }

    // Where parallel links lead to one neighbour: a multicast group with one replica, whose backups
    // are the ports of the other links.
    @name(".ingress.port_backed") @id(0x0100000a)
    action port_backed(mgid_t mgid) {
        standard_metadata.mcast_grp = mgid;
    }

    @name(".ingress.port_unknown") @id(0x01000008)
    action port_unknown() {
        meta.drop_reason = drop_reason_t.PORT_UNKNOWN;
    }

    @name(".ingress.ports") @id(0x02000001)
    table ports {
        key = { port: exact @name("port"); }
        actions = { port_known; port_backed; @defaultonly port_unknown; }
        const default_action = port_unknown();
        size = (int)PORTS_SIZE;
    }

    apply {
        if (!hdr.hop.isValid()) {
            meta.drop_reason = drop_reason_t.ROUTE_EMPTY;
        } else {
            if (hdr.hop.port == RECIRCULATE_PORT) {
                standard_metadata.egress_spec = (port_t)RECIRCULATE_PORT;
            } else {
                ports.apply();
            }
            hdr.hop.setInvalid();
            hdr.worm.route_len = hdr.worm.route_len - 1;
        }
    }
}

#endif
