//! The guard of the switches, from p4src/CONTRACT.md alone; and what the plan of a host has it send.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use wormcast_planner::{Action, AgentGroup, AgentPlan, KeyFields, MatchValue, SwitchState};
use wormcast_routing::group::paths_along;
use wormcast_routing::topology::{Attachment, Host, Topology};
use wormcast_wire::worm::Kind;
use wormcast_wire::{GroupId, HostId, PortId, SchemeName, SwitchId};

use super::model::parameter;

/// A worm where it enters a switch.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Enters {
    pub at: (SwitchId, PortId),
    /// Whose worm it is; `None`: a class D packet.
    pub source: Option<HostId>,
    pub kind: Kind,
    /// Bytes of its route.
    pub route: usize,
    /// Ports that its route names for this switch.
    pub next: Vec<u8>,
    /// Of a GROUP worm.
    pub number: Option<GroupId>,
}

fn find(
    state: &SwitchState,
    table: &'static str,
    matches: &[(&'static str, u16)],
) -> Option<Arc<Action>> {
    let matches = matches
        .iter()
        .map(|(field, value)| ((*field).into(), MatchValue::Exact((*value).into())));
    let key = KeyFields {
        table: table.into(),
        matches: matches.collect(),
        priority: 0,
    };
    state.entries.get(&key).cloned()
}

/// Why a switch refuses a worm; `None`: it admits it.
pub fn refuse(state: &SwitchState, worm: &Enters) -> Option<&'static str> {
    let ingress = ("standard_metadata.ingress_port", worm.at.1.get().into());
    let Some(entry) = find(state, "ingress.guard", &[ingress]) else {
        return state
            .defaults
            .contains_key("ingress.guard")
            .then_some("HOST_UNKNOWN");
    };
    if entry.name == "ingress.trust_port" {
        return None;
    }
    if entry.name == "ingress.link_port" {
        let back =
            [("low", 0), ("high", 128)].map(|(name, first)| (parameter(&entry, name), first));
        return refuse_way(worm, |port| {
            let half = |&(bits, first): &(u128, u8)| {
                port.checked_sub(first)
                    .is_some_and(|bit| bit < 128 && bits >> bit & 1 == 1)
            };
            back.iter().any(half)
        });
    }
    assert_eq!(entry.name, "ingress.admit_host");
    if let Some(source) = worm.source {
        if u128::from(source.0) != parameter(&entry, "host") {
            let in_transit = worm.kind == Kind::Unicast && parameter(&entry, "transit") == 1;
            if !in_transit || !is_source(state, source) {
                return Some("SOURCE_REFUSED");
            }
        } else if parameter(&entry, "kinds") >> worm.kind as u8 & 1 == 0 {
            return Some("KIND_REFUSED");
        }
        let most = match worm.kind {
            Kind::Group => usize::MAX as u128,
            Kind::Tree => parameter(&entry, "tree_max"),
            _ => parameter(&entry, "route_max"),
        };
        if worm.route as u128 > most {
            return Some("ROUTE_TOO_LONG");
        }
        if let Some(reason) = refuse_way(worm, |port| port == worm.at.1.get()) {
            return Some(reason);
        }
    }
    let number = worm.number?;
    let open = find(state, "ingress.open_groups", &[("group", number.0)]).is_some();
    let sender = find(
        state,
        "ingress.group_senders",
        &[ingress, ("group", number.0)],
    )
    .is_some();
    (!open && !sender).then_some("GROUP_REFUSED")
}

/// `leads_back`: of a port.
fn refuse_way(worm: &Enters, leads_back: impl Fn(u8) -> bool) -> Option<&'static str> {
    let turns = |&port: &u8| match worm.kind {
        Kind::Group => false,
        Kind::Tree => leads_back(port),
        _ => port == 254 || port == worm.at.1.get() && leads_back(port),
    };
    worm.next.iter().any(turns).then_some("ROUTE_REFUSED")
}

fn is_source(state: &SwitchState, source: HostId) -> bool {
    state.entries.keys().any(|key| match key.matches[..] {
        [(_, MatchValue::Ternary(value, mask))] if key.table == "ingress.sources" => {
            u128::from(source.0) & mask == value
        }
        _ => false,
    })
}

