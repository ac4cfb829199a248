//! When the packets came of the message that is being read.

use super::{Came, Reception};
use crate::event::MessageArrival;
use crate::time::Instant;
use core::cmp::Ordering;

impl Reception {
    /// The packet at `consumed` came at this time. A packet that is read in pieces counts once.
    pub fn note_came(&mut self, at: Instant, bytes: usize) {
        let (position, bytes) = (self.consumed, bytes as u64);
        let came = self.came.get_or_insert(Came {
            next: position,
            first: at,
            last: at,
            first_bytes: 0,
            bytes: 0,
        });
        if position < came.next {
            return;
        }
        came.next = position + 1;
        came.bytes += bytes;
        came.last = came.last.max(at);
        match at.cmp(&came.first) {
            Ordering::Less => (came.first, came.first_bytes) = (at, bytes),
            Ordering::Equal => came.first_bytes += bytes,
            Ordering::Greater => {}
        }
    }

    /// When the packets came of the message that is being read.
    pub fn came(&self) -> Option<MessageArrival> {
        self.came.map(|came| MessageArrival {
            first: came.first,
            last: came.last,
            later_bytes: came.bytes - came.first_bytes,
        })
    }
}
