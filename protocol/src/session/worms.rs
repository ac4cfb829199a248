//! Where switches copy, at the origin: the worms that together reach all members, and which packet they carry next.

use crate::config::Timing;
use crate::time::Instant;
use crate::window::congestion::Congestion;
use std::collections::{BTreeSet, VecDeque};
use wormcast_wire::worm::Kind;

/// A worm that switches copy.
#[derive(Debug)]
pub(super) struct Worm {
    pub(super) kind: Kind,
    pub(super) route: Vec<u8>,
    /// The children it reaches, by their place.
    pub(super) children: Vec<usize>,
}

/// The sending side of a stream that switches copy.
#[derive(Debug)]
pub(crate) struct Broadcast {
    pub congestion: Congestion,
    /// The next position to send to all.
    pub(super) next: u64,
    /// For each tree of the group the worms that together reach all members; as one where there is
    /// none of its own. Empty: there is nobody to reach.
    pub(super) worms: Vec<Vec<Worm>>,
    /// The tree that the message being sent takes.
    pub(super) tree: usize,
    /// For which routes `worms` was made; none: it has to be made anew.
    pub(super) made_for: Option<u64>,
    /// Which children it leaves out.
    pub(super) left_out: Vec<bool>,
    /// The worm of `next` to send.
    pub(super) turn: usize,
    /// Packets to send again, and when, earliest first; at most a window of them.
    pub(super) repairs: VecDeque<(Instant, u64)>,
    /// Those in `repairs`.
    pub(super) queued: BTreeSet<u64>,
    /// The children that miss the packet being sent again; kept for its memory.
    pub(super) targets: Vec<usize>,
}

impl Broadcast {
    pub fn new(start: u64, timing: &Timing) -> Broadcast {
        Broadcast {
            congestion: Congestion::new(timing.queue_delay_target_us),
            next: start,
            worms: Vec::new(),
            tree: 0,
            made_for: None,
            left_out: Vec::new(),
            turn: 0,
            repairs: VecDeque::new(),
            queued: BTreeSet::new(),
            targets: Vec::new(),
        }
    }

    /// The next position to send to all.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// Nobody needs what lies before `position`; with no child that counts it was never
    /// sent.
    pub fn skip_to(&mut self, position: u64) {
        if self.next < position {
            self.next = position;
            self.turn = 0;
        }
    }

    /// A child that misses it all the same keeps it in mind: it is gathered again when the child's pause ends, when it
    /// answers after it was given up, or when routes change.
    pub(super) fn drop_repair(&mut self) {
        if let Some((_, position)) = self.repairs.pop_front() {
            self.queued.remove(&position);
        }
    }
}
