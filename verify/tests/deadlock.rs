//! The deadlock check: WORM Fig. 3, cycles found and named, routes refused.

use crate::graphs;

use graphs::{path, route, wire};
use proptest::prelude::*;
use wormcast_routing::generate::{Irregular, from_spec, irregular, testbed};
use wormcast_routing::routes::{Algorithm, Route, Routes};
use wormcast_routing::topology::Topology;
use wormcast_verify::deadlock::{
    Branching, Channel, ChannelGraph, DeadlockError, Resource, Verdict, Worm,
};
use wormcast_wire::tree_route::encode_tree;
use wormcast_wire::{HostId, PortId, SwitchId};

const A: u16 = 0;
const B: u16 = 1;
const C: u16 = 2;
const D: u16 = 3;
const E: u16 = 4;
const F: u16 = 5;

/// The network of WORM Fig. 3: a host on each of the switches A to F, D–E the crosslink.
/// Host n is on switch n; the multicast of `a` goes to `b` on E and to `c` on F.
fn fig_3() -> Topology {
    Topology::new(wire(
        6,
        1,
        &[(A, B), (A, C), (B, E), (C, D), (D, E), (D, F)],
    ))
    .unwrap()
}

/// Adds one multicast worm along these paths of switches.
fn add_multicast(graph: &mut ChannelGraph<'_>, topology: &Topology, paths: &[&[u16]]) {
    let named: Vec<(HostId, Vec<u8>)> = paths
        .iter()
        .map(|switches| (HostId(*switches.last().unwrap()), path(topology, switches)))
        .collect();
    let routes = encode_tree(&named).unwrap();
    assert_eq!(routes.len(), 1);
    graph
        .add_tree(HostId(paths[0][0]), &routes[0].bytes)
        .unwrap();
}

fn fig_3_graph(topology: &Topology, branching: Branching, unicast: &[u16]) -> Verdict {
    let mut graph = ChannelGraph::new(topology, branching);
    add_multicast(&mut graph, topology, &[&[A, B, E], &[A, C, D, F]]);
    graph.add_route(&route(topology, unicast)).unwrap();
    graph.check()
}

#[test]
fn fig_3_deadlocks_over_the_crosslink_though_all_paths_are_legal() {
    let topology = fig_3();
    // The unicast worm goes up to nothing and down C–D–E; with root A every link of it,
    // D–E included, is legal after C–D.
    let osud = Routes::plan(&topology, Algorithm::Osud, Some(SwitchId(A))).unwrap();
    let unicast = [C, D, E];
    assert_eq!(
        osud.route(HostId(C), HostId(E)).unwrap(),
        route(&topology, &unicast)
    );
    let Verdict::Deadlock { cycle, proven, .. } =
        fig_3_graph(&topology, Branching::Coupled, &unicast)
    else {
        panic!("no deadlock found")
    };
    assert!(proven);
    // The unicast worm holds C–D and waits for b's link, which the multicast worm holds
    // while it waits for C–D.
    let multicast = Worm::Tree {
        src: HostId(A),
        hosts: vec![HostId(E), HostId(F)],
    };
    let unicast = Worm::Unicast {
        src: HostId(C),
        dst: HostId(E),
    };
    assert!(cycle.iter().any(|wait| wait.worm == unicast
        && matches!(
            wait.resource,
            Resource::Channel(Channel::Link {
                from: SwitchId(C),
                to: SwitchId(D),
                ..
            })
        )));
    let held: Vec<&Resource> = cycle
        .iter()
        .filter(|wait| wait.worm == multicast)
        .map(|wait| &wait.resource)
        .collect();
    assert!(
        matches!(
            held[..],
            [Resource::Channel(Channel::Ejection {
                host: HostId(E),
                ..
            })]
        ),
        "{held:?}"
    );
    assert_eq!(cycle.len(), 3, "C–D, D–E and b's link");
}

