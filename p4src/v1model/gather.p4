// Purpose: gather ACKs on their way to the origin (SPEC.md §3.2). A switch keeps what each branch of a
//          tree has acknowledged, and says the least of it further up. Nothing that it does not know
//          for certain counts as acknowledged: registers count for one life alone (group, origin, epoch
//          and stream), and only branches that have spoken in it are known. Registers that are 0 after
//          a restart know no branch.
// Reads:   hdr.gather, hdr.hop, hdr.worm.source; meta.entry_port; registers.
// Writes:  hdr.gather, hdr.hop, hdr.worm.source, .route_len; meta.course, .drop_reason; registers.
// Tables:  gather. Without entries nothing is gathered.
// TNA:     one register array for each branch, of pairs, and a minimum in four stages; the life of a
//          slot has to be hashed to 32 bits.

#ifndef WORMCAST_GATHER_P4
#define WORMCAST_GATHER_P4

// By slot. Life: group, origin, epoch, stream, and bit b for branch b that has spoken in this life.
// Told: 1 and what was said further up last, or 0.
@name(".gather_life") @id(0x16000001) register<bit<112>>(GATHER_SLOTS) gather_life;
@name(".gather_told") @id(0x16000002) register<bit<65>>(GATHER_SLOTS) gather_told;
// By slot and branch.
@name(".gather_cumulative") @id(0x16000003) register<bit<32>>(GATHER_CELLS) gather_cumulative;
@name(".gather_stable") @id(0x16000004) register<bit<32>>(GATHER_CELLS) gather_stable;

// Numbers are modulo 2^32: one is behind another if the difference is in the upper half (RFC 1982).
#define BEHIND(a, b) ((a) - (b) >= 0x80000000)

#define LEAST_WITH(b) \
    if (last >= b) { \
        gather_cumulative.read(cell, base + b); \
        if (BEHIND(cell, least_cumulative)) { least_cumulative = cell; } \
        gather_stable.read(cell, base + b); \
        if (BEHIND(cell, least_stable)) { least_stable = cell; } \
    }

