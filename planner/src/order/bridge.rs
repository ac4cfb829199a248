//! Routes to use while the order of switches changes: legal under the old order and the new.
//!
//! Worms of the old order may be in flight until all hosts have the bridge; from then on worms of
//! the new order may. So at every moment all worms keep to one order, and none wait for each other
//! in a circle. Where a path that is legal under both has to turn, a host re-injects the worm, if
//! the switch has one that does. A pair without such a path stops until the bridge is crossed.

use std::collections::BTreeMap;
use std::sync::Arc;

use wormcast_routing::topology::Topology;
use wormcast_wire::{HostId, ROUTE_LENGTH_MAX, SHARES_WHOLE, SWITCHES_CROSSED_MAX};

use crate::model::agent::{HostRoutes, PlannedRoute, RouteTable};
use crate::order::switch_order::Order;
use crate::order::wiring::{Wiring, ranks};

/// Routes by host, and what they do not serve.
#[derive(Clone, Debug, Default)]
pub(crate) struct Bridge {
    pub(crate) routes: BTreeMap<HostId, HostRoutes>,
    /// Pairs of hosts that have a route in the end and none on the bridge.
    pub(crate) stopped: u64,
}

/// Plans the bridge to routes that keep to the order `after`, from any that keep to `before`.
///
/// New routes are used at once where they keep to the old order too. `up` says who re-injects.
pub(crate) fn plan(
    up: &Topology,
    before: &Order,
    after: &Order,
    goal: &BTreeMap<HostId, HostRoutes>,
) -> Bridge {
    let orders = [ranks(up, before), ranks(up, after)];
    let wiring = Wiring::new(up);
    let mut paths = [true, false].map(|may_cut| Paths::new(up, &orders, may_cut));
    let mut bridge = Bridge::default();
    for (&from, routes) in goal {
        let Some(start) = wiring.switch_of(from) else {
            // Its switch is away: it keeps what keeps to both orders, which is unknown.
            bridge.stopped += destinations(&routes.0);
            bridge.routes.insert(from, HostRoutes::default());
            continue;
        };
        let table = |routes: &Arc<RouteTable>, paths: &mut Paths<'_>| {
            let mut stopped = 0;
            let mut found: Vec<PlannedRoute> = Vec::with_capacity(routes.0.len());
            let mut all_same = true;
            for own in routes.0.chunk_by(|a, b| a.to == b.to) {
                let to = own[0].to;
                let is_safe = |route: &PlannedRoute| {
                    let orders = orders.each_ref().map(Vec::as_slice);
                    wiring.is_legal(start, to, &route.ports, orders)
                };
                if own.iter().all(is_safe) {
                    found.extend_from_slice(own);
                    continue;
                }
                all_same = false;
                match wiring
                    .switch_of(to)
                    .and_then(|end| paths.route(start, end, from, to))
                {
                    Some(ports) => found.push(PlannedRoute {
                        to,
                        share: SHARES_WHOLE,
                        ports,
                    }),
                    None => stopped += 1,
                }
            }
            let table = if all_same {
                routes.clone()
            } else {
                Arc::new(RouteTable(found))
            };
            (table, stopped)
        };
        let [cut, whole] = &mut paths;
        let (unicast, stopped) = table(&routes.0, cut);
        let (tree, _) = table(&routes.1, whole);
        bridge.stopped += stopped;
        bridge.routes.insert(from, (unicast, tree));
    }
    bridge
}

fn destinations(routes: &RouteTable) -> u64 {
    routes.0.chunk_by(|a, b| a.to == b.to).count() as u64
}

/// Shortest paths that are legal under two orders, destination by destination.
///
/// A state of a path is a switch and, for each order, whether it may still go up: 4·switch, plus 1
/// if it may not in the first, plus 2 if it may not in the second.
struct Paths<'t> {
    topology: &'t Topology,
    orders: &'t [Vec<u32>; 2],
    /// Whether hosts may re-inject on the way.
    may_cut: bool,
    /// Switches that a path crosses from each state, by destination; made when first asked for.
    lengths: Vec<Option<Vec<u16>>>,
}

const FAR: u16 = u16::MAX;

impl<'t> Paths<'t> {
    fn new(topology: &'t Topology, orders: &'t [Vec<u32>; 2], may_cut: bool) -> Paths<'t> {
        Paths {
            topology,
            orders,
            may_cut,
            lengths: vec![None; topology.switch_count()],
        }
    }

    /// The state after a link, if the path may take it.
    fn after(&self, at: u32, to: u32) -> Option<u32> {
        let from = at / 4;
        let mut next = 4 * to;
        for (bit, ranks) in [1, 2].into_iter().zip(self.orders) {
            if ranks[to as usize] >= ranks[from as usize] {
                next |= bit;
            } else if at & bit != 0 {
                return None;
            }
        }
        Some(next)
    }

    fn measure(&self, end: u32) -> Vec<u16> {
        let mut lengths = vec![FAR; 4 * self.topology.switch_count()];
        let mut queue: Vec<u32> = (4 * end..4 * end + 4).collect();
        queue.iter().for_each(|&at| lengths[at as usize] = 0);
        let mut next = 0;
        while let Some(&at) = queue.get(next) {
            next += 1;
            let length = lengths[at as usize] + 1;
            let reach = |before: u32, lengths: &mut Vec<u16>, queue: &mut Vec<u32>| {
                if lengths[before as usize] == FAR {
                    lengths[before as usize] = length;
                    queue.push(before);
                }
            };
            for arc in self.topology.arcs_of(at / 4) {
                for before in 4 * arc.to..4 * arc.to + 4 {
                    if self.after(before, at / 4) == Some(at) {
                        reach(before, &mut lengths, &mut queue);
                    }
                }
            }
            if at & 3 == 0 && self.may_cut && self.topology.can_cut(at / 4) {
                (at + 1..at + 4).for_each(|before| reach(before, &mut lengths, &mut queue));
            }
        }
        lengths
    }

    /// Port bytes of the route of two hosts; those of a pair of switches take turns among equals.
    fn route(&mut self, start: u32, end: u32, from: HostId, to: HostId) -> Option<Arc<[u8]>> {
        if self.lengths[end as usize].is_none() {
            self.lengths[end as usize] = Some(self.measure(end));
        }
        let lengths = self.lengths[end as usize].as_deref()?;
        let turn = usize::from(from.0) + usize::from(to.0);
        let mut ports = Vec::new();
        let mut at = 4 * start;
        if lengths[at as usize] == FAR {
            return None;
        }
        while at / 4 != end {
            let nearer = lengths[at as usize] - 1;
            let leads = |next: u32| lengths[next as usize] == nearer;
            let ways: Vec<(u8, u32)> = (self.topology.arcs_of(at / 4).iter())
                .filter_map(|arc| Some((arc.port.get(), self.after(at, arc.to)?)))
                .filter(|&(_, next)| leads(next))
                .collect();
            let (port, next) = if ways.is_empty() {
                let mut hosts = self.topology.transit_at(at / 4);
                let host = hosts.nth(turn % hosts.len())?;
                (self.topology.hosts()[host as usize].port.get(), at & !3)
            } else {
                ways[(turn + ports.len()) % ways.len()]
            };
            ports.push(port);
            at = next;
        }
        ports.push(self.topology.host(to).ok()?.port.get());
        let fits = ports.len() <= ROUTE_LENGTH_MAX.min(SWITCHES_CROSSED_MAX);
        fits.then(|| ports.into())
    }
}
