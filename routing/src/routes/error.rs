//! Why there is no route.

use std::fmt;

use super::Algorithm;
use crate::topology::TopologyError;
use wormcast_wire::{HostId, SWITCHES_CROSSED_MAX};

/// Why there is no route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RouteError {
    /// A switch or host that is not in the topology.
    Topology(TopologyError),
    /// There is no algorithm of that name.
    UnknownAlgorithm {
        /// What was asked for.
        name: String,
    },
    /// A host needs no route to itself.
    ToItself {
        /// The host.
        host: HostId,
    },
    /// The two are in parts of the fabric that are not connected.
    Unreachable {
        /// Host that would send.
        src: HostId,
        /// Host that would receive.
        dst: HostId,
    },
    /// A worm would be dropped for its hops before it arrives.
    TooLong {
        /// Host that would send.
        src: HostId,
        /// Host that would receive.
        dst: HostId,
        /// How many switches it would cross.
        switches: usize,
    },
    /// up\*/down\* needs links that lead both ways.
    Unidirectional {
        /// The algorithm asked for.
        algorithm: Algorithm,
    },
    /// Channel loads are worked out for algorithms with one legal path a pair only.
    NoBalance {
        /// The algorithm asked for.
        algorithm: Algorithm,
    },
    /// A file of routes that cannot be read.
    File {
        /// Where, as in `routes[3].ports`.
        at: String,
        /// What is wrong there.
        reason: String,
    },
}

impl From<TopologyError> for RouteError {
    fn from(error: TopologyError) -> RouteError {
        RouteError::Topology(error)
    }
}

impl fmt::Display for RouteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RouteError::Topology(error) => error.fmt(f),
            RouteError::UnknownAlgorithm { name } => {
                let choices = Algorithm::ALL.map(Algorithm::name).join(", ");
                write!(
                    f,
                    "there is no algorithm \"{name}\"; algorithms are {choices}"
                )
            }
            RouteError::ToItself { host } => {
                write!(
                    f,
                    "host {host} needs no route to itself; source and destination must differ"
                )
            }
            RouteError::Unreachable { src, dst } => write!(
                f,
                "host {src} cannot reach host {dst}: they are in parts that are not connected"
            ),
            RouteError::TooLong { src, dst, switches } => write!(
                f,
                "route from host {src} to host {dst} crosses {switches} switches; \
                 a worm crosses at most {SWITCHES_CROSSED_MAX}"
            ),
            RouteError::Unidirectional { algorithm } => write!(
                f,
                "{} needs links that lead both ways; this topology is unidirectional",
                algorithm.name()
            ),
            RouteError::NoBalance { algorithm } => write!(
                f,
                "the load of channels is balanced for osud and tree-only, not for {}",
                algorithm.name()
            ),
            RouteError::File { at, reason } => write!(f, "{at}: {reason}"),
        }
    }
}

impl std::error::Error for RouteError {}
