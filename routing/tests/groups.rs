//! Rooted trees, orders, and whole plans of groups as files.

use crate::graphs;

use graphs::tree_walk::walk_tree;
use std::collections::BTreeSet;

use proptest::prelude::*;
use serde_json::{Value, json};
use wormcast_routing::generate::{Irregular, from_spec, irregular};
use wormcast_routing::group::{
    GroupRequest, Order, Scheme, plan_group, plan_group_on, plan_structure, plan_tree,
};
use wormcast_routing::routes::{Algorithm, Routes};
use wormcast_routing::structure::{RootedTree, Structure, TreeVariant, k_binomial, ordering};
use wormcast_routing::topology::Topology;
use wormcast_verify::deadlock::read_groups;
use wormcast_wire::{HostId, SwitchId};

fn hosts(ids: &[u16]) -> Vec<HostId> {
    ids.iter().map(|&id| HostId(id)).collect()
}

fn plan(topology: &Topology, request: Value) -> Result<Value, String> {
    let routes = Routes::plan(topology, Algorithm::Osud, None).unwrap();
    let request =
        GroupRequest::from_json(&request.to_string()).map_err(|error| error.to_string())?;
    let plan = plan_group(&routes, &request).map_err(|error| error.to_string())?;
    Ok(serde_json::from_str(&plan.to_json()).unwrap())
}

#[test]
fn a_rooted_tree_takes_the_nearest_parent_with_room() {
    // Hosts on a line of switches, one each: every host is nearest to the one before it.
    let line = from_spec("line:5").unwrap();
    let routes = Routes::plan(&line, Algorithm::Osud, None).unwrap();
    let edges = |members: &[u16], fan_out| -> Vec<(u16, u16)> {
        let tree = plan_tree(&routes, &hosts(members), fan_out).unwrap();
        tree.edges()
            .map(|(parent, child)| (parent.0, child.0))
            .collect()
    };
    assert_eq!(edges(&[4, 2, 0, 3, 1], 3), [(0, 1), (1, 2), (2, 3), (3, 4)]);
    assert_eq!(edges(&[0, 4], 1), [(0, 4)]);
    // All on one switch: all as near, so the shallower first, then the lower id.
    let star = from_spec("line:1:9").unwrap();
    let routes = Routes::plan(&star, Algorithm::Osud, None).unwrap();
    let tree = plan_tree(&routes, &hosts(&[0, 1, 2, 3, 4, 5, 6, 7, 8]), 3).unwrap();
    let parents: Vec<u16> = tree.edges().map(|(parent, _)| parent.0).collect();
    assert_eq!(parents, [0, 0, 0, 1, 1, 1, 2, 2]);
}

