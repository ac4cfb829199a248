//! Pause storms: a queue that its neighbour keeps paused for ever, and everybody behind it.
//!
//! A broken neighbour that never stops sending pause frames, and a deadlock, look the same
//! from one queue: frames wait, and the pause has no end.

use std::fmt;
use std::str::FromStr;

use super::units::Duration;

/// What is done with the queue while the storm lasts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WatchdogAction {
    /// Frames that wait and frames that come are dropped, and counted.
    #[default]
    Drop,
    /// The pause is ignored: frames go on to the neighbour, which may drop them.
    Forward,
}

impl fmt::Display for WatchdogAction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Drop => "drop",
            Self::Forward => "forward",
        })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WatchdogSettings {
    /// A pause without a gap of this length, with frames waiting, is a storm; µs.
    pub detect_us: u64,
    pub action: WatchdogAction,
    /// The storm is over when there has been no pause for this long; µs.
    pub recover_us: u64,
}

impl Default for WatchdogSettings {
    fn default() -> Self {
        Self {
            detect_us: 1_000_000,
            action: WatchdogAction::Drop,
            recover_us: 2_000_000,
        }
    }
}

/// Text that describes no watchdog.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` sets no watchdog: it must be KEY=VALUE with detect (a time from 1ms, like 200ms), action \
     (drop or forward) or recover (a time), with commas between them"
)]
pub struct WatchdogError(String);

impl FromStr for WatchdogSettings {
    type Err = WatchdogError;

    /// `detect=200ms,action=drop,recover=400ms`, in any order; the rest as by default, but
    /// `recover`, which is twice `detect`.
    fn from_str(text: &str) -> Result<Self, WatchdogError> {
        let mut settings = Self::default();
        let mut recover_us = None;
        for pair in text.split(',') {
            let error = || WatchdogError(pair.to_owned());
            let time = |value: &str| value.parse().map(Duration::as_us).map_err(|_| error());
            match pair.trim().split_once('=').ok_or_else(error)? {
                ("detect", value) => {
                    settings.detect_us = time(value)?;
                    if settings.detect_us < 1_000 {
                        return Err(error());
                    }
                }
                ("recover", value) => recover_us = Some(time(value)?),
                ("action", "drop") => settings.action = WatchdogAction::Drop,
                ("action", "forward") => settings.action = WatchdogAction::Forward,
                _ => return Err(error()),
            }
        }
        settings.recover_us = recover_us.unwrap_or(settings.detect_us * 2);
        Ok(settings)
    }
}

/// What a watchdog has found out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finding {
    /// A storm has begun to count as one.
    Storm,
    Recovered,
}

/// The watchdog of one queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Watchdog {
    /// Frames have waited without one leaving since then.
    waiting_since_us: Option<u64>,
    taken_seen: u64,
    storm: bool,
    storms: u64,
}

/// What a queue looks like when its watchdog looks.
#[derive(Clone, Copy, Debug, Default)]
pub struct QueueState {
    /// Since when it has been paused without a gap.
    pub paused_since_us: Option<u64>,
    /// When the last pause ended or will end.
    pub paused_until_us: u64,
    pub waiting: usize,
    /// Frames that have ever left it.
    pub taken: u64,
}

impl Watchdog {
    /// Looks at the queue. To be called several times within `detect_us`.
    pub fn look(
        &mut self,
        settings: &WatchdogSettings,
        queue: QueueState,
        now_us: u64,
    ) -> Option<Finding> {
        if self.storm {
            let over = queue.paused_since_us.is_none()
                && now_us.saturating_sub(queue.paused_until_us) >= settings.recover_us;
            if over {
                self.storm = false;
                self.waiting_since_us = None;
                return Some(Finding::Recovered);
            }
            return None;
        }
        let moved = queue.taken != self.taken_seen;
        self.taken_seen = queue.taken;
        if queue.waiting == 0 {
            self.waiting_since_us = None;
            return None;
        }
        if moved || self.waiting_since_us.is_none() {
            self.waiting_since_us = Some(now_us);
        }
        let both_since_us = self.waiting_since_us.max(queue.paused_since_us);
        let stuck = queue.paused_since_us.is_some()
            && both_since_us.is_some_and(|since_us| now_us - since_us >= settings.detect_us);
        if !stuck {
            return None;
        }
        self.storm = true;
        self.storms += 1;
        Some(Finding::Storm)
    }

