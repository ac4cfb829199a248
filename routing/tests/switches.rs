//! Groups that the switches replicate: every scheme under every guard, on every kind of
//! topology, against plain models of what the switches do.

// Not of the library: it may do IO.
#![allow(
    clippy::disallowed_macros,
    clippy::disallowed_methods,
    clippy::disallowed_types
)]

use crate::graphs;

use std::collections::{BTreeMap, BTreeSet};

use graphs::Plain;
use graphs::tree_walk::walk_tree;
use proptest::prelude::*;
use serde_json::{Value, json};
use wormcast_routing::generate::from_spec;
use wormcast_routing::group::{
    Delivery, GroupRequest, Guard, SwitchDelivery, SwitchMode, plan_group,
};
use wormcast_routing::routes::{Algorithm, Routes};
use wormcast_routing::topology::{Attachment, Topology};
use wormcast_routing::updown::UpDown;
use wormcast_wire::{HostId, PortId, SwitchId};

const KINDS: [&str; 11] = [
    "testbed",
    "line:7:2",
    "ring:8:2",
    "star:6:3",
    "full-mesh:6:2",
    "torus:4:2",
    "torus:3x3x2",
    "mesh:4:2",
    "fat-tree:4",
    "shufflenet:2:3",
    "irregular:16:5",
];

fn request(source: u16, members: &[u16], mode: SwitchMode, guard: Guard) -> GroupRequest {
    let parameters = json!({"guard": guard.name(), "group": 7});
    let request = json!({"scheme": mode.scheme().name(), "source": source, "members": members,
                         "parameters": parameters});
    GroupRequest::from_json(&request.to_string()).unwrap()
}

fn deliver(
    routes: &Routes<'_>,
    source: u16,
    members: &[u16],
    mode: SwitchMode,
    guard: Guard,
) -> SwitchDelivery {
    let plan = plan_group(routes, &request(source, members, mode, guard)).unwrap();
    match plan.delivery {
        Delivery::Switches(delivery) => *delivery,
        Delivery::Hosts { .. } => panic!("switches replicate"),
    }
}

/// Copies that reached hosts, the switches each crossed, and how many links all crossed.
#[derive(Default)]
struct Spread {
    reached: Vec<(HostId, Vec<SwitchId>)>,
    links: u64,
}

/// A GROUP worm: each switch copies it to the ports of its entry, but the one it came by.
fn spread_by_table(
    topology: &Topology,
    entries: &BTreeMap<SwitchId, Vec<PortId>>,
    from: HostId,
) -> Spread {
    let host = topology.host(from).unwrap();
    let mut spread = Spread {
        links: 1,
        ..Spread::default()
    };
    let mut arriving = vec![(host.switch, host.port, vec![host.switch])];
    while let Some((switch, came_by, crossed)) = arriving.pop() {
        assert!(crossed.len() <= 64, "a worm goes round");
        for &port in entries[&switch].iter().filter(|port| **port != came_by) {
            spread.links += 1;
            match topology.attachment(switch, port).expect("a port in use") {
                Attachment::Host(host) => spread.reached.push((host, crossed.clone())),
                Attachment::Switch(next, back) => {
                    let mut crossed = crossed.clone();
                    crossed.push(next);
                    arriving.push((next, back, crossed));
                }
            }
        }
    }
    spread
}

/// A BROADCAST worm: along its route, then to hosts and down tree links.
fn spread_by_broadcast(
    topology: &Topology,
    updown: &UpDown,
    from: HostId,
    to_root: &[u8],
) -> Spread {
    let mut at = topology.host(from).unwrap().switch;
    let mut crossed = vec![at];
    for &port in to_root {
        let port = PortId::new(port).unwrap();
        match topology.attachment(at, port).expect("a port in use") {
            Attachment::Switch(next, _) => at = next,
            Attachment::Host(_) => panic!("the way to the root ends at a host"),
        }
        crossed.push(at);
    }
    let mut spread = Spread {
        links: 1 + to_root.len() as u64,
        ..Spread::default()
    };
    let down = updown.tree_links(topology);
    let mut arriving = vec![(at, crossed)];
    while let Some((at, crossed)) = arriving.pop() {
        for host in topology.hosts().iter().filter(|host| host.switch == at) {
            spread.links += 1;
            spread.reached.push((host.id, crossed.clone()));
        }
        for link in down.iter().filter(|link| link.a == at) {
            spread.links += 1;
            let mut crossed = crossed.clone();
            crossed.push(link.b);
            arriving.push((link.b, crossed));
        }
    }
    spread
}

