//! What a sender knows about the path to one child: round-trip times (RFC 6298)
//! and the queueing delay on the route there (RFC 6817 §3.4, RFC 6582 aside: the route
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

/// Queueing delay, estimated from one-way delays by two clocks that differ by any constant.
#[derive(Clone, Debug, Default)]
pub(crate) struct Queueing {
    first: Option<u32>,
    least: WindowedMin,
}

impl Queueing {
    /// By how much a delay exceeds the least of late, µs.
    pub fn add(&mut self, delay_us: u32, now: Instant) -> u64 {
        let first = *self.first.get_or_insert(delay_us);
        let relative_us = i64::from(delay_us.wrapping_sub(first) as i32);
        self.least.add(relative_us, now);
        (relative_us - self.least.get().unwrap_or(relative_us)).max(0) as u64
    }
}

/// Measurements of the path to one child.
#[derive(Clone, Debug)]
pub(crate) struct Path {
    smoothed_us: Option<u64>,
    variation_us: u64,
    rtt_least: WindowedMin,
    forward_origin: Option<u32>,
    forward: Vec<Forward>,
    round_rtt_us: Option<u64>,
    round_samples: u32,
}

/// Forward delays by one of the routes to a child, relative to the first one seen by any.
#[derive(Clone, Debug, Default)]
struct Forward {
    least: WindowedMin,
    /// The least since the round began.
    round: Option<i64>,
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
            forward: Vec::new(),
            round_rtt_us: None,
            round_samples: 0,
        }
    }

    /// A round trip, without the time the child held the ACK back, and the forward delay the
    /// child measured, with the route there if that is known. They count for the round if
    /// `settled`.
    pub fn add(&mut self, rtt_us: u64, forward: Option<(u8, u32)>, settled: bool, now: Instant) {
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
        if settled {
            self.round_samples += 1;
            self.round_rtt_us = Some(self.round_rtt_us.map_or(rtt_us, |least| least.min(rtt_us)));
        }
        let Some((route, delay_us)) = forward else {
            return;
        };
        let origin = *self.forward_origin.get_or_insert(delay_us);
        let delay = i64::from(delay_us.wrapping_sub(origin) as i32);
        let route = usize::from(route);
        if self.forward.len() <= route {
            self.forward.resize(route + 1, Forward::default());
        }
        let Forward { least, round } = &mut self.forward[route];
        least.add(delay, now);
        if settled {
            *round = Some(round.map_or(delay, |least| least.min(delay)));
        }
    }

    /// The sample added last, which counts for the round, was the least of as many packets as so many usual ACKs tell of.
    pub fn weigh(&mut self, acks: u32) {
        self.round_samples += acks.saturating_sub(1);
    }

    /// Forget the delays: the route has changed.
    pub fn forget_delays(&mut self) {
        self.rtt_least = WindowedMin::default();
        self.forward_origin = None;
        self.forward.clear();
        self.round_rtt_us = None;
        self.round_samples = 0;
    }

    /// How much longer the longest route takes than the shortest, µs, when queues are empty.
    pub fn spread_us(&self) -> u64 {
        let least = || {
            self.forward
                .iter()
                .filter_map(|forward| forward.least.get())
        };
        let spread = least()
            .max()
            .zip(least().min())
            .map(|(most, least)| most - least);
        spread.unwrap_or(0) as u64
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

    /// Ends a round: least queueing delay on the route there, and least round trip in
    /// it, if anything was measured.
    pub fn end_round(&mut self) -> Option<(u64, u64)> {
        self.round_samples = 0;
        let queued = |forward: &mut Forward| {
            let delay = forward.round.take()?;
            Some((delay - forward.least.get()?).max(0) as u64)
        };
        let least = self.forward.iter_mut().filter_map(queued).min();
        let rtt = self.round_rtt_us.take()?;
        Some((least?, rtt))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_longer_route_is_believed_after_the_window() {
        let mut path = Path::new();
        let mut now = Instant::ZERO;
        path.add(1_000, Some((0, 500)), true, now);
        for _ in 0..30 {
            now = now.plus_us(100_000);
            path.add(3_000, Some((0, 2_500)), true, now);
        }
        assert_eq!(path.rtt_least_us(), 1_000);
        path.end_round();
        path.add(3_000, Some((0, 2_500)), true, now);
        assert_eq!(
            path.end_round(),
            Some((2_000, 3_000)),
            "two ms seem to be queueing"
        );
        for _ in 0..120 {
            now = now.plus_us(100_000);
            path.add(3_000, Some((0, 2_500)), true, now);
        }
        path.end_round();
        path.add(3_000, Some((0, 2_500)), true, now);
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
            path.add(1_000, Some((0, delay)), true, Instant::ZERO);
        }
        path.end_round();
        path.add(1_000, Some((0, 900)), true, Instant::ZERO);
        assert_eq!(path.end_round(), Some((1_001, 1_000)));
    }

    #[test]
    fn a_way_that_is_longer_is_no_queue_and_what_came_by_no_known_way_says_nothing_of_one() {
        let mut path = Path::new();
        for (route, delay) in [(0, 500), (2, 4_500), (0, 600), (2, 4_550)] {
            path.add(1_000, Some((route, delay)), true, Instant::ZERO);
        }
        path.add(900, None, true, Instant::ZERO);
        assert_eq!(path.spread_us(), 4_000);
        assert_eq!(path.end_round(), Some((0, 900)));
        path.add(1_000, Some((2, 5_500)), true, Instant::ZERO);
        assert_eq!(path.end_round(), Some((1_000, 1_000)));
        path.add(1_000, None, true, Instant::ZERO);
        assert_eq!(path.end_round(), None);
    }
}
