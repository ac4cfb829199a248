//! A traffic manager that queues everything, and a wire that remembers everything.

use std::collections::VecDeque;

use wormcast_switch_pipeline::{DequeueInfo, EmitSink, Pipeline, PortId, Queued, TrafficSink};
use wormcast_switch_program::Bits;
use wormcast_switch_program::DigestId;

/// Frames sent, in order, and packets that wait for egress.
#[derive(Default)]
pub struct Wire {
    pub queue: VecDeque<Queued>,
    pub sent: Vec<(PortId, Vec<u8>)>,
    pub digests: Vec<(DigestId, Vec<Bits>)>,
    /// Packets the queue takes; none: any number.
    pub capacity: Option<usize>,
    /// Packets pass from ingress to egress at once while the queue is empty.
    pub passes: bool,
    /// Copies of one packet that go through egress; none: all.
    pub copies_max: Option<usize>,
    /// Copies beyond that.
    pub cut_off: usize,
}

impl TrafficSink for Wire {
    fn enqueue(&mut self, packet: Queued) -> Result<(), Queued> {
        if self
            .capacity
            .is_some_and(|capacity| self.queue.len() >= capacity)
        {
            return Err(packet);
        }
        self.queue.push_back(packet);
        Ok(())
    }

    fn passes(&mut self, _port: PortId, _priority: u8, _length_bytes: u32) -> bool {
        self.passes && self.queue.is_empty()
    }

    fn digest(&mut self, digest: DigestId, fields: &[Bits]) {
        self.digests.push((digest, fields.to_vec()));
    }
}

impl EmitSink for Wire {
    fn transmit(&mut self, port: PortId, frame: &[u8]) {
        self.sent.push((port, frame.to_vec()));
    }
}

/// Sends one packet through a pipeline and all its copies out of it.
///
/// `dequeue_depth`: the queue depth that egress sees.
pub fn forward(
    pipeline: &mut Pipeline,
    wire: &mut Wire,
    port: u16,
    packet: &[u8],
    now_us: u64,
    dequeue_depth: u32,
) {
    pipeline.ingress(packet, PortId(port), now_us, wire);
    let mut copies = 0;
    while let Some(queued) = wire.queue.pop_front() {
        copies += 1;
        if wire.copies_max.is_some_and(|max| copies > max) {
            pipeline.recycle(queued);
            wire.cut_off += 1;
            continue;
        }
        let info = DequeueInfo {
            enqueued_us: now_us,
            dequeued_us: now_us,
            enqueue_depth: 0,
            dequeue_depth,
        };
        pipeline.egress(queued, &info, wire);
    }
}
