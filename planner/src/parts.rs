//! Connected parts of a network, with the one order that all their worms keep to.

use std::cell::OnceCell;

use wormcast_routing::routes::{Algorithm, RouteError, Routes, Setting};
use wormcast_routing::topology::Topology;
use wormcast_routing::updown::UpDown;

use crate::route_order::RouteOrder;

/// A connected part. Unicast routes, those along the spanning tree, and what switches replicate
/// along keep to one order of its switches, so that together they are free of deadlock.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    pub(crate) topology: Topology,
    pub(crate) order: UpDown,
}

impl Part {
    /// The parts of a network, in order of their lowest switch.
    pub(crate) fn of(topology: &Topology, order: &RouteOrder, setting: &Setting) -> Vec<Part> {
        let parts = topology.split().into_iter().map(|topology| {
            let order = order.direct(&topology, setting);
            Part { topology, order }
        });
        parts.collect()
    }

    /// Pairs of hosts whose unicast routes are longer because some hosts do not re-inject worms.
    pub(crate) fn lengthened(&self, setting: &Setting) -> Result<u64, RouteError> {
        let all_may = self.topology.hosts().iter().all(|host| host.transit);
        match all_may || !setting.algorithm.uses_in_transit_hosts() {
            true => Ok(0),
            false => PartRoutes::new(self, setting)
                .get(Kind::Unicast)?
                .lengthened(),
        }
    }
}

/// Which routes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Those of the setting.
    Unicast,
    /// Those along the spanning tree.
    Tree,
}

/// Routes of a part, planned when they are first asked for.
pub(crate) struct PartRoutes<'p> {
    part: &'p Part,
    setting: &'p Setting,
    made: [OnceCell<Routes<'p>>; 2],
}

impl<'p> PartRoutes<'p> {
    pub(crate) fn new(part: &'p Part, setting: &'p Setting) -> PartRoutes<'p> {
        PartRoutes {
            part,
            setting,
            made: [OnceCell::new(), OnceCell::new()],
        }
    }

    pub(crate) fn topology(&self) -> &'p Topology {
        &self.part.topology
    }

    pub(crate) fn get(&self, kind: Kind) -> Result<&Routes<'p>, RouteError> {
        let made = &self.made[kind as usize];
        if let Some(routes) = made.get() {
            return Ok(routes);
        }
        let Part { topology, order } = self.part;
        let routes = match kind {
            Kind::Unicast => self.setting.plan_along(topology, order.clone())?,
            Kind::Tree => Routes::plan_along(topology, Algorithm::TreeOnly, order.clone())?,
        };
        Ok(made.get_or_init(|| routes))
    }
}
