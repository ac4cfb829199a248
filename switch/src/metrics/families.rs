//! A snapshot as families of numbers. The names are an interface: they stay as they are.

use super::exposition::{Family, Kind};
use super::lossless::lossless_families;
use super::publishing::{event_log_families, notification_families};
use wormcast_switch_dataplane::{PortSnapshot, Snapshot};
use wormcast_switch_p4runtime::RequestCount;

pub fn device_families(device_id: u64, snapshot: &Snapshot) -> Vec<Family> {
    let device = device_id.to_string();
    let mut families = Vec::new();
    switch_families(&device, snapshot, &mut families);
    notification_families(&device, snapshot, &mut families);
    event_log_families(&device, snapshot, &mut families);
    pipeline_families(&device, snapshot, &mut families);
    table_families(&device, snapshot, &mut families);
    port_families(&device, snapshot, &mut families);
    queue_families(&device, snapshot, &mut families);
    lossless_families(&device, snapshot, &mut families);
    families
}

/// P4Runtime calls that have ended, by method and code.
pub fn request_families(counts: &[RequestCount]) -> Vec<Family> {
    let mut family = Family::new(
        Kind::Counter,
        "wormcast_switch_p4runtime_requests_total",
        "P4Runtime and gNMI calls that have ended, by method and status code.",
    );
    for count in counts {
        let labels = [("method", count.method), ("code", count.code)];
        family.add(&labels, count.requests as f64);
    }
    vec![family]
}

fn switch_families(device: &str, snapshot: &Snapshot, families: &mut Vec<Family>) {
    let mut program = Family::new(
        Kind::Gauge,
        "wormcast_switch_program_info",
        "1; the label names the program that is installed.",
    );
    if let Some(name) = &snapshot.program {
        program.add(&[("device", device), ("program", name)], 1.0);
    }
    families.push(program);
    let mut one = |kind, name, help, value: f64| {
        let mut family = Family::new(kind, name, help);
        family.add(&[("device", device)], value);
        families.push(family);
    };
    one(
        Kind::Gauge,
        "wormcast_switch_uptime_seconds",
        "Seconds since the switch started.",
        snapshot.uptime_us as f64 / 1e6,
    );
    one(
        Kind::Counter,
        "wormcast_switch_no_program_frames_total",
        "Frames dropped because no program was installed.",
        snapshot.no_program as f64,
    );
    one(
        Kind::Counter,
        "wormcast_switch_program_replaced_packets_total",
        "Packets dropped because they waited in a queue when the program was replaced.",
        snapshot.program_replaced as f64,
    );
    one(
        Kind::Counter,
        "wormcast_switch_packet_outs_total",
        "Frames a controller sent into the pipeline.",
        snapshot.packet_outs as f64,
    );
    one(
        Kind::Counter,
        "wormcast_switch_stream_messages_refused_total",
        "Messages of controllers' streams that were refused.",
        snapshot.stream_messages_refused as f64,
    );
    one(
        Kind::Counter,
        "wormcast_switch_controller_messages_total",
        "Packet-ins and digests handed to the server.",
        snapshot.packet_ins as f64,
    );
    one(
        Kind::Gauge,
        "wormcast_switch_controller_queue_messages",
        "Packet-ins and digests that wait for the server.",
        snapshot.to_controller_waiting as f64,
    );
    one(
        Kind::Gauge,
        "wormcast_switch_controller_queue_messages_limit",
        "Packet-ins and digests that may wait for the server.",
        snapshot.to_controller_waiting_max as f64,
    );
    one(
        Kind::Counter,
        "wormcast_switch_trace_records_total",
        "Records of packet traces made.",
        snapshot.trace_records as f64,
    );
    one(
        Kind::Counter,
        "wormcast_switch_trace_records_lost_total",
        "Records of packet traces that their readers were too slow for.",
        snapshot.trace_records_lost as f64,
    );
    let mut lost = Family::new(
        Kind::Counter,
        "wormcast_switch_controller_messages_lost_total",
        "Packet-ins and digests that reached no controller: the queue to the server was full, \
         none was primary, the primary did not read them, or they were shorter than the header \
         of packet-ins.",
    );
    for (reason, value) in [
        ("queue_full", snapshot.to_controller_full),
        ("no_primary", snapshot.packet_ins_no_primary),
        ("stream_full", snapshot.packet_ins_stream_full),
        ("too_short", snapshot.packet_ins_too_short),
    ] {
        lost.add(&[("device", device), ("reason", reason)], value as f64);
    }
    families.push(lost);
}

