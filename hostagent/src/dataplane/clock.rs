//! The data plane's clock: the time it has lived through.
//!
//! A process that was stopped, or got no processor for seconds, heard nobody meanwhile
//! and served nobody: that time is nobody else's silence. So it does not count.

use std::time::Instant as Monotonic;
use wormcast_protocol::Instant;

/// Longest delay of a wake-up or a turn that counts as time lived, µs. A loaded machine
/// wakes a thread some milliseconds late; later than this it was not running.
const LATE_US_MAX: u64 = 250_000;

/// A monotone clock without the pauses of its process.
pub(super) struct LivedClock {
    read_at: Monotonic,
    lived_us: u64,
    /// Time that did not count, µs.
    pub(super) paused_us: u64,
}

impl LivedClock {
    pub(super) fn new() -> Self {
        Self {
            read_at: Monotonic::now(),
            lived_us: 0,
            paused_us: 0,
        }
    }

    /// Now, after work that should have taken no time to speak of.
    pub(super) fn read(&mut self) -> Instant {
        self.read_after(0)
    }

    /// Now, after a sleep meant to end within `planned_us`.
    pub(super) fn read_after(&mut self, planned_us: u64) -> Instant {
        let at = Monotonic::now();
        let passed_us = at.duration_since(self.read_at).as_micros() as u64;
        // What is less than a microsecond waits for the next reading.
        self.read_at += std::time::Duration::from_micros(passed_us);
        self.pass(passed_us, planned_us)
    }

    fn pass(&mut self, passed_us: u64, planned_us: u64) -> Instant {
        let counted_us = passed_us.min(planned_us.saturating_add(LATE_US_MAX));
        self.lived_us += counted_us;
        self.paused_us += passed_us - counted_us;
        Instant::from_micros(self.lived_us)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_counts_as_a_late_wake_up_and_no_more() {
        let mut clock = LivedClock::new();
        assert_eq!(clock.pass(300, 0).as_micros(), 300);
        assert_eq!(clock.pass(2_000_000, 2_000_000).as_micros(), 2_000_300);
        // Stopped for a minute in the midst of a sleep of a second.
        let after = clock.pass(60_000_000, 1_000_000).as_micros();
        assert_eq!(after, 2_000_300 + 1_000_000 + LATE_US_MAX);
        assert_eq!(clock.paused_us, 59_000_000 - LATE_US_MAX);
    }
}
