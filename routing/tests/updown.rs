//! up\*/down\* routes on every small graph and on random ones: each pair reachable by a
//! shortest legal path, dependencies acyclic.

use crate::graphs;

use std::collections::{BTreeMap, BTreeSet};

use graphs::{Plain, connected_graphs, distances, follow, wire};
use proptest::prelude::*;
use wormcast_routing::generate::{Irregular, from_spec, irregular};
use wormcast_routing::routes::{Algorithm, Route, Routes};
use wormcast_routing::topology::Topology;
use wormcast_routing::updown::UpDown;
use wormcast_verify::deadlock::{Branching, Channel, ChannelGraph, Resource, Verdict};
use wormcast_wire::SwitchId;

fn check_all(topology: &Topology) {
    let osud = Routes::plan(topology, Algorithm::Osud, None).unwrap();
    let tree = Routes::plan(topology, Algorithm::TreeOnly, None).unwrap();
    let root = osud.updown().root(topology);
    let plain = Plain::new(topology, root);
    check_root(topology, root);
    check_tree(topology, osud.updown(), &plain);
    let in_tree: BTreeSet<(SwitchId, SwitchId)> = osud
        .updown()
        .tree_links(topology)
        .iter()
        .flat_map(|link| [(link.a, link.b), (link.b, link.a)])
        .collect();
    let pairs = topology.hosts().len() * (topology.hosts().len() - 1);
    let all: Vec<Route> = osud.iter().collect();
    assert_eq!(all.len(), pairs, "each pair is reachable");
    for route in &all {
        follow(topology, route);
        assert!(plain.is_legal(&route.switches), "{route:?}");
        let (from, to) = (route.switches[0], *route.switches.last().unwrap());
        assert_eq!(
            route.switches.len() as u32,
            plain.shortest(from, to) + 1,
            "{route:?}"
        );
    }
    let along: Vec<Route> = tree.iter().collect();
    assert_eq!(along.len(), pairs);
    for route in &along {
        follow(topology, route);
        assert!(
            route
                .switches
                .windows(2)
                .all(|pair| in_tree.contains(&(pair[0], pair[1])))
        );
        let distinct: BTreeSet<_> = route.switches.iter().collect();
        assert_eq!(
            distinct.len(),
            route.switches.len(),
            "no switch twice: {route:?}"
        );
    }
    for routes in [&osud, &tree] {
        check_acyclic(topology, routes);
    }
}

fn check_root(topology: &Topology, root: SwitchId) {
    let eccentricity = |id: SwitchId| distances(topology, id).into_values().max().unwrap();
    let best = topology
        .switches()
        .iter()
        .map(|switch| (eccentricity(switch.id), switch.id))
        .min();
    assert_eq!(root, best.unwrap().1);
}

fn check_tree(topology: &Topology, updown: &UpDown, plain: &Plain) {
    for switch in topology.switches() {
        let level = updown.level(topology, switch.id).unwrap();
        assert_eq!(level, plain.levels[&switch.id]);
        match updown.parent(topology, switch.id).unwrap() {
            None => assert_eq!(level, 0),
            Some(parent) => assert_eq!(plain.levels[&parent] + 1, level),
        }
    }
    assert_eq!(
        updown.tree_links(topology).len(),
        topology.switches().len() - 1
    );
}

/// The certificate holds: every route takes its channels in the order given.
fn check_acyclic(topology: &Topology, routes: &Routes<'_>) {
    let mut graph = ChannelGraph::new(topology, Branching::Independent);
    graph.add_routes(routes);
    let Verdict::DeadlockFree { order, .. } = graph.check() else {
        panic!("{:?}", graph.check());
    };
    let links: BTreeMap<(SwitchId, u8), usize> = order
        .iter()
        .enumerate()
        .filter_map(|(place, channel)| match channel {
            Resource::Channel(Channel::Link {
                from, from_port, ..
            }) => Some(((*from, from_port.get()), place)),
            Resource::Channel(Channel::Ejection { switch, port, .. }) => {
                Some(((*switch, port.get()), place))
            }
            _ => None,
        })
        .collect();
    for route in routes.iter() {
        let places: Vec<usize> = route
            .switches
            .iter()
            .zip(&route.ports)
            .map(|(at, port)| links[&(*at, *port)])
            .collect();
        assert!(places.is_sorted_by(|a, b| a < b), "{route:?}");
    }
    // Route by route, the answer is the same.
    let mut one_by_one = ChannelGraph::new(topology, Branching::Independent);
    for route in routes.iter() {
        one_by_one.add_route(&route).unwrap();
    }
    assert!(one_by_one.check().is_deadlock_free());
}

#[test]
fn every_connected_graph_of_up_to_five_switches() {
    let mut count = 0;
    for switches in 1..=5 {
        for topology in connected_graphs(switches, false) {
            check_all(&topology);
            count += 1;
        }
    }
    // Connected labelled graphs: OEIS A001187.
    assert_eq!(count, 1 + 1 + 4 + 38 + 728);
}

