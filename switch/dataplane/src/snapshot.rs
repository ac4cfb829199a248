//! Counts of the whole switch at one moment.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;

use super::flow_control::LosslessSnapshot;
use super::input::Source;
use super::port::Link;
use super::published::{EventLogCounts, NotificationCounts};
use super::switch::Switch;
use super::traffic::TO_CONTROLLER_MAX;
use wormcast_switch_pipeline::LoadedProgram;
use wormcast_switch_pipeline::{DropCause, Event, PORTS_COUNTED, Statistics, TableCounts};
use wormcast_switch_ports::{EgressQueue, TransmitCounts};

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
    /// Packet-ins that were shorter than the header in front of them.
    pub packet_ins_too_short: u64,
    /// Messages of controllers' streams that were refused.
    pub stream_messages_refused: u64,
    /// Notifications, if they are published.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub notifications: Option<NotificationCounts>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub event_log: Option<EventLogCounts>,
    /// Frames a controller sent into the pipeline.
    pub packet_outs: u64,
    /// Packet-ins and digests that wait for the server now.
    pub to_controller_waiting: usize,
    /// Most of them that may wait.
    pub to_controller_waiting_max: usize,
    /// Records of packet traces made.
    pub trace_records: u64,
    /// Records of packet traces that their readers were too slow for.
    pub trace_records_lost: u64,
    /// Name of the program, as far as it has one.
    pub program: Option<String>,
    /// Counts of the pipeline, by name; causes of drops begin with `drop.`.
    pub pipeline: BTreeMap<String, u64>,
    /// Drops by ingress port and cause, as far as there were any.
    pub drops_by_port: Vec<PortDrops>,
    /// Tables, those of ingress first.
    pub tables: Vec<TableSnapshot>,
    /// Flow control, if some priorities are lossless.
    pub lossless: Option<LosslessSnapshot>,
    /// Ports, in order of their number.
    pub ports: Vec<PortSnapshot>,
}

/// Packets that came in by one port and ended in the pipeline for one cause.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PortDrops {
    /// Ingress port; `None` stands for all from [`PORTS_COUNTED`] on.
    pub port: Option<u16>,
    pub cause: &'static str,
    pub packets: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TableSnapshot {
    pub table: String,
    pub entries: usize,
    /// Entries the program asks room for.
    pub size: usize,
    /// Packets that matched an entry.
    pub hits: u64,
    /// Packets that matched none.
    pub misses: u64,
}

/// Counts of the queue of one priority of one port.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct QueueSnapshot {
    /// Priority, from 0 up.
    pub queue: usize,
    pub enqueued: u64,
    /// Packets that left for egress.
    pub dequeued: u64,
    /// Packets that found it full.
    pub tail_drops: u64,
    /// Packets in it now.
    pub depth: usize,
    /// Most packets there have been in it.
    pub depth_max: usize,
    pub bytes: u64,
}

#[derive(Clone, Debug, Default, Serialize)]
pub struct PortSnapshot {
    /// Number; `None` stands for all ports that were not given on the command line.
    pub port: Option<u16>,
    /// Interface, port at the other end of a link in memory, `cpu`, or empty.
    pub interface: String,
    /// Thread that receives its frames, of those that share the switch; 0 is the first.
    pub thread: usize,
    pub received_frames: u64,
    pub received_bytes: u64,
    /// Frames that found the receive ring full.
    pub receive_ring_full: u64,
    /// Frames too long for the receive ring.
    pub receive_too_long: u64,
    pub sent_frames: u64,
    pub sent_bytes: u64,
    /// Frames longer than the MTU, shorter than a header of the link layer, or empty.
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
    /// Its queues, one a priority.
    pub queues: Vec<QueueSnapshot>,
    /// Frames that were given a mark of congestion.
    pub ecn_marked: u64,
    pub impaired_lost: u64,
    /// Frames sent twice on purpose.
    pub impaired_duplicated: u64,
    pub impaired_corrupted: u64,
    pub impaired_reordered: u64,
    /// Frames dropped because too many were held back.
    pub impaired_overflowed: u64,
}

/// The same as a [`Snapshot`], as the data plane keeps it: quick to take, since no name is
/// written out.
#[derive(Debug, Default)]
pub struct Counts {
    /// All but what is below.
    snapshot: Snapshot,
    program: Option<Arc<LoadedProgram>>,
    statistics: Statistics,
    tables: Vec<TableCounts>,
}

impl Switch {
    pub fn snapshot(&mut self) -> Snapshot {
        self.counts().into()
    }

    /// Counts at this moment, to be made a [`Snapshot`] on another thread.
    pub fn counts(&mut self) -> Counts {
        let mut counts = Counts {
            snapshot: Snapshot {
                uptime_us: self.clock.now_us(),
                no_program: self.no_program,
                program_replaced: self.program_replaced,
                packet_ins: self.traffic.packet_ins,
                to_controller_full: self.traffic.to_controller_full,
                packet_outs: self.packet_outs,
                lossless: self.lossless_snapshot(),
                to_controller_waiting: self.traffic.to_controller_waiting(),
                to_controller_waiting_max: TO_CONTROLLER_MAX,
                trace_records: self.tracing().records(),
                trace_records_lost: self.tracing().lost(),
                ..Snapshot::default()
            },
            ..Counts::default()
        };
        if let Some(pipeline) = &self.pipeline {
            counts.program = Some(Arc::clone(pipeline.program()));
            counts.statistics = pipeline.statistics().clone();
            counts.tables.extend(pipeline.table_counts());
        }
        for position in 0..self.traffic.ports.len() {
            let port = self.port_snapshot(position);
            counts.snapshot.ports.push(port);
        }
        counts
    }