#[test]
fn fig_3_is_free_on_the_spanning_tree_or_where_branches_go_on() {
    let topology = fig_3();
    let tree = Routes::plan(&topology, Algorithm::TreeOnly, Some(SwitchId(A))).unwrap();
    let around = tree.route(HostId(C), HostId(E)).unwrap();
    assert_eq!(
        around,
        route(&topology, &[C, A, B, E]),
        "not over the crosslink"
    );
    let switches: Vec<u16> = around.switches.iter().map(|switch| switch.0).collect();
    assert!(fig_3_graph(&topology, Branching::Coupled, &switches).is_deadlock_free());
    assert!(fig_3_graph(&topology, Branching::Independent, &[C, D, E]).is_deadlock_free());
    // Nor with all unicast routes at once.
    for (algorithm, branching, free) in [
        (Algorithm::TreeOnly, Branching::Coupled, true),
        (Algorithm::Osud, Branching::Independent, true),
        (Algorithm::Osud, Branching::Coupled, false),
    ] {
        let mut graph = ChannelGraph::new(&topology, branching);
        graph.add_routes(&Routes::plan(&topology, algorithm, Some(SwitchId(A))).unwrap());
        add_multicast(&mut graph, &topology, &[&[A, B, E], &[A, C, D, F]]);
        assert_eq!(
            graph.check().is_deadlock_free(),
            free,
            "{algorithm:?} {branching:?}"
        );
    }
}

