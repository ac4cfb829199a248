// Purpose: what the port leads to by which a frame entered the switch.
// Reads:   hdr.bridge.entry_port.
// Writes:  meta.port_role, hdr.bridge.neighbour.
// Tables:  port_roles.
// Cost:    one stage, beside admission.

#ifndef WORMCAST_ROLES_P4
#define WORMCAST_ROLES_P4

control Roles(inout ingress_headers_t hdr, inout ingress_metadata_t meta) {
    @name(".ingress.role") @id(0x01000002)
    action role(@name("role") bit<8> leads_to, @name("neighbour") instance_t neighbour) {
        meta.port_role = leads_to;
        hdr.bridge.neighbour = neighbour;
    }

    @name(".ingress.port_roles") @id(0x02000002)
    table port_roles {
        key = { hdr.bridge.entry_port[8:0]: exact @name("standard_metadata.ingress_port"); }
        actions = { role; }
        const default_action = role(ROLE_NONE, NEIGHBOUR_NONE);
        size = (int)PORT_ROLES_SIZE;
    }

    apply {
        port_roles.apply();
    }
}

#endif
