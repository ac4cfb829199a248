// Purpose: what may enter by a port (SPEC.md §7): source against port, kind and route against
//          role, groups against members, rate. Each frame is judged once, where it enters, before
//          its route is looked at.
// Cost:    one stage behind entry_ports for the entry; four behind the frame: the worm against it, and
//          sources; groups; the meter; its colour. group_senders takes the most memory of all tables.
//
// A condition of the chip compares fields with constants alone, and nothing shifts by a field. So
// the action of `guard` leaves differences, and each bit of `kinds` is asked for by itself.

#ifndef WORMCAST_GUARD_P4
#define WORMCAST_GUARD_P4

// Purpose: what the port says of worms that enter by it. Beside all that looks at the frame itself, so
//          that there are stages enough.
// Reads:   hdr.worm, hdr.bridge.entry_port. Writes: meta.judged, .refused, .foreign, .may_send,
//          .may_reinject, .beyond_longest.
// Tables:  guard.
control GuardEntry(in ingress_headers_t hdr, inout ingress_metadata_t meta) {
    bit<8> longest = 0;      // port bytes
    bit<8> tree_longest = 0; // bytes of a TREE route

    // Nothing is looked at. So it is at every port of a switch whose guard is off.
    @name(".ingress.trust_port") @id(0x0100000b)
    action trust_port() {
    }

    // A switch is behind the port: it has judged what it sends. Where its routes lead is not looked at
    // here: Tofino's ingress has no stage left for it.
    @name(".ingress.link_port") @id(0x01000016)
    action link_port(bit<128> low, bit<128> high) {
    }

    // Bit k of `kinds`: worms of kind k from `host` itself. `transit`: it re-injects UNICAST worms
    // of others. `route_max`: port bytes of UNICAST, CONTROL and BROADCAST routes. `tree_max`: bytes
    // of TREE routes, and so twice their branches at most, all switches together.
    @name(".ingress.admit_host") @id(0x0100000c)
    action admit_host(bit<16> host, bit<8> kinds, bit<1> transit, bit<8> route_max,
                      bit<8> tree_max) {
        meta.judged = true;
        meta.foreign = hdr.worm.source ^ host;
        meta.may_send = kinds;
        meta.may_reinject = transit;
        longest = route_max; // nothing is subtracted that comes from an entry
        tree_longest = tree_max;
    }

    @name(".ingress.refuse_port") @id(0x0100000d)
    action refuse_port() {
        meta.refused = true;
    }

    @name(".ingress.guard") @id(0x02000007)
    table guard {
        key = { hdr.bridge.entry_port[8:0]: exact @name("standard_metadata.ingress_port"); }
        actions = { trust_port; link_port; admit_host; @defaultonly refuse_port; }
        default_action = trust_port();
        size = (int)GUARD_SIZE;
    }

    // A table, so that p4c does not put the difference into a condition, which compares alone.
    @hidden
    action measure_route() {
        meta.beyond_longest = hdr.worm.route_len |-| longest;
    }

    @hidden
    action measure_tree() {
        meta.beyond_longest = hdr.worm.route_len |-| tree_longest;
    }

    @hidden
    table length {
        key = { hdr.worm.kind: exact; }
        actions = { measure_route; measure_tree; }
        const default_action = measure_route();
        const entries = { KIND_TREE: measure_tree(); }
        size = 1;
    }

    apply {
        guard.apply();
        length.apply();
    }
}

// Reads:   hdr.worm, hdr.group, hdr.bridge.entry_port, what GuardEntry wrote; `is_plain`: the worm is a
//          class D packet of a plain host, made here.
// Writes:  meta.drop_reason.
// Tables:  sources, open_groups, group_senders; meter `rates`.
control Guard(in ingress_headers_t hdr,
              inout ingress_metadata_t meta,
              in bool is_plain) {
    bit<8> colour = (bit<8>)MeterColor_t.GREEN;

    @name(".ingress.source_known") @id(0x0100000e)
    action source_known() {
    }

    // Whose worms may be in transit. Ids of hosts are dense, so few masks hold them all.
    @name(".ingress.sources") @id(0x02000008)
    table sources {
        key = { hdr.worm.source: ternary @name("source"); }
        actions = { source_known; @defaultonly NoAction; }
        const default_action = NoAction();
        size = (int)SOURCES_SIZE;
    }

    @name(".ingress.group_open") @id(0x0100000f)
    action group_open() {
    }

    // Everybody may send to these; to others members alone.
    @name(".ingress.open_groups") @id(0x02000009)
    table open_groups {
        key = { hdr.group.number: exact @name("group"); }
        actions = { group_open; @defaultonly NoAction; }
        const default_action = NoAction();
        size = (int)OPEN_GROUPS_SIZE;
    }

    @name(".ingress.sender_known") @id(0x01000010)
    action sender_known() {
    }

    @name(".ingress.group_senders") @id(0x0200000a)
    table group_senders {
        key = {
            hdr.bridge.entry_port[8:0]: exact @name("standard_metadata.ingress_port");
            hdr.group.number: exact @name("group");
        }
        actions = { sender_known; @defaultonly NoAction; }
        const default_action = NoAction();
        size = (int)GROUP_SENDERS_SIZE;
    }

    @name(".rates") @id(0x14000001)
    Meter<port_t>(PORT_CELLS, MeterType_t.BYTES) rates;

    apply {
        if (meta.refused) {
            meta.drop_reason = drop_reason_t.HOST_UNKNOWN;
        } else if (meta.judged) {
            if (!is_plain) {
                if (meta.foreign != 0) {
                    if (meta.may_reinject == 0 || hdr.worm.kind != KIND_UNICAST) {
                        meta.drop_reason = drop_reason_t.SOURCE_REFUSED;
                    } else if (!sources.apply().hit) {
                        meta.drop_reason = drop_reason_t.SOURCE_REFUSED;
                    }
                } else if (hdr.worm.kind[3:3] == 1
                           || (hdr.worm.kind == 0 && meta.may_send[0:0] == 0)
                           || (hdr.worm.kind == 1 && meta.may_send[1:1] == 0)
                           || (hdr.worm.kind == 2 && meta.may_send[2:2] == 0)
                           || (hdr.worm.kind == 3 && meta.may_send[3:3] == 0)
                           || (hdr.worm.kind == 4 && meta.may_send[4:4] == 0)
                           || (hdr.worm.kind == 5 && meta.may_send[5:5] == 0)
                           || (hdr.worm.kind == 6 && meta.may_send[6:6] == 0)
                           || (hdr.worm.kind == 7 && meta.may_send[7:7] == 0)) {
                    meta.drop_reason = drop_reason_t.KIND_REFUSED;
                }
                if (meta.drop_reason == drop_reason_t.NONE && hdr.worm.kind != KIND_GROUP
                    && meta.beyond_longest != 0) {
                    meta.drop_reason = drop_reason_t.ROUTE_TOO_LONG;
                }
            }
            if (meta.drop_reason == drop_reason_t.NONE && hdr.group.isValid()) {
                if (!open_groups.apply().hit) {
                    if (!group_senders.apply().hit) {
                        meta.drop_reason = drop_reason_t.GROUP_REFUSED;
                    }
                }
            }
            if (meta.drop_reason == drop_reason_t.NONE) {
                colour = rates.execute(hdr.bridge.entry_port[8:0]);
                if (colour == (bit<8>)MeterColor_t.RED) {
                    meta.drop_reason = drop_reason_t.RATE_EXCEEDED;
                }
            }
        }
    }
}

#endif
