//! How far a receiver is behind what has come.

use crate::clients::limits::{LAG_BYTES_MIN, LAG_LOOKS, SLOW_BYTES, SLOW_FIRST_US};
use wormcast_protocol::Instant;

/// How far the receiver of a message is behind.
#[derive(Default)]
pub(super) struct Lag {
    /// More bytes than these may not wait for it.
    most_bytes: Option<u64>,
    /// Looks in a row at which more have waited, or half of the buffers.
    looks_over: u32,
    pub(super) look_at: Instant,
    /// When the origin is told, first or again. None: it keeps up.
    pub(super) tell_at: Option<Instant>,
}

impl Lag {
    /// More bytes than these may not wait for it.
    pub(super) fn bound(&mut self, bytes: u64) {
        self.most_bytes = Some(bytes.max(LAG_BYTES_MIN));
    }

    /// So many bytes wait for it, and perhaps half of the buffers. Whether that is too much for the sender, at so many looks
    /// that it is no chance. Looks count, not the time: an agent that stood still finds a lot at once.
    pub(super) fn is_too_far(&mut self, unread: u64, is_full: bool) -> bool {
        let is_over = self.most_bytes.is_some_and(|most| unread > most || is_full);
        self.looks_over = if is_over { self.looks_over + 1 } else { 0 };
        self.looks_over >= LAG_LOOKS
    }

    /// So many bytes wait for it.
    pub(super) fn note(&mut self, unread: u64, now: Instant) {
        let most = self.most_bytes.unwrap_or(u64::MAX);
        if unread < SLOW_BYTES.min(most / 2) {
            self.tell_at = None;
        } else if self.tell_at.is_none() {
            self.tell_at = Some(now.plus_us(SLOW_FIRST_US));
        }
    }

    /// It did not keep up at the last look.
    pub(super) fn is_behind(&self) -> bool {
        self.tell_at.is_some() || self.looks_over > 0
    }
}

#[cfg(test)]
mod tests {
    use super::Lag;
    use crate::clients::limits::LAG_LOOKS;

    #[test]
    fn nobody_is_too_slow_where_others_wait() {
        let mut lag = Lag::default();
        for _ in 0..100 * LAG_LOOKS {
            assert!(!lag.is_too_far(1 << 40, true));
        }
    }

    #[test]
    fn one_look_is_no_proof_and_what_is_read_meanwhile_counts() {
        let mut lag = Lag::default();
        lag.bound(100_000);
        for (unread, is_full) in [(100_001, false), (0, true)] {
            for _ in 1..LAG_LOOKS {
                assert!(!lag.is_too_far(unread, is_full));
            }
            assert!(!lag.is_too_far(100_000, false), "no more than it may");
            for _ in 1..LAG_LOOKS {
                assert!(!lag.is_too_far(unread, is_full));
            }
            assert!(lag.is_too_far(unread, is_full));
            assert!(!lag.is_too_far(0, false));
        }
    }
}
