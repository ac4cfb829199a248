//! The routes that agents are to have, as a file and as a deadlock check takes them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Value, json};
use wormcast_routing::group::paths_along;
use wormcast_routing::routes::{Algorithm, Route, Routes};
use wormcast_routing::topology::{Attachment, Topology};
use wormcast_verify::deadlock::{Branching, ChannelGraph, DeadlockError, TableEntry};
use wormcast_wire::{
    GroupId, HostId, PortId, SHARES_WHOLE, SWITCHES_CROSSED_MAX, SchemeName, SwitchId,
};

use crate::difference::stages::mgid_of;
use crate::gather::gathered_up;
use crate::model::agent::{AgentGroup, AgentPlan, AgentTrees, PlannedRoute};
use crate::model::copies::Copies;
use crate::model::ids::{MGID_BROADCAST, Mgid, PortSet};
use crate::model::state::SwitchState;
use crate::switch_plan::entries::group_entry;
use crate::wormhole::Switching;

type Plans = BTreeMap<HostId, Arc<AgentPlan>>;

type Switches = BTreeMap<SwitchId, Arc<SwitchState>>;

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
    let seed = if algorithm.has_alternatives() {
        format!("\"seed\":{},", Routes::SEED_DEFAULT)
    } else {
        String::new()
    };
    let root = root.map_or_else(|| "null".to_owned(), |root| root.to_string());
    let apart = if apart.is_empty() {
        String::new()
    } else {
        format!(",\n \"unreachable\":{}", Value::Array(apart))
    };
    Some(format!(
        "{{\"algorithm\":\"{}\",\"root\":{root},{seed}\n \"routes\":[\n  {}]{apart}}}\n",
        algorithm.name(),
        rows.join(",\n  ")
    ))
}

/// The dependencies of all that these plans let agents send, and of what these switches copy of it, where they
/// pass worms on in this way and the parts of the fabric have these roots. What leads over what is not in the
/// topology is left out. With several plans they are those of all mixtures of them.
///
/// In wormhole mode TREE worms hold the channels of their branches. Where multicasts are to be interrupted and one
/// does not go by the root, as over a bridge, all of them count as waiting. GROUP and BROADCAST worms hold none
/// then, and wait for nobody.
///
/// # Errors
/// [`DeadlockError`]: a route that is none.
pub fn dependencies<'t>(
    topology: &'t Topology,
    switches: &Switches,
    plans: &[&Plans],
    (switching, roots): (Switching, &[SwitchId]),
) -> Result<ChannelGraph<'t>, DeadlockError> {
    let graph = |branching| dependencies_of(topology, switches, plans, (branching, roots));
    match graph(switching.branching()) {
        Err(DeadlockError::NotFromRoot { .. }) => graph(Branching::Coupled),
        found => found,
    }
}

fn dependencies_of<'t>(
    topology: &'t Topology,
    switches: &Switches,
    plans: &[&Plans],
    (branching, roots): (Branching, &[SwitchId]),
) -> Result<ChannelGraph<'t>, DeadlockError> {
    let mut graph = ChannelGraph::new(topology, branching);
    graph.set_roots(roots.to_vec());
    for (&from, plan) in plans.iter().copied().flatten() {
        for planned in plan.routes.0.iter().chain(&plan.tree_routes.0) {
            if let Some(route) = follow(topology, from, planned) {
                graph.add_route(&route)?;
            }
        }
        for route in ways_along_trees(from, plan).into_iter().flatten() {
            if let Some(route) = follow(topology, from, &route) {
                graph.add_route(&route)?;
            }
        }
        for route in ways_of_acks(topology, switches, from, plan) {
            if let Some(route) = follow(topology, from, &route) {
                graph.add_route(&route)?;
            }
        }
    }
    match branching {
        Branching::Independent => add_copied(&mut graph, topology, switches, plans)?,
        _ => add_tree_worms(&mut graph, topology, plans)?,
    }
    Ok(graph)
}

/// Adds the TREE worms of these hosts to their groups.
fn add_tree_worms(
    graph: &mut ChannelGraph<'_>,
    topology: &Topology,
    plans: &[&Plans],
) -> Result<(), DeadlockError> {
    for (&from, plan) in plans.iter().copied().flatten() {
        let mut worms = ways_along_trees(from, plan);
        worms.extend(ways_along_the_spanning_tree(plan));
        for routes in worms {
            let ways = routes.iter();
            let ways = ways.filter(|route| follow(topology, from, route).is_some());
            let ways: Vec<Vec<u8>> = ways.map(|route| route.ports.to_vec()).collect();
            if !ways.is_empty() {
                graph.add_ways(from, ways)?;
            }
        }
    }
    Ok(())
}

/// The ways of a host's messages to its groups without trees of their own that go by TREE routes, those of each group.
fn ways_along_the_spanning_tree(plan: &AgentPlan) -> Vec<Vec<PlannedRoute>> {
    let goes_by_trees = |group: &&Arc<AgentGroup>| {
        let mut schemes = group.structures.iter().map(|structure| structure.scheme);
        let has_number = group.number.is_some();
        group.trees.is_none()
            && schemes.any(|scheme| match scheme {
                SchemeName::Switch => true,
                SchemeName::Table => !has_number,
                _ => false,
            })
    };
    let groups = plan.groups.iter().filter(goes_by_trees);
    let ways = groups.map(|group| {
        let routes = plan.tree_routes.0.iter();
        let is_member = |route: &&PlannedRoute| group.members.binary_search(&route.to).is_ok();
        routes.filter(is_member).cloned().collect()
    });
    ways.collect()
}