    pub fn in_storm(&self) -> bool {
        self.storm
    }

    pub fn storms(&self) -> u64 {
        self.storms
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SETTINGS: WatchdogSettings = WatchdogSettings {
        detect_us: 200,
        action: WatchdogAction::Drop,
        recover_us: 500,
    };

    fn paused(since_us: u64, waiting: usize) -> QueueState {
        QueueState {
            paused_since_us: Some(since_us),
            paused_until_us: u64::MAX,
            waiting,
            taken: 0,
        }
    }

    #[test]
    fn a_storm_is_a_long_pause_with_frames_waiting() {
        let mut dog = Watchdog::default();
        assert_eq!(
            dog.look(&SETTINGS, paused(0, 0), 1_000),
            None,
            "nobody waits"
        );
        assert_eq!(dog.look(&SETTINGS, paused(0, 1), 1_100), None);
        assert_eq!(dog.look(&SETTINGS, paused(0, 1), 1_299), None);
        assert_eq!(
            dog.look(&SETTINGS, paused(0, 1), 1_300),
            Some(Finding::Storm)
        );
        assert!(dog.in_storm());
        assert_eq!(dog.look(&SETTINGS, paused(0, 1), 9_999), None, "said once");
    }

    #[test]
    fn a_gap_or_a_frame_that_leaves_begins_anew() {
        let mut dog = Watchdog::default();
        dog.look(&SETTINGS, paused(0, 1), 0);
        assert_eq!(
            dog.look(&SETTINGS, paused(150, 1), 300),
            None,
            "a gap at 150"
        );
        let left = QueueState {
            taken: 1,
            ..paused(150, 1)
        };
        assert_eq!(dog.look(&SETTINGS, left, 349), None);
        assert_eq!(dog.look(&SETTINGS, left, 548), None);
        assert_eq!(dog.look(&SETTINGS, left, 549), Some(Finding::Storm));
    }

    #[test]
    fn it_recovers_when_no_pause_has_come_for_a_while() {
        let mut dog = Watchdog::default();
        dog.look(&SETTINGS, paused(0, 1), 0);
        dog.look(&SETTINGS, paused(0, 1), 200);
        let free = QueueState {
            paused_until_us: 1_000,
            ..QueueState::default()
        };
        assert_eq!(dog.look(&SETTINGS, free, 1_499), None);
        assert_eq!(
            dog.look(&SETTINGS, paused(1_499, 0), 1_600),
            None,
            "paused again"
        );
        assert_eq!(dog.look(&SETTINGS, free, 1_500), Some(Finding::Recovered));
        assert_eq!((dog.in_storm(), dog.storms()), (false, 1));
    }

    #[test]
    fn settings_are_read() {
        let settings: WatchdogSettings = "detect=50ms,action=forward".parse().unwrap();
        assert_eq!((settings.detect_us, settings.recover_us), (50_000, 100_000));
        assert_eq!(settings.action, WatchdogAction::Forward);
        let settings: WatchdogSettings = "recover=3s".parse().unwrap();
        assert_eq!(
            (settings.detect_us, settings.recover_us),
            (1_000_000, 3_000_000)
        );
        for bad in [
            "",
            "detect",
            "detect=5",
            "detect=10us",
            "action=explode",
            "bark=1ms",
        ] {
            let error = bad.parse::<WatchdogSettings>().unwrap_err().to_string();
            assert!(
                error.starts_with(&format!("`{bad}` sets no watchdog")),
                "{error}"
            );
        }
    }
}
