// Wormcast on Tofino. This file composes only; tofino.p4 and tofino2.p4 include it. The wire is
// wire/SPEC.md, the names a controller uses are p4src/CONTRACT.md.

#include "../../p4src/shared/ids.p4"
#include "../../p4src/shared/sizes.p4"
#include "../../p4src/shared/types.p4"
#include "../../p4src/shared/headers.p4"
#include "metadata.p4"
#include "parser.p4"
#include "admission.p4"
#include "ports.p4"
#include "roles.p4"
#include "guard.p4"
#include "unicast.p4"
#include "replication.p4"
#include "edge.p4"
#include "punt.p4"
#include "priority.p4"
#include "drops.p4"
#include "egress_parser.p4"
#include "congestion.p4"
#include "trace.p4"
#include "deparser.p4"

// Purpose: decide where a frame goes. Reads and writes what its parts do.
// Tables:  those of its parts; counter `ingress_ports`.
control WormIngress(inout ingress_headers_t hdr,
                    inout ingress_metadata_t meta,
                    in ingress_intrinsic_metadata_t ig_intr_md,
                    in ingress_intrinsic_metadata_from_parser_t ig_prsr_md,
                    inout ingress_intrinsic_metadata_for_deparser_t ig_dprsr_md,
                    inout ingress_intrinsic_metadata_for_tm_t ig_tm_md) {
    @name(".ingress_ports") @id(0x12000002)
    Counter<bit<64>, port_t>(PORT_CELLS, CounterType_t.PACKETS_AND_BYTES) ingress_ports;

    EntryPort() entry_port;
    Admission() admission;
    Roles() roles;
    GuardEntry() guard_entry;
    Guard() guard;
    WormholeEntry() wormhole_entry;
    Wormhole() wormhole;
    Unicast() unicast;
    TreePorts() tree_ports;
    ReplicationIngress() replication;
    EdgeIngress() edge;
    PuntOut() punt_out;
    DevicePort() device_port;
    Priority() priority;
    Drops() drops;

    apply {
        if (meta.tree_pass == 1) {
            if (ig_prsr_md.parser_err != PARSER_ERROR_OK) {
                meta.tree_malformed = 1; // unless the second pass finds it truncated
            }
            ig_dprsr_md.resubmit_type = RESUBMIT_TREE;
        } else {
            bool is_plain = false;
            hdr.bridge.setValid();
            hdr.bridge.as_is = 0;
            entry_port.apply(hdr, ig_intr_md, ig_prsr_md);
            if (!hdr.recirculated.isValid()) {
                ingress_ports.count(hdr.bridge.entry_port[8:0]);
                guard_entry.apply(hdr, meta);
            }
            // Where a worm goes is made ready before it is known whether it goes anywhere.
            meta.hop_port = (port_t)hdr.hop.port;
            tree_ports.apply(hdr, meta);
            if (hdr.worm.isValid() && hdr.worm.kind == KIND_UNICAST) {
                wormhole_entry.apply(hdr, meta, ig_prsr_md);
            }
            roles.apply(hdr, meta);
            admission.apply(hdr, meta, ig_prsr_md);
            if (meta.drop_reason == drop_reason_t.NONE) {
                if (hdr.packet_out.isValid()) {
                    punt_out.apply(hdr, meta);
                } else if (hdr.worm.isValid()) {
                    // Below.
                } else if (hdr.ipv4.isValid()) {
                    edge.apply(hdr, meta);
                    is_plain = hdr.worm.isValid();
                } else if (hdr.ethernet.type == ETHERTYPE_LLDP) {
                    meta.out_port = CPU_PORT;
                    meta.unicast = true;
                    hdr.bridge.as_is = 1;
                } else {
                    meta.drop_reason = drop_reason_t.NOT_A_WORM;
                }
            }
            if (!hdr.recirculated.isValid() && meta.drop_reason == drop_reason_t.NONE
                && hdr.worm.isValid()) {
                guard.apply(hdr, meta, is_plain);
            }
            if (meta.drop_reason == drop_reason_t.NONE && hdr.worm.isValid()) {
                if (hdr.worm.kind == KIND_UNICAST) {
                    wormhole.apply(hdr, meta);
                }
                if (meta.drop_reason != drop_reason_t.NONE) {
                    // It ends here.
                } else if (meta.hold == 1) {
                    meta.out_port = (port_t)RECIRCULATE_PORT;
                    meta.unicast = true;
                    hdr.bridge.as_is = 1;
                } else if (hdr.worm.kind > KIND_CONTROL) {
                    meta.drop_reason = drop_reason_t.KIND_UNKNOWN;
                } else if (hdr.worm.kind == KIND_UNICAST || hdr.worm.kind == KIND_CONTROL
                           || hdr.hop.isValid()) {
                    unicast.apply(hdr, meta, ig_tm_md);
                } else {
                    replication.apply(hdr, meta, ig_tm_md);
                }
            }
            if (meta.hold == 0) {
                hdr.recirculated.setInvalid(); // egress makes it for port byte 254
            }
            if (meta.unicast) {
                device_port.apply(meta, ig_tm_md);
            }
            priority.apply(hdr, ig_tm_md);
            drops.apply(meta, ig_dprsr_md);
        }
    }
}

