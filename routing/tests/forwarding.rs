//! Next hops on larger networks, and forwarding tables, against route by route.

use crate::graphs;

use graphs::{Plain, connected_graphs, wire};
use proptest::prelude::*;
use wormcast_routing::generate::{Irregular, from_spec, irregular};
use wormcast_routing::routes::{Algorithm, NO_PORT, Routes};
use wormcast_routing::topology::{Damage, Topology};
use wormcast_wire::{HostId, SwitchId};

/// The entry of every switch with a host is the first byte of that host's routes.
fn check_tables(topology: &Topology, algorithm: Algorithm) {
    let routes = Routes::plan(topology, algorithm, None).unwrap();
    let tables = routes.forwarding_tables();
    let hosts = topology.hosts();
    assert_eq!(
        tables.as_bytes().len(),
        topology.switches().len() * hosts.len()
    );
    for (to, dst) in (0..).zip(hosts) {
        for src in hosts {
            let at = topology.switch_index(src.switch).unwrap();
            let port = tables.port(at, to);
            if src.id == dst.id {
                assert_eq!(port, dst.port.get());
                continue;
            }
            let first = routes
                .route(src.id, dst.id)
                .map_or(NO_PORT, |route| route.ports[0]);
            assert_eq!(port, first, "{} {} to {}", algorithm.name(), src.id, dst.id);
        }
    }
    for (at, _) in (0..).zip(topology.switches()) {
        assert_eq!(tables.row(at).len(), hosts.len());
    }
    let rows = (0..topology.switches().len() as u32).flat_map(|at| tables.row(at).to_vec());
    assert!(rows.eq(tables.as_bytes().iter().copied()));
}

#[test]
fn tables_agree_with_the_routes_on_small_graphs() {
    for switches in 1..=4 {
        for topology in connected_graphs(switches, false) {
            for algorithm in Algorithm::ALL {
                check_tables(&topology, algorithm);
            }
        }
    }
}

#[test]
fn tables_agree_with_the_routes_on_known_networks() {
    // The line is longer than a worm may go, the star has more links than a word has bits,
    // and switches without hosts lie on the way in the fat tree.
    for spec in [
        "line:70",
        "ring:140",
        "star:150",
        "fat-tree:6",
        "torus:5:3",
        "full-mesh:12:2",
    ] {
        let topology = from_spec(spec).unwrap();
        for algorithm in [Algorithm::Osud, Algorithm::TreeOnly, Algorithm::Omit] {
            check_tables(&topology, algorithm);
        }
    }
    check_tables(&from_spec("line:70").unwrap(), Algorithm::Rrmit);
}

#[test]
fn hosts_need_not_be_numbered_by_their_switches() {
    let topology = from_spec("irregular:80:2:2:4").unwrap();
    let mut file: serde_json::Value = serde_json::from_str(&topology.to_json()).unwrap();
    // 7 and the 160 hosts have no factor in common, so that every id is taken once.
    for host in file["hosts"].as_array_mut().unwrap() {
        host["id"] = serde_json::json!(host["id"].as_u64().unwrap() * 7 % 160);
    }
    let mixed = Topology::from_json(&file.to_string()).unwrap();
    assert_ne!(mixed.hosts(), topology.hosts());
    check_tables(&mixed, Algorithm::Osud);
}

#[test]
fn what_cannot_be_reached_has_no_port() {
    let topology = from_spec("line:5:2").unwrap();
    let damage = Damage {
        switches: [SwitchId(2)].into(),
        ..Damage::default()
    };
    let left = topology.without(&damage).unwrap();
    for algorithm in [
        Algorithm::Osud,
        Algorithm::TreeOnly,
        Algorithm::Omit,
        Algorithm::Rmit,
    ] {
        check_tables(&left, algorithm);
        let routes = Routes::plan(&left, algorithm, None).unwrap();
        let tables = routes.forwarding_tables();
        let far = left.host_index(HostId(9)).unwrap();
        assert_eq!(tables.port(0, far), NO_PORT);
        let reached = tables.as_bytes().iter().filter(|&&port| port != NO_PORT);
        assert_eq!(reached.count(), 4 * 8 / 2);
    }
}

