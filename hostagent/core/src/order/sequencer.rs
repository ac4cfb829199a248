//! What a sequencer knows besides the order.

use std::collections::{BTreeMap, VecDeque};
use wormcast_protocol::Instant;
use wormcast_wire::{HostId, Seq};

/// What the sequencer does besides.
#[derive(Debug, Default)]
pub(super) struct Leading {
    /// Where the next message begins that is not ordered yet, and in which life of the stream.
    pub(super) next: BTreeMap<HostId, (u32, Seq)>,
    /// Runs of `live` from this place on are not announced yet.
    pub unannounced: usize,
    /// How many runs of `live`, in their order, were announced first by which order message of this host's stream.
    pub(super) announced: VecDeque<(u64, usize)>,
    pub(super) snapshot_wanted: bool,
    pub(super) snapshot_at: Instant,
    /// The plan has changed: nothing is said before all that counts, since what was said by the plan before may be
    /// ignored, or have come to other members.
    pub plan_changed: bool,
    /// By origin the life of its stream in which messages are asked for and none comes, and since when.
    pub(super) asked: BTreeMap<HostId, (u32, Instant)>,
}

impl Leading {
    /// The first run is forgotten.
    pub fn forget_first(&mut self) {
        self.unannounced = self.unannounced.saturating_sub(1);
        if let Some((_, runs)) = self.announced.front_mut() {
            *runs -= 1;
            if *runs == 0 {
                self.announced.pop_front();
            }
        }
    }
}
