//! The deadlock check by what switches and hosts do with blocked worms: WORM §3 schemes A,
//! B and C, modes of replication.

use crate::graphs;

use graphs::{path, route, wire};
use proptest::prelude::*;
use wormcast_routing::generate::{Irregular, from_spec, irregular};
use wormcast_routing::routes::{Algorithm, Route, Routes};
use wormcast_routing::topology::Topology;
use wormcast_verify::deadlock::{
    Branching, Channel, ChannelGraph, Model, Resource, TableEntry, Verdict, Worm,
};
use wormcast_wire::tree_route::encode_tree;
use wormcast_wire::{HostId, PortId, SwitchId};

const SCHEMES: [Branching; 3] = [
    Branching::Coupled,
    Branching::Interrupted,
    Branching::Flushed,
];

/// The TREE route along these paths of switches; host n is on port 0 of switch n.
fn tree(topology: &Topology, paths: &[&[u16]]) -> Vec<u8> {
    let named: Vec<(HostId, Vec<u8>)> = paths
        .iter()
        .map(|switches| (HostId(*switches.last().unwrap()), path(topology, switches)))
        .collect();
    encode_tree(&named).unwrap()[0].bytes.clone()
}

#[test]
fn worm_fig_3_deadlocks_with_up_down_alone_but_not_with_a_b_or_c() {
    // Switches A to F with a host each, D–E the crosslink, A the root; multicast of a to
    // b on E and c on F, unicast from the host on C to b.
    let (a, b, c, d, e, f) = (0, 1, 2, 3, 4, 5);
    let links = [(a, b), (a, c), (b, e), (c, d), (d, e), (d, f)];
    let topology = Topology::new(wire(6, 1, &links)).unwrap();
    let root = Some(SwitchId(a));
    let osud = Routes::plan(&topology, Algorithm::Osud, root).unwrap();
    let tree_only = Routes::plan(&topology, Algorithm::TreeOnly, root).unwrap();
    let verdict = |branching, routes: Option<&Routes<'_>>| {
        let model = Model {
            branching,
            root,
            ..Model::default()
        };
        let mut graph = ChannelGraph::new(&topology, model);
        match routes {
            Some(routes) => graph.add_routes(routes),
            None => graph.add_route(&route(&topology, &[c, d, e])).unwrap(),
        }
        let multicast = tree(&topology, &[&[a, b, e], &[a, c, d, f]]);
        graph.add_tree(HostId(a), &multicast).unwrap();
        graph.check()
    };
    // Up*/down* alone: branches wait for each other, unicast takes the crosslink.
    for unicast in [None, Some(&osud)] {
        let found = verdict(Branching::Coupled, unicast);
        assert!(matches!(found, Verdict::Deadlock { proven: true, .. }));
    }
    // A: unicast keeps to the tree too.
    assert!(verdict(Branching::Coupled, Some(&tree_only)).is_deadlock_free());
    // B: what the multicast does not send on, it gives up. C: the unicast worm is flushed.
    for scheme in [Branching::Interrupted, Branching::Flushed] {
        for unicast in [None, Some(&osud), Some(&tree_only)] {
            assert!(verdict(scheme, unicast).is_deadlock_free(), "{scheme:?}");
        }
    }
}

