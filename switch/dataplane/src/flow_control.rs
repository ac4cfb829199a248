//! Flow control of a switch, and its report.

use std::collections::VecDeque;

use serde::Serialize;

use wormcast_switch_flow::{FlowControl, FlowCounts};

/// Flow control of a switch, and what it has had to do.
pub(super) struct Lossless {
    pub(super) flow: FlowControl,
    pub(super) storms: VecDeque<StormReport>,
}

/// A pause storm, or a deadlock, as seen by one queue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StormReport {
    /// When it was found, µs since the start.
    pub found_us: u64,
    /// When it was over, µs since the start.
    pub recovered_us: Option<u64>,
    pub port: u16,
    pub priority: u8,
    /// Packets that waited.
    pub waiting: usize,
    /// Ports they had come in by.
    pub behind: Vec<u16>,
    /// What was done: `drop` or `forward`.
    pub action: String,
}

/// What a lossless priority of a port is like.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct QueueReport {
    pub port: u16,
    pub priority: u8,
    /// Bytes held of frames that came in by it.
    pub held_bytes: u64,
    pub held_bytes_max: u64,
    pub limit_bytes: u64,
    /// Its neighbour is stopped.
    pub stopped: bool,
    /// Its neighbour has paused it.
    pub paused: bool,
    /// Its watchdog has found a storm that lasts.
    pub storm: bool,
    /// Frames that found no room.
    pub headroom_full: u64,
}

/// Pause frames of one port.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PauseReport {
    pub port: u16,
    #[serde(flatten)]
    pub counts: FlowCounts,
}

/// Flow control of a switch at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LosslessSnapshot {
    /// Size of the whole buffer.
    pub buffer_bytes: u64,
    /// Bytes of frames held now.
    pub held_bytes: u64,
    pub held_bytes_max: u64,
    /// Most copies of frames there ever were at a time.
    pub copies_max: u64,
    /// Ports that speak PFC.
    pub ports: Vec<PauseReport>,
    /// Their lossless priorities.
    pub queues: Vec<QueueReport>,
    /// The last storms, the oldest first.
    pub storms: Vec<StormReport>,
}
