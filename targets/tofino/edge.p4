// Purpose: where plain IP multicast meets the fabric (SPEC.md §4). EdgeIngress makes a
//          class D packet of a host a GROUP worm, EdgeEgress makes a GROUP worm that
//          carries IP the plain frame again where it leaves to a host.
// Cost:    ingress one stage (class D in TCAM), egress one.

#ifndef WORMCAST_EDGE_P4
#define WORMCAST_EDGE_P4

// Reads:   hdr.ethernet, hdr.ipv4, meta.port_role.
// Writes:  hdr.worm, hdr.group, hdr.ethernet; meta.drop_reason; meta.out_port for IGMP.
// Tables:  class_d. Counter `kinds` does not count here: the worm is new.
control EdgeIngress(inout ingress_headers_t hdr, inout ingress_metadata_t meta) {
    @name(".ingress.enter_group") @id(0x01000005)
    action enter_group(group_t group) {
        hdr.worm.setValid();
        hdr.worm.version = WORM_VERSION;
        hdr.worm.kind = KIND_GROUP;
        hdr.worm.flags = FLAG_HEAD | FLAG_TAIL;
        hdr.worm.route_len = 2;
        hdr.worm.hops = 1; // this switch
        hdr.worm.source = CLASS_D_SOURCE;
        hdr.worm.sequence = 0;
        hdr.worm.next = ETHERTYPE_IPV4;
        hdr.group.setValid();
        hdr.group.number = group;
        hdr.ethernet.dst = WORM_MAC;
        hdr.ethernet.type = ETHERTYPE_WORM;
    }

    @name(".ingress.class_d_unknown") @id(0x01000006)
    action class_d_unknown() {
        meta.drop_reason = drop_reason_t.CLASS_D_UNKNOWN;
    }

    @name(".ingress.class_d") @id(0x02000005)
    table class_d {
        key = { hdr.ipv4.dst: ternary; }
        actions = { enter_group; @defaultonly class_d_unknown; }
        const default_action = class_d_unknown();
        size = (int)CLASS_D_SIZE;
    }

    apply {
        if (meta.port_role != ROLE_HOST || hdr.ipv4.version != 4) {
            meta.drop_reason = drop_reason_t.NOT_A_WORM;
        } else if (hdr.ipv4.protocol == IP_PROTOCOL_IGMP) {
            // The controller learns from it which plain hosts are members.
            meta.out_port = CPU_PORT;
            meta.unicast = true;
            hdr.bridge.as_is = 1;
        } else if (hdr.ipv4.dst[31:28] != 0xe) {
            meta.drop_reason = drop_reason_t.NOT_A_WORM;
        } else if (hdr.ipv4.dst[31:8] == 0xe00000) {
            meta.drop_reason = drop_reason_t.CLASS_D_LINK_LOCAL;
        } else {
            class_d.apply();
        }
    }
}

// Reads:   hdr.worm, hdr.ipv4, meta.exit_port.
// Writes:  hdr.ethernet, hdr.worm, hdr.group.
// Tables:  edge_ports.
control EdgeEgress(inout egress_headers_t hdr, in egress_metadata_t meta) {
    // RFC 1112 §6.4: the low 23 bits of the address under 01:00:5e.
    @name(".egress.to_host") @id(0x01000007)
    action to_host() {
        hdr.ethernet.dst = CLASS_D_MAC_PREFIX ++ 1w0 ++ hdr.ipv4.dst[22:0];
        hdr.ethernet.type = ETHERTYPE_IPV4;
        hdr.worm.setInvalid();
        hdr.group.setInvalid();
    }

    @name(".egress.edge_ports") @id(0x02000006)
    table edge_ports {
        key = { meta.exit_port: exact @name("standard_metadata.egress_port"); }
        actions = { to_host; @defaultonly NoAction; }
        const default_action = NoAction();
        size = (int)EDGE_PORTS_SIZE;
    }

    apply {
        if (hdr.ipv4.isValid()) {
            edge_ports.apply();
        }
    }
}

#endif
