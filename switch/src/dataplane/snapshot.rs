//! Counts of the whole switch at one moment.

use serde::Serialize;
use std::collections::BTreeMap;

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
    /// Interface, `cpu`, or empty.
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