/// The ways of a host's messages along the trees of its groups, those of each tree.
fn ways_along_trees(from: HostId, plan: &AgentPlan) -> Vec<Vec<PlannedRoute>> {
    let mut worms = Vec::new();
    for AgentTrees {
        trees,
        roots,
        leaves,
    } in plan
        .groups
        .iter()
        .flat_map(|group| &group.trees)
        .map(Arc::as_ref)
    {
        let leaves = leaves
            .iter()
            .map(|leaf| (leaf.host, (leaf.switch, leaf.port)))
            .collect();
        for links in trees {
            let paths = paths_along(links, roots, &leaves, from).expect("links of a tree");
            let route = |(to, path): (HostId, Vec<u8>)| PlannedRoute {
                to,
                share: SHARES_WHOLE,
                ports: path.into(),
            };
            worms.push(paths.into_iter().map(route).collect());
        }
    }
    worms
}

/// The ways of a host's ACKs that these switches gather.
fn ways_of_acks(
    topology: &Topology,
    switches: &Switches,
    from: HostId,
    plan: &AgentPlan,
) -> Vec<PlannedRoute> {
    let mut routes = Vec::new();
    let Ok(place) = topology.host(from) else {
        return routes;
    };
    for group in &plan.groups {
        let origins = group
            .gathered
            .iter()
            .flat_map(|gathered| gathered.origins.keys());
        for &to in origins.filter(|origin| **origin != from) {
            let (mut at, mut port) = (place.switch, place.port);
            let mut ports = Vec::new();
            while ports.len() < SWITCHES_CROSSED_MAX
                && let Some(up) = gathered_up(switches.get(&at), (group.id, to, port))
            {
                ports.push(up.get());
                match topology.attachment(at, up) {
                    Some(Attachment::Switch(next, into)) => (at, port) = (next, into),
                    _ => break,
                }
            }
            routes.push(PlannedRoute {
                to,
                share: SHARES_WHOLE,
                ports: ports.into(),
            });
        }
    }
    routes
}

/// Adds the GROUP and BROADCAST worms of these hosts as these switches copy them.
fn add_copied(
    graph: &mut ChannelGraph<'_>,
    topology: &Topology,
    switches: &Switches,
    plans: &[&Plans],
) -> Result<(), DeadlockError> {
    let mut tables: BTreeMap<GroupId, Vec<TableEntry>> = BTreeMap::new();
    let down = broadcast_entries(topology, switches);
    let (mut grouped, mut broadcast) = (BTreeSet::new(), BTreeSet::new());
    for (&from, plan) in plans.iter().copied().flatten() {
        let Ok(host) = topology.host(from) else {
            continue;
        };
        for group in &plan.groups {
            let schemes = group.structures.iter().map(|structure| structure.scheme);
            if schemes.clone().any(|scheme| scheme == SchemeName::Table)
                && let Some(number) = group.number
                && grouped.insert((from, number))
            {
                let entries = tables
                    .entry(number)
                    .or_insert_with(|| entries_of(topology, switches, number));
                if entries.iter().any(|entry| entry.switch == host.switch) {
                    match graph.add_table(from, entries) {
                        Err(DeadlockError::NoEntry { .. }) => {}
                        added => added?,
                    }
                }
            }
            if schemes
                .clone()
                .any(|scheme| scheme == SchemeName::Broadcast)
                && let Some(ports) = &plan.root_route
                && !down.is_empty()
                && climbs(topology, host.switch, ports)
                && broadcast.insert((from, ports.clone()))
            {
                graph.add_broadcast_by(from, ports, &down)?;
            }
        }
    }
    Ok(())
}

/// Ports to which switches copy the worms of a number.
fn entries_of(topology: &Topology, switches: &Switches, number: GroupId) -> Vec<TableEntry> {
    let key = group_entry(number, Mgid(0)).key;
    let entry = |(&switch, state): (&SwitchId, &Arc<SwitchState>)| {
        let mgid = state.entries.get(&key).and_then(|action| mgid_of(action))?;
        entry_of(topology, switch, &state.multicast.get(&mgid)?.ports())
    };
    switches.iter().filter_map(entry).collect()
}

/// Ports to which switches copy BROADCAST worms on their way down.
fn broadcast_entries(topology: &Topology, switches: &Switches) -> Vec<TableEntry> {
    let entry = |(&switch, state): (&SwitchId, &Arc<SwitchState>)| {
        let copies = state.multicast.get(&MGID_BROADCAST);
        let ports = copies.map_or_else(PortSet::default, Copies::ports);
        entry_of(topology, switch, &ports)
    };
    switches.iter().filter_map(entry).collect()
}

/// Those of the ports that lead somewhere.
fn entry_of(topology: &Topology, switch: SwitchId, ports: &PortSet) -> Option<TableEntry> {
    topology.switch_index(switch).ok()?;
    let leads = |port: &PortId| topology.attachment(switch, *port).is_some();
    let ports = ports.iter().filter(leads).collect();
    Some(TableEntry { switch, ports })
}

/// Whether these ports lead from switch to switch.
fn climbs(topology: &Topology, from: SwitchId, ports: &[u8]) -> bool {
    let mut at = from;
    ports.iter().all(|&port| {
        let end = PortId::new(port).and_then(|port| topology.attachment(at, port));
        match end {
            Some(Attachment::Switch(next, _)) => {
                at = next;
                true
            }
            _ => false,
        }
    })
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