/// Schemes that need no coordinates.
const ANYWHERE: [&str; 6] = [
    "repeat",
    "circuit",
    "tree",
    "k-binomial",
    "postal",
    "switch",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn children_have_higher_ids_and_are_few(
        switches in 2usize..12,
        seed in any::<u64>(),
        members in prop::collection::btree_set(0u16..48, 1..30),
        fan_out in 1u32..5,
    ) {
        let topology = irregular(&Irregular::of_itb(switches, seed)).unwrap();
        let routes = Routes::plan(&topology, Algorithm::Osud, None).unwrap();
        let there = topology.hosts().len() as u16;
        let members: Vec<HostId> = members.into_iter().filter(|id| *id < there).map(HostId).collect();
        if members.is_empty() {
            return Ok(());
        }
        let tree = plan_tree(&routes, &members, fan_out).unwrap();
        let edges: Vec<_> = tree.edges().collect();
        for &(parent, child) in &edges {
            prop_assert!(parent < child);
            // No member with a lower id and room at that time was nearer.
            let distance = |from| routes.distance(from, child).unwrap().unwrap();
            for &other in members.iter().filter(|other| **other < child) {
                let children = edges.iter().filter(|edge| edge.0 == other && edge.1 < child).count();
                if children < fan_out as usize {
                    prop_assert!(distance(parent) <= distance(other));
                }
            }
            prop_assert!(edges.iter().filter(|edge| edge.0 == parent).count() <= fan_out as usize);
        }
        prop_assert_eq!(&RootedTree::from_edges(&members, &edges).unwrap(), &tree);
    }

    #[test]
    fn cco_is_free_of_contention_on_the_spanning_tree(
        switches in 2usize..20,
        seed in any::<u64>(),
        picked in prop::collection::btree_set(any::<prop::sample::Index>().prop_map(|index| index.index(1000)), 4),
    ) {
        let topology = irregular(&Irregular::of_itb(switches, seed)).unwrap();
        let routes = Routes::plan(&topology, Algorithm::TreeOnly, None).unwrap();
        let all: Vec<HostId> = topology.hosts().iter().map(|host| host.id).collect();
        let order = ordering::cco(&topology, routes.updown(), &all).unwrap();
        prop_assert_eq!(order.iter().collect::<BTreeSet<_>>().len(), all.len());
        // Four hosts in this order: the first two and the last two share no channel.
        let places: BTreeSet<usize> = picked.iter().map(|place| place % order.len()).collect();
        if let [a, b, c, d] = places.iter().map(|&place| order[place]).collect::<Vec<_>>()[..] {
            let channels = |src, dst| {
                let route = routes.route(src, dst).unwrap();
                route.switches.into_iter().zip(route.ports).collect::<BTreeSet<_>>()
            };
            prop_assert!(channels(a, b).is_disjoint(&channels(c, d)));
        }
        // Hosts of a switch are together.
        let at: Vec<SwitchId> = order.iter().map(|&host| topology.host(host).unwrap().switch).collect();
        let runs = at.windows(2).filter(|pair| pair[0] != pair[1]).count() + 1;
        prop_assert_eq!(runs, at.iter().collect::<BTreeSet<_>>().len());
    }

    #[test]
    fn plans_reach_every_member(
        scheme in prop::sample::select(ANYWHERE.to_vec()),
        members in prop::collection::btree_set(0u16..32, 1..20),
        source in 0u16..32,
        seed in 0u64..30,
    ) {
        let topology = match seed % 4 {
            0 => from_spec("fat-tree:6").unwrap(),
            1 => from_spec("shufflenet:2:3:2").unwrap(),
            _ => irregular(&Irregular::of_itb(8, seed)).unwrap(),
        };
        let members: Vec<u16> = members.into_iter().collect();
        let request = json!({"scheme": scheme, "source": source, "members": members});
        let plan = plan(&topology, request).unwrap();
        let mut expected: BTreeSet<u64> = members.iter().map(|&member| u64::from(member)).collect();
        expected.remove(&u64::from(source));
        let mut reached = Vec::new();
        if scheme == "switch" {
            for route in plan["routes"].as_array().unwrap() {
                let bytes = bytes_of(route["route"].as_str().unwrap());
                let walk = walk_tree(&topology, HostId(source), &bytes).unwrap();
                prop_assert!(walk.losses.is_empty());
                reached.extend(walk.deliveries.iter().map(|copy| u64::from(copy.host.0)));
            }
            let mut named = Vec::new();
            leaves(&plan["tree"], &mut named);
            named.sort();
            prop_assert_eq!(&named, &expected.iter().copied().collect::<Vec<_>>());
        } else {
            reached.extend(plan["edges"].as_array().unwrap().iter().map(|edge| edge["to"].as_u64().unwrap()));
        }
        reached.sort();
        prop_assert_eq!(reached, expected.into_iter().collect::<Vec<_>>());
    }
}

fn bytes_of(hex: &str) -> Vec<u8> {
    (0..hex.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap())
        .collect()
}

fn leaves(tree: &Value, hosts: &mut Vec<u64>) {
    for branch in tree["branches"].as_array().unwrap() {
        match branch["host"].as_u64() {
            Some(host) => hosts.push(host),
            None => leaves(branch, hosts),
        }
    }
}

