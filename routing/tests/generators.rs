//! Clos networks and dragonflies, counted by the formulas of their papers.

use crate::graphs;

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use wormcast_routing::generate::{
    Arrangement, Clos3, Dragonfly, KINDS, clos2, clos3, dragonfly, fat_tree, from_spec,
};
use wormcast_routing::topology::{Attachment, Topology};
use wormcast_wire::{PortId, SwitchId};

fn diameter(topology: &Topology) -> u32 {
    let switches = topology.switches().iter();
    switches
        .flat_map(|switch| graphs::distances(topology, switch.id).into_values())
        .max()
        .unwrap()
}

/// Links that a switch has, parallel ones each.
fn degrees(topology: &Topology) -> BTreeMap<SwitchId, usize> {
    let mut degrees: BTreeMap<SwitchId, usize> = topology
        .switches()
        .iter()
        .map(|switch| (switch.id, 0))
        .collect();
    for link in topology.links() {
        *degrees.get_mut(&link.a).unwrap() += 1;
        *degrees.get_mut(&link.b).unwrap() += 1;
    }
    degrees
}

fn shape(a: usize, p: usize, h: usize, groups: usize, arrangement: Arrangement) -> Dragonfly {
    Dragonfly {
        a,
        p,
        h,
        groups,
        arrangement,
    }
}

#[test]
fn dragonflies_have_the_sizes_of_their_paper() {
    for h in 1..=4 {
        let whole = Dragonfly::balanced(h);
        let (a, groups) = (2 * h, 2 * h * h + 1);
        assert_eq!((whole.a, whole.p, whole.groups), (a, h, groups));
        for arrangement in Arrangement::ALL {
            let topology = dragonfly(&Dragonfly {
                arrangement,
                ..whole
            })
            .unwrap();
            assert_eq!(topology.switches().len(), a * groups);
            assert_eq!(topology.hosts().len(), a * h * groups);
            let (local, global) = (groups * a * (a - 1) / 2, groups * (groups - 1) / 2);
            assert_eq!(topology.links().len(), local + global);
            let all = degrees(&topology);
            assert!(
                all.values().all(|degree| *degree == a - 1 + h),
                "{arrangement}"
            );
            // Kim et al. §3.1: local, global, local.
            assert_eq!(diameter(&topology), 3);
        }
    }
    // Kim et al. §3.1: radix 64 scales to 256K hosts, which is more than ids here; 72 hosts
    // in the example of Fig. 5: p = h = 2, a = 4, 9 groups.
    assert_eq!(from_spec("dragonfly:4:2:2").unwrap().hosts().len(), 72);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn every_pair_of_groups_has_as_many_links(
        a in 1usize..7,
        h in 1usize..5,
        p in 0usize..3,
        of in any::<prop::sample::Index>(),
        palmtree in any::<bool>(),
    ) {
        let groups = 1 + of.index(a * h + 1);
        let arrangement = Arrangement::ALL[usize::from(!palmtree)];
        let topology = dragonfly(&shape(a, p, h, groups, arrangement)).unwrap();
        let group = |id: SwitchId| usize::from(id.0) / a;
        let mut between: BTreeMap<(usize, usize), usize> = BTreeMap::new();
        for link in topology.links() {
            let (from, to) = (group(link.a).min(group(link.b)), group(link.a).max(group(link.b)));
            *between.entry((from, to)).or_default() += 1;
            let is_global = |port: PortId| usize::from(port.get()) >= p + a - 1;
            prop_assert_eq!(is_global(link.a_port), from != to);
            prop_assert_eq!(is_global(link.b_port), from != to);
        }
        for low in 0..groups {
            for high in low..groups {
                let found = between.get(&(low, high)).copied().unwrap_or(0);
                let wanted = if low == high { a * (a - 1) / 2 } else { a * h / (groups - 1) };
                prop_assert_eq!(found, wanted, "groups {} and {}", low, high);
            }
        }
        prop_assert!(degrees(&topology).values().all(|degree| *degree < a + h));
        prop_assert!(diameter(&topology) <= 3);
        prop_assert_eq!(topology.hosts().len(), a * p * groups);
    }

    #[test]
    fn clos_networks_join_what_they_should(
        pods in 1usize..5,
        leaves in 1usize..5,
        spines in 1usize..4,
        plane in 1usize..4,
        hosts in 0usize..4,
    ) {
        let cores = spines * plane;
        let topology = clos3(&Clos3 { pods, leaves, spines, cores, hosts }).unwrap();
        prop_assert_eq!(topology.switches().len(), pods * (leaves + spines) + cores);
        prop_assert_eq!(topology.hosts().len(), pods * leaves * hosts);
        let neighbours = graphs::neighbours(&topology);
        let first_spine = pods * leaves;
        let first_core = first_spine + pods * spines;
        let id = |number: usize| SwitchId(number as u16);
        for pod in 0..pods {
            let of_pod: BTreeSet<_> =
                (0..spines).map(|spine| id(first_spine + pod * spines + spine)).collect();
            for leaf in 0..leaves {
                prop_assert_eq!(&neighbours[&id(pod * leaves + leaf)], &of_pod);
            }
        }
        for core in 0..cores {
            let of_plane: BTreeSet<_> =
                (0..pods).map(|pod| id(first_spine + pod * spines + core / plane)).collect();
            prop_assert_eq!(&neighbours[&id(first_core + core)], &of_plane);
        }
        let links = pods * leaves * spines + pods * cores;
        prop_assert_eq!(topology.links().len(), links);
        prop_assert!(topology.hosts().iter().all(|host| usize::from(host.switch.0) < first_spine));
    }
}

