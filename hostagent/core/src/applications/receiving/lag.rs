//! How far a receiver is behind what has come.

use crate::clients::limits::{LAG_BYTES_MIN, LAG_US, SLOW_BYTES, SLOW_FIRST_US};
use wormcast_protocol::Instant;

/// How far the receiver of a message is behind.
#[derive(Default)]
pub(super) struct Lag {
    /// More bytes than these may not wait for it.
    most_bytes: Option<u64>,
    /// Since when more have waited at each look, or half of the buffers.
    over_since: Option<Instant>,
    pub(super) look_at: Instant,
    /// When the origin is told, first or again. None: it keeps up.
    pub(super) tell_at: Option<Instant>,
}

impl Lag {
    /// More bytes than these may not wait for it.
    pub(super) fn bound(&mut self, bytes: u64) {
        self.most_bytes = Some(bytes.max(LAG_BYTES_MIN));
    }

    /// So many bytes wait for it, and perhaps half of the buffers. Whether that is too much for the sender, and has been for
    /// a while: what an agent finds at once after a pause is no fault of the receiver.
    pub(super) fn is_too_far(&mut self, unread: u64, is_full: bool, now: Instant) -> bool {
        let Some(most) = self.most_bytes else {
            return false;
        };
        if unread <= most && !is_full {
            self.over_since = None;
            return false;
        }
        let since = *self.over_since.get_or_insert(now);
        since.plus_us(LAG_US) <= now
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
        self.tell_at.is_some() || self.over_since.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::Lag;
    use crate::clients::limits::LAG_US;
    use wormcast_protocol::Instant;

    fn at(us: u64) -> Instant {
        Instant::from_micros(us)
    }

    #[test]
    fn nobody_is_too_slow_where_others_wait() {
        let mut lag = Lag::default();
        assert!(!lag.is_too_far(1 << 40, true, at(1)));
        assert!(!lag.is_too_far(1 << 40, true, at(1 << 40)));
    }

    #[test]
    fn one_look_is_no_proof_and_what_is_read_meanwhile_counts() {
        let mut lag = Lag::default();
        lag.bound(100_000);
        assert!(!lag.is_too_far(100_001, false, at(0)));
        assert!(!lag.is_too_far(100_001, false, at(LAG_US - 1)));
        assert!(
            !lag.is_too_far(100_000, false, at(LAG_US)),
            "no more than it may"
        );
        assert!(
            !lag.is_too_far(0, true, at(LAG_US + 1)),
            "full, but not for long"
        );
        assert!(lag.is_too_far(0, true, at(2 * LAG_US + 1)));
    }
}
