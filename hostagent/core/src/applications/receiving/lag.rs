//! How far a receiver is behind what has come.

use crate::clients::limits::{LAG_BYTES_MIN, SLOW_BYTES, SLOW_FIRST_US};
use wormcast_protocol::{Engine, Instant};
use wormcast_wire::BufferClass;

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
    /// More bytes than these may not wait for it; gives how many may.
    pub(super) fn bound(&mut self, engine: &Engine, bytes: u64) -> u64 {
        // With more, the buffers are full first, and others wait.
        let room = engine.pool_bytes_max(BufferClass::One) as u64 / 2;
        let most = bytes.min(room).max(LAG_BYTES_MIN);
        self.most_bytes = Some(most);
        most
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
}
