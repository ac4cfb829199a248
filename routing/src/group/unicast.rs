//! Unicast paths that the hosts of a group send along.

use super::GroupError;
use super::dimension_order::DimensionOrder;
use crate::routes::{Algorithm, Route, RouteError, Routes};
use crate::structure::StructureError;
use crate::topology::Topology;
use crate::updown::UpDown;
use wormcast_wire::{HostId, SwitchId};

/// How the paths are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Routing {
    Algorithm(Algorithm),
    /// One dimension after the other.
    DimensionOrder,
}

impl Routing {
    /// Name of the paths along one dimension after the other.
    pub const DIMENSION_ORDER: &'static str = "dimension-order";

    pub const fn name(self) -> &'static str {
        match self {
            Routing::Algorithm(algorithm) => algorithm.name(),
            Routing::DimensionOrder => Routing::DIMENSION_ORDER,
        }
    }

    /// The paths of that name: an algorithm for routes, or `dimension-order`.
    ///
    /// # Errors
    /// [`RouteError::UnknownAlgorithm`], for what else it is.
    pub fn from_name(name: &str) -> Result<Routing, RouteError> {
        match name {
            Routing::DIMENSION_ORDER => Ok(Routing::DimensionOrder),
            _ => Ok(Routing::Algorithm(name.parse()?)),
        }
    }

    /// What is taken if nothing is asked for: dimension order where links lead one way,
    /// else the shortest up\*/down\* routes.
    pub fn default_on(topology: &Topology) -> Routing {
        match topology.grid() {
            Some(grid) if grid.unidirectional => Routing::DimensionOrder,
            _ => Routing::Algorithm(Algorithm::Osud),
        }
    }
}

/// Unicast paths of one topology.
#[derive(Clone, Copy, Debug)]
pub enum Unicast<'r, 't> {
    Routes(&'r Routes<'t>),
    /// One dimension after the other. Serves structures over hosts, not switches that
    /// replicate.
    DimensionOrder(DimensionOrder<'t>),
}

impl<'r, 't> From<&'r Routes<'t>> for Unicast<'r, 't> {
    fn from(routes: &'r Routes<'t>) -> Unicast<'r, 't> {
        Unicast::Routes(routes)
    }
}

impl<'t> From<DimensionOrder<'t>> for Unicast<'_, 't> {
    fn from(paths: DimensionOrder<'t>) -> Self {
        Unicast::DimensionOrder(paths)
    }
}

impl<'r, 't> Unicast<'r, 't> {
    /// What the paths lead through.
    pub fn topology(self) -> &'t Topology {
        match self {
            Unicast::Routes(routes) => routes.topology(),
            Unicast::DimensionOrder(paths) => paths.topology(),
        }
    }

    pub fn routing(self) -> Routing {
        match self {
            Unicast::Routes(routes) => Routing::Algorithm(routes.algorithm()),
            Unicast::DimensionOrder(_) => Routing::DimensionOrder,
        }
    }

    /// The routes, for what needs them.
    ///
    /// # Errors
    /// [`RouteError::Unidirectional`].
    pub fn routes(self) -> Result<&'r Routes<'t>, GroupError> {
        match self {
            Unicast::Routes(routes) => Ok(routes),
            Unicast::DimensionOrder(_) => Err(RouteError::Unidirectional {
                algorithm: Algorithm::TreeOnly,
            }
            .into()),
        }
    }

    /// Switches crossed between two hosts; `None` if there is no way, 0 to oneself.
    ///
    /// # Errors
    /// A host that is none.
    pub fn distance(self, src: HostId, dst: HostId) -> Result<Option<u32>, GroupError> {
        match self {
            Unicast::Routes(routes) => Ok(routes.distance(src, dst)?),
            Unicast::DimensionOrder(_) if src == dst => {
                self.topology().host(src)?;
                Ok(Some(0))
            }
            Unicast::DimensionOrder(paths) => Ok(paths.distance(src, dst)?),
        }
    }

    /// The path between two hosts.
    ///
    /// # Errors
    /// As [`Routes::route`].
    pub fn route(self, src: HostId, dst: HostId) -> Result<Route, GroupError> {
        match self {
            Unicast::Routes(routes) => Ok(routes.route(src, dst)?),
            Unicast::DimensionOrder(paths) => Ok(paths.route(src, dst)?),
        }
    }
}

/// Calls `work` with the paths that are asked for, or else the default of the topology.
///
/// # Errors
/// Paths that cannot be planned, and what `work` gives.
pub fn with_paths<T, E: From<GroupError>>(
    topology: &Topology,
    root: Option<SwitchId>,
    routing: Option<Routing>,
    work: impl FnOnce(Unicast<'_, '_>) -> Result<T, E>,
) -> Result<T, E> {
    match routing.unwrap_or_else(|| Routing::default_on(topology)) {
        Routing::DimensionOrder => {
            let paths = DimensionOrder::new(topology).map_err(|_| needs_grid())?;
            work(paths.into())
        }
        Routing::Algorithm(algorithm) => {
            let updown = UpDown::new(topology, root).map_err(GroupError::from)?;
            let routes =
                Routes::plan_along(topology, algorithm, updown).map_err(GroupError::from)?;
            work((&routes).into())
        }
    }
}

fn needs_grid() -> GroupError {
    StructureError::RoutingNeedsGrid.into()
}
