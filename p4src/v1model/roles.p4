// Purpose: what the port leads to by which a frame entered the switch.
// Reads:   meta.entry_port.
// Writes:  meta.port_role, meta.neighbour.
// Tables:  port_roles.
// TNA:     one stage, beside admission.

#ifndef WORMCAST_ROLES_P4
#define WORMCAST_ROLES_P4

control Roles(inout metadata_t meta) {
    @name(".ingress.role") @id(0x01000002)
    action role(@name("role") bit<8> leads_to, @name("neighbour") instance_t neighbour) {
        meta.port_role = leads_to;
        meta.neighbour = neighbour;
    }

    @name(".ingress.port_roles") @id(0x02000002)
    table port_roles {
        key = { meta.entry_port: exact @name("standard_metadata.ingress_port"); }
        actions = { role; }
        const default_action = role(ROLE_NONE, NEIGHBOUR_NONE);
        size = (int)PORT_ROLES_SIZE;
    }

    apply {
        port_roles.apply();
    }
}

#endif
