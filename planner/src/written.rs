//! The routes that agents are to have, as a file and as a deadlock check takes them.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};
use wormcast_routing::deadlock::{Branching, ChannelGraph, DeadlockError};
use wormcast_routing::routes::{Algorithm, Route, Routes};
use wormcast_routing::topology::{Attachment, Topology};
use wormcast_wire::{HostId, PortId, SHARES_WHOLE, SwitchId};

use crate::state::{AgentPlan, PlannedRoute};

/// Plans of agents by host.
type Plans = BTreeMap<HostId, Arc<AgentPlan>>;

/// Most entries of a file of routes: one of all routes of a large fabric is of use to nobody.
pub const ROUTES_WRITTEN_MAX: usize = 1 << 20;

/// The routes file of what agents are to have: as
/// [`Routes::to_json`](wormcast_routing::routes::Routes::to_json) writes it, pairs without a route
/// over this topology as unreachable. Those from a host, to one, or all; `None` if they are more
/// than [`ROUTES_WRITTEN_MAX`].
pub fn routes_file(
    topology: &Topology,
    plans: &Plans,
    algorithm: Algorithm,
    root: Option<SwitchId>,
    (src, dst): (Option<HostId>, Option<HostId>),
) -> Option<String> {
    let (mut rows, mut apart): (Vec<String>, Vec<Value>) = (Vec::new(), Vec::new());
    for from in topology.hosts().iter().map(|host| host.id) {
        let Some(plan) = plans
            .get(&from)
            .filter(|_| src.is_none_or(|src| src == from))
        else {
            continue;
        };
        let links = links_from(topology, from);
        let mut all = plan.routes.0.chunk_by(|a, b| a.to == b.to).peekable();
        for to in topology.hosts().iter().map(|host| host.id) {
            if to == from || dst.is_some_and(|dst| dst != to) {
                continue;
            }
            while all.next_if(|own| own[0].to < to).is_some() {}
            let own = all.next_if(|own| own[0].to == to).unwrap_or_default();
            let before = rows.len();
            for planned in own {
                let Some(route) = follow(topology, from, planned) else {
                    continue;
                };
                let mut row = route.to_value();
                if planned.share != SHARES_WHOLE {
                    row["share"] = json!(f64::from(planned.share) / f64::from(SHARES_WHOLE));
                }
                if algorithm.uses_in_transit_hosts() {
                    let end = topology.switch_of(topology.host_index(to).expect("of the topology"));
                    let least = links[end as usize] as usize;
                    let crossed = route.switches.len() - 1 - route.in_transit.len();
                    row["minimal"] = json!(crossed == least);
                }
                rows.push(row.to_string());
            }
            if rows.len() == before {
                apart.push(json!({"src": from.0, "dst": to.0}));
            }
            if rows.len() > ROUTES_WRITTEN_MAX {
                return None;
            }
        }
    }
    let seed = match algorithm.has_alternatives() {
        true => format!("\"seed\":{},", Routes::SEED_DEFAULT),
        false => String::new(),
    };
    let root = root.map_or_else(|| "null".to_owned(), |root| root.to_string());
    let apart = match apart.is_empty() {
        true => String::new(),
        false => format!(",\n \"unreachable\":{}", Value::Array(apart)),
    };
    Some(format!(
        "{{\"algorithm\":\"{}\",\"root\":{root},{seed}\n \"routes\":[\n  {}]{apart}}}\n",
        algorithm.name(),
        rows.join(",\n  ")
    ))
}

/// The dependencies of all that these plans let agents send, and of what switches copy, which
/// follows the routes along the tree. Routes that lead over what is not in the topology are left
/// out. With several plans they are those of all mixtures of them.
///
/// # Errors
/// [`DeadlockError`]: a route that is none.
pub fn dependencies<'t>(
    topology: &'t Topology,
    plans: &[&Plans],
) -> Result<ChannelGraph<'t>, DeadlockError> {
    let mut graph = ChannelGraph::new(topology, Branching::Independent);
    for (&from, plan) in plans.iter().copied().flatten() {
        for planned in plan.routes.0.iter().chain(&plan.tree_routes.0) {
            if let Some(route) = follow(topology, from, planned) {
                graph.add_route(&route)?;
            }
        }
    }
    Ok(graph)
}

/// Where a source route leads; `None` if not to its destination over what is there.
fn follow(topology: &Topology, from: HostId, planned: &PlannedRoute) -> Option<Route> {
    let mut route = Route {
        src: from,
        dst: planned.to,
        switches: Vec::with_capacity(planned.ports.len()),
        ports: planned.ports.to_vec(),
        in_transit: Vec::new(),
    };
    let mut at = topology.host(from).ok()?.switch;
    for (place, &port) in planned.ports.iter().enumerate() {
        route.switches.push(at);
        match topology.attachment(at, PortId::new(port)?)? {
            Attachment::Switch(next, _) => at = next,
            Attachment::Host(host) if place + 1 == planned.ports.len() => {
                return (host == planned.to).then_some(route);
            }
            Attachment::Host(host) => route.in_transit.push(host),
        }
    }
    None
}

/// Links on a shortest path from a host to each switch.
fn links_from(topology: &Topology, from: HostId) -> Vec<u32> {
    let start = topology.switch_of(topology.host_index(from).expect("of the topology"));
    let mut links = vec![u32::MAX; topology.switch_count()];
    links[start as usize] = 0;
    let mut queue = vec![start];
    let mut next = 0;
    while let Some(&at) = queue.get(next) {
        next += 1;
        for arc in topology.arcs_of(at) {
            if links[arc.to as usize] == u32::MAX {
                links[arc.to as usize] = links[at as usize] + 1;
                queue.push(arc.to);
            }
        }
    }
    links
}
