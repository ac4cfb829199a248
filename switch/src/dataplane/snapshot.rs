//! Counts of the whole switch at one moment.

use std::collections::BTreeMap;

use serde::Serialize;

use super::engine::Engine;
use super::input::Source;
use super::port::Link;
use crate::pipeline::{DropCause, Event};

/// Counts since the switch started, but for `pipeline`: since the program was installed.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Snapshot {
    /// Microseconds since the start.
    pub uptime_us: u64,
    /// Frames that came while no program was installed; they are dropped.
    pub no_program: u64,
    /// Packets that waited in a queue when the program was replaced; they are dropped.
    pub program_replaced: u64,
    /// Packet-ins and digests handed to the server.
    pub packet_ins: u64,
    /// Packet-ins and digests dropped because too many waited.
    pub to_controller_full: u64,
    /// Packet-ins and digests for which no controller was primary.
    pub packet_ins_no_primary: u64,
    /// Packet-ins and digests that the primary did not read in time.
    pub packet_ins_stream_full: u64,
    /// Frames a controller sent into the pipeline.
    pub packet_outs: u64,
    /// Counts of the pipeline, by name; causes of drops begin with `drop.`.
    pub pipeline: BTreeMap<String, u64>,
    /// Ports, in order of their number.
    pub ports: Vec<PortSnapshot>,
}

/// Counts of one port.
#[derive(Clone, Debug, Default, Serialize)]
pub struct PortSnapshot {
    /// Number; `None` stands for all ports that were not given on the command line.
    pub port: Option<u16>,
    /// Interface, port at the other end of a link in memory, `cpu`, or empty.
    pub interface: String,
    /// Frames received.
    pub received_frames: u64,
    /// Bytes received.
    pub received_bytes: u64,
    /// Frames that found the receive ring full.
    pub receive_ring_full: u64,
    /// Frames too long for the receive ring.
    pub receive_too_long: u64,
    /// Frames sent.
    pub sent_frames: u64,
    /// Bytes sent.
    pub sent_bytes: u64,
    /// Frames longer than the MTU, or shorter than a header.
    pub send_bad_length: u64,
    /// Frames for an interface that was down.
    pub send_interface_down: u64,
    /// Frames that could not be sent for another reason.
    pub send_failed: u64,
    /// Times the kernel had no room for a frame; it was tried again.
    pub send_retried: u64,
    /// Frames for which there was no interface.
    pub no_link: u64,
    /// Packets in the egress queue now.
    pub queued: usize,
    /// Packets that found the egress queue full.
    pub queue_tail_drops: u64,
    /// Frames lost on purpose.
    pub impaired_lost: u64,
    /// Frames sent twice on purpose.
    pub impaired_duplicated: u64,
    /// Frames corrupted on purpose.
    pub impaired_corrupted: u64,
    /// Frames reordered on purpose.
    pub impaired_reordered: u64,
    /// Frames dropped because too many were held back.
    pub impaired_overflowed: u64,
}

impl Engine {
    /// Counts at this moment.
    pub fn snapshot(&mut self) -> Snapshot {
        let mut snapshot = Snapshot {
            uptime_us: self.clock.now_us(),
            no_program: self.no_program,
            program_replaced: self.program_replaced,
            packet_ins: self.traffic.packet_ins,
            to_controller_full: self.traffic.to_controller_full,
            packet_outs: self.packet_outs,
            ..Snapshot::default()
        };
        if let Some(pipeline) = &self.pipeline {
            let statistics = pipeline.statistics();
            let mut add = |name: String, value| snapshot.pipeline.insert(name, value);
            add("received".to_owned(), statistics.received);
            add("transmitted".to_owned(), statistics.transmitted);
            add("enqueued".to_owned(), statistics.enqueued);
            add("replicated".to_owned(), statistics.replicated);
            add("cloned_ingress".to_owned(), statistics.cloned_ingress);
            add("cloned_egress".to_owned(), statistics.cloned_egress);
            add("resubmitted".to_owned(), statistics.resubmitted);
            add("recirculated".to_owned(), statistics.recirculated);
            for cause in DropCause::ALL {
                add(format!("drop.{}", cause.name()), statistics.dropped(*cause));
            }
            for event in Event::ALL {
                add(event.name().to_owned(), statistics.event(*event));
            }
        }
        for position in 0..self.traffic.ports.len() {
            snapshot.ports.push(self.port_snapshot(position));
        }
        snapshot
            .ports
            .sort_by_key(|port| port.port.unwrap_or(u16::MAX));
        snapshot
    }

    fn port_snapshot(&mut self, position: usize) -> PortSnapshot {
        let port = &self.traffic.ports[position];
        let mut snapshot = PortSnapshot {
            port: (!matches!(port.link, Link::Unattached)).then_some(port.number.0),
            no_link: port.no_link,
            queued: port.queue.len(),
            queue_tail_drops: port.queue.tail_drops(),
            ..PortSnapshot::default()
        };
        match &port.link {
            Link::Interface(transmit) => {
                let counts = transmit.counts();
                snapshot.sent_frames = counts.frames;
                snapshot.sent_bytes = counts.bytes;
                snapshot.send_bad_length = counts.bad_length;
                snapshot.send_interface_down = counts.interface_down;
                snapshot.send_failed = counts.failed;
                snapshot.send_retried = counts.retried;
            }
            Link::Memory(link) => {
                let counts = link.sender.counts();
                snapshot.sent_frames = counts.frames;
                snapshot.sent_bytes = counts.bytes;
                snapshot.send_retried = counts.full;
            }
            Link::Cpu => snapshot.interface = "cpu".to_owned(),
            Link::Missing | Link::Unattached => {}
        }
        if let Some(impairment) = &port.impairment {
            let counts = impairment.counts();
            snapshot.impaired_lost = counts.lost;
            snapshot.impaired_duplicated = counts.duplicated;
            snapshot.impaired_corrupted = counts.corrupted;
            snapshot.impaired_reordered = counts.reordered;
            snapshot.impaired_overflowed = counts.overflowed;
        }
        if let Some(input) = self.inputs.get_mut(position) {
            snapshot.interface.clone_from(&input.name);
            match &mut input.source {
                Source::Interface {
                    ring: Some(ring), ..
                } => {
                    let counts = ring.counts();
                    snapshot.received_frames = counts.frames;
                    snapshot.received_bytes = counts.bytes;
                    snapshot.receive_ring_full = counts.ring_full;
                    snapshot.receive_too_long = counts.too_long;
                }
                Source::Interface { ring: None, .. } => {}
                Source::Link(link) => {
                    let counts = link.receiver.counts();
                    snapshot.received_frames = counts.frames;
                    snapshot.received_bytes = counts.bytes;
                }
            }
        }
        snapshot
    }
}
