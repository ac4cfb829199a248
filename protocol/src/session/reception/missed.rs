//! Messages that a member does not have: what its ACKs say of them, until all know.

use super::{Missed, Reception};
use crate::failure::Failure;
use wormcast_wire::ack::FAILED_MAX;
use wormcast_wire::{FailReason, HostId, Seq};

/// Messages given up that are remembered of a stream that is forgotten, at most. If they are more, this member says that
/// it has none before: of some too much, of none too little.
const REMEMBERED_MAX: usize = 16;

/// Messages given up that are looked at for an ACK: more than it lists, so that the next one is known.
const GIVEN_UP_LOOK: usize = FAILED_MAX + 2;

impl Missed {
    /// The same in a new memory of the stream, whose positions are near `near`.
    pub fn moved_to(mut self, near: u64) -> Missed {
        let moved = |at: u64| Seq::of(at).expand(near);
        for (at, _) in &mut self.given_up {
            *at = moved(*at);
        }
        self.late = self.late.map(|(at, _)| (moved(at), false));
        self
    }
}

impl Reception {
    /// Everything before was read by an earlier memory of the stream, and confirmed but for what it missed: if it comes
    /// again it is passed on and not read.
    pub fn note_taken(&mut self, taken: u64, missed: Missed) {
        self.taken = self.taken.max(taken);
        self.missed = missed;
    }

    /// What to remember of it when the stream is forgotten.
    pub fn remember_missed(&self) -> Missed {
        let mut missed = self.missed.clone();
        if missed.given_up.len() > REMEMBERED_MAX {
            missed.given_up.clear();
            missed.late = Some((self.consumed, false));
        }
        missed
    }

    /// All know that everything before is stable. Of whole messages it is known at the origin whether this member has
    /// them; of a part it may not be, if this member counted as dead meanwhile.
    pub fn forget_settled(&mut self, stable: u64) {
        while let Some(end) = self.open_ends.front().filter(|end| **end <= stable) {
            self.open_from = *end;
            self.open_ends.pop_front();
        }
        let given_up = &mut self.missed.given_up;
        while given_up.front().is_some_and(|(at, _)| *at < self.open_from) {
            given_up.pop_front();
        }
        let is_open = |&(at, may_grow): &(u64, bool)| may_grow || at > stable;
        self.missed.late = self.missed.late.filter(is_open);
    }

    /// What this member does not have, of messages that begin before [`Reception::missed_until`].
    pub fn missed(&self, host: HostId) -> impl Iterator<Item = Failure> + '_ {
        let late = self.missed.late.map(|(at, _)| (at, FailReason::Late));
        let given_up = self.missed.given_up.iter().take(GIVEN_UP_LOOK).copied();
        let all = late.into_iter().chain(given_up);
        all.map(move |(at, reason)| Failure { host, reason, at })
    }

    /// Where the first message begins that this member does not have and that [`Reception::missed`] leaves out.
    pub fn missed_until(&self) -> u64 {
        let next = self.missed.given_up.get(GIVEN_UP_LOOK);
        next.map_or(u64::MAX, |(at, _)| *at)
    }

    /// Whether there are messages that this member will not have, and not all know.
    pub fn misses_any(&self) -> bool {
        self.missed.late.is_some() || !self.missed.given_up.is_empty()
    }
}
