//! Why a group cannot be planned.

use crate::routes::RouteError;
use crate::structure::StructureError;
use crate::topology::TopologyError;
use wormcast_wire::tree_route::TreeEncodeError;

/// Why a group cannot be planned.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GroupError {
    /// A member that is no host.
    #[error(transparent)]
    Topology(#[from] TopologyError),
    /// No route where one is needed.
    #[error(transparent)]
    Route(#[from] RouteError),
    /// Members or parameters that make no structure.
    #[error(transparent)]
    Structure(#[from] StructureError),
    /// Paths that make no TREE route.
    #[error(transparent)]
    Tree(#[from] TreeEncodeError),
    /// A request that cannot be read.
    #[error("{at}: {reason}")]
    Request {
        /// Where, as in `parameters.k`.
        at: String,
        reason: String,
    },
}
