//! Delay to a child that switches copy to, and what counts for its window.

use super::Child;
use super::scoreboard::Acked;
use crate::time::Instant;
use wormcast_wire::ack::Echo;

/// Time for which a child's queueing delay is news, µs.
const QUEUED_US_FRESH: u64 = 200_000;

impl Child {
    /// An ACK of a child that switches copy to. The delay that it tells is that of the copies, by
    /// the origin's clock; the window from here is for what it gets from here.
    pub fn measure_copied(&mut self, echo: Option<Echo>, acked: &Acked, now: Instant) {
        if let Some(echo) = echo {
            let queued_us = self.queueing.add(echo.forward_delay_us, now);
            self.queued = Some((queued_us, now));
        }
        if let Some(send) = acked.latest.filter(|send| send.own) {
            let rtt_us = now.since_us(send.sent).max(1);
            let settled = self.congestion.settled_at() <= send.sent;
            // Nobody measures the route there alone.
            self.path
                .add(rtt_us, Some((0, rtt_us as u32)), settled, now);
        }
    }

    /// How many of the packets newly taken for lost count for the window, if it is so many in all.
    pub fn lost_by_window(&mut self, lost: u32) -> u32 {
        let own = self.board.take_own_lost();
        if self.copied { own } else { lost }
    }

    /// Queueing delay from the origin, the most of the child and those below it, µs; 0 if nothing
    /// has been heard of it of late.
    pub fn queued_us(&self, now: Instant) -> u64 {
        let fresh = self
            .queued
            .filter(|(_, at)| now.since_us(*at) < QUEUED_US_FRESH);
        fresh.map_or(0, |(queued_us, _)| queued_us)
    }
}
