//! How streams of others begin at this host and are given up, and what is remembered of those.

use super::{Engine, SessionKey};
use crate::event::LossReason;
use crate::reject::Reject;
use crate::session::{Judgement, Session, Stream};
use crate::time::Instant;
use wormcast_wire::pdu::Common;
use wormcast_wire::{GroupId, HostId, Seq};

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
            let is_authority = if session.stream == common.stream {
                session.is_authority(sender)
            } else {
                // Another life may travel by another choice, from another parent.

                let plan = self.groups.get(&common.group).ok_or(Reject::UnknownGroup)?;
                let role = self.shared.usable_role(plan, common.origin, choice)?;
                sender == common.origin || role.parent == Some(sender)
            };
            let timing = &self.shared.config.timing;
            let judgement = session.judge(common.stream, stable, is_authority, timing, now)?;
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