// Purpose: make a frame, or one copy of it, what leaves by its port.
// Tables:  those of ExitPort, EdgeEgress and Trace; counters `egress_ports`, and `filtered`: copies that
//          were made in vain and end here, by kind. They are no loss: a GROUP worm does not go
//          back where it came from, and MGID_TREE_ALL copies to ports a route leaves out.
control WormEgress(inout egress_headers_t hdr,
                   inout egress_metadata_t meta,
                   in egress_intrinsic_metadata_t eg_intr_md,
                   in egress_intrinsic_metadata_from_parser_t eg_prsr_md,
                   inout egress_intrinsic_metadata_for_deparser_t eg_dprsr_md,
                   inout egress_intrinsic_metadata_for_output_port_t eg_oport_md) {
    @name(".egress_ports") @id(0x12000003)
    Counter<bit<64>, port_t>(PORT_CELLS, CounterType_t.PACKETS_AND_BYTES) egress_ports;
    @name(".filtered") @id(0x12000005)
    Counter<bit<64>, bit<4>>(KIND_CELLS, CounterType_t.PACKETS) filtered;

    ExitPort() exit_port;
    ReplicationEgress() replication;
    EdgeEgress() edge;
    Congestion() congestion;
    Trace() trace;
    PuntIn() punt_in;

    apply {
        bool wanted = true;
        exit_port.apply(meta, eg_intr_md);
        if (meta.exit_port == CPU_PORT) {
            punt_in.apply(hdr);
        } else if (hdr.worm.isValid()) {
            if (meta.exit_port == (port_t)RECIRCULATE_PORT) {
                hdr.recirculated.setValid();
                hdr.recirculated.held = 0;
                hdr.recirculated.entry_port = hdr.bridge.entry_port;
                hdr.recirculated.entered_at = hdr.bridge.entered_at;
            } else {
                replication.apply(hdr, meta, eg_intr_md, wanted);
                if (wanted) {
                    congestion.apply(hdr, eg_intr_md);
                    edge.apply(hdr, meta);
                }
            }
            if (wanted) {
                trace.apply(hdr, meta, eg_intr_md, eg_prsr_md);
            }
        }
        if (wanted) {
            egress_ports.count(meta.exit_port);
        } else {
            filtered.count(hdr.worm.kind);
            eg_dprsr_md.drop_ctl = DROP_ALL;
        }
    }
}

Pipeline(WormIngressParser(),
         WormIngress(),
         WormIngressDeparser(),
         WormEgressParser(),
         WormEgress(),
         WormEgressDeparser()) pipe;

@pkginfo(name="wormcast", version="0.1.0")
Switch(pipe) main;
