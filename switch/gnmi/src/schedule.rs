//! When a STREAM subscription sends what. Time is an argument: how long ago the stream began.

use std::sync::Arc;
use std::time::Duration;

use crate::notify::{News, What};
use crate::reading::{Interface, Reading, Value};
use crate::schema::{Leaf, LeafSet};
use crate::wanted::Wanted;

/// What makes leaves be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trigger {
    Change,
    Sample {
        interval: Duration,
        /// Only what is other than in the sample before.
        suppress_redundant: bool,
    },
}

/// What leaves that are sent for the same reasons have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Timing {
    pub(crate) trigger: Trigger,
    /// How often values are sent that have not changed.
    pub(crate) heartbeat: Option<Duration>,
}

/// Leaves that are sent for the same reasons, and when.
#[derive(Clone, Debug)]
pub(crate) struct Schedule {
    timing: Timing,
    wanted: Wanted,
    /// What they were when they were looked at last.
    before: Arc<Reading>,
    sample_at: Option<Duration>,
    heartbeat_at: Option<Duration>,
}

impl Schedule {
    /// Begins at time 0, when the reader is sent `now` or has asked for changes alone.
    pub(crate) fn new(timing: Timing, wanted: Wanted, now: Arc<Reading>) -> Self {
        Self {
            wanted,
            before: now,
            sample_at: match timing.trigger {
                Trigger::Change => None,
                Trigger::Sample { interval, .. } => Some(interval),
            },
            heartbeat_at: timing.heartbeat,
            timing,
        }
    }

    /// When a reading is needed though nothing has changed.
    pub(crate) fn due(&self) -> Option<Duration> {
        [self.sample_at, self.heartbeat_at]
            .into_iter()
            .flatten()
            .min()
    }

    /// What there is to tell of a reading at a time.
    pub(crate) fn look(&mut self, at: Duration, reading: &Arc<Reading>) -> Vec<News> {
        let is_sample = match (self.timing.trigger, self.sample_at) {
            (Trigger::Sample { interval, .. }, Some(due)) if due <= at => {
                self.sample_at = Some(next(due, interval, at));
                true
            }
            (Trigger::Sample { .. }, _) => false,
            (Trigger::Change, _) => false,
        };
        let is_heartbeat = match (self.timing.heartbeat, self.heartbeat_at) {
            (Some(interval), Some(due)) if due <= at => {
                self.heartbeat_at = Some(next(due, interval, at));
                true
            }
            _ => false,
        };
        let all = match self.timing.trigger {
            Trigger::Change => is_heartbeat,
            Trigger::Sample {
                suppress_redundant, ..
            } => {
                if !is_sample && !is_heartbeat {
                    return Vec::new();
                }
                is_heartbeat || !suppress_redundant
            }
        };
        let before = std::mem::replace(&mut self.before, Arc::clone(reading));
        self.compare(&before, reading, all)
    }

    /// What is other than before, or `all` there is.
    fn compare(&self, before: &Reading, reading: &Reading, all: bool) -> Vec<News> {
        let mut news = Vec::new();
        for (name, _, _) in self.wanted.among(before) {
            if !reading.interfaces.contains_key(name) {
                news.push(News {
                    interface: name.clone(),
                    unix_us: reading.unix_us,
                    what: What::Gone,
                });
            }
        }
        for (name, interface, leaves) in self.wanted.among(reading) {
            let old = before.interfaces.get(name);
            let values = values(name, interface, leaves, old.filter(|_| !all), old);
            if values.is_empty() {
                continue;
            }
            let has_moved = old.map(|old| old.changed_unix_us) != Some(interface.changed_unix_us);
            let is_event = self.timing.trigger == Trigger::Change && has_moved;
            news.push(News {
                interface: name.clone(),
                unix_us: if is_event {
                    interface.changed_unix_us
                } else {
                    reading.unix_us
                },
                what: What::Leaves(values),
            });
        }
        news
    }
}

/// All that there is of some leaves, as a client is sent first.
pub(crate) fn all(wanted: &Wanted, reading: &Reading) -> Vec<News> {
    let news = wanted
        .among(reading)
        .filter_map(|(name, interface, leaves)| {
            let values = values(name, interface, leaves, None, None);
            (!values.is_empty()).then(|| News {
                interface: name.clone(),
                unix_us: reading.unix_us,
                what: What::Leaves(values),
            })
        });
    news.collect()
}

/// Leaves with values other than those of `than`, and those that have lost the value that
/// they had in `old`.
fn values(
    name: &str,
    interface: &Interface,
    leaves: LeafSet,
    than: Option<&Interface>,
    old: Option<&Interface>,
) -> Vec<(Leaf, Option<Value>)> {
    let mut found = Vec::new();
    for leaf in leaves.iter() {
        let value = interface.value(name, leaf);
        let is_new = match (&value, than) {
            (Some(_), Some(than)) => value != than.value(name, leaf),
            (Some(_), None) => true,
            (None, _) => old.is_some_and(|old| old.value(name, leaf).is_some()),
        };
        if is_new {
            found.push((leaf, value));
        }
    }
    found
}

/// The first time after `at` in the steps of an interval: those that were missed are left out.
fn next(due: Duration, interval: Duration, at: Duration) -> Duration {
    let missed = (at - due).as_nanos() / interval.as_nanos().max(1);
    let steps = u32::try_from(missed + 1).unwrap_or(u32::MAX);
    due.saturating_add(interval.saturating_mul(steps))
}

#[cfg(test)]
mod tests;
