//! Why a change cannot be planned.

use std::fmt;

use crate::routes::{Algorithm, RouteError};
use crate::topology::TopologyError;
use wormcast_wire::{HostId, SwitchId};

/// Why a change cannot be planned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChangeError {
    /// A switch, host or link that is not in the topology.
    Topology(TopologyError),
    /// There are no routes, before or after.
    Routes(RouteError),
    /// More than one path for a pair, or another one each time.
    Algorithm {
        /// What was asked for.
        algorithm: Algorithm,
        /// What can be planned.
        choices: Vec<Algorithm>,
    },
    /// The routes in force can deadlock by themselves.
    Deadlock,
    /// A route in force that the old topology does not have.
    NoSuchRoute {
        /// Host that sends.
        src: HostId,
        /// Host that receives.
        dst: HostId,
        /// Where it fails.
        reason: String,
    },
    /// A link that is there already, or not there, the other way round than it should.
    Link {
        /// Switch at one end.
        switch: SwitchId,
        /// Its port.
        port: u8,
        /// What is wrong.
        reason: &'static str,
    },
}

impl From<TopologyError> for ChangeError {
    fn from(error: TopologyError) -> ChangeError {
        ChangeError::Topology(error)
    }
}

impl From<RouteError> for ChangeError {
    fn from(error: RouteError) -> ChangeError {
        ChangeError::Routes(error)
    }
}

impl fmt::Display for ChangeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ChangeError::Topology(error) => error.fmt(f),
            ChangeError::Routes(error) => error.fmt(f),
            ChangeError::Algorithm { algorithm, choices } => {
                let choices: Vec<&str> = choices.iter().map(|choice| choice.name()).collect();
                write!(
                    f,
                    "changes are planned for algorithms with one path a pair; {} is not one of {}",
                    algorithm.name(),
                    choices.join(", ")
                )
            }
            ChangeError::Deadlock => write!(
                f,
                "the routes in force can deadlock by themselves; check them with `verify` first"
            ),
            ChangeError::NoSuchRoute { src, dst, reason } => {
                write!(f, "route in force from host {src} to host {dst}: {reason}")
            }
            ChangeError::Link {
                switch,
                port,
                reason,
            } => {
                write!(f, "link at {switch}:{port} {reason}")
            }
        }
    }
}

impl std::error::Error for ChangeError {}
