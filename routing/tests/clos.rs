//! Groups in Clos networks: every member once, sizes as counted, tables where there is room.

use std::collections::BTreeSet;

use proptest::prelude::*;
use wormcast_routing::clos::layered::{self, Tables};
use wormcast_routing::clos::plan::{ClosPlanner, Limits, PlannedGroup};
use wormcast_routing::clos::{Clos, ClosError, ClosGroup, tree};
use wormcast_wire::HostId;
use wormcast_wire::tree_route::encode_tree;

const FREE: Limits = Limits {
    header_bytes: 255,
    worms: 1,
    entries: u32::MAX,
};

fn group(clos: Clos, hosts: &BTreeSet<u32>, source: u32) -> ClosGroup {
    let source = source % clos.host_count();
    let members = hosts
        .iter()
        .map(|host| host % clos.host_count())
        .filter(|host| *host != source)
        .collect::<BTreeSet<_>>();
    ClosGroup {
        source,
        members: members.into_iter().collect(),
    }
}

/// Hosts that the worms reach, those behind tables as the entries would have them.
fn reached(clos: Clos, group: &ClosGroup, plan: &PlannedGroup) -> Vec<u32> {
    let mut hosts = Vec::new();
    for worm in &plan.worms {
        let walk = layered::walk(clos, group.source, &worm.route).unwrap();
        let mut pods = walk.pods.clone();
        pods.sort_unstable();
        assert_eq!(pods, worm.tables.pods);
        let leaf_of = |host: &u32| clos.leaf_of(*host);
        let looked_up = worm.members.iter().filter(|host| {
            let leaf = leaf_of(host);
            walk.leaves.contains(&leaf)
                || (walk.pods.contains(&clos.pod_of(leaf)) && leaf != clos.leaf_of(group.source))
        });
        hosts.extend(looked_up);
        hosts.extend(walk.hosts);
    }
    hosts.sort_unstable();
    hosts
}

/// Distinct links of the paths from a source to members.
fn links(clos: Clos, source: u32, members: &[u32]) -> u64 {
    let leaf = clos.leaf_of(source);
    let mut links = BTreeSet::from([("host", source)]);
    for &member in members {
        let to = clos.leaf_of(member);
        if to != leaf {
            links.extend([("spine", 0), ("leaf", to)]);
        }
        if clos.pod_of(to) != clos.pod_of(leaf) {
            links.extend([("core", 0), ("pod", clos.pod_of(to))]);
        }
        links.insert(("member", member));
    }
    links.len() as u64
}

fn arbitrary_clos() -> impl Strategy<Value = Clos> {
    (1u16..8, 1u16..20, 1u16..64)
        .prop_map(|(pods, leaves, hosts)| Clos::new(pods, leaves, hosts).unwrap())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn each_member_is_reached_once_within_the_limits(
        clos in arbitrary_clos(),
        hosts in prop::collection::btree_set(any::<u32>(), 0..400),
        source in any::<u32>(),
        header_bytes in 64usize..300,
        worms in 1usize..4,
        entries in 0u32..2,
    ) {
        let group = group(clos, &hosts, source);
        let limits = Limits { header_bytes, worms, entries };
        let mut planner = ClosPlanner::new(clos, limits);
        let plan = planner.add(&group).unwrap();
        prop_assert_eq!(&reached(clos, &group, &plan), &group.members);
        for worm in &plan.worms {
            prop_assert!(worm.header_bytes() <= header_bytes);
        }
        prop_assert!(planner.leaf_entries().iter().all(|held| *held <= entries));
        prop_assert!(planner.pod_entries().iter().all(|held| *held <= entries));
        let used: u32 = planner.leaf_entries().iter().sum();
        prop_assert!(used == 0 || plan.worms.len() == 1);
        prop_assert_eq!(plan.ideal_links, links(clos, group.source, &group.members));
        let crossed: u64 = plan.worms.iter().map(|worm| links(clos, group.source, &worm.members)).sum();
        prop_assert_eq!(plan.links, crossed);
        prop_assert_eq!(plan.links == plan.ideal_links, plan.worms.len() == 1);
    }

    #[test]
    fn a_route_cut_short_or_changed_does_not_panic(
        clos in arbitrary_clos(),
        hosts in prop::collection::btree_set(any::<u32>(), 1..60),
        at in any::<prop::sample::Index>(),
        byte in any::<u8>(),
    ) {
        let group = group(clos, &hosts, 0);
        let mut route = layered::encode(clos, &group, &Tables::default());
        prop_assert!(layered::walk(clos, 0, &route[..route.len() - 1]).is_err());
        let at = at.index(route.len());
        route[at] = byte;
        let _ = layered::walk(clos, 0, &route);
    }

    #[test]
    fn tree_routes_are_as_long_as_the_encoder_makes_them(
        clos in arbitrary_clos(),
        hosts in prop::collection::btree_set(any::<u32>(), 1..60),
        source in any::<u32>(),
    ) {
        let group = group(clos, &hosts, source);
        let (up_to_spine, up_to_core) = (100, 101);
        let place = |host: u32| {
            let leaf = clos.leaf_of(host);
            (clos.pod_of(leaf), leaf, (host % clos.hosts_of_leaf()) as u8)
        };
        let (own_pod, own_leaf, _) = place(group.source);
        let paths: Vec<(HostId, Vec<u8>)> = group
            .members
            .iter()
            .map(|&host| {
                let (pod, leaf, port) = place(host);
                let leaf_port = (leaf % clos.leaves_of_pod()) as u8;
                let path = match (leaf == own_leaf, pod == own_pod) {
                    (true, _) => vec![port],
                    (_, true) => vec![up_to_spine, leaf_port, port],
                    _ => vec![up_to_spine, up_to_core, pod as u8, leaf_port, port],
                };
                (HostId(host as u16), path)
            })
            .collect();
        let cost = tree::cost(clos, &group);
        let routes = encode_tree(&paths).unwrap();
        if routes.len() == 1 {
            prop_assert_eq!((cost.worms, cost.bytes), (1, routes[0].bytes.len()));
        } else if !routes.is_empty() {
            prop_assert!(cost.worms > 1);
        }
    }
}