#[test]
fn two_multicasts_with_two_common_members_deadlock_with_a_and_c_but_not_with_b() {
    // Sources 0 and 2 on switch 0, which is the root; members 1 and 4.
    let topology = from_spec("line:2:4").unwrap();
    let root = Some(SwitchId(0));
    let routes = Routes::plan(&topology, Algorithm::TreeOnly, root).unwrap();
    for branching in SCHEMES {
        let model = Model {
            branching,
            root,
            ..Model::default()
        };
        let mut graph = ChannelGraph::new(&topology, model);
        graph.add_routes(&routes);
        for src in [0, 2] {
            let paths: Vec<_> = [1, 4]
                .map(|dst| {
                    let route = routes.route(HostId(src), HostId(dst)).unwrap();
                    (HostId(dst), route.ports)
                })
                .to_vec();
            let multicast = &encode_tree(&paths).unwrap()[0];
            graph.add_tree(HostId(src), &multicast.bytes).unwrap();
        }
        match (branching, graph.check()) {
            (Branching::Interrupted, Verdict::DeadlockFree { order, .. }) => {
                // The turn at the root lies between the ways up and the channels down.
                let place = |wanted: &dyn Fn(&Resource) -> bool| {
                    order.iter().position(wanted).expect("in the order")
                };
                let turn = place(
                    &|resource| matches!(resource, Resource::Turn { switch } if *switch == SwitchId(0)),
                );
                let of_host = |wanted: HostId| move |resource: &Resource| matches!(resource, Resource::Channel(Channel::Injection { host, .. }) if *host == wanted);
                assert!(place(&of_host(HostId(0))) < turn && place(&of_host(HostId(2))) < turn);
                let down = |resource: &Resource| {
                    matches!(
                        resource,
                        Resource::Channel(Channel::Link {
                            from: SwitchId(0),
                            ..
                        })
                    )
                };
                assert!(turn < place(&down));
            }
            (_, Verdict::Deadlock { cycle, proven, .. }) => {
                assert_ne!(branching, Branching::Interrupted);
                assert!(proven);
                assert_eq!(cycle.len(), 2, "{cycle:?}");
                assert_ne!(cycle[0].worm, cycle[1].worm);
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn with_scheme_b_the_turn_at_the_root_is_held_from_the_way_up() {
    // The root is switch 1, in the middle of a line. One multicast goes from switch 2 over
    // the root to switch 0, the other from switch 0 to the root alone: they share nothing
    // but the turn. A unicast that goes down and up again, which is not legal, closes the
    // circle.
    let topology = Topology::new(wire(3, 2, &[(0, 1), (1, 2)])).unwrap();
    let check = |branching| {
        let model = Model {
            branching,
            root: Some(SwitchId(1)),
            ..Model::default()
        };
        let mut graph = ChannelGraph::new(&topology, model);
        graph
            .add_tree(HostId(4), &[2, 6, 2, 4, 0, 0, 1, 0, 255])
            .unwrap();
        graph.add_tree(HostId(0), &[2, 4, 0, 0, 1, 0, 255]).unwrap();
        let back = Route {
            src: HostId(2),
            dst: HostId(3),
            switches: [1, 0, 1].map(SwitchId).to_vec(),
            ports: vec![2, 2, 1],
            in_transit: vec![],
        };
        graph.add_route(&back).unwrap();
        graph.check()
    };
    assert!(check(Branching::Independent).is_deadlock_free());
    let Verdict::Deadlock { cycle, .. } = check(Branching::Interrupted) else {
        panic!("the turn is held from the way up")
    };
    assert_eq!(cycle.len(), 3);
    let turn = Resource::Turn {
        switch: SwitchId(1),
    };
    assert!(cycle.iter().any(|wait| wait.resource == turn));
}

#[test]
fn with_scheme_b_every_multicast_starts_at_the_root() {
    let topology = Topology::new(wire(3, 2, &[(0, 1), (1, 2)])).unwrap();
    let model = Model {
        branching: Branching::Interrupted,
        root: Some(SwitchId(1)),
        ..Model::default()
    };
    let refuse = |src: u16, route: &[u8]| {
        let mut graph = ChannelGraph::new(&topology, model);
        graph.add_tree(HostId(src), route).unwrap_err().to_string()
    };
    let reason = |src: u16, switch: u16| {
        format!(
            "multicast of host {src} branches or ends at switch {switch} before it has passed \
             root 1; with interrupted branches every multicast starts there"
        )
    };
    // Branches on the source's own switch; ends there.
    assert_eq!(refuse(0, &[1, 0, 2, 2, 0, 0, 255]), reason(0, 0));
    assert_eq!(refuse(4, &[1, 0, 255]), reason(4, 2));
}

#[test]
fn broadcasts_wait_for_each_other_unless_they_take_turns() {
    let topology = irregular(&Irregular::of_itb(8, 3)).unwrap();
    let osud = Routes::plan(&topology, Algorithm::Osud, None).unwrap();
    for (branching, free) in [
        (Branching::Independent, true),
        (Branching::Coupled, false),
        (Branching::Interrupted, true),
        (Branching::Flushed, false),
    ] {
        let mut graph = ChannelGraph::new(&topology, branching);
        graph.add_routes(&osud);
        for src in [3, 9, 30] {
            graph.add_broadcast(HostId(src), None).unwrap();
        }
        assert_eq!(graph.check().is_deadlock_free(), free, "{branching:?}");
    }
    // One alone: flushing is enough with unicast on all links, coupling is not.
    for (branching, free) in [(Branching::Coupled, false), (Branching::Flushed, true)] {
        let mut graph = ChannelGraph::new(&topology, branching);
        graph.add_routes(&osud);
        graph.add_broadcast(HostId(3), None).unwrap();
        assert_eq!(graph.check().is_deadlock_free(), free, "{branching:?}");
    }
    let mut graph = ChannelGraph::new(&topology, Branching::Interrupted);
    let below = osud.updown().root(&topology);
    let src = topology.hosts().iter().find(|host| host.switch != below);
    let src = src.unwrap();
    assert_eq!(
        graph
            .add_broadcast(src.id, Some(&[]))
            .unwrap_err()
            .to_string(),
        format!(
            "broadcast goes down from switch {}, which is not the root",
            src.switch
        )
    );
    // It reaches everybody.
    let mut graph = ChannelGraph::new(&topology, Branching::Coupled);
    graph.add_broadcast(HostId(3), None).unwrap();
    graph.add_broadcast(HostId(9), None).unwrap();
    let Verdict::Deadlock { cycle, .. } = graph.check() else {
        panic!("two broadcasts wait for each other")
    };
    let everybody: Vec<HostId> = topology.hosts().iter().map(|host| host.id).collect();
    assert!(
        cycle
            .iter()
            .all(|wait| matches!(&wait.worm, Worm::Tree { hosts, .. } if *hosts == everybody))
    );
}

#[test]
fn a_table_is_as_good_as_a_tree_route() {
    let topology = from_spec("line:2:4").unwrap();
    let port = |number| PortId::new(number).unwrap();
    let entries = |ports: [&[u8]; 2]| {
        [0, 1].map(|switch| TableEntry {
            switch: SwitchId(switch),
            ports: ports[usize::from(switch)]
                .iter()
                .map(|&number| port(number))
                .collect(),
        })
    };
    // Hosts 0, 1 and 5 in one group, whoever sends.
    let table = entries([&[0, 1, 4], &[1, 4]]);
    let mut by_table = ChannelGraph::new(&topology, Branching::Coupled);
    let mut by_route = ChannelGraph::new(&topology, Branching::Coupled);
    for (src, paths) in [
        (0, [(HostId(1), vec![1]), (HostId(5), vec![4, 1])]),
        (5, [(HostId(0), vec![4, 0]), (HostId(1), vec![4, 1])]),
    ] {
        by_table.add_table(HostId(src), &table).unwrap();
        let route = &encode_tree(&paths).unwrap()[0];
        by_route.add_tree(HostId(src), &route.bytes).unwrap();
        assert_eq!(by_table.check(), by_route.check());
    }
    // The sender's own port: the copy does not go back where it came from.
    let mut graph = ChannelGraph::new(&topology, Branching::Coupled);
    let missing = graph.add_table(HostId(0), &table[..1]).unwrap_err();
    assert_eq!(
        missing.to_string(),
        "a worm of the group reaches switch 1, which has no entry for it"
    );
    let ring = from_spec("ring:3").unwrap();
    let around = [0, 1, 2].map(|switch| TableEntry {
        switch: SwitchId(switch),
        ports: ring
            .links()
            .iter()
            .flat_map(|link| [(link.a, link.a_port), (link.b, link.b_port)])
            .filter(|(at, _)| *at == SwitchId(switch))
            .map(|(_, port)| port)
            .collect(),
    });
    let mut graph = ChannelGraph::new(&ring, Branching::Independent);
    let loops = graph.add_table(HostId(0), &around).unwrap_err().to_string();
    assert!(loops.starts_with("two branches of a tree route"), "{loops}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn any_number_of_multicasts_from_the_root_is_free_with_scheme_b(
        switches in 2usize..12,
        seed in any::<u64>(),
        sources in prop::collection::vec(any::<prop::sample::Index>(), 1..6),
    ) {
        let topology = irregular(&Irregular::of_itb(switches, seed)).unwrap();
        let mut graph = ChannelGraph::new(&topology, Branching::Interrupted);
        graph.add_routes(&Routes::plan(&topology, Algorithm::Osud, None).unwrap());
        for source in sources {
            let src = topology.hosts()[source.index(topology.hosts().len())].id;
            graph.add_broadcast(src, None).unwrap();
        }
        prop_assert!(graph.check().is_deadlock_free());
    }

    #[test]
    fn one_multicast_is_free_with_scheme_c_whatever_links_unicast_takes(
        switches in 2usize..12,
        seed in any::<u64>(),
        wanted in prop::collection::vec(any::<bool>(), 48),
        src in any::<prop::sample::Index>(),
    ) {
        let topology = irregular(&Irregular::of_itb(switches, seed)).unwrap();
        let tree_only = Routes::plan(&topology, Algorithm::TreeOnly, None).unwrap();
        let src = topology.hosts()[src.index(topology.hosts().len())].id;
        let paths: Vec<(HostId, Vec<u8>)> = topology
            .hosts()
            .iter()
            .zip(wanted)
            .filter(|(host, wanted)| *wanted && host.id != src)
            .map(|(host, _)| (host.id, tree_only.route(src, host.id).unwrap().ports))
            .collect();
        let mut graph = ChannelGraph::new(&topology, Branching::Flushed);
        graph.add_routes(&Routes::plan(&topology, Algorithm::Osud, None).unwrap());
        for route in encode_tree(&paths).unwrap() {
            graph.add_tree(src, &route.bytes).unwrap();
        }
        prop_assert!(graph.check().is_deadlock_free());
    }
}
