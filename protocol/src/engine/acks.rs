//! ACKs that come before the packet that they are about are kept for it.

use super::Engine;
use super::early::EARLY_US;
use crate::reject::Reject;
use crate::time::Instant;
use wormcast_wire::Replication;
use wormcast_wire::pdu::Common;

impl Engine {
    /// An ACK of a stream that this host does not know: kept, if a packet that switches copy may follow.
    pub(super) fn keep_early(
        &mut self,
        frame: &[u8],
        common: Common,
        now: Instant,
    ) -> Result<(), Reject> {
        let plan = self.groups.get(&common.group).ok_or(Reject::UnknownGroup)?;
        let copies = |one: &crate::plan::Choice| one.replication == Replication::Switches;
        if !plan.members.contains(&common.origin) || !plan.choices.iter().any(copies) {
            return Err(Reject::UnknownStream);
        }
        for _ in 0..self.early.make_room(now) {
            self.shared.counters.count_reject(Reject::UnknownStream);
        }
        let key = (common.group, common.origin);
        self.early.kept.push_back((key, now, frame.to_vec()));
        Ok(())
    }

    /// Takes the ACKs that were kept for a stream that has just begun.
    pub(super) fn take_early(&mut self, now: Instant) {
        let Some(begun) = self.early.begun.take() else {
            return;
        };
        for (key, at, frame) in core::mem::take(&mut self.early.kept) {
            if key != begun {
                self.early.kept.push_back((key, at, frame));
                continue;
            }
            let result = if now.since_us(at) < EARLY_US {
                self.take_frame(&frame, now)
            } else {
                Err(Reject::UnknownStream)
            };
            if let Err(reject) = result {
                self.shared.counters.count_reject(reject);
            }
        }
    }
}
