//! How fast this host may send what is its own: data, acknowledgements, repairs, whatever it says; and how fast a
//! sender's messages may go.
//!
//! The plan, or the sender, says how many bytes a second. They are saved up for [`SAVED_US`], and for [`SAVED_BYTES_MIN`] in any case, so a
//! host that wakes late still sends as much as it may. A frame goes while anything is left, a train as a whole: it owes
//! what was not there, and the next waits until that is paid. So a switch that polices the same rate, and takes more at
//! once than that, drops nothing of an agent. Worms in transit are not this host's: routes go through no host
//! that has a rate, and what is still on its way there is sent on at once.

use std::ops::RangeInclusive;
use wormcast_protocol::Instant;

/// For how long a rate is saved up, µs.
pub const SAVED_US: u64 = 20_000;
/// Bytes that are saved up in any case: some frames.
pub const SAVED_BYTES_MIN: u64 = 16 << 10;
/// Most bytes a second that a plan can say: 1 Tb/s.
pub const RATE_BYTES_MAX: u64 = 125_000_000_000;
/// What a sender may ask for as its rate, and what a group may have, bits a second.
pub const RATE_BITS: RangeInclusive<u64> = 8_000..=8 * RATE_BYTES_MAX;

const US_PER_SECOND: u64 = 1_000_000;

/// What the rate has left.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Pacing {
    /// Bytes a second; none: any.
    rate: Option<u64>,
    /// When all that was sent is paid. What is saved up is that long ago.
    open_at: Instant,
    /// Bytes, times the µs of a second, that are still to be paid at that moment: less than a µs takes.
    rest: u64,
    waits: u64,
}

impl Pacing {
    /// So many bytes a second from now on; none: any. Another rate begins with all saved up.
    pub fn set_rate(&mut self, rate: Option<u64>) {
        if self.rate != rate {
            (self.rate, self.open_at, self.rest) = (rate, Instant::ZERO, 0);
        }
    }

    /// When the next own frame may be sent. The past, if it may be now.
    pub fn open_at(&self) -> Instant {
        self.open_at.plus_us(u64::from(self.rest > 0))
    }

    /// Whether no own frame may be sent now.
    pub fn holds(&self, now: Instant) -> bool {
        self.open_at() > now
    }

    /// How many of so many bytes are given at once, so that they do not go in a heap.
    pub fn piece(&self, bytes: usize) -> usize {
        let Some(rate) = self.rate else { return bytes };
        let saved = (rate * SAVED_US / US_PER_SECOND).max(SAVED_BYTES_MIN);
        bytes.min(usize::try_from(saved).unwrap_or(usize::MAX))
    }

    /// An own frame is sent, of so many bytes with its Ethernet header.
    pub fn note_sent(&mut self, bytes: usize, now: Instant) {
        let Some(rate) = self.rate else { return };
        let saved_us = (SAVED_BYTES_MIN * US_PER_SECOND / rate).max(SAVED_US);
        let oldest = Instant::from_micros(now.as_micros().saturating_sub(saved_us));
        let owed = bytes as u64 * US_PER_SECOND + self.rest;
        self.open_at = self.open_at.max(oldest).plus_us(owed / rate);
        self.rest = owed % rate;
        self.waits += u64::from(self.holds(now));
    }

    /// Frames since the start behind which the next own one had to wait.
    pub fn waits(&self) -> u64 {
        self.waits
    }
}

#[cfg(test)]
mod tests;
