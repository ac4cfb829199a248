//! Worms in transit: worms of others that this host re-injects (ITB §III, wire/SPEC.md §3).
//!
//! They never reach the engine. What cannot be sent on at once waits, first come first served: the
//! first [`TransitLimits::adapter_bytes`] stand for the memory of the adapter in the paper, what comes
//! behind is in host memory. Acceptance never waits. Where both are full, the worm is dropped and
//! counted, and the protocol repairs the loss. The frames of a train go out one after another.
//!
//! **Turns.** Worms in transit go first, as in the paper. While they wait, own traffic gets one byte
//! for every [`TRANSIT_SHARE`] bytes of theirs, so neither starves the other.

use crate::pacing::Pacing;
use crate::wormhole::flow_control::FlowControl;
use crate::wormhole::trains::Trains;
use std::collections::VecDeque;
use wormcast_protocol::{Engine, Instant};
use wormcast_wire::worm::{self, Kind, flags};
use wormcast_wire::{ETHERNET_LENGTH, ETHERTYPE_WORM};

/// Bytes in transit for each own byte, while both wait.
pub const TRANSIT_SHARE: u64 = 15;

/// Bounds of what waits; both full: the worm is dropped and counted (`drops.transit_full`), and its sender repairs it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TransitLimits {
    /// The buffer that stands for the adapter's, bytes (ITB §III.B: 90 KB). A worm that finds it full
    /// is spilled, and counted.
    pub adapter_bytes: usize,
    /// Host memory behind it, bytes.
    pub spill_bytes: usize,
}

impl Default for TransitLimits {
    fn default() -> Self {
        Self {
            adapter_bytes: 90 << 10,
            spill_bytes: 8 << 20,
        }
    }
}

/// What was done with worms in transit since the start.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TransitCounters {
    /// Frames sent on.
    pub frames: u64,
    /// Bytes of these, Ethernet headers included.
    pub bytes: u64,
    /// Frames that found the adapter's buffer full and went to host memory.
    pub spilled: u64,
    /// Frames dropped, because host memory was full too.
    pub dropped: u64,
    /// Most bytes that ever waited.
    pub held_bytes_most: usize,
}

/// Whether a frame is a worm of one frame in transit: UNICAST, with route left, and sound.
pub fn is_in_transit(frame: &[u8]) -> bool {
    // Most frames are not: two bytes show it.
    let Some(head) = frame.get(ETHERNET_LENGTH - 2..ETHERNET_LENGTH + worm::HEADER_LENGTH) else {
        return false;
    };
    let (is_worm, kind, is_train, route_length) = (
        head[..2] == ETHERTYPE_WORM.to_be_bytes(),
        head[2] & 0xF,
        head[3] & flags::TRAIN != 0,
        head[4],
    );
    let claims = is_worm && kind == Kind::Unicast as u8 && !is_train && route_length > 0;
    claims && worm::decode(frame).is_ok()
}

/// The worms in transit that wait.
#[derive(Debug)]
pub struct Transit {
    limits: TransitLimits,
    waiting: VecDeque<Vec<u8>>,
    held_bytes: usize,
    came_at: Instant,
    /// Bytes in transit that go before own traffic has a turn.
    ahead_bytes: u64,
    /// The frame sent last is one of a train, and the next one waits.
    in_train: bool,
    counters: TransitCounters,
}

impl Transit {
    pub fn new(limits: TransitLimits) -> Self {
        Self {
            limits,
            waiting: VecDeque::new(),
            held_bytes: 0,
            came_at: Instant::ZERO,
            ahead_bytes: 0,
            in_train: false,
            counters: TransitCounters::default(),
        }
    }

    /// Takes a worm in transit; it waits, or is dropped. One that finds nothing waiting is taken
    /// however small the buffers are.
    pub fn accept(&mut self, frame: &[u8], now: Instant) {
        self.accept_all(vec![frame.to_vec()], now);
    }

