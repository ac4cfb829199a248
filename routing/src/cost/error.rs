//! Why there are no costs, or nothing to lay them on.

use std::fmt;

use super::Costs;
use crate::group::GroupError;
use crate::topology::TopologyError;
use wormcast_wire::HostId;
use wormcast_wire::tree_route::TreeDecodeError;

/// Why there are no costs, or nothing to lay them on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CostError {
    /// There is no set of costs of that name.
    UnknownSet {
        /// What was asked for.
        name: String,
    },
    /// There is no cost of that name.
    UnknownField {
        /// What was given.
        name: String,
        /// What there is.
        choices: Vec<&'static str>,
    },
    /// A value that is none.
    Value {
        /// Where, as in `costs.packet_send_ns`.
        at: String,
        /// What is wrong there.
        reason: String,
    },
    /// A switch or host that is not there.
    Topology(TopologyError),
    /// No path where one is needed, or no plan.
    Group(Box<GroupError>),
    /// A TREE route that cannot be read.
    Tree(TreeDecodeError),
    /// Edges that are no schedule: a host sends what it never gets.
    NoSchedule {
        /// The host.
        host: HostId,
    },
}

impl From<TopologyError> for CostError {
    fn from(error: TopologyError) -> CostError {
        CostError::Topology(error)
    }
}

impl From<GroupError> for CostError {
    fn from(error: GroupError) -> CostError {
        CostError::Group(Box::new(error))
    }
}

impl From<TreeDecodeError> for CostError {
    fn from(error: TreeDecodeError) -> CostError {
        CostError::Tree(error)
    }
}

impl fmt::Display for CostError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CostError::UnknownSet { name } => write!(
                f,
                "there is no set of costs \"{name}\"; choices are {}",
                Costs::NAMES.join(", ")
            ),
            CostError::UnknownField { name, choices } => write!(
                f,
                "there is no cost \"{name}\"; choices are {}",
                choices.join(", ")
            ),
            CostError::Value { at, reason } => write!(f, "{at}: {reason}"),
            CostError::Topology(error) => error.fmt(f),
            CostError::Group(error) => error.fmt(f),
            CostError::Tree(error) => error.fmt(f),
            CostError::NoSchedule { host } => write!(
                f,
                "host {host} sends on a message that it does not get; edges lead from the source to \
                 every member, each after the one that brings the message"
            ),
        }
    }
}

impl std::error::Error for CostError {}
