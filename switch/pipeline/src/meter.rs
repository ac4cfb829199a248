//! Three colour meters in colour-blind mode: two rates (RFC 2698) or one (RFC 2697).

use super::entry::{ColourCounts, MeterRates};
use wormcast_switch_program::MeterUnit;

/// Tokens are counted in millionths, so that a microsecond at one token a second counts.
const TOKEN: u128 = 1_000_000;

/// Result of a meter, as `simple_switch` numbers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Colour {
    Green = 0,
    Yellow = 1,
    Red = 2,
}

/// One cell of a meter. Not configured, all packets are green.
#[derive(Clone, Debug, Default)]
pub(super) struct Meter {
    rates: Option<MeterRates>,
    committed: u128,
    /// The bucket of the peak rate, or of the excess burst where there is one rate.
    peak: u128,
    counts: ColourCounts,
    /// Time of the last packet; the buckets are full before the first.
    updated_us: Option<u64>,
}

impl Meter {
    pub(super) fn rates(&self) -> Option<MeterRates> {
        self.rates
    }

    /// Sets the rates and fills the buckets; the counts go on.
    pub(super) fn set_rates(&mut self, rates: Option<MeterRates>) {
        *self = Self {
            rates,
            counts: self.counts,
            ..Self::default()
        };
    }

    /// Packets so far, by colour.
    pub(super) fn counts(&self) -> ColourCounts {
        self.counts
    }

    pub(super) fn set_counts(&mut self, counts: ColourCounts) {
        self.counts = counts;
    }

    /// The colour of a packet that arrives now, which is counted.
    pub(super) fn execute(&mut self, unit: MeterUnit, bytes: u64, now_us: u64) -> Colour {
        let colour = match self.rates {
            None => Colour::Green,
            Some(rates) => {
                self.refill(rates, now_us);
                let tokens = match unit {
                    MeterUnit::Packets => TOKEN,
                    MeterUnit::Bytes => u128::from(bytes) * TOKEN,
                };
                match rates.excess_burst {
                    None => self.take_two_rates(tokens),
                    Some(_) => self.take_one_rate(tokens),
                }
            }
        };
        match colour {
            Colour::Green => self.counts.green.add(bytes),
            Colour::Yellow => self.counts.yellow.add(bytes),
            Colour::Red => self.counts.red.add(bytes),
        }
        colour
    }

    fn refill(&mut self, rates: MeterRates, now_us: u64) {
        let committed_limit = u128::from(rates.committed_burst) * TOKEN;
        let peak_burst = rates.excess_burst.unwrap_or(rates.peak_burst);
        let peak_limit = u128::from(peak_burst) * TOKEN;
        let Some(updated_us) = self.updated_us else {
            self.committed = committed_limit;
            self.peak = peak_limit;
            self.updated_us = Some(now_us);
            return;
        };
        let elapsed = u128::from(now_us.saturating_sub(updated_us));
        let committed = self.committed + elapsed * u128::from(rates.committed_rate);
        self.committed = committed.min(committed_limit);
        // With one rate, what the first bucket cannot hold goes into the second.
        let peak = match rates.excess_burst {
            None => elapsed * u128::from(rates.peak_rate),
            Some(_) => committed - self.committed,
        };
        self.peak = (self.peak + peak).min(peak_limit);
        self.updated_us = Some(now_us.max(updated_us));
    }

    /// RFC 2698 §3.
    fn take_two_rates(&mut self, tokens: u128) -> Colour {
        if self.peak < tokens {
            return Colour::Red;
        }
        self.peak -= tokens;
        if self.committed < tokens {
            return Colour::Yellow;
        }
        self.committed -= tokens;
        Colour::Green
    }

    /// RFC 2697 §3.
    fn take_one_rate(&mut self, tokens: u128) -> Colour {
        if self.committed >= tokens {
            self.committed -= tokens;
            Colour::Green
        } else if self.peak >= tokens {
            self.peak -= tokens;
            Colour::Yellow
        } else {
            Colour::Red
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meter() -> Meter {
        let mut meter = Meter::default();
        meter.set_rates(Some(MeterRates {
            committed_rate: 1000,
            committed_burst: 2,
            peak_rate: 2000,
            peak_burst: 4,
            excess_burst: None,
        }));
        meter
    }

    #[test]
    fn a_burst_goes_from_green_over_yellow_to_red() {
        let mut meter = meter();
        let colours: Vec<Colour> = (0..6)
            .map(|_| meter.execute(MeterUnit::Packets, 100, 0))
            .collect();
        assert_eq!(
            colours,
            [
                Colour::Green,
                Colour::Green,
                Colour::Yellow,
                Colour::Yellow,
                Colour::Red,
                Colour::Red
            ]
        );
    }

    #[test]
    fn buckets_refill_with_time() {
        let mut meter = meter();
        for _ in 0..6 {
            meter.execute(MeterUnit::Packets, 100, 0);
        }
        assert_eq!(meter.execute(MeterUnit::Packets, 100, 499), Colour::Red);
        assert_eq!(meter.execute(MeterUnit::Packets, 100, 500), Colour::Yellow);
        assert_eq!(meter.execute(MeterUnit::Packets, 100, 1000), Colour::Green);
    }

    #[test]
    fn one_rate_fills_the_excess_bucket_last() {
        let mut meter = Meter::default();
        meter.set_rates(Some(MeterRates {
            committed_rate: 1000,
            committed_burst: 2,
            peak_rate: 1000,
            peak_burst: 2,
            excess_burst: Some(1),
        }));
        let mut burst = |now_us| {
            let mut colours = [Colour::Green; 4];
            colours.fill_with(|| meter.execute(MeterUnit::Packets, 100, now_us));
            colours
        };
        use Colour::{Green, Red, Yellow};
        assert_eq!(burst(0), [Green, Green, Yellow, Red]);
        // Two tokens fill the first bucket, one more the second.
        assert_eq!(burst(2000), [Green, Green, Red, Red]);
        assert_eq!(burst(5000), [Green, Green, Yellow, Red]);
        // No more than the buckets hold.
        assert_eq!(burst(50_000), [Green, Green, Yellow, Red]);
        let counts = meter.counts();
        let packets = [counts.green, counts.yellow, counts.red].map(|count| count.packets);
        assert_eq!(packets, [8, 3, 5]);
        assert_eq!(counts.red.bytes, 500);
    }

    #[test]
    fn without_rates_all_is_green() {
        let mut meter = Meter::default();
        assert_eq!(meter.execute(MeterUnit::Bytes, 1 << 40, 0), Colour::Green);
    }
}
