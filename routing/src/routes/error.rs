//! Why there is no route.

use super::Algorithm;
use crate::topology::TopologyError;
use wormcast_wire::{HostId, SWITCHES_CROSSED_MAX};

/// Why there is no route.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RouteError {
    /// A switch or host that is not in the topology.
    #[error(transparent)]
    Topology(#[from] TopologyError),
    /// There is no algorithm of that name.
    #[error("there is no algorithm \"{name}\"; algorithms are {}", Algorithm::ALL.map(Algorithm::name).join(", "))]
    UnknownAlgorithm { name: String },
    /// A host needs no route to itself.
    #[error("host {host} needs no route to itself; source and destination must differ")]
    ToItself { host: HostId },
    /// The two are in parts of the fabric that are not connected.
    #[error("host {src} cannot reach host {dst}: they are in parts that are not connected")]
    Unreachable { src: HostId, dst: HostId },
    /// A worm would be dropped for its hops before it arrives.
    #[error(
        "route from host {src} to host {dst} crosses {switches} switches; a worm crosses at most {SWITCHES_CROSSED_MAX}"
    )]
    TooLong {
        src: HostId,
        dst: HostId,
        /// How many switches it would cross.
        switches: usize,
    },
    /// up\*/down\* needs links that lead both ways.
    #[error("{} needs links that lead both ways; this topology is unidirectional", algorithm.name())]
    Unidirectional { algorithm: Algorithm },
    /// Channel loads are worked out for algorithms with one legal path a pair only.
    #[error("the load of channels is balanced for osud and tree-only, not for {}", algorithm.name())]
    NoBalance { algorithm: Algorithm },
    /// A file of routes that cannot be read.
    #[error("{at}: {reason}")]
    File {
        /// Where, as in `routes[3].ports`.
        at: String,
        reason: String,
    },
}
