//! The streams of an engine, and which of them have something to do: the others cost a turn nothing.
//!
//! A stream is *active*, or it *rests*, until a time or for good. Active ones are polled at every turn. A stream begins
//! to rest when both polls have found nothing to do for it, no time of [`Session::deadline`] has come, and nothing would be
//! noted if it was looked at before that time ([`Session::is_unsettled`]). This is asked only after [`IDLE_POLLS`], so that
//! it costs busy streams nothing. One that was forgotten would be a transfer that hangs for ever. None can be, since a
//! session does only what follows from three things:
//!
//! - What is in it. Only [`Sessions::get_mut`], [`Sessions::all_mut`] and [`Sessions::find_mut`] hand one out to be
//!   changed, and they make it active. Timeouts and polls change none that rests.
//! - The time. What it makes due is in `deadline`, and the stream is active again from then on. As time passes by, a
//!   deadline may become later, where ACKs begin to be gathered (`usual_until`) or the queue is drained
//!   (`Shared::drain_until`, which only grows); never earlier. Then the stream is active too early, which costs a look.
//! - What all streams share. Of `Shared`, what a session does by itself depends on `config`, which never changes; on
//!   `drain_until`, see above; and on `unicast`, `tree`, `root` and `tree_route_max`: whatever changes `routes_version` calls
//!   [`Sessions::all_mut`] or [`Sessions::wake_all`]. `pools` and `train_room` count only for what comes and for what is
//!   written, and that goes by `get_mut`; so does a new plan. Counters, events and numbers are only written.
//!
//! `protocol/tests/active.rs` compares engines with such in which no stream ever rests, frame by frame; the fabrics on
//! virtual time ask [`Sessions::forgotten`] at every step.

use super::SessionKey;
use crate::event::Transmit;
use crate::session::Session;
use crate::session::shared::Shared;
use crate::time::Instant;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Bound, RangeBounds};
use wormcast_wire::{GroupId, HostId};

/// Polls in turn that have found nothing to do for a stream that nothing has changed meanwhile, before it may rest.
const IDLE_POLLS: u8 = 4;

/// What a stream waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// For its turn. So many polls have found nothing to do for it.
    Active(u8),
    /// For nothing, or for a time.
    Resting(Option<Instant>),
}

struct Slot {
    session: Session,
    state: State,
}

/// The streams that this host has a part in.
#[derive(Default)]
pub(crate) struct Sessions {
    all: BTreeMap<SessionKey, Slot>,
    active: BTreeSet<SessionKey>,
    /// Those that rest until a time.
    times: BTreeSet<(Instant, SessionKey)>,
}

impl Sessions {
    pub fn len(&self) -> usize {
        self.all.len()
    }

    pub fn contains_key(&self, key: &SessionKey) -> bool {
        self.all.contains_key(key)
    }

    pub fn get(&self, key: &SessionKey) -> Option<&Session> {
        self.all.get(key).map(|slot| &slot.session)
    }

    pub fn iter(&self) -> impl Iterator<Item = (&SessionKey, &Session)> {
        self.all.iter().map(|(key, slot)| (key, &slot.session))
    }

    /// Those of one group, by origin.
    pub fn of_group(&self, group: GroupId) -> impl Iterator<Item = (&SessionKey, &Session)> {
        let of_group = (group, HostId(0))..=(group, HostId(u16::MAX));
        let slots = self.all.range(of_group);
        slots.map(|(key, slot)| (key, &slot.session))
    }

    /// A stream, to be changed.
    pub fn get_mut(&mut self, key: &SessionKey) -> Option<&mut Session> {
        let slot = self.all.get_mut(key)?;
        if let State::Resting(until) = slot.state {
            if let Some(until) = until {
                self.times.remove(&(until, *key));
            }
            self.active.insert(*key);
        }
        slot.state = State::Active(0);
        Some(&mut slot.session)
    }

    /// All streams, to be changed.
    pub fn all_mut(&mut self) -> impl Iterator<Item = &mut Session> {
        self.wake_all();
        self.all.values_mut().map(|slot| &mut slot.session)
    }

    /// Changes the first stream, in the order of keys, that `change` says it has changed; true if there was one.
    pub fn find_mut(&mut self, mut change: impl FnMut(&SessionKey, &mut Session) -> bool) -> bool {
        let mut all = self.all.iter_mut();
        let changed = all.find_map(|(key, slot)| change(key, &mut slot.session).then_some(*key));
        changed.is_some_and(|key| self.get_mut(&key).is_some())
    }