#[test]
fn group_files_have_the_documented_form() {
    let topology = from_spec("testbed").unwrap();
    let request = json!({"scheme": "k-binomial", "source": 1, "members": [1, 5, 7], "parameters": {"k": 2, "packets": 3}});
    assert_eq!(
        plan(&topology, request).unwrap(),
        json!({"scheme": "k-binomial", "source": 1, "members": [1, 5, 7],
               "parameters": {"packets": 3, "order": "cco", "k": 2, "discipline": "fpfs", "routing": "osud"},
               "order": [1, 5, 7], "steps": 6,
               "edges": [{"from": 1, "to": 5, "step": 1, "class": 1},
                         {"from": 5, "to": 7, "step": 2, "class": 1}]})
    );
    let request = json!({"scheme": "switch", "source": 0, "members": [0, 1, 3]});
    assert_eq!(
        plan(&topology, request).unwrap(),
        json!({"scheme": "switch", "source": 0, "members": [0, 1, 3],
               "parameters": {"packets": 1, "order": "id", "guard": "A"},
               "order": [0, 1, 3], "steps": 1,
               "tree": {"switch": 0, "branches": [
                   {"port": 1, "host": 1},
                   {"port": 4, "switch": 1, "branches": [{"port": 1, "host": 3}]}]},
               "route": "010004020100ff",
               "routes": [{"route": "010004020100ff", "hosts": [1, 3]}],
               "unicast": "tree-only", "branching": "coupled", "backward_reset": false,
               "worms": 1, "header_bytes": 19, "link_crossings": 4, "crossings_bound": 4,
               "excess": 0.0, "hops": 2, "filtered": 0, "total_order": false})
    );
    let request = json!({"scheme": "circuit", "source": 5, "members": [1, 7], "parameters": {"variant": "ordered"}});
    assert_eq!(
        plan(&topology, request).unwrap(),
        json!({"scheme": "circuit", "source": 5, "members": [1, 5, 7],
               "parameters": {"packets": 1, "order": "id", "variant": "ordered", "discipline": "fpfs",
                              "routing": "osud"},
               "order": [1, 5, 7], "steps": 3,
               "edges": [{"from": 5, "to": 1, "step": 1, "class": 2},
                         {"from": 1, "to": 5, "step": 2, "class": 2},
                         {"from": 5, "to": 7, "step": 3, "class": 2}]})
    );
}

#[test]
fn the_best_k_is_chosen_and_k_0_means_the_same() {
    let topology = irregular(&Irregular::of_itb(16, 2)).unwrap();
    let members: Vec<u16> = (0..64).collect();
    for packets in [1, 3, 8, 64] {
        for parameters in [
            json!({"packets": packets}),
            json!({"packets": packets, "k": 0}),
        ] {
            let request = json!({"scheme": "k-binomial", "source": 9, "members": members, "parameters": parameters});
            let plan = plan(&topology, request).unwrap();
            let k = k_binomial::optimal_k(64, packets);
            assert_eq!(plan["parameters"]["k"], k);
            assert_eq!(plan["steps"], k_binomial::steps(64, packets, k));
        }
    }
}

#[test]
fn a_long_switch_group_is_split_and_counted() {
    let topology = irregular(&Irregular::of_itb(64, 2)).unwrap();
    let members: Vec<u16> = (0..256).collect();
    let plan = plan(
        &topology,
        json!({"scheme": "switch", "source": 0, "members": members}),
    )
    .unwrap();
    let routes = plan["routes"].as_array().unwrap();
    assert!(routes.len() > 1);
    assert_eq!(plan["steps"], routes.len());
    assert_eq!(plan["route"], routes[0]["route"]);
}

#[test]
fn tori_order_by_dimension() {
    let topology = from_spec("torus:3").unwrap();
    let routes = Routes::plan(&topology, Algorithm::Osud, None).unwrap();
    let all: Vec<HostId> = (0..9).map(HostId).collect();
    let order = Order::Dimension
        .apply(&topology, routes.updown(), &all)
        .unwrap();
    assert_eq!(order, hosts(&[0, 3, 6, 1, 4, 7, 2, 5, 8]), "by x, then y");
    let request = json!({"scheme": "k-binomial", "source": 4, "members": [0, 4, 8]});
    assert_eq!(
        plan(&topology, request).unwrap()["parameters"]["order"],
        "dimension"
    );
}

