//! Members of the operator's group that take no part: they do not get a message, and its sender is told so.

use super::Sending;
use crate::api::MemberOutcome;
use crate::clients::Serving;
use crate::plan::LeftOut;
use std::collections::BTreeMap;
use std::sync::Arc;
use wormcast_wire::{FailReason, GroupId, HostId};

/// What is said of a member that the plan left out after the message had begun, and takes in again.
const FOR_A_WHILE: &str = "away for a while after the message began";

/// Who takes part in a group now, and who does not.
pub(crate) struct LeftOuts<'p> {
    members: &'p [HostId],
    left_out: &'p [LeftOut],
}

impl<'p> LeftOuts<'p> {
    /// By the plan in force.
    pub(crate) fn of(serving: &Serving<'p>, group: GroupId) -> Self {
        let planned = serving.groups.and_then(|groups| groups.get(&group));
        Self {
            members: planned.map_or(&[], |planned| &planned.members),
            left_out: planned.map_or(&[], |planned| &planned.left_out),
        }
    }

    /// Why a member does not have a message. The engine takes everyone whom a plan leaves out for removed: only
    /// who is not in the group any more is.
    pub(super) fn reason(&self, host: HostId, reason: FailReason) -> String {
        if reason != FailReason::Removed {
            return reason.to_string();
        }
        match self.left_out.iter().find(|one| one.host == host) {
            Some(one) => one.reason.clone(),
            None if self.members.contains(&host) => FOR_A_WHILE.to_owned(),
            None => reason.to_string(),
        }
    }
}

impl Sending {
    /// Who took no part when a message began; of one that is not begun, who takes none now.
    pub(super) fn began_without(&self, group: GroupId, message: Option<u64>) -> &[LeftOut] {
        let turn = self.turns.get(&group);
        let active = turn.and_then(|turn| turn.active.as_ref());
        let of = |message: u64| -> Option<&Arc<[LeftOut]>> {
            match active.filter(|active| active.message == Some(message)) {
                Some(active) => active.began_without.as_ref(),
                None => turn?.began_without.get(&message),
            }
        };
        let found = match message {
            Some(message) => of(message),
            None => self.left_out.get(&group),
        };
        found.map_or(&[], |hosts| hosts)
    }
}

/// Adds those who took no part when the message began. One that came back in time may have it.
pub(super) fn add_left_out(outcomes: &mut BTreeMap<u16, MemberOutcome>, began_without: &[LeftOut]) {
    for one in began_without {
        let outcome = outcomes.entry(one.host.0).or_insert_with(|| MemberOutcome {
            host: one.host.0,
            delivered: false,
            reason: Some(one.reason.clone()),
            left_out: true,
        });
        outcome.left_out = !outcome.delivered;
    }
}
