//! What a member has, said again until it is known to be stable.

use super::{Reception, UNSETTLED_US};
use crate::time::Instant;

const UNSETTLED_US_MAX: u64 = 32_000_000;
/// At most so long where a message is not whole: a receiver waits for the rest.
const INCOMPLETE_US_MAX: u64 = 4_000_000;

impl Reception {
    /// Whether the ACK that leaves is for the origin and not for the parent.
    pub fn is_for_origin(&self) -> bool {
        self.is_for_origin && self.unsettled_at.is_some()
    }

    /// A packet has come: what is here need not be repeated yet.
    pub fn note_packet(&mut self, now: Instant) {
        self.unsettled_us = UNSETTLED_US;
        self.unsettled_at = Some(now.plus_us(UNSETTLED_US));
        self.is_whole = false;
    }

    /// More is known to be stable.
    pub fn note_settled(&mut self) {
        self.unsettled_us = UNSETTLED_US;
        self.unsettled_at = None;
    }

    /// The origin says what this member does not believe at once: asks it again after so long.
    pub fn ask_origin_in(&mut self, us: u64, now: Instant) {
        self.asks_origin = false;
        self.unsettled_us = 2 * UNSETTLED_US;
        self.unsettled_at = Some(now.plus_us(us));
    }

    /// All that is here is confirmed or not, and known to be stable or not; or it is not whole.
    pub fn note_unsettled(&mut self, unsettled: bool, is_whole: bool, now: Instant) {
        self.is_whole = is_whole;
        if !unsettled && is_whole {
            self.note_settled();
        } else if self.unsettled_at.is_none() {
            self.unsettled_at = Some(now.plus_us(self.unsettled_us));
        }
    }

    /// Whether all messages of which something is here are whole; packets end at `end`.
    pub fn has_whole(&self, cumulative: u64, end: u64) -> bool {
        cumulative <= self.message_end && end <= cumulative
    }

    /// Has it said once more, if it is time.
    pub(super) fn say_again(&mut self, now: Instant) {
        if self.unsettled_at.is_some_and(|at| at <= now) {
            // The parent first; then every other time the origin.
            self.asks_origin = !self.asks_origin && self.unsettled_us > UNSETTLED_US;
            self.is_for_origin = self.asks_origin;
            let most_us = if self.is_whole {
                UNSETTLED_US_MAX
            } else {
                INCOMPLETE_US_MAX
            };
            self.unsettled_us = (2 * self.unsettled_us).min(most_us);
            self.unsettled_at = Some(now.plus_us(self.unsettled_us));
            self.ack_due = true;
        }
    }
}