#[test]
fn requests_are_refused_with_reasons() {
    let topology = from_spec("testbed").unwrap();
    let refuse = |request: Value| plan(&topology, request).unwrap_err();
    let with = |field: &str, value: Value| {
        let mut request = json!({"scheme": "tree", "source": 1, "members": [1, 2, 5]});
        request[field] = value;
        refuse(request)
    };
    assert_eq!(
        with("scheme", json!("flood")),
        "there is no scheme \"flood\"; choices are repeat, circuit, tree, k-binomial, \
         postal, u-torus, s-torus, md-torus, mu-torus, switch, table, broadcast"
    );
    assert_eq!(
        with("source", json!(70000)),
        "source: 70000 is not a host id from 0 to 65534"
    );
    assert_eq!(
        with("source", json!(12)),
        "there is no host 12; hosts are 0, 1, 2, 3, 4, 5, 6, 7"
    );
    assert_eq!(
        with("members", json!([1, 8])),
        "there is no host 8; hosts are 0, 1, 2, 3, 4, 5, 6, 7"
    );
    assert_eq!(
        with("members", json!([1, 2, 2])),
        "host 2 is given twice as a member"
    );
    assert_eq!(
        with("members", json!([1, "x"])),
        "members[1]: \"x\" is not a host id from 0 to 65534"
    );
    assert_eq!(
        with("members", Value::Null),
        "members: missing or not a list of hosts"
    );
    assert_eq!(
        with("parameters", json!({"fan": 3})),
        "there is no parameter \"fan\"; choices are k, packets, bytes, payload, fan_out, \
         variant, lambda, r, guard, least, trees, group, order, seed, discipline, routing"
    );
    assert_eq!(
        with("parameters", json!({"fan_out": 0})),
        "parameters.fan_out: 0 is not an integer from 1 to 65534"
    );
    assert_eq!(
        with("parameters", json!({"variant": "return"})),
        "there is no variant \"return\"; choices are unordered, ordered"
    );
    assert_eq!(
        with("parameters", json!({"order": "best"})),
        "there is no order \"best\"; choices are id, cco, dimension, hamiltonian, random"
    );
    let request = json!({"scheme": "circuit", "source": 1, "members": [1, 2], "parameters": {"order": "dimension"}});
    assert_eq!(
        refuse(request),
        "dimension or hamiltonian order needs a torus or mesh; orders for any topology are id, cco, \
         random"
    );
    assert_eq!(
        refuse(json!({"source": 1, "members": []})),
        "group: field \"scheme\" is missing"
    );
    assert_eq!(
        refuse(json!({"scheme": "tree", "members": []})),
        "group: field \"source\" is missing"
    );
}

#[test]
fn members_in_parts_that_are_not_connected_are_refused() {
    let text = r#"{"switches":[{"id":0,"ports":8},{"id":1,"ports":8}],
        "hosts":[{"id":0,"switch":0,"port":0},{"id":1,"switch":1,"port":0},{"id":2,"switch":0,"port":1}],
        "links":[]}"#;
    let topology = Topology::from_json_split(text).unwrap();
    for scheme in ANYWHERE {
        let request = json!({"scheme": scheme, "source": 0, "members": [0, 1, 2]});
        assert_eq!(
            plan(&topology, request).unwrap_err(),
            "members 0 and 1 cannot reach each other"
        );
        let request = json!({"scheme": scheme, "source": 2, "members": [0]});
        plan(&topology, request).unwrap();
    }
}

