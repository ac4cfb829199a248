//! What is remembered of streams that this host has given up.

use super::SessionKey;
use crate::config::{Timing, WINDOW_PACKETS_MAX};
use crate::event::Unbroken;
use crate::reject::Reject;
use crate::session::{Missed, Session};
use crate::time::Instant;
use crate::window::unproven::{self, Unproven};
use std::collections::BTreeMap;
use wormcast_wire::{GroupId, Seq};

/// Past streams of which it is known how far they were read, at most. What comes late of another may be read twice; what
/// was missed of it comes then too, or is said to have come too late.
const PAST_MAX: usize = 16_384;

/// Streams that this host has had a part in, by their lives: the first packet that it has not taken, what it missed
/// of those before, and since when there was no gap.
#[derive(Default)]
pub(super) struct Past {
    pub(super) taken: BTreeMap<(SessionKey, u32), (Seq, Missed, Unbroken)>,
    /// Streams of which an earlier life than one of those is said to be.
    back: BTreeMap<SessionKey, Back>,
}

/// An earlier life of a stream than one of which something was taken.
#[derive(Debug, Default)]
struct Back {
    /// Claims that are not confirmed yet.
    unproven: Option<Unproven<u32>>,
    /// That the stream has this life is believed.
    believed: Option<u32>,
}

impl Past {
    /// Whether a stream that this host knows nothing of now may have this life. One earlier than what was taken is one that
    /// its origin has forgotten, and whoever says so has not heard of that; if it says so for long, the origin's clock
    /// went back.
    pub(super) fn judge(
        &mut self,
        key: SessionKey,
        life: u32,
        timing: &Timing,
        now: Instant,
    ) -> Result<(), Reject> {
        let lives = self.taken.range((key, 0)..=(key, u32::MAX));
        let mut is_later = lives.map(|((_, taken), _)| Seq(*taken).is_after(Seq(life)));
        if !is_later.any(|is_later| is_later) {
            self.back.remove(&key);
            return Ok(());
        }
        let back = self.back_of(key);
        let least_us = unproven::proven_back_us(timing);
        if back.believed == Some(life) || Unproven::note(&mut back.unproven, life, least_us, now) {
            back.believed = Some(life);
            return Ok(());
        }
        Err(Reject::StaleIncarnation)
    }

    /// This life is believed where another was before.
    pub(super) fn believe(&mut self, key: SessionKey, life: u32, before: u32) {
        if Seq(before).is_after(Seq(life)) {
            self.back_of(key).believed = Some(life);
        } else {
            self.back.remove(&key);
        }
    }

    fn back_of(&mut self, key: SessionKey) -> &mut Back {
        if self.back.len() >= PAST_MAX {
            // Whoever says so begins anew to be believed.
            self.back.pop_first();
        }
        self.back.entry(key).or_default()
    }

    pub(super) fn note(&mut self, key: SessionKey, session: &Session) {
        // Of one that has not shown where it begins, what was known before stays.
        let Some(taken) = session.taken() else {
            return;
        };
        let key = (key, session.stream);
        if self.taken.len() >= PAST_MAX && !self.taken.contains_key(&key) {
            self.taken.pop_first();
        }
        self.taken.insert(key, taken);
    }

    /// Up to where the stream was taken in that life: nothing of it is read a second time. Nobody takes more than a
    /// window beyond what is stable. What seems to be is so old that numbers have begun anew since, and would have
    /// messages thrown away that were never read.
    pub(super) fn of(
        &self,
        key: SessionKey,
        life: u32,
        stable: Seq,
    ) -> Option<(Seq, Missed, Unbroken)> {
        let (taken, missed, unbroken) = self.taken.get(&(key, life))?;
        let is_near = taken.0.wrapping_sub(stable.0) <= WINDOW_PACKETS_MAX;
        is_near.then(|| (*taken, missed.clone(), *unbroken))
    }

    /// This host is a member no longer: the origin counts it as removed, and what comes when it is back begins anew.
    pub(super) fn leave(&mut self, group: GroupId) {
        self.taken.retain(|(key, _), _| key.0 != group);
        self.back.retain(|key, _| key.0 != group);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wormcast_wire::HostId;

    #[test]
    fn what_was_taken_before_numbers_began_anew_is_not_believed() {
        let key = (GroupId(3), HostId(1));
        let believed = |taken: u32, stable: u32| {
            let taken = (Seq(taken), Missed::default(), Unbroken(1, 0));
            let past = Past {
                taken: BTreeMap::from([((key, 7), taken)]),
                ..Past::default()
            };
            past.of(key, 7, Seq(stable)).is_some()
        };
        assert!(believed(5, u32::MAX - 10) && believed(5, 5));
        assert!(!believed(5, 5 + (1 << 31)) && !believed(5, 6));
    }

    #[test]
    fn an_earlier_life_than_what_was_taken_is_not_believed_at_once() {
        let key = (GroupId(3), HostId(1));
        let timing = Timing::default();
        let mut past = Past::default();
        past.taken
            .insert((key, 9), (Seq(5), Missed::default(), Unbroken(1, 0)));
        let mut judge = |life, at_us| past.judge(key, life, &timing, Instant::from_micros(at_us));
        let long_us = unproven::proven_back_us(&timing);
        let stale = Err(Reject::StaleIncarnation);
        assert_eq!([judge(7, 1), judge(7, long_us)], [stale; 2]);
        assert_eq!([judge(7, long_us + 1), judge(7, long_us + 2)], [Ok(()); 2]);
        assert_eq!(judge(9, long_us + 3), Ok(()));
        assert_eq!(judge(7, 9 * long_us), stale);
    }
}
