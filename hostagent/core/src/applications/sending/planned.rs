//! What the plan in force says of groups.

use super::Sending;
use crate::plan::PlannedGroup;
use std::sync::Arc;

impl Sending {
    /// A group as the plan in force has it. Messages of one that is ordered say in their first byte what they are.
    pub(crate) fn plan_group(&mut self, group: &PlannedGroup) {
        self.rates.set(group.id, group.rate_bits);
        if group.sequencer.is_some() {
            self.ordered.insert(group.id)
        } else {
            self.ordered.remove(&group.id)
        };
        if group.left_out.is_empty() {
            self.left_out.remove(&group.id)
        } else {
            self.left_out.insert(group.id, Arc::clone(&group.left_out))
        };
    }
}
