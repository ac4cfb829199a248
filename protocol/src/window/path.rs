//! What a sender knows about the path to one child: round-trip times (RFC 6298)
//! and the queueing delay of the way there (RFC 6817 §3.4, RFC 6582 aside: the way
//! back does not count, so a child's own full uplink does not slow its parent).

use crate::time::Instant;

/// A least value counts for one to two of these.
const WINDOW_US: u64 = 5_000_000;
/// Round trip assumed before the first is measured.
const RTT_INITIAL_US: u64 = 20_000;

/// The least of the samples of the last [`WINDOW_US`] to twice that, so that a
/// route that became longer is believed after a while.
#[derive(Clone, Debug, Default)]
struct WindowedMin {
    current: Option<i64>,
    before: Option<i64>,
    since: Instant,
}

impl WindowedMin {
    fn add(&mut self, value: i64, now: Instant) {
        if now.since_us(self.since) >= WINDOW_US {
            self.before = self.current.take();
            self.since = now;
        }
        self.current = Some(self.current.map_or(value, |least| least.min(value)));
    }

    fn get(&self) -> Option<i64> {
        match (self.current, self.before) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }
}

/// Measurements of the path to one child.
#[derive(Clone, Debug)]
pub(crate) struct Path {
    smoothed_us: Option<u64>,
    variation_us: u64,
    rtt_least: WindowedMin,
    forward_origin: Option<u32>,
    forward_least: WindowedMin,
    /// Least forward delay since the round began, relative to the first one seen.
    round_forward: Option<i64>,
    round_rtt_us: Option<u64>,
    round_samples: u32,
}

/// Samples that make a round.
const ROUND_SAMPLES: u32 = 3;

impl Path {
    pub fn new() -> Path {
        Path {
            smoothed_us: None,
            variation_us: 0,
            rtt_least: WindowedMin::default(),
            forward_origin: None,
            forward_least: WindowedMin::default(),
            round_forward: None,
            round_rtt_us: None,
            round_samples: 0,
        }
    }

    /// A round trip, without the time the child held the ACK back, and the forward
    /// delay the child measured. They count for the round if `settled`.
    pub fn add(&mut self, rtt_us: u64, forward_delay_us: u32, settled: bool, now: Instant) {
        match self.smoothed_us {
            None => {
                self.smoothed_us = Some(rtt_us);
                self.variation_us = rtt_us / 2;
            }
            Some(smoothed) => {
                self.variation_us = (3 * self.variation_us + smoothed.abs_diff(rtt_us)) / 4;
                self.smoothed_us = Some((7 * smoothed + rtt_us) / 8);
            }
        }
        self.rtt_least.add(rtt_us as i64, now);
        let origin = *self.forward_origin.get_or_insert(forward_delay_us);
        let forward = i64::from(forward_delay_us.wrapping_sub(origin) as i32);
        self.forward_least.add(forward, now);
        if !settled {
            return;
        }
        self.round_samples += 1;
        self.round_forward = Some(
            self.round_forward
                .map_or(forward, |least| least.min(forward)),
        );
        self.round_rtt_us = Some(self.round_rtt_us.map_or(rtt_us, |least| least.min(rtt_us)));
    }

    /// Forget the delays: the route has changed.
    pub fn forget_delays(&mut self) {
        self.rtt_least = WindowedMin::default();
        self.forward_least = WindowedMin::default();
        self.forward_origin = None;
        self.round_forward = None;
        self.round_rtt_us = None;
        self.round_samples = 0;
    }

    /// Whether enough has been measured for a round.
    pub fn has_round(&self) -> bool {
        self.round_samples >= ROUND_SAMPLES
    }

    /// Smoothed round trip, µs.
    pub fn rtt_us(&self) -> u64 {
        self.smoothed_us.unwrap_or(RTT_INITIAL_US).max(1)
    }

    /// Least round trip of late, µs.
    pub fn rtt_least_us(&self) -> u64 {
        self.rtt_least.get().unwrap_or(RTT_INITIAL_US as i64) as u64
    }

    /// Time without an answer after which a child is probed (RFC 8985 §7.2): a
    /// round trip, its variation, and the longest an ACK is held back.
    pub fn probe_us(&self, ack_delay_us: u64) -> u64 {
        let spread = (4 * self.variation_us).max(1_000);
        self.rtt_us() + spread + 2 * ack_delay_us
    }

    /// Ends a round: least queueing delay on the way there, and least round trip in
    /// it, if anything was measured.
    pub fn end_round(&mut self) -> Option<(u64, u64)> {
        self.round_samples = 0;
        let forward = self.round_forward.take()?;
        let rtt = self.round_rtt_us.take()?;
        let least = self.forward_least.get()?;
        Some(((forward - least).max(0) as u64, rtt))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_longer_route_is_believed_after_the_window() {
        let mut path = Path::new();
        let mut now = Instant::ZERO;
        path.add(1_000, 500, true, now);
        for _ in 0..30 {
            now = now.plus_us(100_000);
            path.add(3_000, 2_500, true, now);
        }
        assert_eq!(path.rtt_least_us(), 1_000);
        path.end_round();
        path.add(3_000, 2_500, true, now);
        assert_eq!(
            path.end_round(),
            Some((2_000, 3_000)),
            "two ms seem to be queueing"
        );
        for _ in 0..120 {
            now = now.plus_us(100_000);
            path.add(3_000, 2_500, true, now);
        }
        path.end_round();
        path.add(3_000, 2_500, true, now);
        assert_eq!(
            path.end_round(),
            Some((0, 3_000)),
            "they belong to the route"
        );
    }

    #[test]
    fn an_offset_between_the_clocks_and_its_wrap_do_not_matter() {
        let mut path = Path::new();
        for delay in [u32::MAX - 100, u32::MAX - 50, 900] {
            path.add(1_000, delay, true, Instant::ZERO);
        }
        path.end_round();
        path.add(1_000, 900, true, Instant::ZERO);
        assert_eq!(path.end_round(), Some((1_001, 1_000)));
    }
}
