// Purpose: copies. ReplicationIngress picks the multicast group of a TREE, GROUP or
//          BROADCAST worm, ReplicationEgress makes each copy what has to leave by its
//          port (SPEC.md §3).
// TNA:     tree_sets is a bitmap match of one stage. The search for the copy's branch
//          needs the branch number in the replica's rid, in place of 16 comparisons.

#ifndef WORMCAST_REPLICATION_P4
#define WORMCAST_REPLICATION_P4

// Reads:   hdr.worm, hdr.group, meta.tree_*.
// Writes:  mcast_grp; meta.drop_reason, meta.branch_lost.
// Tables:  tree_sets, groups.
control ReplicationIngress(inout headers_t hdr,
                           inout metadata_t meta,
                           inout standard_metadata_t standard_metadata) {
    bit<8> port_set = 0;
    bit<128> known_low = ~128w0;
    bit<128> known_high = ~128w0;

    @name(".ingress.replicate") @id(0x01000003)
    action replicate(mgid_t mgid) {
        standard_metadata.mcast_grp = mgid;
    }

    // Bit p of `low` stands for port p, bit p of `high` for port 128 + p. Branches to
    // ports that are in neither get no copy, and the worm counts once as PORT_UNKNOWN.
    @name(".ingress.replicate_filtered") @id(0x01000004)
    action replicate_filtered(bit<128> low, bit<128> high) {
        standard_metadata.mcast_grp = MGID_TREE_ALL;
        known_low = low;
        known_high = high;
    }

    @name(".ingress.group_unknown") @id(0x01000009)
    action group_unknown() {
        meta.drop_reason = drop_reason_t.GROUP_UNKNOWN;
    }

    // One group for each set of the ports 0-7, so that no copy is made in vain. A route
    // that names other ports has key 0, which no entry has: the egress filter serves it.
    @name(".ingress.tree_sets") @id(0x02000003)
    table tree_sets {
        key = { port_set: exact @name("port_set"); }
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
            if (meta.tree_malformed == 1) {
                meta.drop_reason = drop_reason_t.TREE_MALFORMED;
            } else {
                if (meta.tree_ports_low[127:8] == 0 && meta.tree_ports_high == 0) {
                    port_set = meta.tree_ports_low[7:0];
                }
                tree_sets.apply();
                if (meta.tree_ports_low & ~known_low != 0
                    || meta.tree_ports_high & ~known_high != 0) {
                    meta.branch_lost = 1;
                }
            }
        } else if (hdr.worm.kind == KIND_GROUP) {
            if (hdr.group.isValid()) {
                groups.apply();
            } else {
                meta.drop_reason = drop_reason_t.GROUP_MALFORMED;
            }
        } else {
            standard_metadata.mcast_grp = MGID_BROADCAST;
        }
    }
}

#define KEEP_BRANCH(i) \
    if (hdr.branches[i].isValid() && hdr.branches[i].port == branch) { \
        hdr.route = hdr.sub_routes[i]; \
        hdr.worm.route_len = hdr.branches[i].length; \
        wanted = true; \
    }

// A replica with backups may leave by another port than its own, so its instance says whose it is:
// the branch of a TREE, the neighbour that a GROUP worm goes to. It must not go back there, by
// whichever of several links it came. The port is compared too: a port that leads to a neighbour again
// may be in a group before it has its role.
//
// Reads:   hdr.worm, hdr.branches, hdr.sub_routes, meta.entry_port, meta.neighbour, egress_port,
//          egress_rid.
// Writes:  hdr.route, hdr.end, hdr.worm.route_len; `wanted`: whether this copy leaves.
// Tables:  none.
control ReplicationEgress(inout headers_t hdr,
                          in metadata_t meta,
                          in standard_metadata_t standard_metadata,
                          out bool wanted) {
    instance_t instance = standard_metadata.egress_rid;
    port_byte_t branch = (port_byte_t)standard_metadata.egress_port;

    apply {
        if (hdr.worm.kind == KIND_TREE) {
            wanted = false;
            if (instance[15:8] == INSTANCE_BRANCH[15:8]) {
                branch = instance[7:0];
            }
            if (meta.course == course_t.FOLLOW || meta.course == course_t.INTERRUPT) {
                wanted = meta.train_ports & ((port_set_t)1 << branch) != 0;
            } else KEEP_BRANCH(0) else KEEP_BRANCH(1) else KEEP_BRANCH(2) else KEEP_BRANCH(3)
            else KEEP_BRANCH(4) else KEEP_BRANCH(5) else KEEP_BRANCH(6) else KEEP_BRANCH(7)
            else KEEP_BRANCH(8) else KEEP_BRANCH(9) else KEEP_BRANCH(10) else KEEP_BRANCH(11)
            else KEEP_BRANCH(12) else KEEP_BRANCH(13) else KEEP_BRANCH(14) else KEEP_BRANCH(15)
            if (hdr.worm.route_len == 0) {
                hdr.end.setInvalid(); // a host ends the branch
            } else {
                hdr.worm.route_len = hdr.worm.route_len + 1; // the marker parsed here serves
            }
        } else {
            wanted = hdr.worm.kind != KIND_GROUP
                || (standard_metadata.egress_port != meta.entry_port
                    && (meta.neighbour == NEIGHBOUR_NONE || instance != meta.neighbour));
        }
    }
}

#endif