/// Shortest legal lengths, and one way on for each pair: no switch is left without.
fn check_lengths(topology: &Topology, root: Option<SwitchId>) {
    let routes = Routes::plan(topology, Algorithm::Osud, root).unwrap();
    let plain = Plain::new(topology, routes.updown().root(topology));
    let hosts = topology.hosts();
    for src in hosts {
        let shortest = plain.shortest_to_all(src.switch);
        for dst in hosts.iter().filter(|dst| dst.id != src.id) {
            let crossed = routes.distance(src.id, dst.id).unwrap();
            assert_eq!(
                crossed,
                Some(shortest[&dst.switch] + 1),
                "{} to {}",
                src.id,
                dst.id
            );
        }
    }
    let again = Routes::plan(topology, Algorithm::Osud, root).unwrap();
    assert_eq!(
        again.forwarding_tables().as_bytes(),
        routes.forwarding_tables().as_bytes()
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(6))]

    #[test]
    fn lengths_on_random_networks(switches in 30usize..129, seed in any::<u64>(),
                                  links in 2usize..14, root in any::<Option<prop::sample::Index>>()) {
        let parameters = Irregular { switches, ports: 16, hosts: 1, links, seed };
        let topology = irregular(&parameters).unwrap();
        let root = root.map(|root| topology.switches()[root.index(switches)].id);
        check_lengths(&topology, root);
    }

    #[test]
    fn tables_on_random_networks(switches in 60usize..200, seed in any::<u64>(),
                                 hosts in 0usize..3, links in 2usize..5) {
        let parameters = Irregular { switches, ports: 8, hosts, links, seed };
        let topology = irregular(&parameters).unwrap();
        for algorithm in [Algorithm::Osud, Algorithm::TreeOnly, Algorithm::Omit] {
            check_tables(&topology, algorithm);
        }
    }
}

#[test]
fn lengths_of_more_links_than_a_byte_counts() {
    // Under the root at one end of a line of 300, and of a ring whose far side goes down.
    check_lengths(&from_spec("line:300").unwrap(), Some(SwitchId(0)));
    check_lengths(&from_spec("ring:300").unwrap(), None);
}

#[test]
fn lengths_where_switches_have_more_links_than_a_word_has_bits() {
    check_lengths(&from_spec("full-mesh:140").unwrap(), None);
    // Two hubs under one root, each joined to all 100 leaves: equals beyond bit 64.
    let links: Vec<(u16, u16)> = [(0, 1), (0, 2)]
        .into_iter()
        .chain((1..3).flat_map(|hub| (3..103).map(move |leaf| (hub, leaf))))
        .collect();
    let mut parts = wire(103, 1, &links);
    parts
        .switches
        .iter_mut()
        .for_each(|switch| switch.ports = 200);
    check_lengths(&Topology::new(parts).unwrap(), Some(SwitchId(0)));
}

/// The load of the busiest channel is no more than by the lowest port always.
#[test]
fn no_busier_than_a_naive_choice() {
    for spec in [
        "irregular:16:3",
        "irregular:64:2",
        "irregular:128:1:1:8",
        "torus:8",
        "fat-tree:6",
        "mesh:7",
    ] {
        let topology = from_spec(spec).unwrap();
        let routes = Routes::plan(&topology, Algorithm::Osud, None).unwrap();
        let naive = naive_largest(&topology, &routes);
        let largest = routes.channel_loads().unwrap().largest();
        assert!(largest <= naive, "{spec}: {largest}, naively {naive}");
    }
}

fn naive_largest(topology: &Topology, routes: &Routes<'_>) -> u32 {
    use std::collections::BTreeMap;
    let plain = Plain::new(topology, routes.updown().root(topology));
    let neighbours = graphs::neighbours(topology);
    let mut loads: BTreeMap<(SwitchId, SwitchId), u32> = BTreeMap::new();
    for dst in topology.hosts() {
        // Lengths of (switch, whether it may go up), backwards from the destination.
        let mut lengths = BTreeMap::from([((dst.switch, false), 0), ((dst.switch, true), 0)]);
        let mut queue: Vec<(SwitchId, bool)> = lengths.keys().copied().collect();
        let mut next = 0;
        while let Some(&(at, may_go_up)) = queue.get(next) {
            next += 1;
            for &from in &neighbours[&at] {
                // What arrives going up may go on up; what arrives going down may not.
                let up = plain.is_up(from, at);
                if up != may_go_up && at != dst.switch {
                    continue;
                }
                for phase in [true, false] {
                    if up && !phase || lengths.contains_key(&(from, phase)) {
                        continue;
                    }
                    lengths.insert((from, phase), lengths[&(at, may_go_up)] + 1);
                    queue.push((from, phase));
                }
            }
        }
        for src in topology.hosts().iter().filter(|src| src.id != dst.id) {
            let (mut at, mut may_go_up) = (src.switch, true);
            while at != dst.switch {
                let on = topology.links().iter().filter_map(|link| match at {
                    at if link.a == at => Some((link.a_port, link.b)),
                    at if link.b == at => Some((link.b_port, link.a)),
                    _ => None,
                });
                let left = lengths[&(at, may_go_up)];
                let shortest = on.filter(|&(_, to)| {
                    let up = plain.is_up(at, to);
                    (may_go_up || !up)
                        && lengths
                            .get(&(to, up))
                            .is_some_and(|&after| after + 1 == left)
                });
                let (_, to) = shortest.min().expect("a way on");
                *loads.entry((at, to)).or_default() += 1;
                (at, may_go_up) = (to, plain.is_up(at, to));
            }
        }
    }
    loads.into_values().max().unwrap_or(0)
}
