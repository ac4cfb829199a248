//! How streams of others begin at this host and are given up, and what is remembered of those.

use super::{Engine, SessionKey};
use crate::config::{Timing, WINDOW_PACKETS_MAX};
use crate::event::{LossReason, Unbroken};
use crate::reject::Reject;
use crate::session::{Judgement, Missed, Session, Stream};
use crate::time::Instant;
use crate::window::unproven::{self, Unproven};
use std::collections::BTreeMap;
use wormcast_wire::pdu::Common;
use wormcast_wire::{GroupId, HostId, Seq};

/// Past streams of which it is known how far they were read, at most. What comes late of another may be read twice; what
/// was missed of it comes then too, or is said to have come too late.
const PAST_MAX: usize = 16_384;

/// Streams that this host has had a part in, by their lives: the first packet that it has not taken, what it missed
/// of those before, and since when there was no gap.
#[derive(Default)]
pub(super) struct Past {
    taken: BTreeMap<(SessionKey, u32), (Seq, Missed, Unbroken)>,
    /// Streams of which an earlier life than one of those is said to be.
    back: BTreeMap<SessionKey, Back>,
}

/// An earlier life of a stream than one of which something was taken.
#[derive(Debug, Default)]
struct Back {
    /// What is said and not believed yet.
    unproven: Option<Unproven<u32>>,
    /// That the stream has this life is believed.
    believed: Option<u32>,
}

impl Past {
    /// Whether a stream that this host knows nothing of now may have this life. One earlier than what was taken is one that
    /// its origin has forgotten, and whoever says so has not heard of that; if it says so for long, the origin's clock
    /// went back.
    fn judge(
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
    fn believe(&mut self, key: SessionKey, life: u32, before: u32) {
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

    fn note(&mut self, key: SessionKey, session: &Session) {
        // Of one that has not shown where it begins, what was known before stays.
        let Some(taken) = session.taken() else {
            return;
        };
        if self.taken.len() >= PAST_MAX {
            self.taken.pop_first();
        }
        self.taken.insert((key, session.stream), taken);
    }

    /// Up to where the stream was taken in that life: nothing of it is read a second time. Nobody takes more than a
    /// window beyond what is stable. What seems to be is so old that numbers have begun anew since, and would have
    /// messages thrown away that were never read.
    fn of(&self, key: SessionKey, life: u32, stable: Seq) -> Option<(Seq, Missed, Unbroken)> {
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

impl Engine {
    /// Streams without a place in the plan go when nothing is left to read.
    pub(super) fn drop_drained(&mut self, group: GroupId) {
        let keys: Vec<SessionKey> = self.keys_of(group).collect();
        for key in keys {
            let gone = self.sessions.get(&key).is_some_and(|session| {
                // One that lacks something keeps it in mind in case its origin is back.
                let is_over = session.is_idle() && !session.misses_any();
                session.detached && (is_over || key.1 == self.shared.config.host)
            });
            if gone && let Some(mut session) = self.sessions.remove(&key) {
                self.past.note(key, &session);
                session.release_all(&mut self.shared);
            }
        }
    }

    /// Makes sure there is a stream of this life of the origin, which travels by this choice at
    /// this packet; true if what the sender says of `stable` counts.
    pub(super) fn open_stream(
        &mut self,
        common: Common,
        stable: Seq,
        (at, choice): (Seq, u8),
        sender: HostId,
        now: Instant,
    ) -> Result<bool, Reject> {
        let key = (common.group, common.origin);
        if let Some(session) = self.sessions.get_mut(&key) {
            if session.stream == common.stream {
                session.note_choice(at, choice, &mut self.shared, now);
            }
            let is_told = if session.stream == common.stream {
                session.is_told_by(sender)
            } else {
                // Another life may travel by another choice, from another parent.

                let plan = self.groups.get(&common.group).ok_or(Reject::UnknownGroup)?;
                let role = self.shared.usable_role(plan, common.origin, choice)?;
                sender == common.origin || role.parent == Some(sender)
            };
            let timing = &self.shared.config.timing;
            let judgement = session.judge(common.stream, stable, is_told, timing, now)?;
            if let Judgement::Taken { stable_counts } = judgement {
                return Ok(stable_counts);
            }
        }
        let plan = self.groups.get(&common.group).ok_or(Reject::UnknownGroup)?;
        let role = self.shared.usable_role(plan, common.origin, choice)?;
        if sender != common.origin && role.parent != Some(sender) {
            return Err(Reject::NotParent);
        }
        if let Some(mut old) = self.sessions.remove(&key) {
            // What it knows of failures below goes with it: if this life comes back, members say theirs again. Its own
            // stay, and it takes what it had not taken or says that it is too late.
            self.past.note(key, &old);
            old.break_off(LossReason::OriginRestarted, &mut self.shared);
            old.release_all(&mut self.shared);
            self.past.believe(key, common.stream, old.stream);
        } else {
            let timing = &self.shared.config.timing;
            self.past.judge(key, common.stream, timing, now)?;
        }
        if !self.make_place() {
            return Err(Reject::SessionsFull);
        }
        let plan = self.groups.get(&common.group).ok_or(Reject::UnknownGroup)?;
        let identity = self.shared.take_identity();
        let timing = &self.shared.config.timing;
        let stream = Stream {
            origin: common.origin,
            number: common.stream,
            start: stable,
            choice,
        };
        let mut session = Session::new_member(plan, stream, role, identity, timing, now);
        if let Some(taken) = self.past.of(key, common.stream, stable) {
            session.note_taken(taken);
        }
        self.sessions.insert(key, session);
        self.early.note_begun(key);
        Ok(true)
    }

    /// Makes sure there is room for one more stream; false if there is not.
    pub(super) fn make_place(&mut self) -> bool {
        let limits = &self.shared.config.limits;
        let (most, kept) = (limits.sessions, limits.sessions_kept.min(limits.sessions));
        self.sessions.len() < kept || self.reclaim_session().is_some() || self.sessions.len() < most
    }

    /// Gives up the stream that has been idle longest, if forgetting it loses nothing.
    fn reclaim_session(&mut self) -> Option<()> {
        let (key, _) = self
            .sessions
            .iter()
            .filter(|(_, session)| session.is_idle())
            .min_by_key(|(_, session)| session.touched)?;
        let key = *key;
        let mut session = self.sessions.remove(&key)?;
        session.release_all(&mut self.shared);
        self.shared.counters.sessions_reclaimed += 1;
        self.past.note(key, &session);
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
