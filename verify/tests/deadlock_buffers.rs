//! The deadlock check with buffers of hosts that pass worms on: members that forward (WORM
//! §4) and in-transit hosts (ITB §III.B); groups read from files.

use crate::graphs;

use graphs::route;
use proptest::prelude::*;
use wormcast_routing::generate::{Irregular, from_spec, irregular};
use wormcast_routing::routes::{Algorithm, Routes};
use wormcast_routing::structure::{CircuitVariant, RootedTree, Structure, TreeVariant, buffers};
use wormcast_verify::deadlock::{
    Branching, Buffers, ChannelGraph, Forward, Forwarding, Model, Resource, Verdict, Worm,
    read_groups,
};
use wormcast_wire::{BufferClass, HostId, SwitchId};

fn sends(routes: &Routes<'_>, structure: &Structure) -> Vec<Forward> {
    let edges = structure.edges().into_iter();
    edges
        .map(|edge| Forward {
            route: routes.route(edge.from, edge.to).unwrap(),
            class: edge.class,
        })
        .collect()
}

fn with_buffers(buffers: Buffers, forwarding: Forwarding) -> Model {
    Model {
        buffers,
        forwarding,
        ..Model::default()
    }
}

#[test]
fn circuits_need_two_classes_of_buffers_and_room_before_they_send() {
    // WORM Figs. 4, 6 and 7: hosts 0 to 3, on two switches.
    let topology = from_spec("line:2:2").unwrap();
    let routes = Routes::plan(&topology, Algorithm::Osud, None).unwrap();
    let order: Vec<HostId> = [0, 1, 2, 3].map(HostId).to_vec();
    let check = |model| {
        let mut graph = ChannelGraph::new(&topology, model);
        graph.add_routes(&routes);
        for &src in &order {
            let circuit = Structure::circuit(order.clone(), src, CircuitVariant::OmitLast).unwrap();
            graph.add_forwards(src, &sends(&routes, &circuit)).unwrap();
        }
        graph.check()
    };
    for forwarding in Forwarding::ALL {
        let spill = check(with_buffers(Buffers::Spill, forwarding));
        assert!(spill.is_deadlock_free());
    }
    let Verdict::DeadlockFree { order: taken, .. } =
        check(with_buffers(Buffers::Classes, Forwarding::Store))
    else {
        panic!("two classes are enough (WORM §4)")
    };
    let place = |host, class| {
        let wanted = Resource::Buffer {
            host: HostId(host),
            class: Some(class),
        };
        taken.iter().position(|taken| *taken == wanted).unwrap()
    };
    assert!(place(2, BufferClass::One) < place(3, BufferClass::One));
    assert!(place(3, BufferClass::One) < place(0, BufferClass::Two));
    assert!(place(0, BufferClass::Two) < place(1, BufferClass::Two));
    // One pool: the wrap from the highest to the lowest closes the circle (Fig. 6).
    let Verdict::Deadlock { cycle, proven, .. } =
        check(with_buffers(Buffers::Shared, Forwarding::Store))
    else {
        panic!("one pool is not enough")
    };
    assert!(proven);
    assert_eq!(cycle.len(), 4);
    for (place, wait) in cycle.iter().enumerate() {
        let Resource::Buffer { host, class: None } = wait.resource else {
            panic!("{wait:?}")
        };
        let next = cycle[(place + 1) % 4].resource;
        let Worm::Forwarded { from, to, .. } = wait.worm else {
            panic!("{wait:?}")
        };
        assert_eq!(
            (
                from,
                Resource::Buffer {
                    host: to,
                    class: None
                }
            ),
            (host, next)
        );
    }
    // Worms that wait for buffers in the channels meet other worms there (Fig. 4).
    let Verdict::Deadlock { cycle, .. } =
        check(with_buffers(Buffers::Classes, Forwarding::CutThrough))
    else {
        panic!("worms hold links while they wait for buffers")
    };
    let kinds = |kind: &dyn Fn(&Resource) -> bool| cycle.iter().any(|wait| kind(&wait.resource));
    assert!(kinds(&|held| matches!(held, Resource::Buffer { .. })));
    assert!(kinds(&|held| matches!(held, Resource::Channel(_))));
}

