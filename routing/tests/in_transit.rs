//! Minimal routing with in-transit buffers (ITB §III.B), held against a plain search of
//! all paths.

use crate::graphs;

use std::collections::BTreeSet;

use graphs::all_paths::{Oracle, Switches, check_answer, paths_of, share_of};
use graphs::{connected_graphs, distances, passed};
use proptest::prelude::*;
use wormcast_routing::generate::{Irregular, from_spec, irregular};
use wormcast_routing::intransit::PATHS_MAX;
use wormcast_routing::routes::{Algorithm, Routes, Share};
use wormcast_routing::topology::Topology;
use wormcast_verify::deadlock::{Branching, ChannelGraph};
use wormcast_wire::HostId;

const IN_TRANSIT: [Algorithm; 5] = [
    Algorithm::Omit,
    Algorithm::Rmit,
    Algorithm::Rrmit,
    Algorithm::Pit,
    Algorithm::RrmitMin,
];

/// `kept` are all of `all`, or ten of them.
fn check_kept(kept: &BTreeSet<Switches>, all: &BTreeSet<Switches>) {
    assert!(kept.is_subset(all), "{kept:?} of {all:?}");
    assert_eq!(kept.len(), all.len().min(PATHS_MAX));
}

/// Holds the routes of a pair, all switches with hosts and single links, against all
/// paths there are.
fn check_pair(oracle: &Oracle, planned: &[Routes<'_>], src: HostId, dst: HostId) {
    let topology = planned[0].topology();
    let [from, to] = [src, dst].map(|host| topology.host(host).unwrap().switch);
    let minimum = distances(topology, from)[&to];
    let minimal: BTreeSet<Switches> = oracle
        .paths(topology, from, to, minimum)
        .into_iter()
        .collect();
    for routes in planned {
        let answer = routes.alternatives(src, dst).unwrap();
        check_answer(topology, oracle, minimum, &answer);
        assert_eq!(routes.route(src, dst).unwrap(), answer[0].route);
        let kept = paths_of(&answer);
        match routes.algorithm() {
            Algorithm::Omit => {
                assert_eq!(answer.len(), 1);
                let cuts = minimal.iter().map(|path| oracle.cuts(path)).min();
                assert_eq!(Some(answer[0].route.in_transit.len() as u32), cuts);
                assert!(answer[0].minimal);
            }
            Algorithm::Rmit | Algorithm::Rrmit => {
                check_kept(&kept, &minimal);
                assert!(answer.iter().all(|one| one.share == answer[0].share));
            }
            Algorithm::Pit => {
                let longer: BTreeSet<Switches> = oracle
                    .paths(topology, from, to, minimum + 1)
                    .into_iter()
                    .filter(|path| path.len() as u32 == minimum + 2)
                    .collect();
                let (short, long): (Vec<_>, Vec<_>) =
                    answer.iter().cloned().partition(|one| one.minimal);
                check_kept(&paths_of(&short), &minimal);
                check_kept(&paths_of(&long), &longer);
                let fifth = Share::WHOLE.parts() / 5;
                let expected = if longer.is_empty() { 0 } else { fifth };
                assert_eq!(share_of(long.iter()), expected);
                for set in [short, long] {
                    assert!(set.iter().all(|one| one.share == set[0].share));
                }
            }
            Algorithm::RrmitMin => {
                let (least, _) = oracle.least(from, to, true);
                let best: BTreeSet<Switches> = oracle
                    .paths(topology, from, to, least)
                    .into_iter()
                    .filter(|path| path.len() as u32 - 1 + oracle.cuts(path) == least)
                    .collect();
                check_kept(&kept, &best);
                for one in &answer {
                    assert_eq!(one.route.switches.len() as u32, least + 1);
                }
            }
            other => panic!("{other:?}"),
        }
    }
}

fn plan_all(topology: &Topology) -> Vec<Routes<'_>> {
    IN_TRANSIT
        .map(|algorithm| Routes::plan(topology, algorithm, None).unwrap())
        .into()
}

/// No deadlock, whether added switch by switch or route by route.
fn check_free(routes: &Routes<'_>) {
    let topology = routes.topology();
    let mut at_once = ChannelGraph::new(topology, Branching::Independent);
    at_once.add_routes(routes);
    assert!(at_once.check().is_deadlock_free());
    let mut one_by_one = ChannelGraph::new(topology, Branching::Independent);
    for route in routes.iter() {
        one_by_one.add_route(&route).unwrap();
    }
    assert!(one_by_one.check().is_deadlock_free());
}

