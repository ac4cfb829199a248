//! Orders that show that routes are free of deadlock: they hold, and spoilt ones do not.
//! Circles in rings: found where they are, and the shortest.

use crate::graphs;

use std::collections::{BTreeMap, BTreeSet};

use graphs::{connected_graphs, minimal, route, wire};
use proptest::prelude::*;
use wormcast_routing::generate::{Irregular, from_spec, irregular, testbed};
use wormcast_routing::routes::{Algorithm, Route, Routes};
use wormcast_routing::topology::Topology;
use wormcast_verify::deadlock::certificate::{self, Flaw};
use wormcast_verify::deadlock::{Branching, Channel, ChannelGraph, Resource, Verdict};
use wormcast_wire::SwitchId;

fn order_of(graph: &ChannelGraph<'_>) -> Vec<Resource> {
    match graph.check() {
        Verdict::DeadlockFree { order, .. } => order,
        deadlock => panic!("{deadlock:?}"),
    }
}

fn order_of_all(routes: &Routes<'_>) -> Vec<Resource> {
    let mut graph = ChannelGraph::new(routes.topology(), Branching::Independent);
    graph.add_routes(routes);
    order_of(&graph)
}

#[test]
fn orders_hold_for_every_algorithm() {
    for spec in [
        "irregular:12:5",
        "irregular:9:2:2:6",
        "torus:4:4",
        "line:70:1",
        "ring:9:2",
    ] {
        let topology = from_spec(spec).unwrap();
        for algorithm in Algorithm::ALL {
            let routes = Routes::plan(&topology, algorithm, None).unwrap();
            let order = order_of_all(&routes);
            certificate::check(&topology, routes.iter(), &order)
                .unwrap_or_else(|violation| panic!("{spec} {algorithm:?}: {violation}"));
        }
    }
}

#[test]
fn orders_hold_on_every_small_graph() {
    for topology in connected_graphs(4, false).chain(connected_graphs(5, true)) {
        for algorithm in Algorithm::ALL {
            let routes = Routes::plan(&topology, algorithm, None).unwrap();
            let order = order_of_all(&routes);
            certificate::check(&topology, routes.iter(), &order).unwrap();
        }
    }
}

/// Needs as pairs of channels, from the ports of the routes.
fn needs(topology: &Topology, routes: &[Route]) -> BTreeSet<(Resource, Resource)> {
    let mut graph = ChannelGraph::new(topology, Branching::Independent);
    let mut pairs = BTreeSet::new();
    for route in routes {
        graph.add_route(route).unwrap();
        let switches = &route.switches;
        let link = |place: usize| -> Resource {
            let (from, from_port) = (switches[place], route.ports[place]);
            let ends = topology.links().iter().flat_map(|link| {
                [
                    (link.a, link.a_port, link.b, link.b_port),
                    (link.b, link.b_port, link.a, link.a_port),
                ]
            });
            let mut ends = ends.filter(|end| end.0 == from && end.1.get() == from_port);
            let (from, from_port, to, to_port) = ends.next().unwrap();
            Channel::Link {
                from,
                from_port,
                to,
                to_port,
            }
            .into()
        };
        for place in 1..switches.len().saturating_sub(1) {
            pairs.insert((link(place - 1), link(place)));
        }
    }
    pairs
}

#[test]
fn spoilt_orders_are_caught() {
    let topology = irregular(&Irregular::of_itb(14, 4)).unwrap();
    let routes: Vec<Route> = Routes::plan(&topology, Algorithm::Osud, None)
        .unwrap()
        .iter()
        .collect();
    let mut graph = ChannelGraph::new(&topology, Branching::Independent);
    for route in &routes {
        graph.add_route(route).unwrap();
    }
    let order = order_of(&graph);
    let check = |order: &[Resource]| certificate::check(&topology, routes.iter().cloned(), order);
    assert_eq!(check(&order), Ok(()));
    let place: BTreeMap<Resource, usize> = order.iter().copied().zip(0..).collect();
    let needs = needs(&topology, &routes);
    assert!(needs.len() > 10);
    for (held, needed) in needs {
        let mut swapped = order.clone();
        swapped.swap(place[&held], place[&needed]);
        let violation = check(&swapped).unwrap_err();
        assert!(
            matches!(violation.flaw, Flaw::OutOfOrder(..)),
            "{violation}"
        );
    }
    for gone in 0..order.len() {
        let mut dropped = order.clone();
        let channel = dropped.remove(gone);
        let flaw = check(&dropped).unwrap_err().flaw;
        assert!(matches!(flaw, Flaw::NotOnce(missing) if Resource::from(missing) == channel));
        let mut twice = order.clone();
        twice.push(order[gone]);
        let flaw = check(&twice).unwrap_err().flaw;
        assert!(matches!(flaw, Flaw::NotOnce(missing) if Resource::from(missing) == order[gone]));
    }
}

