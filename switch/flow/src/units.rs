//! Quantities of the command line: probabilities, times and rates with their units.

use std::str::FromStr;

/// Text that is not the quantity it should be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{value}` is not {expected}")]
pub struct UnitError {
    value: String,
    expected: &'static str,
}

/// A probability from 0 to 1, kept as a threshold for a 32-bit random number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Probability {
    threshold: u64,
}

impl Probability {
    /// Whether an event of this probability happens, given a uniform random number.
    pub fn happens(self, random: u32) -> bool {
        u64::from(random) < self.threshold
    }

    /// No random number makes it happen.
    pub fn is_zero(self) -> bool {
        self.threshold == 0
    }
}

impl FromStr for Probability {
    type Err = UnitError;

    /// A fraction (`0.01`) or a percentage (`1%`).
    fn from_str(text: &str) -> Result<Self, UnitError> {
        let error = || UnitError {
            value: text.to_owned(),
            expected: "a probability: a number from 0 to 1, or from 0% to 100%",
        };
        let (number, scale) = match text.strip_suffix('%') {
            Some(number) => (number, 100.0),
            None => (text, 1.0),
        };
        let fraction = parse_decimal(number).ok_or_else(error)? / scale;
        if !(0.0..=1.0).contains(&fraction) {
            return Err(error());
        }
        // 1.0 becomes 2^32, above every 32-bit number.
        let threshold = (fraction * 4_294_967_296.0).round() as u64;
        Ok(Self { threshold })
    }
}

/// A span of time, in microseconds: 0 to one hour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Duration {
    us: u64,
}

impl Duration {
    const US_MAX: f64 = 3_600_000_000.0;

    pub fn as_us(self) -> u64 {
        self.us
    }
}

impl FromStr for Duration {
    type Err = UnitError;

    /// A number with a unit: `500us`, `2ms`, `1.5s`.
    fn from_str(text: &str) -> Result<Self, UnitError> {
        let error = || UnitError {
            value: text.to_owned(),
            expected: "a time: a number with the unit us, ms or s, at most 3600s (like 2ms)",
        };
        let (number, us) = [("us", 1.0), ("ms", 1e3), ("s", 1e6)]
            .iter()
            .find_map(|(unit, us)| text.strip_suffix(unit).map(|number| (number, *us)))
            .ok_or_else(error)?;
        let us = parse_decimal(number).ok_or_else(error)? * us;
        if us > Self::US_MAX {
            return Err(error());
        }
        Ok(Self {
            us: us.round() as u64,
        })
    }
}

/// A rate in bits a second: 1 kbit/s to 1 Tbit/s.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct BitRate {
    bits_per_s: u64,
}

impl BitRate {
    pub fn bits_per_s(self) -> u64 {
        self.bits_per_s
    }
}

impl FromStr for BitRate {
    type Err = UnitError;

    /// A number with a unit, as `tc` writes them: `500kbit`, `100mbit`, `1gbit`.
    fn from_str(text: &str) -> Result<Self, UnitError> {
        let error = || UnitError {
            value: text.to_owned(),
            expected: "a rate: a number with the unit kbit, mbit or gbit, \
                       from 1kbit to 1000gbit (like 100mbit)",
        };
        let (number, bits) = [("kbit", 1e3), ("mbit", 1e6), ("gbit", 1e9)]
            .iter()
            .find_map(|(unit, bits)| text.strip_suffix(unit).map(|number| (number, *bits)))
            .ok_or_else(error)?;
        let bits_per_s = parse_decimal(number).ok_or_else(error)? * bits;
        if !(1e3..=1e12).contains(&bits_per_s) {
            return Err(error());
        }
        Ok(Self {
            bits_per_s: bits_per_s.round() as u64,
        })
    }
}

/// Digits with at most one point: no sign, no exponent, no `inf`.
fn parse_decimal(text: &str) -> Option<f64> {
    let plain = text
        .bytes()
        .all(|byte| byte.is_ascii_digit() || byte == b'.');
    if !plain { None } else { text.parse().ok() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probabilities() {
        assert!("0".parse::<Probability>().unwrap().is_zero());
        let always: Probability = "1".parse().unwrap();
        assert!(always.happens(u32::MAX));
        let half: Probability = "50%".parse().unwrap();
        assert!(half.happens(0x7fff_ffff) && !half.happens(0x8000_0000));
        for bad in ["", "1.1", "101%", "-0.1", "nan", "inf", "1e-3", "x", "."] {
            let error = bad.parse::<Probability>().unwrap_err().to_string();
            assert_eq!(
                error,
                format!("`{bad}` is not a probability: a number from 0 to 1, or from 0% to 100%")
            );
        }
    }

    #[test]
    fn durations() {
        assert_eq!("2ms".parse::<Duration>().unwrap().as_us(), 2_000);
        assert_eq!("15us".parse::<Duration>().unwrap().as_us(), 15);
        assert_eq!("1.5s".parse::<Duration>().unwrap().as_us(), 1_500_000);
        for bad in ["2", "ms", "-1ms", "3601s", "2 ms", "2min"] {
            assert!(bad.parse::<Duration>().is_err(), "{bad}");
        }
    }

    #[test]
    fn rates() {
        assert_eq!(
            "100mbit".parse::<BitRate>().unwrap().bits_per_s(),
            100_000_000
        );
        assert_eq!("1kbit".parse::<BitRate>().unwrap().bits_per_s(), 1_000);
        assert_eq!(
            "2.5gbit".parse::<BitRate>().unwrap().bits_per_s(),
            2_500_000_000
        );
        for bad in ["0kbit", "100", "1001gbit", "100mb", "bit"] {
            assert!(bad.parse::<BitRate>().is_err(), "{bad}");
        }
    }
}
