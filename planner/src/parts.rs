//! Connected parts of a network, with the one order that all their worms keep to.

use wormcast_routing::routes::{Algorithm, RouteError, Routes, Setting};
use wormcast_routing::topology::Topology;
use wormcast_routing::updown::UpDown;

/// A connected part. Unicast routes, those along the spanning tree, and what switches replicate
/// along keep to one order of its switches, so that together they are free of deadlock.
#[derive(Debug)]
pub(crate) struct Part {
    pub(crate) topology: Topology,
    pub(crate) order: UpDown,
}

impl Part {
    /// The parts of a network, in order of their lowest switch. The order of each is the one
    /// that its routes keep to.
    pub(crate) fn of(topology: &Topology, setting: &Setting) -> Vec<Part> {
        let parts = topology.split().into_iter().map(|topology| {
            let planned = setting.balanced.then(|| setting.plan(&topology));
            let order = match planned {
                Some(Ok(routes)) => routes.updown().clone(),
                // Why there are no routes is found again, and told, where they are planned.
                _ => UpDown::new(&topology, setting.root_in(&topology)).expect("it is there"),
            };
            Part { topology, order }
        });
        parts.collect()
    }

    /// Pairs of hosts whose unicast routes are longer because some hosts do not re-inject worms.
    pub(crate) fn lengthened(&self, setting: &Setting) -> Result<u64, RouteError> {
        let all_may = self.topology.hosts().iter().all(|host| host.transit);
        match all_may || !setting.algorithm.uses_in_transit_hosts() {
            true => Ok(0),
            false => self.routes(setting)?[0].lengthened(),
        }
    }

    /// Unicast routes within it, and those along the spanning tree.
    pub(crate) fn routes(&self, setting: &Setting) -> Result<[Routes<'_>; 2], RouteError> {
        let unicast = match setting.balanced {
            true => Setting {
                root: Some(self.order.root(&self.topology)),
                ..*setting
            }
            .plan(&self.topology)?,
            false => Routes::plan_along(&self.topology, setting.algorithm, self.order.clone())?,
        };
        let along_tree =
            Routes::plan_along(&self.topology, Algorithm::TreeOnly, self.order.clone())?;
        Ok([unicast, along_tree])
    }
}