#[test]
fn routes_that_lead_nowhere_are_caught() {
    let topology = testbed();
    let routes = Routes::plan(&topology, Algorithm::Osud, None).unwrap();
    let order = order_of_all(&routes);
    let good = routes.iter().last().unwrap();
    let flaw = |change: &dyn Fn(&mut Route)| {
        let mut route = good.clone();
        change(&mut route);
        certificate::check(&topology, [route], &order)
            .unwrap_err()
            .flaw
    };
    assert_eq!(flaw(&|route| route.ports[0] = 7), Flaw::NoWay(0));
    let ports = good.ports.len();
    assert_eq!(
        flaw(&|route| *route.ports.last_mut().unwrap() = 9),
        Flaw::NoWay(ports - 1)
    );
    assert_eq!(
        flaw(&|route| route.ports.truncate(ports - 1)),
        Flaw::NoWay(ports - 1)
    );
}

/// Length of a shortest circle of links, each needed by a worm that holds the one before,
/// by trying all ways on from every link.
fn shortest_circle(topology: &Topology, routes: &[Route]) -> Option<usize> {
    let needs = needs(topology, routes);
    let starts: BTreeSet<Resource> = needs.iter().map(|(held, _)| *held).collect();
    let mut best = None;
    for start in starts {
        let (mut front, mut seen) = (BTreeSet::from([start]), BTreeSet::new());
        for length in 1..=needs.len() {
            let next = needs.iter().filter(|(held, _)| front.contains(held));
            front = next.map(|(_, needed)| *needed).collect();
            if front.contains(&start) {
                best = Some(best.map_or(length, |best: usize| best.min(length)));
                break;
            }
            front = &front - &seen;
            seen.extend(front.iter().copied());
        }
    }
    best
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn in_rings_worms_wait_in_a_circle_exactly_if_their_ways_join_all_around(
        size in 3u16..9,
        chosen in prop::collection::vec((0u16..9, 1u16..8, any::<bool>()), 1..14),
    ) {
        let topology = from_spec(&format!("ring:{size}")).unwrap();
        let mut graph = ChannelGraph::new(&topology, Branching::Independent);
        // In either direction, which switches some way goes straight through.
        let mut through = [BTreeSet::new(), BTreeSet::new()];
        let mut routes = Vec::new();
        for (start, length, forward) in chosen {
            let (start, length) = (start % size, 1 + length % (size - 1));
            let step = |by: u16| if forward { start + by } else { start + size - by };
            let way: Vec<u16> = (0..=length).map(|by| step(by) % size).collect();
            for inner in &way[1..way.len() - 1] {
                through[usize::from(forward)].insert(*inner);
            }
            let route = route(&topology, &way);
            graph.add_route(&route).unwrap();
            routes.push(route);
        }
        let circle = through.iter().any(|passed| passed.len() == usize::from(size));
        match graph.check() {
            Verdict::DeadlockFree { order, .. } => {
                prop_assert!(!circle);
                prop_assert_eq!(certificate::check(&topology, routes, &order), Ok(()));
            }
            Verdict::Deadlock { cycle, proven, .. } => {
                prop_assert!(circle && proven);
                prop_assert_eq!(cycle.len(), usize::from(size));
            }
        }
    }

    #[test]
    fn circles_of_minimal_routes_are_the_shortest(
        links in prop::collection::btree_set((0u16..6, 0u16..6), 5..14),
        pairs in prop::collection::btree_set((0u16..6, 0u16..6), 4..30),
    ) {
        // Any paths of minimal length on a graph of six switches.
        let ascending: Vec<(u16, u16)> = links.into_iter().filter(|(a, b)| a < b).collect();
        let Ok(topology) = Topology::new(wire(6, 1, &ascending)) else { return Ok(()) };
        let mut checked = ChannelGraph::new(&topology, Branching::Independent);
        let mut routes = Vec::new();
        for (src, dst) in pairs.into_iter().filter(|(src, dst)| src != dst) {
            let route = minimal(&topology, src, dst);
            checked.add_route(&route).unwrap();
            routes.push(route);
        }
        let found = match checked.check() {
            Verdict::DeadlockFree { order, .. } => {
                prop_assert_eq!(certificate::check(&topology, routes.clone(), &order), Ok(()));
                None
            }
            Verdict::Deadlock { cycle, .. } => Some(cycle.len()),
        };
        prop_assert_eq!(found, shortest_circle(&topology, &routes));
    }

    #[test]
    fn all_pairs_at_once_need_what_each_route_needs(
        switches in 3usize..14,
        seed in any::<u64>(),
        algorithm in prop::sample::select(Algorithm::ALL.to_vec()),
        root in any::<prop::sample::Index>(),
    ) {
        let topology = irregular(&Irregular::of_itb(switches, seed)).unwrap();
        let root = SwitchId(root.index(switches) as u16);
        let routes = Routes::plan(&topology, algorithm, Some(root)).unwrap();
        // An order of the one holds for the other, both ways round.
        prop_assert_eq!(certificate::check(&topology, routes.iter(), &order_of_all(&routes)), Ok(()));
        let mut one_by_one = ChannelGraph::new(&topology, Branching::Independent);
        for route in routes.iter() {
            one_by_one.add_route(&route).unwrap();
        }
        prop_assert_eq!(certificate::check(&topology, routes.iter(), &order_of(&one_by_one)), Ok(()));
    }
}
