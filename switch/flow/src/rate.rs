//! Token bucket: how fast a port may send.

use super::units::BitRate;

/// A token bucket that may go into debt: a frame is let go while the bucket is not
/// negative and is paid for afterwards, because its length is known only after egress.
///
/// Tokens are bits × 10⁶, so that one microsecond earns a whole number of them.
#[derive(Clone, Debug)]
pub struct TokenBucket {
    bits_per_s: u64,
    tokens: i128,
    tokens_max: i128,
    refilled_us: u64,
    overhead_bytes: usize,
}

/// Tokens of one bit.
const BIT: i128 = 1_000_000;

impl TokenBucket {
    /// Time at full rate that an idle port may catch up with, at least one full frame.
    const BURST_US: i128 = 1_000;
    const BURST_BITS_MIN: i128 = 1_518 * 8;

    /// A full bucket at `now_us`.
    pub fn new(rate: BitRate, now_us: u64) -> Self {
        let bits_per_s = rate.bits_per_s();
        let tokens_max = (i128::from(bits_per_s) * Self::BURST_US).max(Self::BURST_BITS_MIN * BIT);
        Self {
            bits_per_s,
            tokens: tokens_max,
            tokens_max,
            refilled_us: now_us,
            overhead_bytes: 0,
        }
    }

    /// A full bucket again, at a time that may be before the last one.
    pub fn restart(&mut self, now_us: u64) {
        self.tokens = self.tokens_max;
        self.refilled_us = now_us;
    }

    /// The same bucket, each frame counted with so many bytes more: what a wire spends
    /// between frames.
    pub fn with_overhead(mut self, bytes: usize) -> Self {
        self.overhead_bytes = bytes;
        self
    }

    /// Whether a frame may go at `now_us`.
    pub fn allows(&mut self, now_us: u64) -> bool {
        let elapsed_us = now_us.saturating_sub(self.refilled_us);
        if elapsed_us > 0 {
            self.refilled_us = now_us;
            let earned = i128::from(self.bits_per_s) * i128::from(elapsed_us);
            self.tokens = (self.tokens + earned).min(self.tokens_max);
        }
        self.tokens >= 0
    }

    /// Pays for a frame that has gone.
    pub fn charge(&mut self, frame_bytes: usize) {
        self.tokens -= (frame_bytes + self.overhead_bytes) as i128 * 8 * BIT;
    }

    /// When the next frame may go; a time that has passed if it may go now.
    pub fn next_us(&self) -> u64 {
        if self.tokens >= 0 {
            return self.refilled_us;
        }
        let rate = i128::from(self.bits_per_s);
        let wait_us = (-self.tokens + rate - 1) / rate;
        self.refilled_us
            .saturating_add(u64::try_from(wait_us).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames_in(rate: &str, frame_bytes: usize, span_us: u64) -> u64 {
        let mut bucket = TokenBucket::new(rate.parse().unwrap(), 0);
        let mut frames = 0;
        for now_us in 0..span_us {
            while bucket.allows(now_us) {
                bucket.charge(frame_bytes);
                frames += 1;
            }
        }
        frames
    }

    #[test]
    fn long_run_rate_is_exact_but_for_the_burst() {
        // 100 Mbit/s is 8333.3 frames of 1500 bytes a second; the burst is 1 ms: 8.3 frames.
        let frames = frames_in("100mbit", 1500, 1_000_000);
        assert!((8_333..=8_343).contains(&frames), "{frames}");
    }

    #[test]
    fn slow_rates_still_send_a_full_frame() {
        let frames = frames_in("1kbit", 1500, 12_000_000);
        assert!((2..=3).contains(&frames), "{frames}");
    }

    #[test]
    fn next_time_is_when_the_debt_is_paid() {
        let mut bucket = TokenBucket::new("10mbit".parse().unwrap(), 0);
        while bucket.allows(0) {
            bucket.charge(1_250);
        }
        let next_us = bucket.next_us();
        assert!(!bucket.allows(next_us - 1));
        assert!(bucket.allows(next_us));
    }

    #[test]
    fn the_wire_between_frames_is_paid_for() {
        let mut bucket = TokenBucket::new("1mbit".parse().unwrap(), 0).with_overhead(24);
        while bucket.allows(0) {
            bucket.charge(976);
        }
        let next_us = bucket.next_us();
        bucket.charge(976);
        assert_eq!(bucket.next_us() - next_us, 8_000, "1000 bytes at 1 Mbit/s");
    }

    #[test]
    fn a_clock_that_stands_or_falls_back_earns_nothing() {
        let mut bucket = TokenBucket::new("1mbit".parse().unwrap(), 1_000);
        while bucket.allows(1_000) {
            bucket.charge(1_500);
        }
        assert!(!bucket.allows(1_000));
        assert!(!bucket.allows(0));
    }
}