#[test]
fn every_connected_graph_of_six_and_seven_switches_in_one_numbering() {
    for (switches, at_least) in [(6, 112), (7, 853)] {
        // There are 112 and 853 of them but for the numbering (OEIS A001349).
        let count = connected_graphs(switches, true)
            .map(|topology| check_all(&topology))
            .count();
        assert!(count >= at_least, "{count} graphs of {switches} switches");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn random_networks(switches in 2usize..28, seed in any::<u64>(), links in 2usize..6) {
        let parameters = Irregular { switches, ports: 8, hosts: 2, links, seed };
        check_all(&irregular(&parameters).unwrap());
    }

    #[test]
    fn any_root_will_do(switches in 2usize..20, seed in any::<u64>(), root in any::<prop::sample::Index>()) {
        let topology = irregular(&Irregular::of_itb(switches, seed)).unwrap();
        let root = topology.switches()[root.index(switches)].id;
        let routes = Routes::plan(&topology, Algorithm::Osud, Some(root)).unwrap();
        prop_assert_eq!(routes.updown().root(&topology), root);
        let plain = Plain::new(&topology, root);
        for route in routes.iter() {
            prop_assert!(plain.is_legal(&route.switches));
            let (from, to) = (route.switches[0], *route.switches.last().unwrap());
            prop_assert_eq!(route.switches.len() as u32, plain.shortest(from, to) + 1);
        }
    }
}

#[test]
fn regular_networks() {
    for spec in [
        "testbed",
        "line:9",
        "ring:9",
        "star:9",
        "full-mesh:6",
        "torus:4",
        "torus:3x2x3",
        "torus:2",
        "mesh:4x3",
        "fat-tree:4",
        "shufflenet:2:2",
        "line:1:3",
    ] {
        check_all(&from_spec(spec).unwrap());
    }
}

#[test]
fn the_same_input_gives_the_same_routes() {
    let topology = irregular(&Irregular::of_itb(24, 7)).unwrap();
    let again = irregular(&Irregular::of_itb(24, 7)).unwrap();
    assert_eq!(topology, again);
    let routes = Routes::plan(&topology, Algorithm::Osud, None)
        .unwrap()
        .to_json();
    assert_eq!(
        routes,
        Routes::plan(&again, Algorithm::Osud, None)
            .unwrap()
            .to_json()
    );
    assert_ne!(topology, irregular(&Irregular::of_itb(24, 8)).unwrap());
}

#[test]
fn equal_paths_share_the_load() {
    // Root 0, under it 1 to 4, under each of them 5 to 8: four equal ways lead from each
    // switch at the bottom to each other. By the lowest port alone, one of them would
    // carry everything.
    let links: Vec<(u16, u16)> = (1..5)
        .map(|middle| (0, middle))
        .chain((1..5).flat_map(|middle| (5..9).map(move |bottom| (middle, bottom))))
        .collect();
    let topology = Topology::new(wire(9, 2, &links)).unwrap();
    let routes = Routes::plan(&topology, Algorithm::Osud, Some(SwitchId(0))).unwrap();
    let mut load: BTreeMap<(u16, u16), u32> = BTreeMap::new();
    for route in routes.iter() {
        for pair in route.switches.windows(2) {
            *load.entry((pair[0].0, pair[1].0)).or_default() += 1;
        }
    }
    // A switch at the bottom sends 4 routes to each of 8 others, over four links: 8 each,
    // give or take one pair of switches.
    for bottom in 5..9 {
        for middle in 1..5 {
            assert!((4..=12).contains(&load[&(bottom, middle)]), "{load:?}");
            assert!((4..=12).contains(&load[&(middle, bottom)]), "{load:?}");
        }
    }
}

#[test]
fn the_busiest_link_is_not_much_busier_than_need_be() {
    // In a fat tree, every link can carry the same: the pairs divided by the links. In
    // an 8x8 torus, up*/down* itself crowds the root.
    for (spec, busiest_most) in [
        ("fat-tree:8", 192),
        ("torus:8", 300),
        ("irregular:64:1", 6300),
    ] {
        let topology = from_spec(spec).unwrap();
        let routes = Routes::plan(&topology, Algorithm::Osud, None).unwrap();
        let mut load: BTreeMap<(SwitchId, u8), u32> = BTreeMap::new();
        for route in routes.iter() {
            for hop in route
                .switches
                .iter()
                .zip(&route.ports)
                .take(route.ports.len() - 1)
            {
                *load.entry((*hop.0, *hop.1)).or_default() += 1;
            }
        }
        let busiest = load.into_values().max().unwrap();
        assert!(busiest <= busiest_most, "{spec}: {busiest}");
    }
}
