//! The data plane's clock: the kernel's, without the pauses of this process.

use std::time::{Duration, Instant as Monotonic};
use wormcast_agent_core::clock::LivedClock;
use wormcast_protocol::Instant;

/// Reads the time lived.
pub(super) struct Clock {
    read_at: Monotonic,
    pub(super) lived: LivedClock,
}

impl Clock {
    pub(super) fn new() -> Self {
        Self {
            read_at: Monotonic::now(),
            lived: LivedClock::default(),
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
        self.read_at += Duration::from_micros(passed_us);
        self.lived.pass(passed_us, planned_us)
    }
}