#[test]
fn circuits_and_trees_that_are_climbed_do_not_share_two_classes() {
    // WORM §4 and §6 use class 1 both ways: circuits towards higher ids, trees that every
    // host floods towards the root, which has the lowest. Each kind is free by itself.
    let topology = from_spec("line:2:2").unwrap();
    let routes = Routes::plan(&topology, Algorithm::Osud, None).unwrap();
    let order = [0, 3].map(HostId).to_vec();
    let circuit = Structure::circuit(order.clone(), HostId(0), CircuitVariant::OmitLast).unwrap();
    let rooted = RootedTree::build(&order, 2, |a, b| routes.distance(a, b).unwrap()).unwrap();
    let tree = Structure::tree(rooted, HostId(3), TreeVariant::Unordered).unwrap();
    let check = |structures: &[&Structure]| {
        let model = with_buffers(Buffers::Classes, Forwarding::Store);
        let mut graph = ChannelGraph::new(&topology, model);
        for structure in structures {
            graph
                .add_forwards(structure.source(), &sends(&routes, structure))
                .unwrap();
        }
        graph.check()
    };
    assert!(check(&[&circuit]).is_deadlock_free());
    assert!(check(&[&tree]).is_deadlock_free());
    let Verdict::Deadlock { cycle, .. } = check(&[&circuit, &tree]) else {
        panic!("each holds what the other wants")
    };
    let class = Some(BufferClass::One);
    let held: Vec<Resource> = cycle.iter().map(|wait| wait.resource).collect();
    assert_eq!(held.len(), 2);
    for host in [0, 3].map(HostId) {
        assert!(held.contains(&Resource::Buffer { host, class }));
    }
}

#[test]
fn in_transit_hosts_with_little_room_wait_for_each_other() {
    // Minimal routes around a ring of six, cut at two hosts each: 0 over 1 and 2 to 3, …
    let topology = from_spec("ring:6").unwrap();
    let around = |start: u16| {
        let switches: Vec<u16> = (start..start + 4).map(|id| id % 6).collect();
        let mut route = route(&topology, &switches);
        for (place, &host) in switches[1..3].iter().enumerate() {
            route.switches.insert(2 * place + 1, SwitchId(host));
            route.ports.insert(2 * place + 1, 0);
            route.in_transit.push(HostId(host));
        }
        route
    };
    let check = |model, starts: &[u16]| {
        let mut graph = ChannelGraph::new(&topology, model);
        for &start in starts {
            graph.add_route(&around(start)).unwrap();
        }
        graph.check()
    };
    let all = [0, 1, 2, 3, 4, 5];
    for forwarding in Forwarding::ALL {
        let spill = with_buffers(Buffers::Spill, forwarding);
        assert!(check(spill, &all).is_deadlock_free());
        let Verdict::Deadlock { cycle, .. } =
            check(with_buffers(Buffers::Shared, forwarding), &all)
        else {
            panic!("six buffers in a ring, each waiting for the next")
        };
        let buffers = cycle
            .iter()
            .filter(|wait| matches!(wait.resource, Resource::Buffer { .. }));
        assert_eq!(buffers.count(), 6);
    }
    // Only the journey from 4 over 5 and 0 descends: it changes to class 2 there.
    let classes = with_buffers(Buffers::Classes, Forwarding::Store);
    let Verdict::DeadlockFree { order, .. } = check(classes, &all) else {
        panic!("one descent is what two classes are for")
    };
    let second = order.iter().filter(|taken| {
        matches!(
            taken,
            Resource::Buffer {
                class: Some(BufferClass::Two),
                ..
            }
        )
    });
    // 4 over 5 and 0; 5 over 0 and 1 begins with the descent.
    assert_eq!(second.count(), 2);
}

