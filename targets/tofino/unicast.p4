// Purpose: one step along a list of port bytes: UNICAST, CONTROL and the way of a
//          BROADCAST to the root (SPEC.md §3). An ejection to an in-transit host is no
//          different here from any other port.
// Reads:   hdr.hop, hdr.worm, meta.hop_port, meta.follows, meta.asks.
// Writes:  hdr.worm.route_len, hdr.hop; meta.out_port or mcast_grp_a; meta.drop_reason.
// Tables:  ports.
// Cost:    one stage. Byte 254 is a port like any other here: that of recirculation.

#ifndef WORMCAST_UNICAST_P4
#define WORMCAST_UNICAST_P4

control Unicast(inout ingress_headers_t hdr,
                inout ingress_metadata_t meta,
                inout ingress_intrinsic_metadata_for_tm_t ig_tm_md) {
    @name(".ingress.port_known") @id(0x01000001)
    action port_known() {
        meta.out_port = meta.hop_port;
        meta.unicast = true;
    }

    // Where parallel links lead to one neighbour: a multicast group with one replica, whose backups
    // are the ports of the other links.
    @name(".ingress.port_backed") @id(0x0100000a)
    action port_backed(mgid_t mgid) {
        ig_tm_md.mcast_grp_a = mgid;
    }

    @name(".ingress.port_unknown") @id(0x01000008)
    action port_unknown() {
        meta.drop_reason = drop_reason_t.PORT_UNKNOWN;
    }

    @name(".ingress.ports") @id(0x02000001)
    table ports {
        key = { meta.hop_port: exact @name("port"); }
        actions = { port_known; port_backed; @defaultonly port_unknown; }
        const default_action = port_unknown();
        size = (int)PORTS_SIZE;
    }

    apply {
        if (meta.asks.part == part_t.REFUSED) {
            meta.drop_reason = meta.asks.reason;
        } else if (!hdr.hop.isValid() && !meta.follows) {
            meta.drop_reason = drop_reason_t.ROUTE_EMPTY;
        } else {
            if (meta.hop_port == (port_t)RECIRCULATE_PORT) {
                meta.out_port = (port_t)RECIRCULATE_PORT;
                meta.unicast = true;
            } else {
                ports.apply();
            }
            if (hdr.hop.isValid()) {
                hdr.worm.route_len = hdr.worm.route_len - 1;
                hdr.hop.setInvalid();
            }
        }
    }
}

#endif