#[test]
fn bytes_of_a_known_group() {
    // Pod 0, leaf 0 sends to a host beside it, one on leaf 1 and two on leaf 2 of pod 1.
    let clos = Clos::new(2, 4, 8).unwrap();
    let group = ClosGroup {
        source: 0,
        members: vec![3, 8 + 5, 48, 49],
    };
    let mut planner = ClosPlanner::new(clos, FREE);
    let plan = planner.add(&group).unwrap();
    // Bitmaps of four leaves are shorter than lists; a set of two hosts is a bitmap of one byte.
    let route = [
        3, // host 3
        2,
        0b0010,
        5, // bitmap of pod 0: leaf 1, its host 5
        1,
        1,
        4,
        2,
        0b0100,
        0b1000_0000,
        0b0011, // one pod: 1, four bytes: leaf 2, hosts 0 and 1
    ];
    assert_eq!(plan.worms[0].route, route);
    // Host to leaf, leaf to spine, to core, to pod 1, two leaves, four hosts.
    assert_eq!((plan.links, plan.ideal_links), (10, 10));
    let walk = layered::walk(clos, 0, &route).unwrap();
    // All; without the host set; without the section too; pod 1's section; the leaves' sets.
    assert_eq!(walk.carried, 11 + 10 + 7 + 4 + 1 + 2);
}

#[test]
fn what_does_not_fit_is_cut_or_looked_up() {
    let clos = Clos::new(12, 48, 48).unwrap();
    // One host on every leaf.
    let group = ClosGroup {
        source: 47,
        members: (0..clos.leaf_count()).map(|leaf| leaf * 48).collect(),
    };
    let looked_up = ClosPlanner::new(clos, FREE).add(&group).unwrap();
    assert_eq!(looked_up.worms.len(), 1);
    assert!(!looked_up.worms[0].tables.pods.is_empty());
    let full = Limits { entries: 0, ..FREE };
    let cut = ClosPlanner::new(clos, full).add(&group).unwrap();
    assert!(cut.worms.len() > 1);
    assert_eq!(cut.worms[0].tables, Tables::default());
    assert_eq!(reached(clos, &group, &cut), group.members);
    // Just so many pods in tables that the header fits, whether the source's pod has members or not.
    for source in [0, 11 * 48 * 48] {
        for header_bytes in 64..300 {
            let limits = Limits {
                header_bytes,
                ..FREE
            };
            let group = ClosGroup {
                source,
                members: (1..11 * 48).map(|leaf| leaf * 48 + 1).collect(),
            };
            let plan = ClosPlanner::new(clos, limits).add(&group).unwrap();
            assert_eq!(plan.worms.len(), 1);
            assert!(plan.header_bytes() <= header_bytes);
        }
    }
    // Leaves full of hosts: one entry saves six bytes there.
    let group = ClosGroup {
        source: 0,
        members: (1..48 * 48).collect(),
    };
    let mut planner = ClosPlanner::new(clos, FREE);
    let leaves = planner.add(&group).unwrap();
    assert!(leaves.worms[0].tables.pods.is_empty());
    let entries: u32 = planner.leaf_entries().iter().sum();
    assert_eq!(entries as usize, leaves.worms[0].tables.leaves.len());
}

#[test]
fn wrong_groups_are_told_apart() {
    let size = |what, found| Err(ClosError::Size { what, found });
    assert_eq!(Clos::new(0, 1, 1), size("pods", 0));
    assert_eq!(Clos::new(1, 65, 1), size("leaves of a pod", 65));
    assert_eq!(Clos::new(1, 1, 70), size("hosts of a leaf", 70));
    let clos = Clos::new(2, 2, 2).unwrap();
    let check = |source, members: &[u32]| {
        let members = members.to_vec();
        clos.check(&ClosGroup { source, members })
    };
    assert_eq!(check(0, &[1, 7]), Ok(()));
    let unknown = |host| Err(ClosError::UnknownHost { host, hosts: 8 });
    assert_eq!(check(8, &[1]), unknown(8));
    assert_eq!(check(0, &[9]), unknown(9));
    let misplaced = |host| Err(ClosError::Members { host });
    assert_eq!(check(0, &[2, 2]), misplaced(2));
    assert_eq!(check(0, &[3, 2]), misplaced(2));
    assert_eq!(check(2, &[1, 2]), misplaced(2));
}