#[test]
fn files_of_groups_are_read_and_what_is_wrong_is_named() {
    let topology = from_spec("line:2:2").unwrap();
    let routes = Routes::plan(&topology, Algorithm::Osud, None).unwrap();
    let between = |from, to| routes.route(from, to).ok().into_iter().collect();
    let check = |text: &str| -> Result<bool, String> {
        let model = with_buffers(Buffers::Shared, Forwarding::Store);
        let mut graph = ChannelGraph::new(&topology, model);
        for group in read_groups(text).map_err(|error| error.to_string())? {
            let added = graph.add_group(&group, &between);
            added.map_err(|error| error.to_string())?;
        }
        Ok(graph.check().is_deadlock_free())
    };
    let plan = |source: u16, first: u16, last: u16| {
        format!(
            "{{\"source\":{source},\"edges\":[{{\"from\":{first},\"to\":{last},\"class\":1,\
             \"step\":2}},{{\"from\":{source},\"to\":{first},\"class\":1,\"step\":1}}]}}"
        )
    };
    assert_eq!(check(&plan(0, 1, 2)), Ok(true));
    assert_eq!(check(&format!("[{}]", plan(0, 1, 2))), Ok(true));
    let both = format!("{{\"groups\":[{},{}]}}", plan(0, 1, 2), plan(0, 2, 1));
    assert_eq!(check(&both), Ok(false));
    assert_eq!(
        check(
            "{\"source\":0,\"entries\":[{\"switch\":0,\"ports\":[1,2]},{\"switch\":1,\"ports\":[0,2]}]}"
        ),
        Ok(true)
    );
    assert_eq!(
        check("{\"source\":1,\"routes\":[{\"route\":\"0000ff\"}]}"),
        Ok(true)
    );
    for (text, message) in [
        ("{", "groups: EOF while parsing"),
        ("{\"groups\":1}", "groups: 1 is not a list"),
        ("[3]", "groups[0]: 3 is not a plan of a group"),
        (
            "{\"source\":0}",
            "group: has no edges, entries, to_root or routes",
        ),
        (
            "{\"source\":0,\"edges\":[{\"from\":0,\"to\":1,\"class\":3}]}",
            "group.edges[0].class: 3 is not an integer from 1 to 2",
        ),
        (
            "{\"source\":0,\"edges\":[{\"from\":0,\"to\":9,\"class\":1}]}",
            "group: there is no host 9",
        ),
        (
            "[{\"source\":0,\"edges\":[{\"from\":1,\"to\":2,\"class\":1}]}]",
            "groups[0]: host 1 sends a message of host 0 to host 2 before it has received it",
        ),
        ("{\"source\":7,\"edges\":[]}", "group: there is no host 7"),
        (
            "{\"source\":0,\"routes\":[{\"route\":\"0g\"}]}",
            "group.routes[0].route: \"0g\" is not an even number of hexadecimal digits",
        ),
        (
            "{\"source\":0,\"routes\":[{\"route\":\"0700ff\"}]}",
            "group: nothing hangs on port 7 of switch 0",
        ),
        (
            "{\"source\":0,\"entries\":[{\"switch\":5,\"ports\":[]}]}",
            "group: topology: there is no switch 5",
        ),
        (
            "{\"source\":0,\"entries\":[{\"switch\":0,\"ports\":[254]}]}",
            "group.entries[0].ports: 254 is not a port from 0 to 253",
        ),
        (
            "{\"source\":2,\"to_root\":\"0203ff\"}",
            "group: nothing hangs on port 3 of switch 0",
        ),
    ] {
        let error = check(text).unwrap_err();
        assert!(error.starts_with(message), "{text}: {error}");
    }
    let no_way = |_, _| Vec::new();
    let group = &read_groups(&plan(0, 1, 2)).unwrap()[0];
    let mut graph = ChannelGraph::new(&topology, Branching::Independent);
    assert_eq!(
        graph.add_group(group, &no_way).unwrap_err().to_string(),
        "group: there is no route from host 0 to host 1"
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn requests_for_buffers_are_as_the_structures_have_them(
        seed in any::<u64>(),
        groups in prop::collection::vec(
            (prop::collection::btree_set(0u16..16, 2..8), any::<prop::sample::Index>(), 0usize..7),
            1..4,
        ),
    ) {
        let topology = irregular(&Irregular::of_itb(4, seed)).unwrap();
        let routes = Routes::plan(&topology, Algorithm::Osud, None).unwrap();
        let mut graph = ChannelGraph::new(&topology, with_buffers(Buffers::Classes, Forwarding::Store));
        graph.add_routes(&routes);
        let mut structures = Vec::new();
        // Class 1 leads up in the order of hosts, except where a tree is climbed to its root.
        let (mut ascends, mut climbs, mut agree) = (false, false, true);
        for (members, source, kind) in groups {
            let order: Vec<HostId> = members.into_iter().map(HostId).collect();
            let source = order[source.index(order.len())];
            let hops = |a, b| routes.distance(a, b).unwrap();
            let rooted = RootedTree::build(&order, 2, hops).unwrap();
            ascends |= kind < 3;
            climbs |= kind == 4;
            let structure = match kind {
                0 => Structure::repeat(order, source),
                1 => Structure::circuit(order, source, CircuitVariant::OmitLast),
                2 => Structure::circuit(order, source, CircuitVariant::Return),
                3 => Structure::circuit(order, source, CircuitVariant::Ordered),
                4 => Structure::tree(rooted, source, TreeVariant::Unordered),
                5 => Structure::tree(rooted, source, TreeVariant::Ordered),
                _ => {
                    // In an order of its own, which may disagree with that of the others.
                    agree = false;
                    let turned: Vec<HostId> = order.iter().rev().copied().collect();
                    Structure::k_binomial(turned, source, 2)
                }
            }.unwrap();
            graph.add_forwards(source, &sends(&routes, &structure)).unwrap();
            structures.push(structure);
        }
        let free = graph.check().is_deadlock_free();
        prop_assert_eq!(free, buffers::find_cycle(&structures).is_none());
        prop_assert!(free || !agree || ascends && climbs, "two classes are enough (WORM §4)");
    }
}
