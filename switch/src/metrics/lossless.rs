//! Flow control as families of numbers. The names are an interface: they stay as they are.

use super::exposition::{Family, Kind};
use wormcast_switch_dataplane::{LosslessSnapshot, PauseReport, QueueReport, Snapshot};

/// A family with one number a port: name, help, the number.
type OfPort = (&'static str, &'static str, fn(&PauseReport) -> u64);

const PORTS: [OfPort; 8] = [
    (
        "wormcast_switch_pause_frames_received_total",
        "Pause frames (PFC, PAUSE) of the neighbour that stopped something.",
        |port| port.counts.pauses_received,
    ),
    (
        "wormcast_switch_pause_frames_sent_total",
        "Pause frames (PFC, PAUSE) sent to the neighbour.",
        |port| port.counts.pauses_sent,
    ),
    (
        "wormcast_switch_mac_control_unknown_total",
        "MAC control frames that say nothing known.",
        |port| port.counts.control_unknown,
    ),
    (
        "wormcast_switch_headroom_full_total",
        "Lossless frames that found no room: the neighbour did not stop in time.",
        |port| port.counts.headroom_full,
    ),
    (
        "wormcast_switch_held_back_total",
        "Turns in which frames were left in the receive ring for want of room.",
        |port| port.counts.held_back,
    ),
    (
        "wormcast_switch_lossy_buffer_full_total",
        "Lossy frames that found the shared buffer full.",
        |port| port.counts.lossy_full,
    ),
    (
        "wormcast_switch_pause_storms_total",
        "Pause storms that watchdogs have found.",
        |port| port.counts.storms,
    ),
    (
        "wormcast_switch_pause_storm_drops_total",
        "Frames dropped because of a pause storm.",
        |port| port.counts.storm_drops,
    ),
];

/// A family with one number a port and lossless priority.
type OfQueue = (&'static str, &'static str, fn(&QueueReport) -> u64);

const QUEUES: [OfQueue; 5] = [
    (
        "wormcast_switch_ingress_held_bytes",
        "Bytes in the buffer of frames that came in by a port with a priority.",
        |queue| queue.held_bytes,
    ),
    (
        "wormcast_switch_ingress_held_max_bytes",
        "Most of them there have been.",
        |queue| queue.held_bytes_max,
    ),
    (
        "wormcast_switch_ingress_stopped",
        "Whether the neighbour is stopped from sending a priority.",
        |queue| u64::from(queue.stopped),
    ),
    (
        "wormcast_switch_egress_paused",
        "Whether the neighbour has paused a priority.",
        |queue| u64::from(queue.paused),
    ),
    (
        "wormcast_switch_egress_storm",
        "Whether a watchdog has found a pause storm that lasts.",
        |queue| u64::from(queue.storm),
    ),
];

/// The families of a lossless switch; marks of congestion of any.
pub(super) fn lossless_families(device: &str, snapshot: &Snapshot, families: &mut Vec<Family>) {
    let mut marked = Family::new(
        Kind::Counter,
        "wormcast_switch_ecn_marked_total",
        "Frames that were given a mark of congestion.",
    );
    for port in &snapshot.ports {
        let number = port
            .port
            .map_or("other".to_owned(), |port| port.to_string());
        let labels = [("device", device), ("port", number.as_str())];
        marked.add(&labels, port.ecn_marked as f64);
    }
    families.push(marked);
    let Some(lossless) = &snapshot.lossless else {
        return;
    };
    let whole: [(&str, &str, u64); 3] = [
        (
            "wormcast_switch_buffer_bytes",
            "Size of the packet buffer.",
            lossless.buffer_bytes,
        ),
        (
            "wormcast_switch_buffer_held_bytes",
            "Bytes of frames in the packet buffer.",
            lossless.held_bytes,
        ),
        (
            "wormcast_switch_buffer_held_max_bytes",
            "Most bytes of frames there have been in the packet buffer.",
            lossless.held_bytes_max,
        ),
    ];
    for (name, help, value) in whole {
        let mut family = Family::new(Kind::Gauge, name, help);
        family.add(&[("device", device)], value as f64);
        families.push(family);
    }
    ports(device, lossless, families);
}

fn ports(device: &str, lossless: &LosslessSnapshot, families: &mut Vec<Family>) {
    for (name, help, value) in PORTS {
        let mut family = Family::new(Kind::Counter, name, help);
        for port in &lossless.ports {
            let number = port.port.to_string();
            let labels = [("device", device), ("port", number.as_str())];
            family.add(&labels, value(port) as f64);
        }
        families.push(family);
    }
    for (name, help, value) in QUEUES {
        let mut family = Family::new(Kind::Gauge, name, help);
        for queue in &lossless.queues {
            let (number, priority) = (queue.port.to_string(), queue.priority.to_string());
            let labels = [
                ("device", device),
                ("port", number.as_str()),
                ("queue", priority.as_str()),
            ];
            family.add(&labels, value(queue) as f64);
        }
        families.push(family);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wormcast_switch_dataplane::PortSnapshot;
    use wormcast_switch_flow::FlowCounts;

    #[test]
    fn every_count_has_a_name_of_its_own() {
        let snapshot = Snapshot {
            ports: vec![PortSnapshot {
                port: Some(3),
                ecn_marked: 9,
                ..PortSnapshot::default()
            }],
            lossless: Some(LosslessSnapshot {
                buffer_bytes: 10,
                ports: vec![PauseReport {
                    port: 3,
                    counts: FlowCounts {
                        pauses_sent: 7,
                        ..FlowCounts::default()
                    },
                }],
                queues: vec![QueueReport {
                    port: 3,
                    priority: 4,
                    paused: true,
                    ..QueueReport::default()
                }],
                ..LosslessSnapshot::default()
            }),
            ..Snapshot::default()
        };
        let mut families = Vec::new();
        lossless_families("1", &snapshot, &mut families);
        let names: std::collections::BTreeSet<_> =
            families.iter().map(|family| family.name).collect();
        assert_eq!(names.len(), families.len());
        let value = |name: &str| {
            let family = families.iter().find(|family| family.name == name).unwrap();
            family.samples[0].value
        };
        assert_eq!(value("wormcast_switch_ecn_marked_total"), 9.0);
        assert_eq!(value("wormcast_switch_pause_frames_sent_total"), 7.0);
        assert_eq!(value("wormcast_switch_egress_paused"), 1.0);
        assert_eq!(value("wormcast_switch_egress_storm"), 0.0);
    }
}