#[test]
fn structures_are_refused_with_reasons() {
    let circuit = |order: &[u16], source| {
        Structure::k_binomial(hosts(order), HostId(source), 2)
            .unwrap_err()
            .to_string()
    };
    assert_eq!(
        circuit(&[], 0),
        "group has no members; it needs at least one"
    );
    assert_eq!(circuit(&[1, 2, 1], 1), "host 1 is given twice as a member");
    assert_eq!(
        circuit(&[1, 2], 3),
        "host 3 is not a member; members are 1, 2"
    );
    assert_eq!(
        Structure::k_binomial(hosts(&[1]), HostId(1), 0)
            .unwrap_err()
            .to_string(),
        "k is 0; it is 1 at least"
    );
    let structure = Structure::repeat(hosts(&[1, 2]), HostId(1)).unwrap();
    assert_eq!(
        structure.role_of(HostId(9)).unwrap_err().to_string(),
        "host 9 is not a member; members are 1, 2"
    );
    let tree = |members: &[u16], edges: &[(u16, u16)]| {
        let edges: Vec<_> = edges.iter().map(|&(a, b)| (HostId(a), HostId(b))).collect();
        RootedTree::from_edges(&hosts(members), &edges)
            .unwrap_err()
            .to_string()
    };
    assert_eq!(
        tree(&[1, 2, 3], &[(1, 2)]),
        "edges make no rooted tree: host 3 has no parent; only the root 1 has none"
    );
    assert_eq!(
        tree(&[1, 2, 3], &[(1, 2), (3, 2)]),
        "edges make no rooted tree: host 2 is below host 3; a child has a higher id than its parent"
    );
    assert_eq!(
        tree(&[1, 2, 3], &[(1, 2), (1, 3), (2, 3)]),
        "edges make no rooted tree: host 3 is below both 1 and 2"
    );
    assert_eq!(
        tree(&[1, 2], &[(1, 5)]),
        "host 5 is not a member; members are 1, 2"
    );
}

#[test]
fn ordered_and_unordered_trees_differ_as_in_the_paper() {
    // WORM Fig. 9: from host 7 the unordered worm climbs; the ordered one goes to the root.
    let members = hosts(&[1, 3, 7, 9]);
    let edges = [(1, 3), (1, 7), (7, 9)].map(|(a, b)| (HostId(a), HostId(b)));
    let tree = RootedTree::from_edges(&members, &edges).unwrap();
    let role = |variant, host| {
        let structure = Structure::tree(tree.clone(), HostId(7), variant).unwrap();
        let role = structure.role_of(HostId(host)).unwrap();
        let children: Vec<u16> = role.children.iter().map(|child| child.0.0).collect();
        (
            role.parent.map(|parent| parent.0),
            children,
            role.submit.map(|to| to.0.0),
        )
    };
    assert_eq!(role(TreeVariant::Unordered, 7), (None, vec![1, 9], None));
    assert_eq!(role(TreeVariant::Unordered, 1), (Some(7), vec![3], None));
    assert_eq!(role(TreeVariant::Ordered, 7), (Some(1), vec![9], Some(1)));
    assert_eq!(role(TreeVariant::Ordered, 1), (Some(7), vec![3, 7], None));
}

#[test]
fn the_structure_behind_a_plan_gives_its_edges() {
    let topology = from_spec("torus:4").unwrap();
    let routes = Routes::plan(&topology, Algorithm::Osud, None).unwrap();
    for scheme in Scheme::NAMES {
        let request = json!({"scheme": scheme, "source": 3, "members": [3, 4, 5, 11]});
        let request = GroupRequest::from_json(&request.to_string()).unwrap();
        let structure = plan_structure(&routes, &request).unwrap();
        let by_switches = ["switch", "table", "broadcast"].contains(scheme);
        assert_eq!(structure.is_none(), by_switches);
        if let Some(structure) = structure {
            let plan: Value =
                serde_json::from_str(&plan_group(&routes, &request).unwrap().to_json()).unwrap();
            assert_eq!(
                plan["edges"].as_array().unwrap().len(),
                structure.edges().len()
            );
        }
    }
}

#[test]
fn trees_as_deep_as_a_worm_may_go_are_written_and_read() {
    // 62 switches in a line: the tree is nested two levels for each.
    let line = from_spec("line:62").unwrap();
    let request = json!({"scheme": "switch", "source": 0, "members": [0, 61]});
    let request = GroupRequest::from_json(&request.to_string()).unwrap();
    let file = plan_group_on(&line, None, &request, false)
        .unwrap()
        .to_json();
    assert_eq!(read_groups(&file).unwrap().len(), 1);
}
