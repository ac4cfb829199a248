//! A traffic manager that queues everything, and a wire that remembers everything.

use std::collections::VecDeque;

use wormcast_switch_pipeline::{DequeueInfo, EmitSink, Pipeline, PortId, Queued, TrafficSink};
use wormcast_switch_program::Bits;
use wormcast_switch_program::DigestId;

/// Frames and digests sent, in order, and packets that wait for egress.
#[derive(Default)]
pub(super) struct Wire {
    queue: VecDeque<Queued>,
    pub(super) sent: Vec<(u16, Vec<u8>)>,
    pub(super) digests: Vec<(DigestId, Vec<Bits>)>,
}

impl TrafficSink for Wire {
    fn enqueue(&mut self, packet: Queued) -> Result<(), Queued> {
        self.queue.push_back(packet);
        Ok(())
    }

    fn digest(&mut self, digest: DigestId, fields: &[Bits]) {
        self.digests.push((digest, fields.to_vec()));
    }
}

impl EmitSink for Wire {
    fn transmit(&mut self, port: PortId, frame: &[u8]) {
        self.sent.push((port.0, frame.to_vec()));
    }
}

impl Wire {
    /// Sends one packet through a pipeline and all its copies out of it. Queues are empty
    /// when they arrive, and they leave at once.
    pub(super) fn forward(
        &mut self,
        pipeline: &mut Pipeline,
        port: u16,
        packet: &[u8],
        now_us: u64,
    ) {
        pipeline.ingress(packet, PortId(port), now_us, self);
        while let Some(queued) = self.queue.pop_front() {
            let info = DequeueInfo {
                enqueued_us: now_us,
                dequeued_us: now_us,
                ..DequeueInfo::default()
            };
            pipeline.egress(queued, &info, self);
        }
    }
}
