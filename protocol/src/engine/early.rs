//! ACKs that come before the packet that they are about: where switches copy, a child may have had a copy
//! before its parent has.

use super::SessionKey;
use crate::time::Instant;
use std::collections::VecDeque;

/// Most ACKs that are kept; the oldest is dropped, and counted as of an unknown stream. Who said it is waited for as before.
const EARLY_MAX: usize = 64;
/// Time for which one is kept, µs. A child that was not heard is asked again, or says it again after 250 ms.
pub(super) const EARLY_US: u64 = 100_000;

/// Frames of ACKs of streams that this host does not know yet.
#[derive(Debug, Default)]
pub(super) struct EarlyAcks {
    pub(super) kept: VecDeque<(SessionKey, Instant, Vec<u8>)>,
    /// A stream that has just begun.
    pub(super) begun: Option<SessionKey>,
}

impl EarlyAcks {
    /// A stream has begun here.
    pub(super) fn note_begun(&mut self, key: SessionKey) {
        if !self.kept.is_empty() {
            self.begun = Some(key);
        }
    }

    /// Drops what has been kept for too long, and one more where there is no room; gives how many.
    pub(super) fn make_room(&mut self, now: Instant) -> u64 {
        let before = self.kept.len();
        let is_old = |at: Instant| now.since_us(at) >= EARLY_US;
        while self.kept.front().is_some_and(|(_, at, _)| is_old(*at)) {
            self.kept.pop_front();
        }
        if self.kept.len() >= EARLY_MAX {
            self.kept.pop_front();
        }
        (before - self.kept.len()) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wormcast_wire::{GroupId, HostId};

    #[test]
    fn what_is_kept_is_bounded_in_number_and_time() {
        let mut early = EarlyAcks::default();
        let key = (GroupId(1), HostId(2));
        let at = |us| Instant::from_micros(us);
        let mut dropped = 0;
        for us in 0..70 {
            dropped += early.make_room(at(us));
            early.kept.push_back((key, at(us), Vec::new()));
        }
        assert_eq!((early.kept.len(), dropped), (EARLY_MAX, 6));
        assert_eq!(early.make_room(at(EARLY_US + 66)), 61);
        assert_eq!(early.kept.len(), 3);
    }
}
