// Purpose: copies. ReplicationIngress picks the multicast group of a TREE, GROUP or
//          BROADCAST worm, ReplicationEgress makes each copy what has to leave by its
//          port (SPEC.md §3).
// Cost:    two stages in ingress, two in egress. A copy's own branch is found by its parser.

#ifndef WORMCAST_REPLICATION_P4
#define WORMCAST_REPLICATION_P4

// What the first pass of a TREE says, before anything else is known of the worm.
//
// Reads:   hdr.tree. Writes: meta.tree_reason, meta.port_set.
control TreePorts(in ingress_headers_t hdr, inout ingress_metadata_t meta) {
    apply {
        if (hdr.tree.malformed != 0) {
            meta.tree_reason = drop_reason_t.TREE_MALFORMED;
        } else if (hdr.tree.beyond != 0) {
            meta.tree_reason = drop_reason_t.BEYOND_TARGET;
        } else if (hdr.tree.ports == 0) {
            meta.tree_reason = drop_reason_t.TREE_MALFORMED; // no branch
        }
        if (hdr.tree.ports[31:8] == 0) {
            meta.port_set = hdr.tree.ports[7:0];
        }
    }
}

// Reads:   hdr.worm, hdr.group, hdr.tree, meta.tree_reason, meta.port_set.
// Writes:  mcast_grp_a; meta.drop_reason, meta.lost.
// Tables:  tree_sets, groups.
control ReplicationIngress(inout ingress_headers_t hdr,
                           inout ingress_metadata_t meta,
                           inout ingress_intrinsic_metadata_for_tm_t ig_tm_md) {
    @name(".ingress.replicate") @id(0x01000003)
    action replicate(mgid_t mgid) {
        ig_tm_md.mcast_grp_a = mgid;
    }

    // Bit p of `low` stands for port p. Branches to ports that are not in it get no copy, and the
    // worm counts once as PORT_UNKNOWN. Ports from 32 up are beyond this target.
    @name(".ingress.replicate_filtered") @id(0x01000004)
    action replicate_filtered(bit<128> low, bit<128> high) {
        ig_tm_md.mcast_grp_a = MGID_TREE_ALL;
        meta.lost = hdr.tree.ports & ~low[31:0];
    }

    @name(".ingress.group_unknown") @id(0x01000009)
    action group_unknown() {
        meta.drop_reason = drop_reason_t.GROUP_UNKNOWN;
    }

    // One group for each set of the ports 0-7, so that no copy is made in vain. A route
    // that names other ports has key 0, which no entry has: the egress filter serves it.
    @name(".ingress.tree_sets") @id(0x02000003)
    table tree_sets {
        key = { meta.port_set: exact @name("port_set"); }
        actions = { replicate; @defaultonly replicate_filtered; }
        default_action = replicate_filtered(~128w0, ~128w0);
        size = (int)TREE_SETS_SIZE;
    }

    @name(".ingress.groups") @id(0x02000004)
    table groups {
        key = { hdr.group.number: exact @name("group"); }
        actions = { replicate; @defaultonly group_unknown; }
        const default_action = group_unknown();
        size = (int)GROUPS_SIZE;
    }

    apply {
        if (hdr.worm.kind == KIND_TREE) {
            if (meta.tree_reason != drop_reason_t.NONE) {
                meta.drop_reason = meta.tree_reason;
            } else {
                tree_sets.apply();
            }
        } else if (hdr.worm.kind == KIND_GROUP) {
            if (hdr.group.isValid()) {
                groups.apply();
            } else {
                meta.drop_reason = drop_reason_t.GROUP_MALFORMED;
            }
        } else {
            ig_tm_md.mcast_grp_a = MGID_BROADCAST;
        }
    }
}

// A copy may leave by another port than its own, so its instance says whose it is: the branch of a
// TREE, the neighbour that a GROUP worm goes to. It must not go back there, by whichever of several
// links it came. The port is compared too: a port that leads to a neighbour again may be in a group
// before it has its role.
//
// Reads:   hdr.worm, hdr.own, hdr.bridge, meta.exit_port, egress_rid.
// Writes:  hdr.end, hdr.worm.route_len; `wanted`: whether this copy leaves.
// Tables:  none.
control ReplicationEgress(inout egress_headers_t hdr,
                          inout egress_metadata_t meta,
                          in egress_intrinsic_metadata_t eg_intr_md,
                          out bool wanted) {
    apply {
        wanted = true;
        if (hdr.worm.kind == KIND_TREE) {
            if (!hdr.own.isValid()) {
                wanted = false;
            } else if (hdr.own.length == 0) {
                hdr.worm.route_len = 0;
                hdr.end.setInvalid(); // a host ends the branch
            } else {
                hdr.worm.route_len = hdr.own.length + 1; // the marker parsed here serves
            }
        } else if (hdr.worm.kind == KIND_GROUP) {
            if (meta.exit_port == hdr.bridge.entry_port[8:0]) {
                wanted = false;
            } else if (hdr.bridge.neighbour != NEIGHBOUR_NONE
                       && eg_intr_md.egress_rid == hdr.bridge.neighbour) {
                wanted = false;
            }
        }
    }
}

#endif
