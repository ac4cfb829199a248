//! Why there are no costs, or nothing to lay them on.

use wormcast_routing::group::GroupError;
use wormcast_routing::topology::TopologyError;
use wormcast_wire::HostId;
use wormcast_wire::tree_route::TreeDecodeError;

/// Why there are no costs, nothing to lay them on, or nothing to choose.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CostError {
    /// There is no set of costs of that name.
    #[error("there is no set of costs \"{name}\"; choices are {}", .choices.join(", "))]
    UnknownSet {
        name: String,
        choices: &'static [&'static str],
    },
    /// There is no cost of that name.
    #[error("there is no cost \"{name}\"; choices are {}", .choices.join(", "))]
    UnknownField {
        name: String,
        choices: Vec<&'static str>,
    },
    /// A value that is none.
    #[error("{at}: {reason}")]
    Value {
        /// Where, as in `costs.packet_send_ns`.
        at: String,
        reason: String,
    },
    /// A switch or host that is not there.
    #[error(transparent)]
    Topology(#[from] TopologyError),
    /// No path where one is needed, or no plan.
    #[error(transparent)]
    Group(#[from] GroupError),
    /// A TREE route that cannot be read.
    #[error(transparent)]
    Tree(#[from] TreeDecodeError),
    /// Edges that are no schedule: a host sends what it never gets.
    #[error(
        "host {host} sends on a message that it does not get; edges lead from the source to \
                 every member, each after the one that brings the message"
    )]
    NoSchedule { host: HostId },
}
