//! Silence of a child: when to probe it, when it counts as dead, and the pause after
//! a NACK.

use super::{Child, NACK_PAUSE_US};
use crate::config::Timing;
use crate::time::Instant;
use crate::window::store::Store;
use wormcast_wire::FailReason;

const NACK_PAUSE_US_MAX: u64 = 100_000;
/// Least time between two probes.
const PROBE_US_LEAST: u64 = 5_000;
/// Probes without an answer after which the path is taken for dark.
const DARK_PROBES: u32 = 3;

/// How long a child may be silent at least, where others than it say what it would say.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Patience {
    /// With packets under way, µs.
    pub in_flight_us: u64,
    /// Where only a confirmation is missing, µs.
    pub confirm_us: u64,
}

impl Child {
    /// Something was heard from the child; `progress` if it has more than before.
    pub fn note_heard(&mut self, progress: bool, now: Instant) {
        self.last_heard = now;
        // For a packet that is too long it is given up until the others have that.
        let given_up = self.too_long.is_none() && core::mem::take(&mut self.excluded);
        if given_up || self.reported == Some(FailReason::Silent) {
            self.reported = None; // another failure is reported again
        }
        if progress {
            self.probes = 0;
            self.last_probe_basis = now;
            self.nack_pause_us = NACK_PAUSE_US;
        }
    }

    /// The child has no buffer: stop for a while, then send again what it refused
    /// (WORM §4).
    pub fn note_nack(&mut self, now: Instant) {
        self.last_heard = now;
        if self.paused_until.is_none() {
            self.paused_until = Some(now.plus_us(self.nack_pause_us));
            self.nack_pause_us = (2 * self.nack_pause_us).min(NACK_PAUSE_US_MAX);
        }
    }

    /// Whether the child owes an answer. `end` is what this host has in order.
    /// Everything before `known` is confirmed by all.
    pub fn set_owing(&mut self, end: u64, known: u64, now: Instant) -> bool {
        // One that was given up for its silence is asked until it speaks itself: what comes next is not refused by it.
        let is_silent = self.excluded && self.too_long.is_none();
        let lacks = self.stable.max(known) < end || self.next() > self.cumulative();
        let owes = self.is_behind || is_silent || lacks;
        if !owes {
            self.owed_since = None;
            self.probes = 0;
        } else if self.owed_since.is_none() {
            self.owed_since = Some(now);
            self.last_probe_basis = now;
        }
        owes
    }

    /// Time of silence while an answer is owed, µs.
    pub fn silent_us(&self, now: Instant) -> u64 {
        self.owed_since
            .map_or(0, |since| now.since_us(since.max(self.last_heard)))
    }

    /// When the silence will have lasted `timeout_us`.
    pub fn silent_deadline(&self, timeout_us: u64) -> Option<Instant> {
        self.owed_since
            .map(|since| since.max(self.last_heard).plus_us(timeout_us))
    }

    /// When to probe, if it owes an answer.
    pub fn probe_deadline(&self, timing: &Timing, patience: Patience) -> Option<Instant> {
        self.owed_since?;
        let base = self.path.probe_us(timing.ack_delay_us).max(PROBE_US_LEAST);
        // With nothing in flight only a confirmation is missing: less hurry.
        let base = if self.under_way() > 0 {
            base.max(patience.in_flight_us)
        } else {
            base.max(20_000).max(patience.confirm_us)
        };
        let interval_us = (base << self.probes.min(16)).min(timing.probe_interval_us_max);
        Some(self.last_probe_basis.plus_us(interval_us))
    }

    /// Times that are due: end of a pause, loss by reordering time, probe. Gives the
    /// packets newly taken for lost.
    pub fn handle_timeout(
        &mut self,
        timing: &Timing,
        patience: Patience,
        store: &Store,
        now: Instant,
    ) -> u32 {
        let mut lost = 0;
        if self.paused_until.is_some_and(|until| until <= now) {
            self.paused_until = None;
            lost += self.give_up_flight(now);
        }
        if self
            .reorder_deadline
            .is_some_and(|deadline| deadline <= now)
        {
            lost += self.mark_lost(now);
        }
        if self
            .probe_deadline(timing, patience)
            .is_some_and(|deadline| deadline <= now)
        {
            self.probes += 1;
            self.last_probe_basis = now;
            if self.probes == DARK_PROBES && self.in_flight() > 0 {
                self.congestion.note_blackout();
            }
            // The packet sent last tells most when it is answered (RFC 8985 §7.3).
            let last = self.board.last_in_flight(store);
            self.probe = Some(last);
        }
        lost
    }

    /// When [`Child::handle_timeout`] has something to do.
    pub fn deadline(&self, timing: &Timing, patience: Patience) -> Option<Instant> {
        [
            self.paused_until,
            self.reorder_deadline,
            self.probe_deadline(timing, patience)
                .filter(|_| self.probe.is_none()),
        ]
        .into_iter()
        .flatten()
        .min()
    }
}
