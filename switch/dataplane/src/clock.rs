//! Time as the switch counts it.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// Microseconds since the switch started, and what they are in the calendar.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    start: Instant,
    start_unix_us: u64,
}

impl Clock {
    pub fn start() -> Self {
        let since = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        Self {
            start: Instant::now(),
            start_unix_us: since.as_micros() as u64,
        }
    }

    /// Microseconds since the start; never falls back.
    pub fn now_us(&self) -> u64 {
        self.start.elapsed().as_micros() as u64
    }

    /// Microseconds since the start of 1970, for a time of this clock.
    pub fn unix_us(&self, now_us: u64) -> u64 {
        self.start_unix_us + now_us
    }
}
