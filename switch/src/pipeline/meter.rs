//! Two rate three colour meters (RFC 2698, colour-blind mode).

use super::entry::MeterRates;
use crate::program::MeterUnit;

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
    peak: u128,
    /// Time of the last packet; the buckets are full before the first.
    updated_us: Option<u64>,
}

impl Meter {
    pub(super) fn rates(&self) -> Option<MeterRates> {
        self.rates
    }

    pub(super) fn set_rates(&mut self, rates: Option<MeterRates>) {
        *self = Self {
            rates,
            ..Self::default()
        };
    }

    /// The colour of a packet that arrives now.
    pub(super) fn execute(&mut self, unit: MeterUnit, bytes: u64, now_us: u64) -> Colour {
        let Some(rates) = self.rates else {
            return Colour::Green;
        };
        let committed_limit = u128::from(rates.committed_burst) * TOKEN;
        let peak_limit = u128::from(rates.peak_burst) * TOKEN;
        match self.updated_us {
            None => {
                self.committed = committed_limit;
                self.peak = peak_limit;
            }
            Some(updated_us) => {
                let elapsed = u128::from(now_us.saturating_sub(updated_us));
                let committed = self.committed + elapsed * u128::from(rates.committed_rate);
                self.committed = committed.min(committed_limit);
                let peak = self.peak + elapsed * u128::from(rates.peak_rate);
                self.peak = peak.min(peak_limit);
            }
        }
        self.updated_us = Some(now_us.max(self.updated_us.unwrap_or(0)));
        let tokens = match unit {
            MeterUnit::Packets => TOKEN,
            MeterUnit::Bytes => u128::from(bytes) * TOKEN,
        };
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
    fn without_rates_all_is_green() {
        let mut meter = Meter::default();
        assert_eq!(meter.execute(MeterUnit::Bytes, 1 << 40, 0), Colour::Green);
    }
}