#[test]
fn a_three_tier_fabric_as_large_as_elmos() {
    let topology = from_spec("clos3:12:48:4:192:48").unwrap();
    assert_eq!(topology.hosts().len(), 27_648);
    assert_eq!(topology.switches().len(), 576 + 48 + 192);
    assert_eq!(topology.links().len(), 576 * 4 + 48 * 48);
    let ports = |id: u16| topology.switches()[usize::from(id)].ports;
    assert_eq!((ports(0), ports(576), ports(624)), (52, 96, 12));
    let from_leaf = graphs::distances(&topology, SwitchId(0));
    assert_eq!(from_leaf[&SwitchId(1)], 2);
    assert_eq!(from_leaf[&SwitchId(575)], 4);
}

#[test]
fn a_fat_tree_is_a_clos_network_of_three_tiers() {
    for k in [2, 4, 6] {
        let half = k / 2;
        let same = clos3(&Clos3 {
            pods: k,
            leaves: half,
            spines: half,
            cores: half * half,
            hosts: half,
        });
        let (tree, same) = (fat_tree(k).unwrap(), same.unwrap());
        assert_eq!((tree.links(), tree.hosts()), (same.links(), same.hosts()));
        // Every switch uses all of its k ports.
        let hosts_at = |id| tree.hosts().iter().filter(|host| host.switch == id).count();
        assert!(
            degrees(&tree)
                .into_iter()
                .all(|(id, degree)| degree + hosts_at(id) == k)
        );
        assert_eq!(
            diameter(&tree),
            if k == 2 { 4 } else { 4.min(2 * k as u32) }
        );
    }
}

#[test]
fn leaves_and_spines_are_wired_by_number() {
    let topology = clos2(5, 3, 2).unwrap();
    assert_eq!((topology.switches().len(), topology.hosts().len()), (8, 10));
    assert_eq!(topology.links().len(), 15);
    assert_eq!(diameter(&topology), 2);
    for leaf in 0..5u8 {
        for spine in 0..3u8 {
            let port = |number| PortId::new(number).unwrap();
            assert_eq!(
                topology.attachment(SwitchId(leaf.into()), port(2 + spine)),
                Some(Attachment::Switch(
                    SwitchId(5 + u16::from(spine)),
                    port(leaf)
                ))
            );
        }
    }
}

/// A spec for every kind.
const EXAMPLES: [&str; 14] = [
    "testbed",
    "line:4",
    "ring:5",
    "star:4",
    "full-mesh:5",
    "torus:4x3",
    "unidirectional-torus:4",
    "mesh:3",
    "fat-tree:4",
    "clos2:4:2:3",
    "clos3:2:3:2:4:2",
    "dragonfly:4:2:2:7:consecutive",
    "shufflenet:2:3",
    "irregular:12:5",
];

#[test]
fn the_same_numbers_make_the_same_topology() {
    let kind = |spec: &str| spec.split(':').next().unwrap().to_owned();
    let kinds: BTreeSet<String> = KINDS.iter().map(|shape| kind(shape)).collect();
    assert_eq!(kinds, EXAMPLES.iter().map(|spec| kind(spec)).collect());
    for spec in EXAMPLES {
        let topology = from_spec(spec).unwrap();
        assert_eq!(topology, from_spec(spec).unwrap(), "{spec}");
        assert_eq!(topology.components(), 1, "{spec}");
    }
    assert_ne!(
        from_spec("irregular:12:5").unwrap(),
        from_spec("irregular:12:6").unwrap()
    );
    assert_ne!(
        from_spec("dragonfly:4:2:2:7:consecutive").unwrap(),
        from_spec("dragonfly:4:2:2:7:palmtree").unwrap()
    );
}

#[test]
fn numbers_out_of_bounds_are_refused() {
    for (spec, message) in [
        (
            "dragonfly:4:2:2:10",
            "dragonfly: a = 4, h = 2, 10 groups; a must be 1 or more and groups 1 to a·h + 1",
        ),
        (
            "dragonfly:0:2:2",
            "dragonfly: a = 0, h = 2, 1 groups; a must be 1 or more and groups 1 to a·h + 1",
        ),
        (
            "dragonfly:18446744073709551615:2:18446744073709551615",
            "dragonfly: 18446744073709551615 groups of 18446744073709551615 switches are more than",
        ),
        (
            "dragonfly:4:100:2:9:ring",
            "dragonfly: there is no arrangement \"ring\"; choices are palmtree, consecutive",
        ),
        (
            "dragonfly:200:60:10:2",
            "dragonfly: switch 0 would need port 254; ports are 0 to 253",
        ),
        (
            "dragonfly:40:300:1:2",
            "dragonfly: 300 hosts on each of 80 switches are more than 65535",
        ),
        ("clos2:0:2", "clos2: no leaves; it needs 1 or more"),
        ("clos2:4:0", "clos2: 0 spines; it needs 1 or more"),
        (
            "clos2:300:2",
            "clos2: switch 300 would need port 254; ports are 0 to 253",
        ),
        (
            "clos3:2:2:2:3",
            "clos3: 3 cores over 2 spines a pod; it needs 1 or more spines, and as cores a multiple \
             of them, 1 or more a plane",
        ),
        (
            "clos3:40:48:4:192:48",
            "clos3: 48 hosts on each of 1920 leaves are more than 65535",
        ),
    ] {
        let error = from_spec(spec).unwrap_err();
        assert!(error.to_string().starts_with(message), "{error}");
        assert_eq!(error.code(), "parameter");
    }
}
