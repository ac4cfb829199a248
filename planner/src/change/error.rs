//! Why a change cannot be planned.

use wormcast_routing::routes::{Algorithm, RouteError};
use wormcast_routing::topology::TopologyError;
use wormcast_wire::HostId;

/// Why a change cannot be planned.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChangeError {
    /// A switch, host or link that is not in the topology.
    #[error(transparent)]
    Topology(#[from] TopologyError),
    /// There are no routes, before or after.
    #[error(transparent)]
    Routes(#[from] RouteError),
    /// More than one path for a pair, or another one each time.
    #[error(
        "changes are planned for algorithms with one path a pair; {} is not one of {}",
        algorithm.name(),
        names(choices)
    )]
    Algorithm {
        algorithm: Algorithm,
        choices: Vec<Algorithm>,
    },
    /// The routes in force can deadlock by themselves.
    #[error("the routes in force can deadlock by themselves; check them with `verify` first")]
    Deadlock,
    /// A route in force that the old topology does not have.
    #[error("route in force from host {src} to host {dst}: {reason}")]
    NoSuchRoute {
        src: HostId,
        dst: HostId,
        reason: String,
    },
}

fn names(choices: &[Algorithm]) -> String {
    let names: Vec<&str> = choices.iter().map(|choice| choice.name()).collect();
    names.join(", ")
}