/// The switches that a copy of a TREE worm crosses to each host.
fn crossed_by_tree(topology: &Topology, from: HostId, path: &[u8]) -> Vec<SwitchId> {
    let mut at = topology.host(from).unwrap().switch;
    let mut crossed = vec![at];
    for &port in &path[..path.len() - 1] {
        match topology.attachment(at, PortId::new(port).unwrap()) {
            Some(Attachment::Switch(next, _)) => at = next,
            other => panic!("{other:?} on the way"),
        }
        crossed.push(at);
    }
    crossed
}

fn spread_by_tree(topology: &Topology, from: HostId, delivery: &SwitchDelivery) -> Spread {
    let mut spread = Spread::default();
    for route in &delivery.routes {
        assert!(route.bytes.len() <= 255);
        let walk = walk_tree(topology, from, &route.bytes).unwrap();
        assert_eq!(walk.losses, []);
        spread.links += 1 + walk.channels.len() as u64;
        let paths = wormcast_wire::tree_route::decode_tree(&route.bytes).unwrap();
        assert_eq!(paths.len(), walk.deliveries.len());
        for (host, path) in route.hosts.iter().zip(&paths) {
            assert!(walk.deliveries.iter().any(|copy| copy.host == *host));
            let crossed = crossed_by_tree(topology, from, path);
            spread.reached.push((*host, crossed));
        }
    }
    spread
}

fn table_of(delivery: &SwitchDelivery) -> BTreeMap<SwitchId, Vec<PortId>> {
    let table: BTreeMap<_, _> = delivery
        .entries
        .iter()
        .map(|entry| (entry.switch, entry.ports.clone()))
        .collect();
    assert_eq!(table.len(), delivery.entries.len(), "one entry a switch");
    assert!(delivery.entries.iter().all(|entry| entry.group == 7));
    table
}

/// Whether all links between these switches are of the spanning tree.
fn keeps_to_tree(topology: &Topology, updown: &UpDown, crossed: &[SwitchId]) -> bool {
    let parent = |switch| updown.parent(topology, switch).unwrap();
    crossed
        .windows(2)
        .all(|pair| parent(pair[0]) == Some(pair[1]) || parent(pair[1]) == Some(pair[0]))
}

/// Checks a plan against the models: each member once, nobody else but where copies are
/// filtered, the links counted, and what the guard asks of every way.
fn check(topology: &Topology, source: u16, members: &[u16], mode: SwitchMode, guard: Guard) {
    let routes = Routes::plan(topology, Algorithm::Osud, None).unwrap();
    let updown = routes.updown();
    let root = updown.root(topology);
    let plain = Plain::new(topology, root);
    let delivery = deliver(&routes, source, members, mode, guard);
    let mut expected: BTreeSet<HostId> = members.iter().map(|&host| HostId(host)).collect();
    let everyone: BTreeSet<HostId> = expected.iter().copied().chain([HostId(source)]).collect();
    expected.remove(&HostId(source));
    let mut sender = HostId(source);
    let mut before = 0;
    let spread = match mode {
        SwitchMode::Tree => spread_by_tree(topology, sender, &delivery),
        SwitchMode::Table => {
            if let Some(relay) = &delivery.relay {
                assert_eq!(guard, Guard::B);
                before = 1 + relay.route.len() as u64;
                let to = routes.route(sender, relay.host).unwrap();
                assert_eq!(to.ports, relay.route);
                sender = relay.host;
            }
            spread_by_table(topology, &table_of(&delivery), sender)
        }
        SwitchMode::Broadcast if expected.is_empty() => {
            assert_eq!(delivery.cost, Default::default(), "nothing is sent");
            return;
        }
        SwitchMode::Broadcast => {
            let to_root = delivery.to_root.as_ref().unwrap();
            spread_by_broadcast(topology, updown, sender, to_root)
        }
    };
    let context = format!("{mode:?} {guard:?} from {source} to {members:?}");
    let mut wanted: Vec<HostId> = Vec::new();
    let mut filtered = 0;
    for (host, crossed) in &spread.reached {
        let served_already = delivery
            .relay
            .as_ref()
            .is_some_and(|relay| relay.host == *host);
        assert!(
            !served_already,
            "{context}: the relay gets its own worm back"
        );
        if expected.contains(host) {
            wanted.push(*host)
        } else {
            filtered += 1;
        }
        assert!(
            plain.is_legal(crossed),
            "{context}: {crossed:?} turns up again"
        );
        match guard {
            Guard::A => assert!(keeps_to_tree(topology, updown, crossed), "{context}"),
            Guard::B => {
                // Down from the root, or from the relay, along the spanning tree alone.
                assert!(keeps_to_tree(topology, updown, crossed), "{context}");
                if mode != SwitchMode::Table {
                    assert!(
                        crossed.contains(&root),
                        "{context}: {crossed:?} misses the root"
                    );
                }
            }
            Guard::C => {}
        }
    }
    wanted.extend(
        delivery
            .relay
            .iter()
            .map(|relay| relay.host)
            .filter(|host| expected.contains(host)),
    );
    wanted.sort();
    let expected: Vec<HostId> = expected.into_iter().collect();
    assert_eq!(wanted, expected, "{context}");
    assert_eq!(filtered, delivery.cost.filtered, "{context}");
    if mode == SwitchMode::Tree {
        assert_eq!(filtered, 0, "{context}");
    }
    if mode == SwitchMode::Table && guard != Guard::B {
        // Whoever of the members sends, the others are reached, by legal ways.
        let table = table_of(&delivery);
        for &sender in &everyone {
            let spread = spread_by_table(topology, &table, sender);
            let mut reached: Vec<HostId> = spread.reached.iter().map(|copy| copy.0).collect();
            reached.push(sender);
            reached.sort();
            assert_eq!(
                reached,
                everyone.iter().copied().collect::<Vec<_>>(),
                "{context}"
            );
            assert!(spread.reached.iter().all(|copy| plain.is_legal(&copy.1)));
        }
    }
    if !expected.is_empty() {
        assert_eq!(
            spread.links + before,
            delivery.cost.link_crossings,
            "{context}"
        );
        assert!(
            delivery.cost.crossings_bound <= delivery.cost.link_crossings,
            "{context}"
        );
    }
}