#[test]
fn two_multicasts_with_two_common_members_deadlock_even_on_the_spanning_tree() {
    // WORM §3 has scheme A free of deadlock. It is so for one multicast; but a worm that
    // has reached c and waits for d can meet one that has reached d and waits for c.
    let topology = from_spec("line:2:4").unwrap();
    let tree = Routes::plan(&topology, Algorithm::TreeOnly, None).unwrap();
    let members = |src: u16, all: &[u16]| {
        let paths: Vec<(HostId, Vec<u8>)> = all
            .iter()
            .map(|&dst| {
                (
                    HostId(dst),
                    tree.route(HostId(src), HostId(dst)).unwrap().ports,
                )
            })
            .collect();
        encode_tree(&paths).unwrap()[0].bytes.clone()
    };
    let check = |branching, second: &[u16]| {
        let mut graph = ChannelGraph::new(&topology, branching);
        graph.add_tree(HostId(0), &members(0, &[1, 5])).unwrap();
        graph.add_tree(HostId(4), &members(4, second)).unwrap();
        graph.check()
    };
    let Verdict::Deadlock { cycle, proven, .. } = check(Branching::Coupled, &[1, 5]) else {
        panic!("no deadlock found")
    };
    assert!(proven);
    let held: Vec<(HostId, HostId)> = cycle
        .iter()
        .map(|wait| match (wait.resource, &wait.worm) {
            (Resource::Channel(Channel::Ejection { host, .. }), Worm::Tree { src, .. }) => {
                (host, *src)
            }
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(held.len(), 2);
    assert!(held.contains(&(HostId(1), HostId(4))) || held.contains(&(HostId(1), HostId(0))));
    assert_ne!(held[0].1, held[1].1, "two worms, each with one of the two");
    assert!(check(Branching::Independent, &[1, 5]).is_deadlock_free());
    // One common member is no harm, for either holds it or does not.
    assert!(check(Branching::Coupled, &[1, 6]).is_deadlock_free());
}

#[test]
fn the_parts_of_a_split_route_follow_each_other() {
    let topology = irregular(&Irregular::of_itb(64, 1)).unwrap();
    let tree = Routes::plan(&topology, Algorithm::TreeOnly, None).unwrap();
    let src = HostId(0);
    let paths: Vec<(HostId, Vec<u8>)> = topology.hosts()[1..]
        .iter()
        .map(|host| (host.id, tree.route(src, host.id).unwrap().ports))
        .collect();
    let parts = encode_tree(&paths).unwrap();
    assert!(parts.len() > 2);
    let mut graph = ChannelGraph::new(&topology, Branching::Coupled);
    graph.add_routes(&tree);
    for part in &parts {
        graph.add_tree(src, &part.bytes).unwrap();
    }
    assert!(graph.check().is_deadlock_free());
    // The same worms from two sources do not.
    let other = HostId(255);
    let paths: Vec<(HostId, Vec<u8>)> = topology.hosts()[..255]
        .iter()
        .map(|host| (host.id, tree.route(other, host.id).unwrap().ports))
        .collect();
    for part in encode_tree(&paths).unwrap() {
        graph.add_tree(other, &part.bytes).unwrap();
    }
    assert!(!graph.check().is_deadlock_free());
}

#[test]
fn a_cycle_that_no_single_worm_makes_is_reported_as_not_proven() {
    // Fig. 3 with the two branches sent one after the other, as two worms: the second can
    // stand behind the first and hold b's link, but it depends on their lengths.
    let topology = fig_3();
    let mut graph = ChannelGraph::new(&topology, Branching::Coupled);
    add_multicast(&mut graph, &topology, &[&[A, B, E]]);
    add_multicast(&mut graph, &topology, &[&[A, C, D, F]]);
    graph.add_route(&route(&topology, &[C, D, E])).unwrap();
    assert!(matches!(
        graph.check(),
        Verdict::Deadlock { proven: false, .. }
    ));
}

#[test]
fn a_worm_does_not_wait_for_itself() {
    // Both go over the link and to host 5; whoever has the link has host 5 next.
    let topology = from_spec("line:2:4").unwrap();
    let mut graph = ChannelGraph::new(&topology, Branching::Coupled);
    for (src, near) in [(0, 2), (1, 3)] {
        let paths = [(HostId(near), vec![near as u8]), (HostId(5), vec![4, 1])];
        graph
            .add_tree(HostId(src), &encode_tree(&paths).unwrap()[0].bytes)
            .unwrap();
    }
    assert!(graph.check().is_deadlock_free());
}

#[test]
fn worms_of_one_source_over_different_ways_are_two_worms() {
    // To hosts 1 and 2 once over switch 1 and once over switch 3.
    let topology = from_spec("ring:4").unwrap();
    let mut graph = ChannelGraph::new(&topology, Branching::Coupled);
    add_multicast(&mut graph, &topology, &[&[0, 1], &[0, 1, 2]]);
    add_multicast(&mut graph, &topology, &[&[0, 3, 2], &[0, 3, 2, 1]]);
    assert!(!graph.check().is_deadlock_free());
}

#[test]
fn a_ring_of_shortest_paths_is_a_cycle_and_is_named() {
    let topology = from_spec("ring:4").unwrap();
    let mut graph = ChannelGraph::new(&topology, Branching::Independent);
    for start in 0..4u16 {
        let switches: Vec<u16> = (start..start + 3).map(|id| id % 4).collect();
        graph.add_route(&route(&topology, &switches)).unwrap();
    }
    let Verdict::Deadlock { cycle, proven, .. } = graph.check() else {
        panic!("no cycle found")
    };
    assert!(proven);
    assert_eq!(cycle.len(), 4);
    for (place, wait) in cycle.iter().enumerate() {
        let Resource::Channel(Channel::Link { from, to, .. }) = wait.resource else {
            panic!("{wait:?}")
        };
        let Resource::Channel(Channel::Link { from: next, .. }) = cycle[(place + 1) % 4].resource
        else {
            panic!()
        };
        assert_eq!(to, next);
        let Worm::Unicast { src, .. } = wait.worm else {
            panic!("{wait:?}")
        };
        assert_eq!(
            src.0, from.0,
            "the worm that holds this link and needs the next"
        );
    }
}

#[test]
fn an_in_transit_host_breaks_the_cycle() {
    let topology = from_spec("ring:4").unwrap();
    let mut graph = ChannelGraph::new(&topology, Branching::Independent);
    for start in 0..4u16 {
        let switches: Vec<u16> = (start..start + 3).map(|id| id % 4).collect();
        let mut route = route(&topology, &switches);
        if start == 0 {
            // Out to host 1 and in again at switch 1.
            route.switches.insert(1, SwitchId(1));
            route.ports.insert(1, 0);
            route.in_transit.push(HostId(1));
        }
        graph.add_route(&route).unwrap();
    }
    assert!(graph.check().is_deadlock_free());
}

#[test]
fn refuses_routes_of_another_topology() {
    let topology = testbed();
    let good = Routes::plan(&topology, Algorithm::Osud, None)
        .unwrap()
        .route(HostId(0), HostId(3))
        .unwrap();
    let refuse = |change: &dyn Fn(&mut Route)| {
        let mut route = good.clone();
        change(&mut route);
        ChannelGraph::new(&topology, Branching::Independent)
            .add_route(&route)
            .unwrap_err()
            .to_string()
    };
    assert_eq!(
        refuse(&|route| route.switches[1] = SwitchId(3)),
        "route from host 0 to host 3: switch 3 is named where switch 1 is"
    );
    assert_eq!(
        refuse(&|route| route.ports[0] = 7),
        "nothing hangs on port 7 of switch 0"
    );
    assert_eq!(
        refuse(&|route| route.ports[0] = 254),
        "route from host 0 to host 3: byte 254 is no port; ports are 0 to 253"
    );
    assert_eq!(
        refuse(&|route| route.dst = HostId(2)),
        "route from host 0 to host 2: it does not end at its destination"
    );
    assert_eq!(
        refuse(&|route| route.in_transit = vec![HostId(2)]),
        "route from host 0 to host 3: it does not pass in-transit host 2"
    );
    assert_eq!(
        refuse(&|route| {
            route.switches.insert(1, SwitchId(0));
            route.ports.insert(0, 1);
        }),
        "route from host 0 to host 3: host 1 re-injects but is not in in_transit"
    );
    let tree = |route: &[u8]| {
        ChannelGraph::new(&topology, Branching::Independent)
            .add_tree(HostId(0), route)
            .unwrap_err()
    };
    assert_eq!(
        tree(&[7, 0, 255]),
        DeadlockError::NothingThere {
            switch: SwitchId(0),
            port: PortId::new(7).unwrap()
        }
    );
    assert_eq!(
        tree(&[]).to_string(),
        "at switch 0: route is empty; a tree route has a branch and the marker 255 at least"
    );
    // Around the ring and over the first link again.
    let round = [4, 10, 4, 8, 4, 6, 4, 4, 4, 2, 0, 0, 255];
    assert_eq!(
        tree(&round).to_string(),
        "two branches of a tree route leave switch 0 by port 4"
    );
    assert_eq!(
        "both".parse::<Branching>().unwrap_err().to_string(),
        "branches cannot be \"both\"; choices are \
         independent, coupled (A), interrupted (B), flushed (C)"
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn one_multicast_on_the_spanning_tree_is_free_of_deadlock(
        switches in 2usize..14,
        seed in any::<u64>(),
        wanted in prop::collection::vec(any::<bool>(), 56),
        src in any::<prop::sample::Index>(),
    ) {
        let topology = irregular(&Irregular::of_itb(switches, seed)).unwrap();
        let tree = Routes::plan(&topology, Algorithm::TreeOnly, None).unwrap();
        let src = topology.hosts()[src.index(topology.hosts().len())].id;
        let mut graph = ChannelGraph::new(&topology, Branching::Coupled);
        graph.add_routes(&tree);
        let paths: Vec<(HostId, Vec<u8>)> = topology
            .hosts()
            .iter()
            .zip(wanted)
            .filter(|(host, wanted)| *wanted && host.id != src)
            .map(|(host, _)| (host.id, tree.route(src, host.id).unwrap().ports))
            .collect();
        if let Some(route) = encode_tree(&paths).unwrap().first() {
            graph.add_tree(src, &route.bytes).unwrap();
        }
        prop_assert!(graph.check().is_deadlock_free());
    }

    #[test]
    fn any_number_of_multicasts_is_free_where_branches_go_on(
        switches in 2usize..14,
        seed in any::<u64>(),
        sources in prop::collection::vec(any::<prop::sample::Index>(), 1..5),
    ) {
        let topology = irregular(&Irregular::of_itb(switches, seed)).unwrap();
        let osud = Routes::plan(&topology, Algorithm::Osud, None).unwrap();
        let tree = Routes::plan(&topology, Algorithm::TreeOnly, None).unwrap();
        let mut graph = ChannelGraph::new(&topology, Branching::Independent);
        graph.add_routes(&osud);
        for source in sources {
            let src = topology.hosts()[source.index(topology.hosts().len())].id;
            let paths: Vec<(HostId, Vec<u8>)> = topology
                .hosts()
                .iter()
                .filter(|host| host.id != src)
                .map(|host| (host.id, tree.route(src, host.id).unwrap().ports))
                .collect();
            for route in encode_tree(&paths).unwrap() {
                graph.add_tree(src, &route.bytes).unwrap();
            }
        }
        prop_assert!(graph.check().is_deadlock_free());
    }
}
