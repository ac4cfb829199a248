//! What a stream would do if it was looked at again, beside what [`Session::deadline`] says.

use super::Session;
use super::shared::Shared;
use crate::child::Child;
use crate::time::Instant;

impl Session {
    /// Whether a timeout or a poll may note something before any time of it has come: packets to be sent again, one that is
    /// too long, or that the window was full when the pace or a drained queue allowed another packet.
    pub fn is_unsettled(&self, shared: &Shared, now: Instant) -> bool {
        let mut children = self.children.iter().enumerate();
        let is_news = |(index, child): (usize, &Child)| {
            child.board.has_fresh() || self.is_length_news(index, shared)
        };
        if children.any(is_news) {
            return true;
        }
        let is_closed = |next_send: Instant| next_send.max(shared.drain_until) > now;
        if let Some(broadcast) = &self.broadcast {
            let congestion = &broadcast.congestion;
            return is_closed(congestion.next_send()) && self.has_no_room(broadcast);
        }
        let lead_end = self.lead_end();
        self.children.iter().any(|child| {
            is_closed(child.congestion.next_send())
                && child.may_send(&self.store, lead_end)
                && child.in_flight() >= child.congestion.window()
        })
    }

    /// Whether a control packet waits that has no time: NACK or STATUS.
    pub fn has_control(&self) -> bool {
        let reception = self.reception.as_ref();
        let refuses = reception.is_some_and(|reception| reception.nack.is_some());
        let is_told = |child: &Child| {
            let is_idle = self.store.end() <= child.cumulative();
            let is_news = child.advertised_stable < self.stable;
            child.status_due && is_idle && is_news && !child.excluded
        };
        refuses || self.children.iter().any(is_told)
    }
}
