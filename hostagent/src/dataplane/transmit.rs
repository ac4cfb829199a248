//! Frames on their way from the agent to the socket.
//!
//! The agent is asked for frames only while the kernel takes them, so nothing queues here
//! but the rest of one batch, and what the engine sends next is always its newest choice.
//! Worms in transit go out from where they were received, as long as nothing waits.

use super::refused::Refused;
use crate::link::{BATCH_FRAMES_MAX, PacketSocket, SendBlocked, batch_frames};
use wormcast_agent_core::transit::{NextFrame, Outgoing};
use wormcast_protocol::Instant;

/// First pause after the queueing discipline dropped a frame, µs; doubles up to
/// [`QUEUE_PAUSE_US_MAX`].
const QUEUE_PAUSE_US_MIN: u64 = 250;
/// Longest such pause, µs.
const QUEUE_PAUSE_US_MAX: u64 = 4_000;
/// Batches sent before receiving has its turn again.
const BATCHES_MAX: usize = 4;

/// What transmission waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Blocked {
    /// Nothing: the engine has nothing to send now, or the turn is over.
    No,
    /// The socket to become writable.
    Socket,
    Until(Instant),
    /// The interface to come up.
    LinkDown,
}

/// Figures of the link's sending side.
#[derive(Default)]
pub(super) struct TransmitCounters {
    pub(super) frames: u64,
    pub(super) bytes: u64,
    pub(super) batches: u64,
    pub(super) socket_full: u64,
    pub(super) queue_full: u64,
    pub(super) too_long: u64,
    pub(super) failed: u64,
    pub(super) link_down: u64,
}

/// One batch of frames, part of which may wait for the kernel.
pub(super) struct TransmitBatch {
    slots: Box<[u8]>,
    slot_bytes: usize,
    /// An own frame is in the slot of the same place.
    frames: Vec<NextFrame>,
    /// The first that the kernel does not have.
    start: usize,
    outlet: Outlet,
}

/// Where frames leave.
pub(super) struct Outlet {
    queue_pause_us: u64,
    refused: Refused,
    pub(super) blocked: Blocked,
    pub(super) counters: TransmitCounters,
}

impl TransmitBatch {
    /// For own frames of up to `frame_bytes_max`.
    pub(super) fn new(frame_bytes_max: usize) -> Self {
        let slot_bytes = frame_bytes_max.next_multiple_of(64);
        Self {
            slots: vec![0; slot_bytes * batch_frames(slot_bytes)].into_boxed_slice(),
            slot_bytes,
            frames: Vec::with_capacity(BATCH_FRAMES_MAX),
            start: 0,
            outlet: Outlet {
                queue_pause_us: QUEUE_PAUSE_US_MIN,
                refused: Refused::default(),
                blocked: Blocked::No,
                counters: TransmitCounters::default(),
            },
        }
    }

    pub(super) fn blocked(&self) -> Blocked {
        self.outlet.blocked
    }

    /// What was sent so far.
    pub(super) fn counters(&self) -> &TransmitCounters {
        &self.outlet.counters
    }

    /// Sends frames from where they lie, if nothing waits before them. Gives how many it is done
    /// with; the others are to wait.
    pub(super) fn send_at_once(
        &mut self,
        frames: &[[&[u8]; 2]],
        socket: &PacketSocket,
        now: Instant,
    ) -> usize {
        if self.is_waiting() {
            return 0;
        }
        let mut done = 0;
        while done < frames.len() && !self.outlet.is_blocked(now) {
            self.outlet.counters.batches += 1;
            done += self.outlet.send(&frames[done..], socket, now);
        }
        done
    }

    fn is_waiting(&self) -> bool {
        self.start < self.frames.len()
    }

    /// Sends what waits and what the agent has, until the kernel or the agent has
    /// enough.
    pub(super) fn flush(
        &mut self,
        outgoing: &mut Outgoing<'_>,
        socket: &PacketSocket,
        now: Instant,
    ) {
        for _ in 0..BATCHES_MAX {
            if self.outlet.is_blocked(now) {
                return;
            }
            let full = self.fill(outgoing, now);
            if !self.is_waiting() {
                return;
            }
            self.outlet.counters.batches += 1;
            while self.is_waiting() && self.outlet.blocked == Blocked::No {
                self.send_rest(socket, now);
            }
            if !full {
                return;
            }
        }
    }

