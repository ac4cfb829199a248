//! What a replay found.

use crate::cost::Channel;
use wormcast_wire::HostId;

/// How a channel was used.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ChannelUse {
    pub channel: Channel,
    /// Time that packets were on it.
    pub busy_ns: f64,
    /// Most bytes that waited for it, what was on its way out included.
    pub backlog_bytes_max: u64,
}

/// What a replay found. Times count from when the application hands over the message.
#[derive(Clone, Debug, PartialEq)]
pub struct Replay {
    /// Until the last member has the last packet; 0 in a group of one.
    pub completion_ns: f64,
    /// Until the source has sent its last copy (start-up latency of TORUS §4).
    pub start_up_ns: f64,
    /// When each member had the last packet, in the order the plan reaches them.
    pub members: Vec<(HostId, f64)>,
    /// The channels in use, ascending.
    pub channels: Vec<ChannelUse>,
    /// Packets gone through one by one. Where the state of the network recurs, whole
    /// periods are skipped, which changes no time.
    pub packets_replayed: u64,
    pub events: u64,
}

impl Replay {
    /// Most bytes that waited for a channel.
    pub fn backlog_bytes_max(&self) -> u64 {
        self.channels
            .iter()
            .map(|used| used.backlog_bytes_max)
            .max()
            .unwrap_or(0)
    }
}