    /// What all streams share has changed.
    pub fn wake_all(&mut self) {
        self.times.clear();
        self.active.extend(self.all.keys());
        for slot in self.all.values_mut() {
            slot.state = State::Active(0);
        }
    }

    pub fn insert(&mut self, key: SessionKey, session: Session) {
        self.remove(&key);
        let state = State::Active(0);
        self.all.insert(key, Slot { session, state });
        self.active.insert(key);
    }

    pub fn remove(&mut self, key: &SessionKey) -> Option<Session> {
        let slot = self.all.remove(key)?;
        match slot.state {
            State::Active(_) => drop(self.active.remove(key)),
            State::Resting(Some(until)) => drop(self.times.remove(&(until, *key))),
            State::Resting(None) => {}
        }
        Some(slot.session)
    }

    /// Those whose time has come are active.
    fn wake_due(&mut self, now: Instant) {
        while let Some((_, key)) = self.times.first().filter(|(until, _)| *until <= now) {
            let key = *key;
            self.times.pop_first();
            self.active.insert(key);
            if let Some(slot) = self.all.get_mut(&key) {
                slot.state = State::Active(0);
            }
        }
    }

    fn next_active(&self, keys: impl RangeBounds<SessionKey>) -> Option<SessionKey> {
        self.active.range(keys).next().copied()
    }

    /// Acts on every time that has come.
    pub fn handle_timeout(&mut self, shared: &mut Shared, now: Instant) {
        self.wake_due(now);
        for key in &self.active {
            if let Some(slot) = self.all.get_mut(key) {
                slot.session.handle_timeout(shared, now);
            }
        }
    }

    /// Writes the next frame: what controls before data, and one packet of each stream in turn.
    pub fn poll(
        &mut self,
        shared: &mut Shared,
        turn: &mut SessionKey,
        now: Instant,
        buf: &mut [u8],
    ) -> Option<Transmit> {
        self.wake_due(now);
        for key in &self.active {
            if let Some(slot) = self.all.get_mut(key)
                && let Some(sent) = slot.session.poll_control(shared, now, buf)
            {
                return Some(sent);
            }
        }
        for (mut from, until) in [
            (Bound::Included(*turn), Bound::Unbounded),
            (Bound::Unbounded, Bound::Excluded(*turn)),
        ] {
            while let Some(key) = self.next_active((from, until)) {
                let slot = self.all.get_mut(&key)?;
                if let Some(sent) = slot.session.poll_data(shared, now, buf) {
                    *turn = (key.0, HostId(key.1.0.saturating_add(1)));
                    return Some(sent);
                }
                self.rest(key, shared, now);
                from = Bound::Excluded(key);
            }
        }
        None
    }

    /// Both polls have found nothing to do for a stream at this time: it rests, if no time of it has come either.
    fn rest(&mut self, key: SessionKey, shared: &Shared, now: Instant) {
        let Some(slot) = self.all.get_mut(&key) else {
            return;
        };
        if let State::Active(polls) = &mut slot.state
            && *polls < IDLE_POLLS
        {
            *polls += 1;
            return;
        }
        if slot.session.is_unsettled(shared, now) {
            return;
        }
        let until = slot.session.deadline(shared, now);
        if until.is_some_and(|until| until <= now) {
            return;
        }
        slot.state = State::Resting(until);
        self.active.remove(&key);
        self.times.extend(until.map(|until| (until, key)));
    }

    /// When [`Sessions::handle_timeout`] or [`Sessions::poll`] has something to do.
    pub fn deadline(&self, shared: &Shared, now: Instant) -> Option<Instant> {
        let active = self.active.iter().filter_map(|key| self.get(key));
        let active = active.filter_map(|session| session.deadline(shared, now));
        let resting = self.times.first().map(|(until, _)| *until);
        active.chain(resting).min()
    }

    pub fn resting(&self) -> usize {
        self.all.len() - self.active.len()
    }

    /// A stream that rests though it has something to do, or that will not be looked at when it has: there is none.
    pub fn forgotten(&self, shared: &Shared, now: Instant) -> Option<SessionKey> {
        let is_forgotten = |key: &SessionKey, slot: &Slot| match slot.state {
            State::Active(_) => !self.active.contains(key),
            State::Resting(Some(until)) if !self.times.contains(&(until, *key)) => true,
            State::Resting(Some(until)) if until <= now => false,
            State::Resting(until) => {
                let is_late = |at| until.is_none_or(|until| at < until);
                let session = &slot.session;
                session.deadline(shared, now).is_some_and(is_late) || session.has_control()
            }
        };
        let mut all = self.all.iter();
        all.find_map(|(key, slot)| is_forgotten(key, slot).then_some(*key))
    }
}
