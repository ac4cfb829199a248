//! Lines for the operator, on standard error. Nothing here is called per packet.

use std::fmt;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// How much is said; each level includes those before it.
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
    let (day_s, milliseconds) = (now.as_secs() % 86_400, now.subsec_millis());
    let (hours, minutes, seconds) = (day_s / 3600, day_s / 60 % 60, day_s % 60);
    eprintln!(
        "{hours:02}:{minutes:02}:{seconds:02}.{milliseconds:03} wormcast-agent {word}: {message}"
    );
}

/// Logs at [`Level::Error`].
macro_rules! error {
    ($($part:tt)*) => { $crate::log::log($crate::log::Level::Error, format_args!($($part)*)) };
}

/// Logs at [`Level::Warning`].
macro_rules! warning {
    ($($part:tt)*) => { $crate::log::log($crate::log::Level::Warning, format_args!($($part)*)) };
}

/// Logs at [`Level::Info`].
macro_rules! info {
    ($($part:tt)*) => { $crate::log::log($crate::log::Level::Info, format_args!($($part)*)) };
}

/// Logs at [`Level::Debug`].
macro_rules! debug {
    ($($part:tt)*) => { $crate::log::log($crate::log::Level::Debug, format_args!($($part)*)) };
}

pub(crate) use {debug, error, info, warning};
