//! Frames on their way from the engine to the socket.
//!
//! The engine is asked for frames only while the kernel takes them, so nothing queues here
//! but the rest of one batch, and what the engine sends next is always its newest choice.

use crate::link::{BATCH_FRAMES_MAX, PacketSocket, SendBlocked};
use wormcast_protocol::{Engine, Instant};

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
    /// A time.
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
    lengths: [usize; BATCH_FRAMES_MAX],
    start: usize,
    end: usize,
    queue_pause_us: u64,
    pub(super) blocked: Blocked,
    pub(super) counters: TransmitCounters,
}

impl TransmitBatch {
    /// For frames of up to `frame_bytes_max`.
    pub(super) fn new(frame_bytes_max: usize) -> Self {
        let slot_bytes = frame_bytes_max.next_multiple_of(64);
        Self {
            slots: vec![0; slot_bytes * BATCH_FRAMES_MAX].into_boxed_slice(),
            slot_bytes,
            lengths: [0; BATCH_FRAMES_MAX],
            start: 0,
            end: 0,
            queue_pause_us: QUEUE_PAUSE_US_MIN,
            blocked: Blocked::No,
            counters: TransmitCounters::default(),
        }
    }

    /// Sends what waits and what the engine has, until the kernel or the engine has
    /// enough. True if the engine may have more right now.
    pub(super) fn flush(
        &mut self,
        engine: &mut Engine,
        socket: &PacketSocket,
        now: Instant,
    ) -> bool {
        for _ in 0..BATCHES_MAX {
            if self.is_blocked(now) {
                return false;
            }
            let full = self.fill(engine, now);
            if self.start == self.end {
                return false;
            }
            self.counters.batches += 1;
            while self.start < self.end && self.blocked == Blocked::No {
                self.send_rest(socket, now);
            }
            if !full && self.blocked == Blocked::No {
                return false;
            }
        }
        self.blocked == Blocked::No
    }

    /// The socket is writable again.
    pub(super) fn on_writable(&mut self) {
        if self.blocked == Blocked::Socket {
            self.blocked = Blocked::No;
        }
    }

    /// The interface is up again; frames from before are not worth sending.
    pub(super) fn on_link_up(&mut self) {
        self.counters.link_down += (self.end - self.start) as u64;
        self.start = self.end;
        self.blocked = Blocked::No;
    }

    /// True after the discipline has refused frames for a while: the link may be down
    /// without the socket being told.
    pub(super) fn is_starved(&self) -> bool {
        self.queue_pause_us >= QUEUE_PAUSE_US_MAX
    }

    fn is_blocked(&mut self, now: Instant) -> bool {
        if let Blocked::Until(time) = self.blocked
            && time <= now
        {
            self.blocked = Blocked::No;
        }
        self.blocked != Blocked::No
    }

    /// Takes frames from the engine if none wait. True if the batch is full.
    fn fill(&mut self, engine: &mut Engine, now: Instant) -> bool {
        if self.start < self.end {
            return true;
        }
        self.start = 0;
        self.end = 0;
        for (slot, length) in self
            .slots
            .chunks_exact_mut(self.slot_bytes)
            .zip(&mut self.lengths)
        {
            let Some(transmit) = engine.poll_transmit(now, slot) else {
                return false;
            };
            *length = transmit.length;
            self.end += 1;
        }
        true
    }

    fn send_rest(&mut self, socket: &PacketSocket, now: Instant) {
        let mut frames: [[&[u8]; 2]; BATCH_FRAMES_MAX] = [[&[]; 2]; BATCH_FRAMES_MAX];
        let waiting = self.start..self.end;
        for (frame, index) in frames.iter_mut().zip(waiting.clone()) {
            let start = index * self.slot_bytes;
            frame[0] = &self.slots[start..start + self.lengths[index]];
        }
        match socket.send(&frames[..waiting.len()]) {
            Ok(sent) => {
                let bytes: usize = self.lengths[self.start..self.start + sent].iter().sum();
                self.counters.frames += sent as u64;
                self.counters.bytes += bytes as u64;
                self.start += sent;
                self.queue_pause_us = QUEUE_PAUSE_US_MIN;
            }
            Err(SendBlocked::Buffer) => {
                self.counters.socket_full += 1;
                self.blocked = Blocked::Socket;
            }
            Err(SendBlocked::Queue) => {
                self.counters.queue_full += 1;
                self.blocked = Blocked::Until(now.plus_us(self.queue_pause_us));
                self.queue_pause_us = (self.queue_pause_us * 2).min(QUEUE_PAUSE_US_MAX);
            }
            Err(SendBlocked::Down) => {
                self.counters.link_down += (self.end - self.start) as u64;
                self.start = self.end;
                self.blocked = Blocked::LinkDown;
            }
            Err(SendBlocked::TooLong) => {
                self.counters.too_long += 1;
                self.start += 1;
            }
            Err(SendBlocked::System(error)) => {
                if self.counters.failed == 0 {
                    crate::log::warning!(
                        "a frame could not be sent ({error}); others like it are only counted"
                    );
                }
                self.counters.failed += 1;
                self.start += 1;
            }
        }
    }
}
