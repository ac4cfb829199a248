//! Connected parts of a network, with the one order that all their worms keep to.

use std::cell::OnceCell;
use std::collections::BTreeMap;

use wormcast_routing::routes::{Algorithm, RouteError, Routes, Setting};
use wormcast_routing::topology::Topology;
use wormcast_routing::updown::UpDown;
use wormcast_wire::{HostId, SHARES_WHOLE, SWITCHES_CROSSED_MAX, SwitchId};

use crate::model::agent::PlannedRoute;
use crate::order::route_order::RouteOrder;

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

    /// The ways between each switch and the root.
    pub(crate) fn root_ways(&self) -> BTreeMap<SwitchId, RootWay> {
        let links = self.order.tree_links(&self.topology).into_iter();
        let parents: BTreeMap<SwitchId, (SwitchId, RootWay)> = links
            .map(|link| {
                let ends = RootWay {
                    up: vec![link.b_port.get()],
                    down: vec![link.a_port.get()],
                };
                (link.b, (link.a, ends))
            })
            .collect();
        let way = |switch| {
            let (mut at, mut way) = (switch, RootWay::default());
            while let Some((parent, ends)) = parents.get(&at) {
                way.up.extend(&ends.up);
                way.down.extend(&ends.down);
                at = *parent;
            }
            way.down.reverse();
            way
        };
        let switches = self.topology.switches().iter();
        switches.map(|switch| (switch.id, way(switch.id))).collect()
    }

    /// Pairs of hosts whose unicast routes are longer because some hosts do not re-inject worms.
    pub(crate) fn lengthened(&self, setting: &Setting) -> Result<u64, RouteError> {
        let all_may = self.topology.hosts().iter().all(|host| host.transit);
        if all_may || !setting.algorithm.uses_in_transit_hosts() {
            Ok(0)
        } else {
            PartRoutes::new(self, setting)
                .get(Kind::Unicast)?
                .lengthened()
        }
    }
}

/// Port bytes between a switch and the root of its part, along the spanning tree.
#[derive(Clone, Debug, Default)]
pub(crate) struct RootWay {
    pub(crate) up: Vec<u8>,
    pub(crate) down: Vec<u8>,
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
    root_ways: OnceCell<BTreeMap<SwitchId, RootWay>>,
}

impl<'p> PartRoutes<'p> {
    pub(crate) fn new(part: &'p Part, setting: &'p Setting) -> PartRoutes<'p> {
        PartRoutes {
            part,
            setting,
            made: [OnceCell::new(), OnceCell::new()],
            root_ways: OnceCell::new(),
        }
    }

    pub(crate) fn topology(&self) -> &'p Topology {
        &self.part.topology
    }

    /// The route from one host to another by the root, if they are in this part and it is not too long.
    pub(crate) fn by_root(&self, from: HostId, to: HostId) -> Option<PlannedRoute> {
        let ways = self.root_ways.get_or_init(|| self.part.root_ways());
        let start = self.topology().host(from).ok()?;
        let end = self.topology().host(to).ok()?;
        let mut ports = ways[&start.switch].up.clone();
        ports.extend(&ways[&end.switch].down);
        ports.push(end.port.get());
        (from != to && ports.len() <= SWITCHES_CROSSED_MAX).then(|| PlannedRoute {
            to,
            share: SHARES_WHOLE,
            ports: ports.into(),
        })
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