    pub(super) fn port_snapshot(&mut self, position: usize) -> PortSnapshot {
        let port = &self.traffic.ports[position];
        let mut snapshot = PortSnapshot {
            port: (!port.link.is_for_others()).then_some(port.number.0),
            no_link: port.no_link,
            queued: port.queue.len(),
            queue_tail_drops: port.queue.tail_drops(),
            queues: queue_snapshots(&port.queue),
            ecn_marked: port.ecn_marked,
            ..PortSnapshot::default()
        };
        match &port.link {
            Link::Interface(transmit) => snapshot.set_sent(transmit.counts()),
            Link::Missing => snapshot.set_sent(port.sent_before),
            Link::Memory(link) => {
                let counts = link.sender.counts();
                snapshot.sent_frames = counts.frames;
                snapshot.sent_bytes = counts.bytes;
                snapshot.send_retried = counts.full;
            }
            Link::File(file) => snapshot.sent_frames = file.records(),
            Link::Messages(link) => {
                snapshot.sent_frames = link.sent_frames;
                snapshot.sent_bytes = link.sent_bytes;
            }
            Link::Cpu => snapshot.interface = "cpu".to_owned(),
            Link::Unattached => {}
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
            snapshot.thread = input.thread;
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
                Source::Replayed { frames, bytes } => {
                    snapshot.received_frames = *frames;
                    snapshot.received_bytes = *bytes;
                }
                Source::Nothing => {}
            }
        }
        snapshot
    }
}

impl From<Counts> for Snapshot {
    fn from(counts: Counts) -> Self {
        let mut snapshot = counts.snapshot;
        snapshot
            .ports
            .sort_by_key(|port| port.port.unwrap_or(u16::MAX));
        let Some(program) = counts.program else {
            return snapshot;
        };
        snapshot.program = Some(program.name().to_owned());
        let tables = program.tables().iter().zip(&counts.tables);
        let tables = tables.map(|(info, counts)| TableSnapshot {
            table: info.name.clone(),
            entries: counts.entries,
            size: info.size,
            hits: counts.hits,
            misses: counts.misses,
        });
        snapshot.tables.extend(tables);
        let drops = counts.statistics.drops_by_port();
        let drops = drops.map(|(port, cause, packets)| PortDrops {
            port: (usize::from(port) < PORTS_COUNTED).then_some(port),
            cause: cause.name(),
            packets,
        });
        snapshot.drops_by_port.extend(drops);
        snapshot.pipeline = by_name(&counts.statistics);
        snapshot
    }
}

fn by_name(statistics: &Statistics) -> BTreeMap<String, u64> {
    let packets = [
        ("received", statistics.received),
        ("transmitted", statistics.transmitted),
        ("enqueued", statistics.enqueued),
        ("replicated", statistics.replicated),
        ("cloned_ingress", statistics.cloned_ingress),
        ("cloned_egress", statistics.cloned_egress),
        ("resubmitted", statistics.resubmitted),
        ("recirculated", statistics.recirculated),
    ];
    let packets = packets.map(|(name, value)| (name.to_owned(), value));
    let drops = DropCause::ALL.iter();
    let drops = drops.map(|cause| (format!("drop.{}", cause.name()), statistics.dropped(*cause)));
    let events = Event::ALL.iter();
    let events = events.map(|event| (event.name().to_owned(), statistics.event(*event)));
    packets.into_iter().chain(drops).chain(events).collect()
}

fn queue_snapshots<T>(queue: &EgressQueue<T>) -> Vec<QueueSnapshot> {
    queue
        .queues()
        .map(|counts| QueueSnapshot {
            queue: usize::from(counts.priority),
            enqueued: counts.frames_in,
            dequeued: counts.frames_out,
            tail_drops: counts.tail_drops,
            depth: counts.frames,
            depth_max: counts.frames_max,
            bytes: counts.bytes,
        })
        .collect()
}

impl PortSnapshot {
    /// Frames that came or were to leave by the port and were lost there, but for those that
    /// were lost on purpose.
    pub fn dropped_frames(&self) -> u64 {
        self.receive_ring_full
            + self.receive_too_long
            + self.send_bad_length
            + self.send_interface_down
            + self.send_failed
            + self.no_link
            + self.queue_tail_drops
    }

    fn set_sent(&mut self, counts: TransmitCounts) {
        self.sent_frames = counts.frames;
        self.sent_bytes = counts.bytes;
        self.send_bad_length = counts.bad_length;
        self.send_interface_down = counts.interface_down;
        self.send_failed = counts.failed;
        self.send_retried = counts.retried;
    }
}
