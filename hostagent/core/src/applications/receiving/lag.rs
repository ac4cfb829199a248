//! How far a receiver is behind what has come.

use crate::clients::limits::{SLOW_BYTES, SLOW_FIRST_US};
use wormcast_protocol::Instant;

/// How far the receiver of a message is behind.
#[derive(Default)]
pub(super) struct Lag {
    /// More bytes than these may not wait for it.
    pub(super) most_bytes: Option<u64>,
    pub(super) look_at: Instant,
    /// When the origin is told, first or again. None: it keeps up.
    pub(super) tell_at: Option<Instant>,
}

impl Lag {
    /// So many bytes wait for it.
    pub(super) fn note(&mut self, unread: u64, now: Instant) {
        let most = self.most_bytes.unwrap_or(u64::MAX);
        if unread < SLOW_BYTES.min(most / 2) {
            self.tell_at = None;
        } else if self.tell_at.is_none() {
            self.tell_at = Some(now.plus_us(SLOW_FIRST_US));
        }
    }
}
