//! Who takes what the pipeline makes.

use super::config::PortId;
use super::packet::Queued;
#[cfg(doc)]
use super::{DropCause, Pipeline};
use wormcast_switch_program::{Bits, DigestId};

/// The traffic manager: takes packets that ingress is done with.
pub trait TrafficSink {
    /// Queues a packet for [`Queued::port`] and [`Queued::priority`]. Without room the
    /// packet comes back; it is counted as [`DropCause::QueueFull`].
    fn enqueue(&mut self, packet: Queued) -> Result<(), Queued>;

    /// Whether a packet would be the only one in the queues of a port and could leave at
    /// once. Then the packet goes through egress without being copied and queued, as if it
    /// had waited no time, and is transmitted before [`Pipeline::ingress`] returns.
    ///
    /// `length_bytes`: what [`Queued::length_bytes`] would be. Always `false` is valid:
    /// every packet is queued then.
    fn passes(&mut self, port: PortId, priority: u8, length_bytes: u32) -> bool {
        let _ = (port, priority, length_bytes);
        false
    }

    /// A digest for the control plane: its fields in order. Rare; the values are copies.
    fn digest(&mut self, digest: DigestId, fields: &[Bits]);
}

/// Takes what egress makes: frames, and packets that go to the traffic manager again.
pub trait EmitSink: TrafficSink {
    /// Sends a frame by a port.
    fn transmit(&mut self, port: PortId, frame: &[u8]);
}
