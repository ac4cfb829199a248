//! Why a group cannot be planned.

use std::fmt;

use crate::cost::CostError;
use crate::routes::RouteError;
use crate::structure::StructureError;
use crate::topology::TopologyError;
use wormcast_wire::tree_route::TreeEncodeError;

/// Why a group cannot be planned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GroupError {
    /// A member that is no host.
    Topology(TopologyError),
    /// No route where one is needed.
    Route(RouteError),
    /// Members or parameters that make no structure.
    Structure(StructureError),
    /// Paths that make no TREE route.
    Tree(TreeEncodeError),
    /// Costs that are none.
    Cost(CostError),
    /// A request that cannot be read.
    Request {
        /// Where, as in `parameters.k`.
        at: String,
        /// What is wrong there.
        reason: String,
    },
}

impl From<TopologyError> for GroupError {
    fn from(error: TopologyError) -> GroupError {
        GroupError::Topology(error)
    }
}

impl From<RouteError> for GroupError {
    fn from(error: RouteError) -> GroupError {
        GroupError::Route(error)
    }
}

impl From<StructureError> for GroupError {
    fn from(error: StructureError) -> GroupError {
        GroupError::Structure(error)
    }
}

impl From<TreeEncodeError> for GroupError {
    fn from(error: TreeEncodeError) -> GroupError {
        GroupError::Tree(error)
    }
}

impl From<CostError> for GroupError {
    fn from(error: CostError) -> GroupError {
        match error {
            CostError::Group(error) => *error,
            error => GroupError::Cost(error),
        }
    }
}

impl fmt::Display for GroupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            GroupError::Topology(error) => error.fmt(f),
            GroupError::Route(error) => error.fmt(f),
            GroupError::Structure(error) => error.fmt(f),
            GroupError::Tree(error) => error.fmt(f),
            GroupError::Cost(error) => error.fmt(f),
            GroupError::Request { at, reason } => write!(f, "{at}: {reason}"),
        }
    }
}

impl std::error::Error for GroupError {}
