// Wormcast on v1model (BMv2 simple_switch, wormcast-switch). This file composes only;
// the wire is wire/SPEC.md, the names a controller uses are p4src/CONTRACT.md.

#include <core.p4>
#include <v1model.p4>

#include "../shared/ids.p4"
#include "../shared/sizes.p4"
#include "../shared/types.p4"
#include "../shared/headers.p4"
#include "metadata.p4"
#include "parser.p4"
#include "checksum.p4"
#include "admission.p4"
#include "roles.p4"
#include "guard.p4"
#include "channels.p4"
#include "absorb.p4"
#include "claim.p4"
#include "signals.p4"
#include "interrupt.p4"
#include "wormhole.p4"
#include "gather.p4"
#include "unicast.p4"
#include "replication.p4"
#include "edge.p4"
#include "congestion.p4"
#include "trace.p4"
#include "punt.p4"
#include "drops.p4"
#include "deparser.p4"

// Purpose: decide where a frame goes. Reads and writes what its parts do.
// Tables:  those of Roles, Guard, Gather, Unicast, ReplicationIngress and EdgeIngress; counter `ingress_ports`.
// TNA:     six stages: admission and role, class D, guard (two), route or group, drops.
control WormIngress(inout headers_t hdr,
                    inout metadata_t meta,
                    inout standard_metadata_t standard_metadata) {
    @name(".ingress_ports") @id(0x12000002)
    counter(PORT_CELLS, CounterType.packets_and_bytes) ingress_ports;

    Admission() admission;
    Roles() roles;
    Guard() guard;
    Wormhole() wormhole;
    WormholeAfter() wormhole_after;
    Reinject() reinject;
    Gather() gather;
    Unicast() unicast;
    ReplicationIngress() replication;
    EdgeIngress() edge;
    PuntOut() punt_out;
    PuntRate() punt_rate;
    Drops() drops;

    apply {
        bool enters = standard_metadata.instance_type != INSTANCE_RECIRCULATED;
        if (enters) {
            meta.entry_port = standard_metadata.ingress_port;
            meta.entered_at = standard_metadata.ingress_global_timestamp;
            meta.now = standard_metadata.ingress_global_timestamp;
            ingress_ports.count((bit<32>)meta.entry_port);
        }
        bool is_plain = false;
        bool copied = false;
        roles.apply(meta);
        admission.apply(hdr, meta, standard_metadata);
        if (meta.drop_reason == drop_reason_t.NONE) {
            if (hdr.packet_out.isValid()) {
                punt_out.apply(hdr, standard_metadata);
            } else if (hdr.worm.isValid()) {
                // Below.
            } else if (hdr.ipv4.isValid()) {
                edge.apply(hdr, meta, standard_metadata);
                is_plain = hdr.worm.isValid();
            } else if (hdr.ethernet.type == ETHERTYPE_LLDP) {
                standard_metadata.egress_spec = CPU_PORT;
            } else {
                meta.drop_reason = drop_reason_t.NOT_A_WORM;
            }
        }
        if (enters && meta.drop_reason == drop_reason_t.NONE && !hdr.packet_out.isValid()
            && standard_metadata.egress_spec == CPU_PORT) {
            punt_rate.apply(meta);
        }
        if (meta.drop_reason != drop_reason_t.NONE && meta.absorbed == 1) {
            reinject.apply(hdr, meta); // it ends here
        }
        // Before wormhole mode: what may not enter holds no channel.
        if (enters && meta.drop_reason == drop_reason_t.NONE && hdr.worm.isValid()) {
            guard.apply(hdr, meta, is_plain);
        }
        if (meta.drop_reason == drop_reason_t.NONE && hdr.worm.isValid()) {
            wormhole.apply(hdr, meta, standard_metadata);
            if (meta.drop_reason == drop_reason_t.NONE && hdr.worm.kind == KIND_GATHER
                && !hdr.hop.isValid()) {
                gather.apply(hdr, meta);
            }
            if (meta.drop_reason != drop_reason_t.NONE || meta.course != course_t.ROUTE) {
                // It is decided.
            } else if (hdr.worm.kind > KIND_GATHER) {
                meta.drop_reason = drop_reason_t.KIND_UNKNOWN;
            } else if (hdr.worm.kind == KIND_UNICAST || hdr.worm.kind == KIND_CONTROL
                       || hdr.hop.isValid()) { // a GATHER worm too
                unicast.apply(hdr, meta, standard_metadata);
            } else {
                copied = true;
            }
        }
        if (copied) {
            replication.apply(hdr, meta, standard_metadata);
        }
        if (meta.has_ticket == 1 && meta.course == course_t.ROUTE) {
            wormhole_after.apply(meta, standard_metadata);
        }
        drops.apply(meta, standard_metadata);
    }
}

// Purpose: make a frame, or one copy of it, what leaves by its port.
// Tables:  those of Trace and EdgeEgress; counters `egress_ports`, and `filtered`: copies that were
//          made in vain and end here, by kind. They are no loss: a GROUP worm does not go
//          back where it came from, and MGID_TREE_ALL copies to ports a route leaves out.
// TNA:     two stages.
control WormEgress(inout headers_t hdr,
                   inout metadata_t meta,
                   inout standard_metadata_t standard_metadata) {
    @name(".egress_ports") @id(0x12000003)
    counter(PORT_CELLS, CounterType.packets_and_bytes) egress_ports;
    @name(".filtered") @id(0x12000005)
    counter(KIND_CELLS, CounterType.packets) filtered;

    ReplicationEgress() replication;
    EdgeEgress() edge;
    Congestion() congestion;
    Trace() trace;
    GoRound() go_round;
    SignalsOut() signals_out;
    EndFragment() end_fragment;
    PuntIn() punt_in;

    apply {
        bool wanted = true;
        if (standard_metadata.egress_port == CPU_PORT) {
            punt_in.apply(hdr, meta);
        } else if (hdr.worm.isValid()) {
            if (standard_metadata.egress_port == (port_t)RECIRCULATE_PORT) {
                go_round.apply(hdr, meta, standard_metadata);
            } else if (meta.signal != 0) {
                signals_out.apply(hdr, meta);
            } else {
                replication.apply(hdr, meta, standard_metadata, wanted);
                if (wanted && meta.course == course_t.INTERRUPT) {
                    end_fragment.apply(hdr);
                }
                if (wanted) {
                    congestion.apply(hdr, standard_metadata);
                    edge.apply(hdr, standard_metadata);
                }
            }
            if (wanted && meta.course != course_t.HOLD && meta.course != course_t.INTERRUPT) {
                trace.apply(hdr, meta, standard_metadata);
            }
        }
        if (wanted) {
            egress_ports.count((bit<32>)standard_metadata.egress_port);
        } else {
            filtered.count((bit<32>)hdr.worm.kind);
            mark_to_drop(standard_metadata);
        }
    }
}

@pkginfo(name="wormcast", version="0.1.0")
V1Switch(WormParser(),
         WormVerifyChecksum(),
         WormIngress(),
         WormEgress(),
         WormComputeChecksum(),
         WormDeparser()) main;