/// Names in [`Snapshot::pipeline`] that are packets; others are drops or events.
const PACKETS: [(&str, &str, &str); 8] = [
    (
        "received",
        "wormcast_switch_received_packets_total",
        "Packets handed to ingress from outside.",
    ),
    (
        "transmitted",
        "wormcast_switch_transmitted_packets_total",
        "Packets that left egress for a port.",
    ),
    (
        "enqueued",
        "wormcast_switch_enqueued_packets_total",
        "Packets handed to the egress queues, each copy once.",
    ),
    (
        "replicated",
        "wormcast_switch_replicated_packets_total",
        "Copies made by multicast groups.",
    ),
    (
        "cloned_ingress",
        "wormcast_switch_cloned_ingress_packets_total",
        "Copies cloned from ingress to egress.",
    ),
    (
        "cloned_egress",
        "wormcast_switch_cloned_egress_packets_total",
        "Copies cloned from egress to egress.",
    ),
    (
        "resubmitted",
        "wormcast_switch_resubmitted_packets_total",
        "Packets sent through ingress again before egress.",
    ),
    (
        "recirculated",
        "wormcast_switch_recirculated_packets_total",
        "Packets sent through ingress again after egress.",
    ),
];

fn pipeline_families(device: &str, snapshot: &Snapshot, families: &mut Vec<Family>) {
    let mut drops = Family::new(
        Kind::Counter,
        "wormcast_switch_dropped_packets_total",
        "Packets that ended in the pipeline without being sent, by cause.",
    );
    let mut events = Family::new(
        Kind::Counter,
        "wormcast_switch_events_total",
        "Things that happened to packets without ending them, by name.",
    );
    for (name, &value) in &snapshot.pipeline {
        let value = value as f64;
        let packets = PACKETS.iter().find(|(known, ..)| known == name);
        if let Some((_, name, help)) = packets {
            let mut family = Family::new(Kind::Counter, name, help);
            family.add(&[("device", device)], value);
            families.push(family);
        } else if let Some(cause) = name.strip_prefix("drop.") {
            drops.add(&[("device", device), ("cause", cause)], value);
        } else {
            events.add(&[("device", device), ("event", name)], value);
        }
    }
    let mut port_drops = Family::new(
        Kind::Counter,
        "wormcast_switch_port_dropped_packets_total",
        "Packets that came in by a port and ended in the pipeline without being sent, by cause.",
    );
    for drop in &snapshot.drops_by_port {
        let port = drop
            .port
            .map_or("other".to_owned(), |port| port.to_string());
        let labels = [("device", device), ("port", &port), ("cause", drop.cause)];
        port_drops.add(&labels, drop.packets as f64);
    }
    families.extend([drops, port_drops, events]);
}

fn table_families(device: &str, snapshot: &Snapshot, families: &mut Vec<Family>) {
    let mut entries = Family::new(
        Kind::Gauge,
        "wormcast_switch_table_entries",
        "Entries of a table.",
    );
    let mut size = Family::new(
        Kind::Gauge,
        "wormcast_switch_table_size_entries",
        "Entries the program asks room for in a table.",
    );
    let mut hits = Family::new(
        Kind::Counter,
        "wormcast_switch_table_hits_total",
        "Packets that matched an entry of a table.",
    );
    let mut misses = Family::new(
        Kind::Counter,
        "wormcast_switch_table_misses_total",
        "Packets that matched no entry of a table.",
    );
    for table in &snapshot.tables {
        let labels = [("device", device), ("table", table.table.as_str())];
        entries.add(&labels, table.entries as f64);
        size.add(&labels, table.size as f64);
        hits.add(&labels, table.hits as f64);
        misses.add(&labels, table.misses as f64);
    }
    families.extend([entries, size, hits, misses]);
}

/// Name and help of a family, and which number of a port it shows.
type PortFamily = (&'static str, &'static str, fn(&PortSnapshot) -> u64);

const PORT_FAMILIES: [PortFamily; 9] = [
    (
        "wormcast_switch_port_received_frames_total",
        "Frames received.",
        |port| port.received_frames,
    ),
    (
        "wormcast_switch_port_received_bytes_total",
        "Bytes received.",
        |port| port.received_bytes,
    ),
    (
        "wormcast_switch_port_receive_ring_full_frames_total",
        "Frames that found the receive ring full.",
        |port| port.receive_ring_full,
    ),
    (
        "wormcast_switch_port_receive_too_long_frames_total",
        "Frames too long for the receive ring.",
        |port| port.receive_too_long,
    ),
    (
        "wormcast_switch_port_sent_frames_total",
        "Frames sent.",
        |port| port.sent_frames,
    ),
    (
        "wormcast_switch_port_sent_bytes_total",
        "Bytes sent.",
        |port| port.sent_bytes,
    ),
    (
        "wormcast_switch_port_send_retries_total",
        "Times the kernel had no room for a frame; it was tried again.",
        |port| port.send_retried,
    ),
    (
        "wormcast_switch_port_no_link_frames_total",
        "Frames for which there was no interface.",
        |port| port.no_link,
    ),
    (
        "wormcast_switch_port_tail_drops_total",
        "Packets that found their egress queue full, all queues of the port.",
        |port| port.queue_tail_drops,
    ),
];

