//! What is known of hosts apart from where they are, and why they do not take part.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use wormcast_wire::{GroupId, HostId};

/// Why a member does not take part: it is nowhere.
pub const NOT_LOCATED: &str = "no place known for it, or its switch is down";
/// Why a member does not take part: it is a plain host.
pub const PLAIN: &str = "it has no agent, and the group has no class D address";
/// Why a member does not take part: its agent does not answer, and nobody says since when.
pub const NOT_LIVE: &str = "its agent is gone";
/// Why a member does not take part: it is in another part of the network.
pub const CUT_OFF: &str = "no known link leads to the other members";

/// Why a member takes no part in messages: it is a plain host in a group with a class D address.
pub const COPIES_ALONE: &str = "it has no agent: switches copy what is sent to the class D address to it, and no messages of agents";

/// What one agent takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capacity {
    pub groups: u64,
    /// How many members of one group.
    pub members: u64,
    pub refused: BTreeMap<GroupId, String>,
}

/// What is known of hosts apart from where they are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hosts {
    pub agents: BTreeSet<HostId>,
    /// Agents that take part in their groups.
    pub live: BTreeSet<HostId>,
    /// Of agents; one that is not named takes anything.
    pub capacities: BTreeMap<HostId, Capacity>,
    /// Of agents that are not live: the same with the time since when, for people.
    pub away: BTreeMap<HostId, String>,
}

/// A member that a group has and its plan cannot serve, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shortfall {
    pub group: GroupId,
    pub host: HostId,
    pub reason: Cow<'static, str>,
}
