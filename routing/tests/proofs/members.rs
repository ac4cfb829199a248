//! Every scheme reaches every member once, in the order and the buffer classes it demands.

use std::collections::{BTreeMap, BTreeSet};

use crate::graphs::tree_walk::walk_tree;
use rand_chacha::ChaCha8Rng;
use rand_core::{RngCore, SeedableRng};
use serde_json::{Value, json};
use wormcast_routing::group::{GroupRequest, plan_group};
use wormcast_routing::nested_json;
use wormcast_routing::routes::{Algorithm, Routes};
use wormcast_routing::topology::Topology;
use wormcast_wire::HostId;

/// Most members of a group here.
const MEMBERS_MOST: usize = 24;

/// Schemes over hosts, with parameters, and which demand they make on ids.
const HOST_SCHEMES: &[(&str, &str, Demand)] = &[
    ("repeat", "{}", Demand::Nothing),
    ("circuit", r#"{"variant":"omit-last"}"#, Demand::Turned),
    ("circuit", r#"{"variant":"return"}"#, Demand::Turned),
    ("circuit", r#"{"variant":"ordered"}"#, Demand::FromLowest),
    ("tree", r#"{"variant":"unordered"}"#, Demand::Climbs),
    (
        "tree",
        r#"{"variant":"ordered","fan_out":2}"#,
        Demand::FromLowest,
    ),
    ("postal", r#"{"lambda":1}"#, Demand::AboveParent),
    ("postal", r#"{"lambda":3}"#, Demand::AboveParent),
    ("k-binomial", r#"{"k":2,"order":"cco"}"#, Demand::Turned),
    ("k-binomial", r#"{"order":"id"}"#, Demand::Turned),
];

/// What a scheme demands of the order of ids along an edge.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Demand {
    Nothing,
    /// Onward in the order turned so that the source comes first; a circuit that returns comes
    /// back to it.
    Turned,
    /// Onward in the order from its first member, after one send to it.
    FromLowest,
    /// A child's id exceeds its parent's, unless the parent is the source (NIC §5.4).
    AboveParent,
    /// Towards the lowest id, then away from it, the order reversed once (WORM §6).
    Climbs,
}

/// Checks groups of random members on one network.
pub fn check(topology: &Topology, seed: u64, groups: usize) {
    let hosts = topology.hosts().len() as u64;
    let routes = Routes::plan(topology, Algorithm::Osud, None).unwrap();
    let mut rng = ChaCha8Rng::seed_from_u64(!seed);
    for _ in 0..groups {
        let size = 1 + rng.next_u64() as usize % MEMBERS_MOST.min(hosts as usize);
        let mut members = BTreeSet::new();
        while members.len() < size {
            members.insert((rng.next_u64() % hosts) as u16);
        }
        let members: Vec<u16> = members.into_iter().collect();
        let source = members[rng.next_u64() as usize % members.len()];
        for &(scheme, parameters, demand) in HOST_SCHEMES {
            let plan = plan(&routes, scheme, parameters, source, &members);
            check_hosts(&plan, demand, source, &members);
        }
        let plan = plan(&routes, "switch", "{}", source, &members);
        check_switches(topology, &plan, source, &members);
    }
}

fn plan(
    routes: &Routes<'_>,
    scheme: &str,
    parameters: &str,
    source: u16,
    members: &[u16],
) -> Value {
    let parameters: Value = serde_json::from_str(parameters).unwrap();
    let request = json!({"scheme": scheme, "source": source, "members": members,
                         "parameters": parameters});
    let request = GroupRequest::from_json(&request.to_string()).unwrap();
    // The tree of a group in a long ring is nested deeper than serde_json reads by itself.
    nested_json::parse(&plan_group(routes, &request).unwrap().to_json()).unwrap()
}

fn check_hosts(plan: &Value, demand: Demand, source: u16, members: &[u16]) {
    let number = |value: &Value| value.as_u64().unwrap() as u16;
    let order: Vec<u16> = plan["order"]
        .as_array()
        .unwrap()
        .iter()
        .map(number)
        .collect();
    let place: BTreeMap<u16, usize> = order.iter().copied().zip(0..).collect();
    assert_eq!(place.keys().copied().collect::<Vec<_>>(), members, "{plan}");
    let edges: Vec<(u16, u16, u64, u64)> = plan["edges"]
        .as_array()
        .unwrap()
        .iter()
        .map(|edge| {
            let step = edge["step"].as_u64().unwrap();
            let class = edge["class"].as_u64().unwrap();
            (number(&edge["from"]), number(&edge["to"]), step, class)
        })
        .collect();
    let lowest = order[0];
    let ordered = demand == Demand::FromLowest && source != lowest;
    let (submission, edges) = if ordered && !edges.is_empty() {
        (edges.first().copied(), &edges[1..])
    } else {
        (None, &edges[..])
    };
    if let Some((from, to, ..)) = submission {
        assert_eq!((from, to), (source, lowest), "{plan}");
    }
    let root = if ordered { lowest } else { source };
    // When each has it, and in which class of buffer.
    let mut has = BTreeMap::from([(root, (submission.map_or(0, |edge| edge.2), 1))]);
    let mut returned = false;
    let turn = |host: u16| (place[&host] + order.len() - place[&root]) % order.len();
    for &(from, to, step, class) in edges {
        let (got, held) = has
            .get(&from)
            .copied()
            .unwrap_or_else(|| panic!("{from} has nothing: {plan}"));
        assert!(step > got, "sent before it came: {plan}");
        assert!(class >= held, "class reversed twice: {plan}");
        let onward = match demand {
            Demand::Nothing => true,
            Demand::Turned => turn(from) < turn(to) || to == source,
            Demand::FromLowest => place[&from] < place[&to],
            Demand::AboveParent => from < to || from == source,
            Demand::Climbs => (from > to && class == 1) || from < to,
        };
        assert!(onward, "out of order from {from} to {to}: {plan}");
        if to == root {
            assert!(
                !returned && plan["parameters"]["variant"] == "return",
                "{plan}"
            );
            returned = true;
            continue;
        }
        assert!(
            has.insert(to, (step, class)).is_none(),
            "{to} twice: {plan}"
        );
    }
    assert_eq!(has.len(), members.len(), "not everybody: {plan}");
}

fn check_switches(topology: &Topology, plan: &Value, source: u16, members: &[u16]) {
    let mut reached = Vec::new();
    for route in plan["routes"].as_array().unwrap() {
        let hex = route["route"].as_str().unwrap();
        let bytes: Vec<u8> = (0..hex.len())
            .step_by(2)
            .map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap())
            .collect();
        let walk = walk_tree(topology, HostId(source), &bytes).unwrap();
        assert!(walk.losses.is_empty(), "{plan}");
        reached.extend(walk.deliveries.iter().map(|copy| copy.host.0));
    }
    reached.sort_unstable();
    let others: Vec<u16> = members
        .iter()
        .copied()
        .filter(|host| *host != source)
        .collect();
    assert_eq!(reached, others, "{plan}");
}