/// A reason or kind, and how many frames of a port it had.
type PortCount = (&'static str, fn(&PortSnapshot) -> u64);

/// Frames of a port by a reason or kind.
const PORT_FAILURES: [PortCount; 3] = [
    ("bad_length", |port| port.send_bad_length),
    ("interface_down", |port| port.send_interface_down),
    ("other", |port| port.send_failed),
];
const PORT_IMPAIRMENTS: [PortCount; 5] = [
    ("lost", |port| port.impaired_lost),
    ("duplicated", |port| port.impaired_duplicated),
    ("corrupted", |port| port.impaired_corrupted),
    ("reordered", |port| port.impaired_reordered),
    ("overflowed", |port| port.impaired_overflowed),
];

/// Labels that name a port.
fn port_labels(port: &PortSnapshot) -> (String, &str) {
    let number = port.port.map(|port| port.to_string());
    let number = number.unwrap_or_else(|| "unattached".to_owned());
    (number, port.interface.as_str())
}

fn port_families(device: &str, snapshot: &Snapshot, families: &mut Vec<Family>) {
    for (name, help, value) in PORT_FAMILIES {
        let mut family = Family::new(Kind::Counter, name, help);
        for port in &snapshot.ports {
            let (number, interface) = port_labels(port);
            let labels = [
                ("device", device),
                ("port", &number),
                ("interface", interface),
            ];
            family.add(&labels, value(port) as f64);
        }
        families.push(family);
    }
    let mut failures = Family::new(
        Kind::Counter,
        "wormcast_switch_port_send_failures_total",
        "Frames that could not be sent, by reason.",
    );
    let mut impaired = Family::new(
        Kind::Counter,
        "wormcast_switch_port_impaired_frames_total",
        "Frames impaired on purpose, by kind.",
    );
    for port in &snapshot.ports {
        let (number, interface) = port_labels(port);
        let add = |family: &mut Family, label, kind, value: u64| {
            let labels = [
                ("device", device),
                ("port", &number),
                ("interface", interface),
                (label, kind),
            ];
            family.add(&labels, value as f64);
        };
        for (reason, value) in PORT_FAILURES {
            add(&mut failures, "reason", reason, value(port));
        }
        for (kind, value) in PORT_IMPAIRMENTS {
            add(&mut impaired, "kind", kind, value(port));
        }
    }
    families.extend([failures, impaired]);
}

fn queue_families(device: &str, snapshot: &Snapshot, families: &mut Vec<Family>) {
    let family = |kind, name, help| Family::new(kind, name, help);
    let mut enqueued = family(
        Kind::Counter,
        "wormcast_switch_queue_enqueued_packets_total",
        "Packets taken into an egress queue.",
    );
    let mut dequeued = family(
        Kind::Counter,
        "wormcast_switch_queue_dequeued_packets_total",
        "Packets that left an egress queue for egress.",
    );
    let mut tail_drops = family(
        Kind::Counter,
        "wormcast_switch_queue_tail_drops_total",
        "Packets that found an egress queue full.",
    );
    let mut depth = family(
        Kind::Gauge,
        "wormcast_switch_queue_depth_packets",
        "Packets in an egress queue.",
    );
    let mut depth_max = family(
        Kind::Gauge,
        "wormcast_switch_queue_depth_max_packets",
        "Most packets there have been in an egress queue.",
    );
    for port in &snapshot.ports {
        let (number, interface) = port_labels(port);
        for queue in &port.queues {
            let priority = queue.queue.to_string();
            let labels = [
                ("device", device),
                ("port", number.as_str()),
                ("interface", interface),
                ("queue", priority.as_str()),
            ];
            enqueued.add(&labels, queue.enqueued as f64);
            dequeued.add(&labels, queue.dequeued as f64);
            tail_drops.add(&labels, queue.tail_drops as f64);
            depth.add(&labels, queue.depth as f64);
            depth_max.add(&labels, queue.depth_max as f64);
        }
    }
    families.extend([enqueued, dequeued, tail_drops, depth, depth_max]);
}
