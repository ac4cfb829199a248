// Purpose: what may enter by a port (SPEC.md §7): source against port, kind and route against
//          role, groups against members, rate. Each frame of a host is judged once, where it enters.
//          At every switch: where its route leads next. All before anything is done by the route, and
//          before the frame takes part in wormhole mode.
// Reads:   hdr.worm, hdr.hop, hdr.group, meta.entry_port, meta.tree_*; `is_plain`: the worm is a
//          class D packet of a plain host, made here.
// Writes:  meta.drop_reason.
// Tables:  guard, sources, open_groups, group_senders; meter `rates`.
// TNA:     three stages: guard; the worm against its entry, and sources; groups and the meter. It does
//          not look ahead.

#ifndef WORMCAST_GUARD_P4
#define WORMCAST_GUARD_P4

control Guard(in headers_t hdr,
              inout metadata_t meta,
              in bool is_plain) {
    bool judged = false;
    bit<16> owner = 0;
    bit<8> may_send = 0;
    bit<1> may_reinject = 0;
    bit<8> longest = 0;
    bit<8> tree_longest = 0;
    // Where no worm may go next, bit p for port p, and bit p - 128 for p >= 128.
    bool looks_ahead = false;
    bit<128> back_low = 0;
    bit<128> back_high = 0;
    bit<8> colour = METER_GREEN;

    // Nothing is looked at. So it is at every port of a switch whose guard is off.
    @name(".ingress.trust_port") @id(0x0100000b)
    action trust_port() {
    }

    // A switch is behind the port: it has judged what it sends. `low`, `high`: the ports that lead back
    // to it, or none where worms may turn.
    @name(".ingress.link_port") @id(0x01000016)
    action link_port(bit<128> low, bit<128> high) {
        looks_ahead = true;
        back_low = low;
        back_high = high;
    }

    // Bit k of `kinds`: worms of kind k from `host` itself. `transit`: it re-injects UNICAST worms
    // of others. `route_max`: port bytes of UNICAST, CONTROL and BROADCAST routes. `tree_max`: bytes
    // of TREE routes, and so twice their branches at most, all switches together.
    @name(".ingress.admit_host") @id(0x0100000c)
    action admit_host(bit<16> host, bit<8> kinds, bit<1> transit, bit<8> route_max,
                      bit<8> tree_max) {
        judged = true;
        owner = host;
        may_send = kinds;
        may_reinject = transit;
        longest = route_max;
        tree_longest = tree_max;
        looks_ahead = true;
        back_low = 128w1 << (bit<8>)meta.entry_port;
        // Wraps modulo 256, so ports below 128 shift the bit out.
        back_high = 128w1 << ((bit<8>)meta.entry_port - 128);
    }

    @name(".ingress.refuse_port") @id(0x0100000d)
    action refuse_port() {
        meta.drop_reason = drop_reason_t.HOST_UNKNOWN;
    }

    @name(".ingress.guard") @id(0x02000007)
    table guard {
        key = { meta.entry_port: exact @name("standard_metadata.ingress_port"); }
        actions = { trust_port; link_port; admit_host; @defaultonly refuse_port; }
        default_action = trust_port();
        size = (int)GUARD_SIZE;
    }

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
            meta.entry_port: exact @name("standard_metadata.ingress_port");
            hdr.group.number: exact @name("group");
        }
        actions = { sender_known; @defaultonly NoAction; }
        const default_action = NoAction();
        size = (int)GROUP_SENDERS_SIZE;
    }

    @name(".rates") @id(0x14000001)
    meter(PORT_CELLS, MeterType.bytes) rates;

    apply {
        guard.apply();
        if (judged) {
            if (!is_plain) {
                if (hdr.worm.source != owner) {
                    if (may_reinject == 0 || hdr.worm.kind != KIND_UNICAST
                        || !sources.apply().hit) {
                        meta.drop_reason = drop_reason_t.SOURCE_REFUSED;
                    }
                } else if ((may_send >> hdr.worm.kind) & 1 == 0) {
                    meta.drop_reason = drop_reason_t.KIND_REFUSED;
                }
                if (hdr.worm.kind == KIND_TREE) {
                    longest = tree_longest;
                }
                if (meta.drop_reason == drop_reason_t.NONE && hdr.worm.kind != KIND_GROUP
                    && hdr.worm.route_len > longest) {
                    meta.drop_reason = drop_reason_t.ROUTE_TOO_LONG;
                }
            }
        }
        if (looks_ahead && meta.drop_reason == drop_reason_t.NONE) {
            if (hdr.hop.isValid()) {
                if (hdr.hop.port == RECIRCULATE_PORT
                    || ((port_t)hdr.hop.port == meta.entry_port
                        && (back_low != 0 || back_high != 0))) {
                    meta.drop_reason = drop_reason_t.ROUTE_REFUSED;
                }
            } else if (hdr.worm.kind == KIND_TREE && meta.tree_malformed == 0
                       && (meta.tree_ports_low & back_low != 0
                           || meta.tree_ports_high & back_high != 0)) {
                meta.drop_reason = drop_reason_t.ROUTE_REFUSED;
            }
        }
        if (judged) {
            if (meta.drop_reason == drop_reason_t.NONE && hdr.group.isValid()) {
                if (!open_groups.apply().hit) {
                    if (!group_senders.apply().hit) {
                        meta.drop_reason = drop_reason_t.GROUP_REFUSED;
                    }
                }
            }
            if (meta.drop_reason == drop_reason_t.NONE) {
                rates.execute_meter((bit<32>)meta.entry_port, colour);
                if (colour == METER_RED) {
                    meta.drop_reason = drop_reason_t.RATE_EXCEEDED;
                }
            }
        }
    }
}

#endif
