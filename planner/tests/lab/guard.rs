//! The guard of the switches, from p4src/CONTRACT.md alone; and what the plan of a host has it send.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use wormcast_planner::{Action, AgentPlan, KeyFields, MatchValue, SwitchState};
use wormcast_routing::topology::{Attachment, Host, Topology};
use wormcast_wire::worm::Kind;
use wormcast_wire::{GroupId, HostId, PortId, SchemeName, SwitchId};

use super::model::parameter;

/// A worm where it enters a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Enters {
    /// Where.
    pub at: (SwitchId, PortId),
    /// Whose worm it is; `None`: a class D packet.
    pub source: Option<HostId>,
    pub kind: Kind,
    /// Port bytes of its route.
    pub route: usize,
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

/// Why a switch refuses a worm; `None`: it lets it in.
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
        let paths = [Kind::Unicast, Kind::Control, Kind::Gather, Kind::Broadcast];
        let path = paths.contains(&worm.kind);
        if path && worm.route as u128 > parameter(&entry, "route_max") {
            return Some("ROUTE_TOO_LONG");
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

fn is_source(state: &SwitchState, source: HostId) -> bool {
    state.entries.keys().any(|key| match key.matches[..] {
        [(_, MatchValue::Ternary(value, mask))] if key.table == "ingress.sources" => {
            u128::from(source.0) & mask == value
        }
        _ => false,
    })
}

/// Every worm that a host may send by its plan, where it enters, and where hosts re-inject it.
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
        number,
    };
    for route in plan.routes.0.iter().chain(&plan.tree_routes.0) {
        all.insert(own(Kind::Unicast, route.ports.len(), None));
        all.extend(re_injected(topology, &host, &route.ports));
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
            all.insert(own(Kind::Tree, 9, None));
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
            all.insert(own(Kind::Broadcast, route.len(), None));
        }
    }
    all
}

fn re_injected(topology: &Topology, host: &Host, ports: &[u8]) -> Vec<Enters> {
    let mut found = Vec::new();
    let mut at = host.switch;
    for (crossed, &port) in ports.iter().enumerate() {
        let port = PortId::new(port).expect("a port");
        match topology.attachment(at, port) {
            Some(Attachment::Switch(next, _)) => at = next,
            Some(Attachment::Host(_)) if crossed + 1 < ports.len() => found.push(Enters {
                at: (at, port),
                source: Some(host.id),
                kind: Kind::Unicast,
                route: ports.len() - crossed - 1,
                number: None,
            }),
            _ => break,
        }
    }
    found
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
