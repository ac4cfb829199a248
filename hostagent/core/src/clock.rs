//! The time an agent has lived through.
//!
//! A process that was stopped, or got no processor for seconds, heard nobody meanwhile
//! and served nobody: that time is nobody else's silence. So it does not count.

use wormcast_protocol::Instant;

/// Longest delay of a wake-up or a turn that counts as time lived, µs. A loaded machine
/// wakes a thread some milliseconds late; later than this it was not running.
const LATE_US_MAX: u64 = 250_000;

/// Time without the pauses of the process.
#[derive(Debug, Default)]
pub struct LivedClock {
    lived_us: u64,
    paused_us: u64,
}

impl LivedClock {
    /// Now, when `passed_us` have passed since the last call, of which `planned_us` were to be slept.
    pub fn pass(&mut self, passed_us: u64, planned_us: u64) -> Instant {
        let counted_us = passed_us.min(planned_us.saturating_add(LATE_US_MAX));
        self.lived_us += counted_us;
        self.paused_us += passed_us - counted_us;
        Instant::from_micros(self.lived_us)
    }

    /// Time since the start, with the pauses, µs.
    pub fn passed_us(&self) -> u64 {
        self.lived_us + self.paused_us
    }

    /// Time that did not count, µs.
    pub fn paused_us(&self) -> u64 {
        self.paused_us
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_counts_as_a_late_wake_up_and_no_more() {
        let mut clock = LivedClock::default();
        assert_eq!(clock.pass(300, 0).as_micros(), 300);
        assert_eq!(clock.pass(2_000_000, 2_000_000).as_micros(), 2_000_300);
        // Stopped for a minute in the midst of a sleep of a second.
        let after = clock.pass(60_000_000, 1_000_000).as_micros();
        assert_eq!(after, 2_000_300 + 1_000_000 + LATE_US_MAX);
        assert_eq!(clock.paused_us(), 59_000_000 - LATE_US_MAX);
        assert_eq!(clock.passed_us(), 62_000_300);
    }
}