// A worm GATHER whose route ends at this switch. What goes on gets a route of one port.
control Gather(inout headers_t hdr, inout metadata_t meta) {
    bit<32> slot = 0;
    bit<32> branch = 0;
    bit<4> last = 0;
    bit<32> epoch = 0;
    port_byte_t up = 0;
    bit<16> from_source = 0;
    bit<16> as_source = 0;
    // A request names the port that it asks about; anything else is from the port it came in by.
    port_t about = meta.entry_port;

    // The port leads to branch `branch_number` of the tree that has `slot` here, whose branches are
    // 0 to `last_branch`; `up_port` leads to the origin. An epoch has one set of branches for ever.
    // `from_id` is behind the port, a host or a switch; this switch is `as_id` to the next one. So
    // nothing counts for a branch that comes by a cable in the wrong place.
    @name(".ingress.gather_branch") @id(0x01000011)
    action gather_branch(@name("slot") bit<10> slot_number, @name("branch") bit<4> branch_number,
                         @name("last") bit<4> last_branch, @name("epoch") bit<32> of_epoch,
                         @name("up") port_byte_t up_port, @name("from") bit<16> from_id,
                         @name("as") bit<16> as_id) {
        slot = (bit<32>)slot_number;
        branch = (bit<32>)branch_number;
        last = last_branch;
        epoch = of_epoch;
        up = up_port;
        from_source = from_id;
        as_source = as_id;
    }

    @name(".ingress.gather_unknown") @id(0x01000012)
    action gather_unknown() {
        meta.drop_reason = drop_reason_t.GATHER_UNKNOWN;
    }

    @name(".ingress.gather") @id(0x0200000d)
    table gather {
        key = {
            hdr.gather.group: exact @name("group");
            hdr.gather.origin: exact @name("origin");
            about: exact @name("port");
        }
        actions = { gather_branch; @defaultonly gather_unknown; }
        const default_action = gather_unknown();
        size = (int)GATHER_SIZE;
    }

    apply {
        if (hdr.gather.op == GATHER_REQUEST) {
            about = (port_t)hdr.gather.port;
        }
        gather.apply();
        if (meta.drop_reason != drop_reason_t.NONE) {
            // No entry: the member's ACKs come by hosts.
        } else if (hdr.gather.op != GATHER_REQUEST && hdr.worm.source != from_source) {
            meta.drop_reason = drop_reason_t.GATHER_UNKNOWN;
        } else if (hdr.gather.op == GATHER_ANSWER) {
            hdr.hop.setValid();
        } else if (hdr.gather.op != GATHER_ACK && hdr.gather.op != GATHER_REQUEST) {
            meta.drop_reason = drop_reason_t.GATHER_UNKNOWN;
        } else if (hdr.gather.epoch != epoch) {
            meta.drop_reason = drop_reason_t.GATHER_STALE;
        } else {
            bit<112> life;
            gather_life.read(life, slot);
            bit<16> known = life[15:0];
            bit<32> base = slot << 4;
            bit<32> cell = base + branch;
            bit<16> self = 16w1 << (bit<8>)branch;
            bit<32> cumulative;
            bit<32> stable;
            bit<65> told;
            gather_cumulative.read(cumulative, cell);
            gather_stable.read(stable, cell);
            gather_told.read(told, slot);
            bool is_life = known != 0
                && life[111:48] == hdr.gather.group ++ hdr.gather.origin ++ hdr.gather.epoch;
            bool is_stream = is_life && life[47:16] == hdr.gather.stream;
            if (hdr.gather.op == GATHER_REQUEST) {
                // Of another stream nothing is known.
                hdr.gather.op = GATHER_ANSWER;
                hdr.gather.flags = 0;
                hdr.gather.cumulative = 0;
                hdr.gather.stable = 0;
                if (is_stream && known & self != 0) {
                    hdr.gather.flags = GATHER_KNOWN;
                    hdr.gather.cumulative = cumulative;
                    hdr.gather.stable = stable;
                }
                hdr.hop.setValid();
            } else if (is_life && BEHIND(hdr.gather.stream, life[47:16])) {
                meta.drop_reason = drop_reason_t.GATHER_STALE;
            } else {
                if (!is_stream) {
                    // A new life: what was known belongs to another.
                    known = 0;
                    told = 0;
                    gather_told.write(slot, 0);
                }
                // What comes late says less than what is known, and what is known stays true.
                if (known & self == 0 || !BEHIND(hdr.gather.cumulative, cumulative)) {
                    cumulative = hdr.gather.cumulative;
                    gather_cumulative.write(cell, cumulative);
                }
                if (known & self == 0 || !BEHIND(hdr.gather.stable, stable)) {
                    stable = hdr.gather.stable;
                    gather_stable.write(cell, stable);
                }
                known = known | self;
                gather_life.write(slot, hdr.gather.group ++ hdr.gather.origin ++ hdr.gather.epoch
                                        ++ hdr.gather.stream ++ known);
                meta.course = course_t.ABSORB;
                if (~known & (16w0xffff >> (4w15 - last)) == 0) {
                    bit<32> least_cumulative = cumulative;
                    bit<32> least_stable = stable;
                    LEAST_WITH(0) LEAST_WITH(1) LEAST_WITH(2) LEAST_WITH(3)
                    LEAST_WITH(4) LEAST_WITH(5) LEAST_WITH(6) LEAST_WITH(7)
                    LEAST_WITH(8) LEAST_WITH(9) LEAST_WITH(10) LEAST_WITH(11)
                    LEAST_WITH(12) LEAST_WITH(13) LEAST_WITH(14) LEAST_WITH(15)
                    bit<65> says = 1w1 ++ least_cumulative ++ least_stable;
                    // A member repeats with REFRESH what seems to be lost: it is said again.
                    if (says != told || hdr.gather.flags & GATHER_REFRESH != 0) {
                        gather_told.write(slot, says);
                        hdr.gather.cumulative = least_cumulative;
                        hdr.gather.stable = least_stable;
                        meta.course = course_t.ROUTE;
                        hdr.hop.setValid();
                    }
                }
            }
        }
        if (hdr.hop.isValid()) {
            hdr.hop.port = up;
            hdr.worm.source = as_source;
            hdr.worm.route_len = 1;
        }
    }
}

#endif