    /// The same of all frames of a worm.
    pub fn accept_all(&mut self, frames: Vec<Vec<u8>>, now: Instant) {
        let count = frames.len() as u64;
        let held = self.held_bytes + frames.iter().map(Vec::len).sum::<usize>();
        if held > self.limits.adapter_bytes {
            // Where nothing waits any worm has room, or those longer than the buffers would never pass.
            let full = held > self.limits.adapter_bytes + self.limits.spill_bytes;
            if full && self.held_bytes > 0 {
                self.counters.dropped += count;
                return;
            }
            self.counters.spilled += count;
        }
        self.held_bytes = held;
        self.counters.held_bytes_most = self.counters.held_bytes_most.max(held);
        self.came_at = now;
        self.waiting.extend(frames);
    }

    /// Whether none waits. Then the next may be sent on from where it was received.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// When to send; none if nothing waits.
    pub fn poll_timeout(&self) -> Option<Instant> {
        (!self.waiting.is_empty()).then_some(self.came_at)
    }

    pub fn held_bytes(&self) -> usize {
        self.held_bytes
    }

    /// What was done so far.
    pub fn counters(&self) -> TransitCounters {
        self.counters
    }

    /// The next frame to be sent, if there is one. `own` gives the length of the next own frame, if
    /// there is one, and is asked when it is the turn of own traffic.
    fn next(&mut self, own: impl FnOnce() -> Option<usize>) -> Option<NextFrame> {
        if !self.in_train
            && (self.is_empty() || self.ahead_bytes == 0)
            && let Some(length) = own()
        {
            self.ahead_bytes = TRANSIT_SHARE * length as u64;
            return Some(NextFrame::Own(length));
        }
        let frame = self.waiting.pop_front()?;
        self.held_bytes -= frame.len();
        self.in_train = is_followed(&frame);
        self.note_sent(frame.len());
        Some(NextFrame::InTransit(frame))
    }

    /// An own frame is sent that leaves them no turn: it belongs to a train.
    fn note_own(&mut self, bytes: usize) {
        self.ahead_bytes += TRANSIT_SHARE * bytes as u64;
    }

    /// A frame has been sent on, perhaps without waiting.
    pub fn note_sent(&mut self, bytes: usize) {
        self.counters.frames += 1;
        self.counters.bytes += bytes as u64;
        self.ahead_bytes = self.ahead_bytes.saturating_sub(bytes as u64);
    }
}

/// Whether more frames of its worm come behind it.
fn is_followed(frame: &[u8]) -> bool {
    let flags = frame.get(ETHERNET_LENGTH + 1).copied().unwrap_or(0);
    flags & (flags::TRAIN | flags::TAIL) == flags::TRAIN
}

/// A frame to be sent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum NextFrame {
    /// An own one: so many bytes at the front of the buffer.
    Own(usize),
    InTransit(Vec<u8>),
}

/// All that an agent has to send.
pub struct Outgoing<'a> {
    /// Worms of others.
    pub transit: &'a mut Transit,
    /// Whether the first switch takes any of it.
    pub flow: &'a mut FlowControl,
    /// Couples own worms.
    pub trains: &'a mut Trains,
    /// When the next of them may go.
    pub pacing: &'a mut Pacing,
    /// Own traffic, once the agent is a host.
    pub engine: Option<&'a mut Engine>,
}

impl Outgoing<'_> {
    /// The next frame to be sent, if there is one. Own ones are written to the front of `buf`, which
    /// must have [`Engine::frame_length_max`] bytes.
    pub fn poll_transmit(&mut self, now: Instant, buf: &mut [u8]) -> Option<NextFrame> {
        if self.flow.holds(now) {
            return None;
        }
        let (engine, trains) = (&mut self.engine, &mut *self.trains);
        let others_wait = !self.transit.is_empty();
        let is_open = trains.is_open();
        // A train that is open holds channels: its frames do not wait.
        let waits = !is_open && self.pacing.holds(now);
        let mut own = || {
            if waits {
                return None;
            }
            let poll = |buf: &mut [u8]| engine.as_mut()?.poll_transmit(now, buf);
            trains.next(others_wait, poll, buf)
        };
        let next = if is_open {
            let length = own()?;
            self.transit.note_own(length);
            NextFrame::Own(length)
        } else {
            self.transit.next(own)?
        };
        if let NextFrame::Own(length) = next {
            self.pacing.note_sent(length, now);
        }
        self.flow.note_sent(now);
        Some(next)
    }
}

#[cfg(test)]
mod tests;
