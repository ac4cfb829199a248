//! STOP, GO and RESET of wormhole mode (wire/SPEC.md §3.1): whether the first switch takes frames now.
//!
//! A STOP holds all worms that this host sends, those in transit too, until a GO or until its time is over. So a lost
//! GO costs no more than that. A switch that says STOP again and again still gets some frames every [`HOLD_US_MAX`]:
//! it delays this host, and makes nobody take it for dead.
//!
//! A RESET says that a worm of this host came to its end on its way. What was sent of it is repaired as any loss, what
//! was not is sent as another worm.

use wormcast_protocol::Instant;
use wormcast_wire::HostId;
use wormcast_wire::wormhole::signal::{self, Signal};

/// Longest time that a STOP holds, whatever it says, and longest time without a frame while STOPs come, µs.
pub const HOLD_US_MAX: u64 = 1_000_000;
/// Frames that pass then, at most. Enough for a word to each child, or those that are asked first would be all that hear.
pub const OVERDUE_FRAMES_MAX: u32 = 32;
/// Of STOP and GO: they come from the switch at the other end of the link. More: another host made them.
const NEIGHBOUR_HOPS: u8 = 1;

/// Counts of signals since the start.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct FlowCounters {
    pub stops: u64,
    /// Frames sent though STOP held, [`OVERDUE_FRAMES_MAX`] every [`HOLD_US_MAX`].
    pub overdue: u64,
    /// Worms of this host that were reset.
    pub resets: u64,
    /// Control headers that were damaged or said nothing known, STOP or GO of another than the neighbour, RESET of
    /// another host's worm.
    pub refused: u64,
    /// Time that STOPs hold, what is still to come of it included, µs.
    held_us: u64,
}

/// What the first switch takes.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct FlowControl {
    /// The time of the last STOP is over.
    stopped_until: Instant,
    /// Since when no frame is sent because of STOPs.
    held_since: Instant,
    /// Frames that have passed since that time is over.
    passed: u32,
    counters: FlowCounters,
}

impl FlowControl {
    /// Takes a frame of which [`signal::is_signal`] holds. `own` is this host, once it is known. Gives the sequence of
    /// a worm of this host that was reset.
    pub fn take(&mut self, frame: &[u8], own: Option<HostId>, now: Instant) -> Option<u16> {
        let Some(received) = signal::decode(frame) else {
            self.counters.refused += 1;
            return None;
        };
        let is_near = received.hops <= NEIGHBOUR_HOPS;
        match received.signal {
            Signal::Stop(stop_us) if is_near => self.stop(stop_us.into(), now),
            Signal::Go if is_near => {
                self.counters.held_us -= self.left_us(now);
                self.stopped_until = self.stopped_until.min(now);
            }
            Signal::Reset(source, sequence) if Some(source) == own => {
                self.counters.resets += 1;
                return Some(sequence);
            }
            Signal::Stop(_) | Signal::Go | Signal::Reset(..) => self.counters.refused += 1,
        }
        None
    }

    fn stop(&mut self, stop_us: u64, now: Instant) {
        self.counters.stops += 1;
        if !self.is_stopped(now) {
            self.held_since = now;
            self.passed = 0;
        }
        // The last one counts, as at a switch.
        self.counters.held_us -= self.left_us(now);
        self.stopped_until = now.plus_us(stop_us.min(HOLD_US_MAX));
        self.counters.held_us += self.left_us(now);
    }

    fn left_us(&self, now: Instant) -> u64 {
        self.stopped_until.since_us(now)
    }

    /// When the next frame may be sent. The past, if it may be now.
    pub fn open_at(&self) -> Instant {
        self.stopped_until.min(self.held_since.plus_us(HOLD_US_MAX))
    }

    /// Whether a STOP is in force.
    pub fn is_stopped(&self, now: Instant) -> bool {
        self.stopped_until > now
    }

    /// Whether no frame may be sent now.
    pub fn holds(&self, now: Instant) -> bool {
        self.open_at() > now
    }

    pub fn note_sent(&mut self, now: Instant) {
        if self.is_stopped(now) {
            self.counters.overdue += 1;
            self.passed += 1;
            if self.passed == OVERDUE_FRAMES_MAX {
                self.held_since = now;
                self.passed = 0;
            }
        }
    }

    /// The counts so far.
    pub fn counters(&self) -> FlowCounters {
        self.counters
    }

    /// Time that STOPs held until now, µs.
    pub fn stopped_us(&self, now: Instant) -> u64 {
        self.counters.held_us - self.left_us(now)
    }
}

#[cfg(test)]
mod tests;