#[test]
fn every_connected_graph_of_up_to_five_switches() {
    for topology in (1..=5).flat_map(|switches| connected_graphs(switches, false)) {
        let planned = plan_all(&topology);
        let oracle = Oracle::new(&topology, planned[0].updown().root(&topology));
        for src in topology.hosts() {
            for dst in topology.hosts().iter().filter(|dst| dst.id != src.id) {
                check_pair(&oracle, &planned, src.id, dst.id);
            }
        }
        for routes in &planned {
            check_free(routes);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn random_networks(
        switches in 2usize..=64,
        links in 2usize..6,
        seed in any::<u64>(),
        pairs in proptest::collection::vec(any::<(prop::sample::Index, prop::sample::Index)>(), 12),
    ) {
        let topology = irregular(&Irregular { switches, ports: 8, hosts: 2, links, seed }).unwrap();
        let planned = plan_all(&topology);
        let oracle = Oracle::new(&topology, planned[0].updown().root(&topology));
        for (src, dst) in pairs {
            let [src, dst] = [src, dst].map(|index| index.get(topology.hosts()).id);
            if src != dst {
                check_pair(&oracle, &planned, src, dst);
            }
        }
    }

    /// Where switches have no hosts, paths are the shortest of those that can be cut.
    #[test]
    fn switches_without_hosts(
        switches in 3u16..24,
        seed in any::<u64>(),
        bare in proptest::collection::btree_set(0u16..24, 1..16),
        pairs in proptest::collection::vec(any::<(prop::sample::Index, prop::sample::Index)>(), 12),
    ) {
        let parameters = Irregular { switches: switches.into(), ports: 8, hosts: 2, links: 3, seed };
        let mut parts = graphs::parts_of(&irregular(&parameters).unwrap());
        parts.hosts.retain(|host| host.switch.0 == 0 || !bare.contains(&host.switch.0));
        let topology = Topology::new(parts).unwrap();
        let planned = plan_all(&topology);
        let oracle = Oracle::new(&topology, planned[0].updown().root(&topology));
        for (src, dst) in pairs {
            let [src, dst] = [src, dst].map(|index| *index.get(topology.hosts()));
            if src.id == dst.id {
                continue;
            }
            let minimum = distances(&topology, src.switch)[&dst.switch];
            let (links, cuts) = oracle.least(src.switch, dst.switch, false);
            let (crossings, _) = oracle.least(src.switch, dst.switch, true);
            for routes in &planned {
                let answer = routes.alternatives(src.id, dst.id).unwrap();
                check_answer(&topology, &oracle, minimum, &answer);
                for one in &answer {
                    let length = passed(&one.route).len() as u32 - 1;
                    match routes.algorithm() {
                        Algorithm::RrmitMin => {
                            prop_assert_eq!(one.route.switches.len() as u32, crossings + 1);
                        }
                        Algorithm::Pit => prop_assert!((links..=links + 1).contains(&length)),
                        _ => prop_assert_eq!(length, links),
                    }
                    if routes.algorithm() == Algorithm::Omit {
                        prop_assert_eq!(one.route.in_transit.len() as u32, cuts);
                    }
                }
            }
        }
        for routes in &planned {
            check_free(routes);
        }
    }
}

#[test]
fn as_many_crossings_over_more_links_or_over_a_cut() {
    // Here a switch is reached in the same state over two links and a cut, and over three
    // links without one.
    let parameters = Irregular {
        switches: 56,
        ports: 8,
        hosts: 2,
        links: 3,
        seed: 14220457891169977572,
    };
    let topology = irregular(&parameters).unwrap();
    let planned = plan_all(&topology);
    let oracle = Oracle::new(&topology, planned[0].updown().root(&topology));
    for (src, dst) in [
        (0, 45),
        (4, 28),
        (72, 44),
        (103, 76),
        (63, 80),
        (28, 63),
        (40, 101),
        (106, 0),
        (97, 45),
        (23, 66),
        (44, 62),
        (110, 26),
    ] {
        check_pair(&oracle, &planned, HostId(src), HostId(dst));
    }
}

#[test]
fn regular_networks() {
    for spec in [
        "testbed",
        "ring:9",
        "star:9",
        "full-mesh:6",
        "torus:4:2",
        "torus:3x2x3",
        "torus:2",
        "mesh:4x3",
        "fat-tree:4",
        "shufflenet:2:2",
        "line:1:3",
    ] {
        let topology = from_spec(spec).unwrap();
        for routes in plan_all(&topology) {
            let oracle = Oracle::new(&topology, routes.updown().root(&topology));
            for src in topology.hosts() {
                for dst in topology.hosts().iter().filter(|dst| dst.id != src.id) {
                    let answer = routes.alternatives(src.id, dst.id).unwrap();
                    let minimum = distances(&topology, src.switch)[&dst.switch];
                    check_answer(&topology, &oracle, minimum, &answer);
                    // In a fat tree the switches between those with hosts cannot cut.
                    if spec != "fat-tree:4" && routes.algorithm() == Algorithm::Rmit {
                        assert!(answer.iter().all(|one| one.minimal), "{spec}");
                    }
                }
            }
            check_free(&routes);
        }
    }
}
