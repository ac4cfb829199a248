//! Lines for the operator, on standard error. Nothing here is called per packet.

use std::fmt;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use wormcast_words::plain;

/// How much is logged; each level includes those before it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, clap::ValueEnum)]
#[repr(u8)]
pub enum Level {
    /// The agent cannot do its work.
    Error,
    /// Something is lost or refused.
    Warning,
    /// State changes: controller, plan, link.
    Info,
    /// Every connection and message.
    Debug,
}

static LEVEL: AtomicU8 = AtomicU8::new(Level::Info as u8);

/// Sets the level of this process.
pub fn set_level(level: Level) {
    LEVEL.store(level as u8, Ordering::Relaxed);
}

/// Writes one line if `level` is enabled.
pub fn log(level: Level, message: fmt::Arguments<'_>) {
    if level as u8 > LEVEL.load(Ordering::Relaxed) {
        return;
    }
    let word = match level {
        Level::Error => "error",
        Level::Warning => "warning",
        Level::Info => "info",
        Level::Debug => "debug",
    };
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    let message = message.to_string();
    eprintln!("{} wormcast-agent {word}: {}", stamp(now), plain(&message));
}

/// Date and time in UTC, as in 2026-03-01T08:15:00.250Z.
fn stamp(since_1970: Duration) -> String {
    let (day_s, milliseconds) = (since_1970.as_secs() % 86_400, since_1970.subsec_millis());
    let (hours, minutes, seconds) = (day_s / 3600, day_s / 60 % 60, day_s % 60);
    let (year, month, day) = date(since_1970.as_secs() / 86_400);
    format!("{year}-{month:02}-{day:02}T{hours:02}:{minutes:02}:{seconds:02}.{milliseconds:03}Z")
}

/// The date so many days after 1 January 1970. Years begin in March here, so that the leap day is a year's last.
fn date(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468; // from 1 March of year 0
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153; // 0: March
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (400 * era + year + u64::from(month <= 2), month, day)
}

macro_rules! error {
    ($($part:tt)*) => { $crate::log::log($crate::log::Level::Error, format_args!($($part)*)) };
}

macro_rules! warning {
    ($($part:tt)*) => { $crate::log::log($crate::log::Level::Warning, format_args!($($part)*)) };
}

macro_rules! info {
    ($($part:tt)*) => { $crate::log::log($crate::log::Level::Info, format_args!($($part)*)) };
}

macro_rules! debug {
    ($($part:tt)*) => { $crate::log::log($crate::log::Level::Debug, format_args!($($part)*)) };
}

pub(crate) use {debug, error, info, warning};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_a_date_and_a_time() {
        for (seconds, milliseconds, expected) in [
            (0, 0, "1970-01-01T00:00:00.000Z"),
            (951_782_399, 999, "2000-02-28T23:59:59.999Z"),
            (951_782_400, 0, "2000-02-29T00:00:00.000Z"),
            (1_772_352_900, 250, "2026-03-01T08:15:00.250Z"),
            (1_798_761_599, 0, "2026-12-31T23:59:59.000Z"),
            (4_107_542_400, 0, "2100-03-01T00:00:00.000Z"),
        ] {
            let at = Duration::from_secs(seconds) + Duration::from_millis(milliseconds);
            assert_eq!(stamp(at), expected);
        }
    }
}
