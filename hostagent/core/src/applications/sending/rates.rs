//! How fast the messages of this host go: those of a sender as it asks, those of a group as its plan allows.

use crate::pacing::Pacing;
use std::collections::BTreeMap;
use wormcast_protocol::Instant;
use wormcast_wire::GroupId;

/// The rates of groups that have one, each for all senders of the group together.
#[derive(Default)]
pub(super) struct GroupRates(BTreeMap<GroupId, Pacing>);

impl GroupRates {
    /// What the plan says of a group: bits a second, or none.
    pub(super) fn set(&mut self, group: GroupId, rate_bits: Option<u64>) {
        match rate_bits {
            Some(bits) => self.0.entry(group).or_default().set_rate(Some(bits / 8)),
            None => drop(self.0.remove(&group)),
        }
    }

    /// When bytes of a sender, whose own rate is given, may go. The past, if they may now.
    pub(super) fn open_at(&self, group: GroupId, own: &Pacing) -> Instant {
        let all = self.0.get(&group).map(Pacing::open_at);
        own.open_at().max(all.unwrap_or(Instant::ZERO))
    }

    /// How many of so many bytes are given at once.
    pub(super) fn piece(&self, group: GroupId, own: &Pacing, bytes: usize) -> usize {
        let all = self.0.get(&group);
        own.piece(all.map_or(bytes, |all| all.piece(bytes)))
    }

    /// So many bytes have gone.
    pub(super) fn note_sent(
        &mut self,
        group: GroupId,
        own: &mut Pacing,
        bytes: usize,
        now: Instant,
    ) {
        own.note_sent(bytes, now);
        if let Some(all) = self.0.get_mut(&group) {
            all.note_sent(bytes, now);
        }
    }
}
