//! Why routes cannot be checked.

use std::fmt;

use super::Branching;
use crate::ids::{HostId, PortId, SwitchId};
use crate::topology::TopologyError;
use crate::tree_route::TreeDecodeError;

/// Why routes cannot be checked: they are not routes of this topology.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeadlockError {
    /// A switch or host that is not in the topology.
    Topology(TopologyError),
    /// There is no such behaviour of branches.
    UnknownBranching {
        /// What was asked for.
        name: String,
    },
    /// A unicast route that contradicts itself or the topology.
    Route {
        /// Host that sends.
        src: HostId,
        /// Host that receives.
        dst: HostId,
        /// What is wrong.
        reason: String,
    },
    /// A TREE route that a switch would drop.
    Tree {
        /// The switch.
        switch: SwitchId,
        /// Why it would.
        error: TreeDecodeError,
    },
    /// Two branches of one worm need the same channel.
    TreeMeetsItself {
        /// Switch the channel leaves.
        switch: SwitchId,
        /// Port it leaves by.
        port: PortId,
    },
    /// A port with nothing on it.
    NothingThere {
        /// The switch.
        switch: SwitchId,
        /// The port.
        port: PortId,
    },
}

impl From<TopologyError> for DeadlockError {
    fn from(error: TopologyError) -> DeadlockError {
        DeadlockError::Topology(error)
    }
}

impl fmt::Display for DeadlockError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DeadlockError::Topology(error) => error.fmt(f),
            DeadlockError::UnknownBranching { name } => {
                let choices = Branching::ALL.map(Branching::name).join(", ");
                write!(f, "branches cannot be \"{name}\"; choices are {choices}")
            }
            DeadlockError::Route { src, dst, reason } => {
                write!(f, "route from host {src} to host {dst}: {reason}")
            }
            DeadlockError::Tree { switch, error } => write!(f, "at switch {switch}: {error}"),
            DeadlockError::TreeMeetsItself { switch, port } => {
                write!(
                    f,
                    "two branches of a tree route leave switch {switch} by port {port}"
                )
            }
            DeadlockError::NothingThere { switch, port } => {
                write!(f, "nothing hangs on port {port} of switch {switch}")
            }
        }
    }
}

impl std::error::Error for DeadlockError {}
