//! Whole numbers on the command line.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;

/// Reads a whole number of a range; what is wrong names both ends.
pub fn whole_number<T>(range: RangeInclusive<T>) -> impl Fn(&str) -> Result<T, String> + Clone
where
    T: FromStr + PartialOrd + Display + Clone,
{
    move |text| {
        let number = text.parse().ok();
        let number = number.filter(|number| range.contains(number));
        number.ok_or_else(|| {
            let (least, most) = (range.start(), range.end());
            format!("it must be a whole number from {least} to {most}")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_what_is_none() {
        let small = whole_number(1..=8u8);
        assert_eq!(small("8"), Ok(8));
        for text in ["0", "9", "300", "-1", "x", "", "1.5"] {
            let error = small(text).unwrap_err();
            assert_eq!(error, "it must be a whole number from 1 to 8", "{text}");
        }
        let all = whole_number(0..=u64::MAX);
        assert!(all("18446744073709551615").is_ok() && all("18446744073709551616").is_err());
    }
}
