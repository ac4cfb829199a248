//! What takes the packets that are forwarded.

use std::collections::VecDeque;

use wormcast_switch_pipeline::{EmitSink, PortId, Queued, TrafficSink};
use wormcast_switch_program::Bits;
use wormcast_switch_program::DigestId;

/// Counts frames; queues packets when they may not pass.
#[derive(Default)]
pub struct Sink {
    /// Packets that wait for egress.
    pub queue: VecDeque<Queued>,
    /// Packets pass at once while none waits.
    pub passes: bool,
    pub frames: u64,
}

impl TrafficSink for Sink {
    fn enqueue(&mut self, packet: Queued) -> Result<(), Queued> {
        self.queue.push_back(packet);
        Ok(())
    }

    fn passes(&mut self, _port: PortId, _priority: u8, _length_bytes: u32) -> bool {
        self.passes && self.queue.is_empty()
    }

    fn digest(&mut self, _digest: DigestId, _fields: &[Bits]) {}
}

impl EmitSink for Sink {
    fn transmit(&mut self, _port: PortId, _frame: &[u8]) {
        self.frames += 1;
    }
}
