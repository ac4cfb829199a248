//! Trains of own worms (wire/SPEC.md §2.3): frames that go one way, one after another, as one worm.
//!
//! No frame is held back to wait for more. When a frame is to be sent, the next one that is ready is looked at: if it
//! may follow in the same train it does, else the frame is the last. So a head leaves only when its tail, or a
//! frame before the tail, is ready too, and while a train is open the next frame of it is always here. Nothing else
//! goes out before it, since a channel carries one worm at a time.
//!
//! What has been sent once before never goes in a train: what trains lose gets there without them.
//!
//! A frame that is interrupted on its way goes on with the route in front (§3.1). So a frame is coupled only where it
//! has room for both, its route and the header of trains, though only the first leaves with the route.

mod arriving;
mod fragments;

pub use arriving::{ArrivalCounters, Arrivals, TRAINS_ARRIVING_MAX, Taken};
pub use fragments::FragmentCounters;

use wormcast_protocol::{Instant, Transmit};
use wormcast_wire::ETHERNET_LENGTH;
use wormcast_wire::worm::{self, Kind};
use wormcast_wire::wormhole::train::{Place, TRAIN_LENGTH, couple, share_a_train};

/// Silence after which a train is forgotten, µs: longer than switches keep its channel for it.
pub const TRAIN_SILENT_US: u64 = 2_000_000;

/// Frames of a train at most, whatever the plan says.
pub const TRAIN_FRAMES_MAX: u16 = 64;

/// What was sent in trains since the start.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TrainCounters {
    /// Trains that were begun.
    pub sent: u64,
    pub frames: u64,
}

/// A train whose tail is not sent yet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Open {
    sequence: u16,
    /// Position of its next frame.
    next: u16,
}

/// Couples own worms into trains.
#[derive(Debug, Default)]
pub struct Trains {
    /// Frames of a UNICAST train at most; 0 and 1: no trains.
    unicast_frames_most: u16,
    /// The same of any other train.
    other_frames_most: u16,
    /// The frame that is sent next, in `frame`.
    ahead: Option<Transmit>,
    frame: Vec<u8>,
    open: Option<Open>,
    counters: TrainCounters,
}

impl Trains {
    /// UNICAST trains and others have at most so many frames from now on; 1: there are none. One that is open and has
    /// as many ends with its next frame.
    pub fn set_frames_most(&mut self, unicast: u16, other: u16) {
        self.unicast_frames_most = unicast.min(TRAIN_FRAMES_MAX);
        self.other_frames_most = other.min(TRAIN_FRAMES_MAX);
    }

    /// Forgets what is to be sent, of an engine that is gone.
    pub fn clear(&mut self) {
        self.ahead = None;
        self.open = None;
    }

    /// Whether a train is open: nothing else is to be sent before its next frame.
    pub fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// When to send; none if no frame is here.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.ahead.map(|_| Instant::ZERO)
    }

    /// A worm of this host was reset. What is not sent of it yet is a worm of its own.
    pub fn reset(&mut self, sequence: u16) {
        if self.open.is_some_and(|open| open.sequence == sequence) {
            self.open = None;
        }
    }

    /// What was sent so far.
    pub fn counters(&self) -> TrainCounters {
        self.counters
    }

    /// Writes the next frame to the front of `buf` and gives its length. `poll` gives the next worm of one frame, if
    /// one is ready. Where others wait for the link a train ends.
    pub fn next(
        &mut self,
        others_wait: bool,
        mut poll: impl FnMut(&mut [u8]) -> Option<Transmit>,
        buf: &mut [u8],
    ) -> Option<usize> {
        let first = match self.ahead.take() {
            Some(ahead) => {
                buf[..ahead.length].copy_from_slice(&self.frame[..ahead.length]);
                ahead
            }
            None => poll(buf)?,
        };
        let open = self.open.take();
        let position = open.map_or(0, |open| open.next);
        let frames_most = if is_unicast(&buf[..first.length]) {
            self.unicast_frames_most
        } else {
            self.other_frames_most
        };
        let may_go_on = !others_wait && position + 1 < frames_most && fits_in_a_train(&first);
        if may_go_on {
            self.frame.resize(buf.len(), 0);
            self.ahead = poll(&mut self.frame);
        }
        let goes_on = self.ahead.is_some_and(|next| {
            let frames = (&buf[..first.length], &self.frame[..next.length]);
            fits_in_a_train(&next) && share_a_train(frames.0, frames.1)
        });
        if position == 0 && !goes_on {
            return Some(first.length);
        }
        let sequence = match open {
            Some(open) => open.sequence,
            None => worm::sequence_of(&buf[..first.length]),
        };
        let place = Place {
            sequence,
            position,
            is_last: !goes_on,
        };
        let coupled = couple(buf, first.length, place);
        let length = coupled.expect("a sound worm for which there is room");
        self.counters.sent += u64::from(position == 0);
        self.counters.frames += 1;
        self.open = goes_on.then_some(Open {
            sequence,
            next: position + 1,
        });
        Some(length)
    }
}

fn fits_in_a_train(worm: &Transmit) -> bool {
    worm.length + TRAIN_LENGTH <= worm.train_bytes_max
}

fn is_unicast(worm: &[u8]) -> bool {
    (worm.get(ETHERNET_LENGTH)).is_some_and(|first| first & 0xF == Kind::Unicast as u8)
}

#[cfg(test)]
mod tests;
