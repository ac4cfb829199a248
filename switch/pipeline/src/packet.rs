//! Packets between ingress and egress, and the buffers they are made of.

use super::config::{PortId, limits};
use super::machine::Machine;
use super::recorder::Mark;

/// A packet on its way from ingress to egress, in the hands of the traffic manager.
///
/// Its buffers belong to the pipeline that made it: give it to
/// [`Pipeline::egress`](super::Pipeline::egress) of the same pipeline, back from
/// [`TrafficSink::enqueue`](super::TrafficSink::enqueue) when there is no room, or to
/// [`Pipeline::recycle`](super::Pipeline::recycle).
#[derive(Debug)]
pub struct Queued {
    pub(super) body: Box<Body>,
}

/// A packet's bytes and header vector.
#[derive(Debug, Default)]
pub(super) struct Body {
    pub(super) port: PortId,
    pub(super) priority: u8,
    pub(super) ingress_port: PortId,
    pub(super) instance: u16,
    pub(super) recirculations: u32,
    pub(super) clone_depth: u8,
    pub(super) words: Vec<u64>,
    pub(super) packet: Vec<u8>,
    pub(super) cursor: usize,
    pub(super) ingress_bytes: u64,
    pub(super) length: u64,
    pub(super) truncate: Option<u64>,
    pub(super) cut: u64,
    /// Which traces want to see it.
    pub(super) trace: Mark,
}

impl Queued {
    /// Port it leaves by.
    pub fn port(&self) -> PortId {
        self.body.port
    }

    /// `standard_metadata.priority`: the queue of the port, 0 unless the program sets it.
    pub fn priority(&self) -> u8 {
        self.body.priority
    }

    /// Bytes it will have when sent, if egress changes no header.
    pub fn length_bytes(&self) -> u32 {
        let length = self.body.truncate.unwrap_or(u64::MAX).min(self.body.length);
        let length = length.min(self.body.cut);
        u32::try_from(length).unwrap_or(u32::MAX)
    }

    /// Port the packet came in by.
    pub fn ingress_port(&self) -> PortId {
        self.body.ingress_port
    }

    /// `standard_metadata.egress_rid` of a replica, else 0.
    pub fn instance(&self) -> u16 {
        self.body.instance
    }
}

/// What the traffic manager knows when a packet leaves its queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DequeueInfo {
    /// When the packet was queued, µs of the clock given to the pipeline.
    pub enqueued_us: u64,
    /// Now, µs of the same clock.
    pub dequeued_us: u64,
    /// Packets in the queue when it was queued, itself not counted.
    pub enqueue_depth: u32,
    /// Packets left in the queue when it was taken out.
    pub dequeue_depth: u32,
}

/// Buffers not in use.
#[derive(Debug, Default)]
pub(super) struct Pool {
    /// Boxes, since packets travel as boxes: a body is never moved.
    #[allow(clippy::vec_box)]
    free: Vec<Box<Body>>,
    /// That their packets have room for.
    bytes: usize,
}

impl Pool {
    pub(super) fn take(&mut self) -> Box<Body> {
        let body = self.free.pop().unwrap_or_default();
        self.bytes -= body.packet.capacity();
        body
    }

    pub(super) fn give(&mut self, body: Box<Body>) {
        let bytes = self.bytes + body.packet.capacity();
        if self.free.len() < limits::POOL_PACKETS_MAX && bytes <= limits::POOL_BYTES_MAX {
            self.bytes = bytes;
            self.free.push(body);
        }
    }
}

impl Body {
    /// A copy of a packet and of its header vector in the machine.
    pub(super) fn copy_from(&mut self, machine: &Machine, packet: &[u8], vector_words: usize) {
        self.packet.clear();
        self.packet.extend_from_slice(packet);
        self.words.clear();
        self.words.extend_from_slice(&machine.words[..vector_words]);
        self.cursor = machine.cursor;
        self.ingress_bytes = machine.ingress_bytes;
        self.length = machine.length;
        self.truncate = machine.truncate;
        self.cut = machine.cut;
    }

    /// Puts the header vector into the machine.
    pub(super) fn restore(&self, machine: &mut Machine) {
        machine.words[..self.words.len()].copy_from_slice(&self.words);
        machine.cursor = self.cursor;
        machine.ingress_bytes = self.ingress_bytes;
        machine.length = self.length;
        machine.truncate = self.truncate;
        machine.cut = self.cut;
    }
}