    /// The socket is writable again.
    pub(super) fn on_writable(&mut self) {
        if self.outlet.blocked == Blocked::Socket {
            self.outlet.blocked = Blocked::No;
        }
    }

    /// The interface is up again; frames from before are not worth sending: they count as lost on the way.
    pub(super) fn on_link_up(&mut self) {
        self.outlet.counters.link_down += (self.frames.len() - self.start) as u64;
        self.start = self.frames.len();
        self.outlet.refused.forget_first();
        self.outlet.blocked = Blocked::No;
    }

    /// True after the discipline has refused frames for a while: the link may be down
    /// without a notice to the socket.
    pub(super) fn is_starved(&self) -> bool {
        self.outlet.queue_pause_us >= QUEUE_PAUSE_US_MAX
    }

    /// Takes frames from the agent if none wait. True if the batch is full.
    fn fill(&mut self, outgoing: &mut Outgoing<'_>, now: Instant) -> bool {
        if self.is_waiting() {
            return true;
        }
        self.start = 0;
        self.frames.clear();
        for slot in self.slots.chunks_exact_mut(self.slot_bytes) {
            let Some(frame) = outgoing.poll_transmit(now, slot) else {
                return false;
            };
            self.frames.push(frame);
        }
        true
    }

    fn send_rest(&mut self, socket: &PacketSocket, now: Instant) {
        let mut frames: [[&[u8]; 2]; BATCH_FRAMES_MAX] = [[&[]; 2]; BATCH_FRAMES_MAX];
        let slots = self.slots.chunks_exact(self.slot_bytes);
        let waiting = slots.zip(&self.frames).skip(self.start);
        for (frame, (slot, next)) in frames.iter_mut().zip(waiting) {
            frame[0] = match next {
                NextFrame::Own(length) => &slot[..*length],
                NextFrame::InTransit(worm) => worm,
            };
        }
        let count = self.frames.len() - self.start;
        self.start += self.outlet.send(&frames[..count], socket, now);
    }
}

impl Outlet {
    fn is_blocked(&mut self, now: Instant) -> bool {
        if let Blocked::Until(time) = self.blocked
            && time <= now
        {
            self.blocked = Blocked::No;
        }
        self.blocked != Blocked::No
    }

    /// Hands frames to the kernel. Gives how many it is done with: sent, or lost for good.
    fn send(&mut self, frames: &[[&[u8]; 2]], socket: &PacketSocket, now: Instant) -> usize {
        match socket.send(frames) {
            Ok(sent) => {
                let lengths = || frames[..sent].iter().map(length);
                let bytes: usize = lengths().sum();
                self.refused.note_taken(lengths().max().unwrap_or_default());
                self.counters.frames += sent as u64;
                self.counters.bytes += bytes as u64;
                self.queue_pause_us = QUEUE_PAUSE_US_MIN;
                sent
            }
            Err(SendBlocked::Buffer) => {
                self.counters.socket_full += 1;
                self.blocked = Blocked::Socket;
                0
            }
            Err(SendBlocked::Queue) => {
                self.counters.queue_full += 1;
                if self.refused.is_for_good(length(&frames[0])) {
                    self.counters.too_long += 1;
                    return 1;
                }
                self.blocked = Blocked::Until(now.plus_us(self.queue_pause_us));
                self.queue_pause_us = (self.queue_pause_us * 2).min(QUEUE_PAUSE_US_MAX);
                0
            }
            Err(SendBlocked::Down) => {
                self.refused.forget_first();
                self.counters.link_down += frames.len() as u64;
                self.blocked = Blocked::LinkDown;
                frames.len()
            }
            Err(SendBlocked::TooLong) => {
                if self.counters.too_long == 0 {
                    crate::log::warning!(
                        "the interface does not take a frame of {} bytes: its MTU has become smaller than this \
                         agent's, which keeps to the one it started with; others like it are only counted",
                        length(&frames[0])
                    );
                }
                self.counters.too_long += 1;
                1
            }
            Err(SendBlocked::System(error)) => {
                if self.counters.failed == 0 {
                    crate::log::warning!(
                        "a frame could not be sent ({error}); others like it are only counted"
                    );
                }
                self.counters.failed += 1;
                1
            }
        }
    }
}

fn length(frame: &[&[u8]; 2]) -> usize {
    frame.iter().map(|part| part.len()).sum()
}
