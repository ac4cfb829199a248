//! What cannot be planned, and why.

use std::fmt;

use wormcast_wire::{GroupId, SwitchId};

/// Groups that one failure names; of more it says how many there are.
const GROUPS_NAMED_MAX: usize = 16;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    Group(GroupId),
    /// Several groups, for one reason.
    Groups(Vec<GroupId>),
    /// The switches of one connected part.
    Switches(Vec<SwitchId>),
}

/// Something that cannot be planned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanFailure {
    pub subject: Subject,
    pub reason: String,
}

impl fmt::Display for PlanFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.subject {
            Subject::Group(group) => write!(f, "group {group}: {}", self.reason),
            Subject::Groups(groups) => {
                let named = groups.iter().take(GROUPS_NAMED_MAX);
                let named: Vec<String> = named.map(GroupId::to_string).collect();
                write!(f, "groups {}", named.join(", "))?;
                if groups.len() > GROUPS_NAMED_MAX {
                    write!(f, " and {} more", groups.len() - GROUPS_NAMED_MAX)?;
                }
                write!(f, ": {}", self.reason)
            }
            Subject::Switches(switches) => {
                let named: Vec<String> = switches.iter().map(SwitchId::to_string).collect();
                write!(f, "switches {}: {}", named.join(", "), self.reason)
            }
        }
    }
}