#[test]
fn reaches_each_member_once_on_every_kind_under_every_guard() {
    for kind in KINDS {
        let topology = from_spec(kind).unwrap();
        let hosts: Vec<u16> = topology.hosts().iter().map(|host| host.id.0).collect();
        let every_third: Vec<u16> = hosts.iter().copied().step_by(3).collect();
        for members in [&hosts[..], &every_third[..], &hosts[..1]] {
            for source in [hosts[0], hosts[hosts.len() - 1]] {
                for mode in SwitchMode::ALL {
                    for guard in Guard::ALL {
                        check(&topology, source, members, mode, guard);
                    }
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(80))]

    #[test]
    fn reaches_each_member_once_in_random_groups(
        kind in prop::sample::select(&KINDS[..]),
        picked in prop::collection::vec(any::<prop::sample::Index>(), 1..24),
        source in any::<prop::sample::Index>(),
        mode in prop::sample::select(&SwitchMode::ALL[..]),
        guard in prop::sample::select(&Guard::ALL[..]),
    ) {
        let topology = from_spec(kind).unwrap();
        let hosts = topology.hosts();
        let members: BTreeSet<u16> =
            picked.iter().map(|pick| hosts[pick.index(hosts.len())].id.0).collect();
        let members: Vec<u16> = members.into_iter().collect();
        let source = hosts[source.index(hosts.len())].id.0;
        check(&topology, source, &members, mode, guard);
    }
}

#[test]
fn the_root_can_be_named_and_is_where_multicast_starts() {
    let topology = from_spec("torus:4:2").unwrap();
    let routes = Routes::plan(&topology, Algorithm::Osud, Some(SwitchId(9))).unwrap();
    let delivery = deliver(&routes, 0, &[0, 1, 5], SwitchMode::Tree, Guard::B);
    for (_, crossed) in spread_by_tree(&topology, HostId(0), &delivery).reached {
        assert!(crossed.contains(&SwitchId(9)), "{crossed:?}");
    }
}

#[test]
fn all_groups_come_down_the_same_way_under_guard_b() {
    // Hence two multicasts reach two common members in the order in which they left the root.
    let topology = from_spec("irregular:24:9").unwrap();
    let routes = Routes::plan(&topology, Algorithm::Osud, None).unwrap();
    let root = routes.updown().root(&topology);
    let mut ways: BTreeMap<HostId, Vec<SwitchId>> = BTreeMap::new();
    for (source, members) in [
        (0, vec![5, 40, 77]),
        (90, vec![5, 41, 77, 60]),
        (33, vec![40, 5]),
    ] {
        for mode in [SwitchMode::Tree, SwitchMode::Broadcast] {
            let delivery = deliver(&routes, source, &members, mode, Guard::B);
            assert!(delivery.cost.total_order);
            let spread = match mode {
                SwitchMode::Tree => spread_by_tree(&topology, HostId(source), &delivery),
                _ => spread_by_broadcast(
                    &topology,
                    routes.updown(),
                    HostId(source),
                    delivery.to_root.as_ref().unwrap(),
                ),
            };
            for (host, crossed) in spread.reached {
                let at = crossed.iter().position(|switch| *switch == root).unwrap();
                let down = crossed[at..].to_vec();
                assert_eq!(ways.entry(host).or_insert_with(|| down.clone()), &down);
            }
        }
    }
}

#[test]
fn a_message_of_several_worms_has_no_place_in_the_order() {
    let topology = from_spec("irregular:64:1").unwrap();
    let routes = Routes::plan(&topology, Algorithm::Osud, None).unwrap();
    let members: Vec<u16> = (0..256).collect();
    let by_tree = deliver(&routes, 0, &members, SwitchMode::Tree, Guard::B);
    assert!(by_tree.cost.worms > 1);
    assert!(!by_tree.cost.total_order);
    let by_table = deliver(&routes, 0, &members, SwitchMode::Table, Guard::B);
    assert_eq!(by_table.cost.worms, 1);
    assert!(by_table.cost.total_order);
}

#[test]
fn trees_of_guard_c_never_cross_more_links_and_mostly_fewer() {
    let (mut spanning, mut legal, mut bound) = (0, 0, 0);
    for kind in ["irregular:32:1", "irregular:32:2", "torus:6", "fat-tree:4"] {
        let topology = from_spec(kind).unwrap();
        let routes = Routes::plan(&topology, Algorithm::Osud, None).unwrap();
        let hosts = topology.hosts().len() as u16;
        for (step, source) in [(3, 0), (5, 7), (7, hosts - 1)] {
            let members: Vec<u16> = (0..hosts).step_by(step).collect();
            for mode in [SwitchMode::Tree, SwitchMode::Table] {
                let a = deliver(&routes, source, &members, mode, Guard::A).cost;
                let c = deliver(&routes, source, &members, mode, Guard::C).cost;
                assert!(
                    c.link_crossings <= a.link_crossings,
                    "{kind} {mode:?} {c:?} {a:?}"
                );
                assert_eq!(c.crossings_bound, a.crossings_bound);
                spanning += a.link_crossings - a.crossings_bound;
                legal += c.link_crossings - c.crossings_bound;
                bound += c.crossings_bound;
            }
        }
    }
    // Of what the spanning trees cross beyond the bound, a third at least is saved.
    assert!(3 * legal <= 2 * spanning, "{legal} {spanning} over {bound}");
}

/// Fewest links of any tree that joins these switches: all sets of switches are tried.
fn fewest_links(topology: &Topology, wanted: &BTreeSet<SwitchId>) -> u64 {
    let neighbours = graphs::neighbours(topology);
    let ids: Vec<SwitchId> = topology.switches().iter().map(|switch| switch.id).collect();
    let mut fewest = u64::MAX;
    for chosen in 0u32..1 << ids.len() {
        let inside: BTreeSet<SwitchId> = (0..ids.len())
            .filter(|at| chosen >> at & 1 == 1)
            .map(|at| ids[at])
            .collect();
        if !wanted.is_subset(&inside) || inside.len() as u64 > fewest {
            continue;
        }
        let mut joined = BTreeSet::from([*inside.first().unwrap()]);
        let mut open: Vec<SwitchId> = joined.iter().copied().collect();
        while let Some(at) = open.pop() {
            for next in neighbours[&at].intersection(&inside) {
                if joined.insert(*next) {
                    open.push(*next);
                }
            }
        }
        if joined == inside {
            fewest = fewest.min(inside.len() as u64 - 1);
        }
    }
    fewest
}

#[test]
fn the_bound_is_below_the_fewest_links_there_are_and_trees_are_near_it() {
    let (mut crossed, mut needed) = (0, 0);
    for kind in [
        "irregular:9:3:1:3",
        "torus:3",
        "mesh:3",
        "ring:8",
        "line:7",
        "full-mesh:6",
    ] {
        let topology = from_spec(kind).unwrap();
        let routes = Routes::plan(&topology, Algorithm::Osud, None).unwrap();
        for members in [
            vec![0, 3],
            vec![1, 2, 5],
            vec![0, 2, 4, 5],
            (0..6).collect(),
        ] {
            let wanted = members
                .iter()
                .map(|&host| topology.host(HostId(host)).unwrap().switch);
            let wanted: BTreeSet<SwitchId> = wanted.collect();
            let fewest = fewest_links(&topology, &wanted);
            let cost = deliver(&routes, members[0], &members, SwitchMode::Tree, Guard::C).cost;
            let hosts = members.len() as u64;
            assert!(cost.crossings_bound <= hosts + fewest, "{kind} {members:?}");
            assert!(cost.link_crossings >= hosts + fewest, "{kind} {members:?}");
            assert!(
                2 * (cost.crossings_bound - hosts) >= fewest,
                "{kind}: no bound to speak of"
            );
            crossed += cost.link_crossings - hosts;
            needed += fewest;
        }
    }
    // Legal trees may need more than any trees do.
    assert!(
        10 * crossed <= 11 * needed,
        "{crossed} links where {needed} would do"
    );
}

#[test]
fn refuses_members_farther_than_a_worm_goes() {
    let topology = from_spec("line:70").unwrap();
    let routes = Routes::plan(&topology, Algorithm::Osud, None).unwrap();
    for mode in SwitchMode::ALL {
        for guard in Guard::ALL {
            let plan = plan_group(&routes, &request(0, &[0, 5, 69], mode, guard));
            if (mode, guard) == (SwitchMode::Table, Guard::B) {
                assert!(plan.is_ok(), "the relay in the middle is near both ends");
                continue;
            }
            let error = plan.err().unwrap();
            let text = error.to_string();
            assert!(text.contains("69"), "{mode:?} {guard:?}: {text}");
            assert!(text.contains("at most 64"), "{mode:?} {guard:?}: {text}");
        }
    }
    // To the root in the middle, 34 links, and 29 back to switch 5: as far as a worm goes.
    let near = request(0, &[0, 5, 40], SwitchMode::Broadcast, Guard::B);
    let plan = plan_group(&routes, &near).unwrap();
    assert!(matches!(plan.delivery, Delivery::Switches(delivery) if delivery.cost.hops == 64));
}

#[test]
fn refuses_what_is_no_guard_measure_or_group() {
    let refuse = |parameters: Value| {
        let request = json!({"scheme": "switch", "source": 0, "members": [1],
                             "parameters": parameters});
        GroupRequest::from_json(&request.to_string())
            .unwrap_err()
            .to_string()
    };
    assert_eq!(
        refuse(json!({"least": "bends"})),
        "there is no least \"bends\"; choices are links, depth"
    );
    assert_eq!(
        refuse(json!({"guard": "D"})),
        "there is no guard \"D\"; choices are A, B, C"
    );
    assert_eq!(
        refuse(json!({"group": 255})),
        "parameters.group: group 255 is broadcast; any other from 0 to 65535 will do"
    );
}

#[test]
fn a_plan_says_in_its_file_what_it_costs_and_asks_for() {
    let topology = from_spec("testbed").unwrap();
    let routes = Routes::plan(&topology, Algorithm::Osud, None).unwrap();
    let file = |mode, guard| -> Value {
        let plan = plan_group(&routes, &request(0, &[0, 1, 2, 3], mode, guard)).unwrap();
        serde_json::from_str(&plan.to_json()).unwrap()
    };
    let tree = file(SwitchMode::Tree, Guard::A);
    // WORM Fig. 2: port, length, sub-route; the marker ends the list.
    assert_eq!(tree["route"], "010004040000".to_owned() + "0100ff");
    assert_eq!(tree["header_bytes"], 12 + 9);
    assert_eq!(tree["link_crossings"], 5);
    assert_eq!(tree["crossings_bound"], 5);
    assert_eq!(tree["excess"], 0.0);
    assert_eq!(tree["unicast"], "tree-only");
    assert_eq!(tree["backward_reset"], false);
    let table = file(SwitchMode::Table, Guard::C);
    assert_eq!(table["header_bytes"], 14);
    assert_eq!(table["unicast"], "osud");
    assert_eq!(table["backward_reset"], true);
    let entries = table["entries"].as_array().unwrap();
    assert_eq!(entries.len(), 2);
    assert!(
        entries
            .iter()
            .all(|entry| entry["group"] == 7 && entry["ports"].as_array().unwrap().len() == 3)
    );
    let broadcast = file(SwitchMode::Broadcast, Guard::B);
    assert_eq!(broadcast["total_order"], true);
    assert!(broadcast["filtered"].as_u64().unwrap() >= 1);
}