/// Every worm that a host may send by its plan, at each switch that it comes to.
pub fn sent_by(topology: &Topology, plan: &AgentPlan) -> BTreeSet<Enters> {
    let mut all = BTreeSet::new();
    let Ok(host) = topology.host(plan.host) else {
        return all;
    };
    let own = |kind, route, number| Enters {
        at: (host.switch, host.port),
        source: Some(host.id),
        kind,
        route,
        next: Vec::new(),
        number,
    };
    for route in plan.routes.0.iter().chain(&plan.tree_routes.0) {
        all.extend(along(topology, &host, Kind::Unicast, &route.ports));
    }
    for group in plan
        .groups
        .iter()
        .filter(|group| group.members.contains(&plan.host))
    {
        let is = |name| {
            group
                .structures
                .iter()
                .any(|structure| structure.scheme == name)
        };
        if is(SchemeName::Switch) || is(SchemeName::Table) || is(SchemeName::Broadcast) {
            for paths in trees(plan, group) {
                all.extend(copies(topology, &host, &paths, plan.tree_route_max));
            }
        }
        if group.gathered.is_some() {
            all.insert(own(Kind::Gather, 0, None));
        }
        if let Some(number) = group.number {
            all.insert(own(Kind::Group, 2, Some(number)));
        }
        if let Some(route) = plan
            .root_route
            .as_ref()
            .filter(|_| is(SchemeName::Broadcast))
        {
            all.extend(along(topology, &host, Kind::Broadcast, route));
            all.insert(own(Kind::Broadcast, route.len(), None));
        }
    }
    all
}

/// A worm that goes by a list of ports, also where hosts re-inject it.
fn along(topology: &Topology, host: &Host, kind: Kind, ports: &[u8]) -> Vec<Enters> {
    let mut found = Vec::new();
    let mut at = (host.switch, host.port);
    for (crossed, &port) in ports.iter().enumerate() {
        found.push(Enters {
            at,
            source: Some(host.id),
            kind,
            route: ports.len() - crossed,
            next: vec![port],
            number: None,
        });
        let port = PortId::new(port).expect("a port");
        match topology.attachment(at.0, port) {
            Some(Attachment::Switch(next, by)) => at = (next, by),
            // It comes back by the port to the host.
            Some(Attachment::Host(_)) => at.1 = port,
            None => break,
        }
    }
    found
}

/// Ways to all members: along the spanning tree, and along each tree of the group.
fn trees(plan: &AgentPlan, group: &AgentGroup) -> Vec<BTreeMap<HostId, Vec<u8>>> {
    let members = group.members.iter().filter(|host| **host != plan.host);
    let spanning: BTreeMap<HostId, Vec<u8>> = (plan.tree_routes.0.iter())
        .filter(|route| members.clone().any(|member| *member == route.to))
        .map(|route| (route.to, route.ports.to_vec()))
        .collect();
    let mut all = vec![spanning.clone()];
    if let Some(trees) = group.trees.as_deref() {
        let leaves = trees.leaves.iter();
        let leaves = leaves
            .map(|leaf| (leaf.host, (leaf.switch, leaf.port)))
            .collect();
        for links in &trees.trees {
            let own = paths_along(links, &trees.roots, &leaves, plan.host).expect("a tree");
            let mut paths = spanning.clone();
            paths.extend(own);
            all.push(paths);
        }
    }
    all
}

/// The copies of a TREE worm at each switch that they come to. What does not fit into one worm is split, which no
/// switch notices.
fn copies(
    topology: &Topology,
    host: &Host,
    paths: &BTreeMap<HostId, Vec<u8>>,
    most: u8,
) -> Vec<Enters> {
    let mut next: BTreeMap<&[u8], BTreeSet<u8>> = BTreeMap::new();
    for path in paths.values() {
        for crossed in 0..path.len() {
            next.entry(&path[..crossed])
                .or_default()
                .insert(path[crossed]);
        }
    }
    let branches: usize = next.values().map(BTreeSet::len).sum();
    let enters = |(before, next): (&&[u8], &BTreeSet<u8>)| {
        let mut at = (host.switch, host.port);
        for &port in *before {
            match topology.attachment(at.0, PortId::new(port)?)? {
                Attachment::Switch(next, by) => at = (next, by),
                Attachment::Host(_) => return None,
            }
        }
        Some(Enters {
            at,
            source: Some(host.id),
            kind: Kind::Tree,
            route: (2 * branches + 1).min(most.into()),
            next: next.iter().copied().collect(),
            number: None,
        })
    };
    next.iter().filter_map(enters).collect()
}

/// Panics where a switch refuses one of these worms; `silent`: of these switches nothing is asked.
pub fn check_admitted(
    states: &BTreeMap<SwitchId, Arc<SwitchState>>,
    silent: &BTreeSet<SwitchId>,
    worms: &BTreeSet<Enters>,
    what: &str,
) {
    for worm in worms.iter().filter(|worm| !silent.contains(&worm.at.0)) {
        let refused = refuse(&states[&worm.at.0], worm);
        assert_eq!(refused, None, "{worm:?} {what}");
    }
}
