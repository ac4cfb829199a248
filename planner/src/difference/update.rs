//! What changes at a switch, and when.

use wormcast_wire::PortId;

use crate::model::copies::Copies;
use crate::model::ids::Mgid;
use crate::model::state::{Place, TableDefault, TableEntry};

/// When an update is due. A switch that may copy worms to another finishes SHRINK and GROW together with
/// it.
///
/// PERMIT admits by the guard what is new, before any agent knows of it. REVOKE takes away what is admitted
/// no more, once all agents follow their new plan and older worms have left.
///
/// SHRINK takes entries of gathered ACKs away that change, and ports, until every replication group holds nothing but ports of its new
/// tree; GROW adds the rest of the new tree. So until all have finished SHRINK worms follow parts
/// of the old tree, and from then on parts of the new one: a worm caught in the change may be
/// lost, but neither loops nor arrives twice. RETIRE takes away what nothing uses any more, once
/// the agents have their new plan.
///
/// A port that leads where another of the group led before counts as that port: a group that takes
/// the next of parallel links goes on. Backups of links that have failed go in RETIRE, since agents
/// use them until they have their new plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stage {
    /// The guard lets more in.
    Permit,
    /// Ports go.
    Shrink,
    /// Ports and entries come.
    Grow,
    /// What is out of use goes.
    Retire,
    /// The guard lets less in.
    Revoke,
}

impl Stage {
    /// All, in order.
    pub const ALL: [Stage; 5] = [
        Stage::Permit,
        Stage::Shrink,
        Stage::Grow,
        Stage::Retire,
        Stage::Revoke,
    ];
}

/// The P4Runtime update type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    Insert,
    /// It is there, and changes.
    Modify,
    Delete,
}

/// A replication group and the copies it makes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct MulticastGroup {
    pub mgid: Mgid,
    pub copies: Copies,
}

/// The rate that worms by a port are admitted at; none: any.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PortRate {
    pub port: PortId,
    /// Bytes a second.
    pub bytes: Option<u64>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Entity {
    Group(MulticastGroup),
    Entry(TableEntry),
    /// What a table does on a miss.
    Default(TableDefault),
    /// How fast worms may come by a port; it is modified only.
    Rate(PortRate),
}

/// One write to one switch.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Update {
    pub stage: Stage,
    pub operation: Operation,
    pub entity: Entity,
}

impl Update {
    pub fn place(&self) -> Place {
        match &self.entity {
            Entity::Group(group) => Place::Group(group.mgid),
            Entity::Entry(entry) => Place::Entry(entry.key.clone()),
            Entity::Default(default) => Place::Default(default.table.clone()),
            Entity::Rate(rate) => Place::Rate(rate.port),
        }
    }
}
