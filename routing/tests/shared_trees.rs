//! Trees that all members of a group share: legal from every member, least as claimed, spread.

// Not of the library: it may do IO.
#![allow(
    clippy::disallowed_macros,
    clippy::disallowed_methods,
    clippy::disallowed_types
)]

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use proptest::prelude::*;
use wormcast_routing::generate::from_spec;
use wormcast_routing::group::{Least, SHARED_TREES_MAX, SharedTree, shared_trees};
use wormcast_routing::topology::{Attachment, Topology};
use wormcast_routing::updown::UpDown;
use wormcast_wire::{HostId, PortId, SwitchId};

const KINDS: [&str; 9] = [
    "testbed",
    "line:6:2",
    "ring:8:2",
    "full-mesh:6:2",
    "torus:4:2",
    "mesh:4:2",
    "fat-tree:4",
    "irregular:16:5",
    "irregular:24:9",
];

fn trees(
    topology: &Topology,
    members: &[HostId],
    least: Least,
    turn: u32,
    count: u32,
) -> Vec<SharedTree> {
    let updown = UpDown::new(topology, None).unwrap();
    shared_trees(topology, &updown, members, least, turn, count).unwrap()
}

/// Copies a worm as switches do that know only their ports, and gives how often each host gets it.
fn spread(topology: &Topology, tree: &SharedTree, sender: HostId) -> BTreeMap<HostId, u32> {
    let ports: BTreeMap<SwitchId, &BTreeSet<PortId>> = tree.ports(topology).collect();
    let host = topology.host(sender).unwrap();
    let mut arriving = vec![(host.switch, host.port)];
    let mut got = BTreeMap::new();
    let mut copies = 0;
    while let Some((switch, from)) = arriving.pop() {
        copies += 1;
        assert!(copies < 10_000, "the tree is a loop");
        let own = ports
            .get(&switch)
            .into_iter()
            .flat_map(|ports| ports.iter());
        for &port in own.filter(|port| **port != from) {
            match topology.attachment(switch, port) {
                Some(Attachment::Switch(next, back)) => arriving.push((next, back)),
                Some(Attachment::Host(host)) => *got.entry(host).or_default() += 1,
                None => panic!("switch {switch} copies to port {port}, which leads nowhere"),
            }
        }
    }
    got
}

/// Whether a port path goes up, then down.
fn is_legal(topology: &Topology, updown: &UpDown, from: HostId, path: &[u8]) -> bool {
    let mut at = topology.host(from).unwrap().switch;
    let mut went_down = false;
    for &byte in &path[..path.len() - 1] {
        let port = PortId::new(byte).unwrap();
        let here = topology.switch_index(at).unwrap();
        let arcs = topology.arcs_of(here).iter();
        let mut numbered = arcs.zip(topology.arc_first(here)..);
        let (arc, index) = numbered.find(|(arc, _)| arc.port == port).unwrap();
        if updown.is_up(index) && went_down {
            return false;
        }
        went_down |= !updown.is_up(index);
        at = topology.switch_id(arc.to);
    }
    true
}

fn check(topology: &Topology, members: &[HostId], least: Least, turn: u32, count: u32) {
    let updown = UpDown::new(topology, None).unwrap();
    let found = trees(topology, members, least, turn, count);
    assert!((1..=count as usize).contains(&found.len()));
    let different: BTreeSet<&SharedTree> = found.iter().collect();
    assert_eq!(different.len(), found.len(), "no tree twice");
    for tree in &found {
        for &sender in members {
            let others = members.iter().filter(|host| **host != sender);
            let once: BTreeMap<HostId, u32> = others.map(|&host| (host, 1)).collect();
            assert_eq!(spread(topology, tree, sender), once, "from {sender}");
            let paths = tree.paths_from(topology, sender).unwrap();
            assert!(paths.iter().map(|path| path.0).eq(once.keys().copied()));
            for (host, path) in &paths {
                assert!(
                    is_legal(topology, &updown, sender, path),
                    "{sender} to {host}"
                );
            }
        }
    }
}

/// Least links down from a switch that reaches all members' switches, over all switches.
fn least_depth(topology: &Topology, members: &[HostId]) -> u32 {
    let updown = UpDown::new(topology, None).unwrap();
    let wanted: BTreeSet<u32> = members
        .iter()
        .map(|&host| topology.switch_of(topology.host_index(host).unwrap()))
        .collect();
    let mut best = u32::MAX;
    for top in 0..topology.switch_count() as u32 {
        let mut depth = BTreeMap::from([(top, 0u32)]);
        let mut queue = VecDeque::from([top]);
        while let Some(at) = queue.pop_front() {
            let arcs = topology.arcs_of(at).iter().zip(topology.arc_first(at)..);
            for (arc, index) in arcs {
                if !updown.is_up(index) && !depth.contains_key(&arc.to) {
                    depth.insert(arc.to, depth[&at] + 1);
                    queue.push_back(arc.to);
                }
            }
        }
        if wanted.iter().all(|switch| depth.contains_key(switch)) {
            let deepest = wanted.iter().map(|switch| depth[switch]).max().unwrap();
            best = best.min(deepest);
        }
    }
    best
}

fn drawn(topology: &Topology, draws: &[prop::sample::Index]) -> Vec<HostId> {
    let hosts = topology.hosts();
    let picked: BTreeSet<HostId> = draws.iter().map(|draw| draw.get(hosts).id).collect();
    picked.into_iter().collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn every_member_reaches_all_others_once_by_legal_ways(
        kind in prop::sample::select(&KINDS[..]),
        draws in prop::collection::vec(any::<prop::sample::Index>(), 1..20),
        least in prop::sample::select(&Least::ALL[..]),
        turn in 0u32..40,
        count in 1u32..=SHARED_TREES_MAX,
    ) {
        let topology = from_spec(kind).unwrap();
        check(&topology, &drawn(&topology, &draws), least, turn, count);
    }

    /// The first of turn 0 is the best; a quarter more is the most that any has.
    #[test]
    fn the_first_is_as_low_as_any_tree_of_legal_links_can_be(
        kind in prop::sample::select(&KINDS[..]),
        draws in prop::collection::vec(any::<prop::sample::Index>(), 2..20),
    ) {
        let topology = from_spec(kind).unwrap();
        let members = drawn(&topology, &draws);
        let updown = UpDown::new(&topology, None).unwrap();
        let found = trees(&topology, &members, Least::Depth, 0, SHARED_TREES_MAX);
        let least = least_depth(&topology, &members);
        prop_assert_eq!(found[0].depth(&topology, &updown), least);
        for tree in &found {
            prop_assert!(4 * tree.depth(&topology, &updown) <= 5 * least);
        }
    }

    #[test]
    fn a_tree_of_least_links_has_no_more_than_the_spanning_tree(
        kind in prop::sample::select(&KINDS[..]),
        draws in prop::collection::vec(any::<prop::sample::Index>(), 2..20),
    ) {
        let topology = from_spec(kind).unwrap();
        let members = drawn(&topology, &draws);
        let updown = UpDown::new(&topology, None).unwrap();
        let own = trees(&topology, &members, Least::Links, 0, 1)[0].links(&topology);
        let along = spanning_links(&topology, &updown, &members);
        prop_assert!(own <= along, "{} links where the spanning tree has {}", own, along);
    }
}

/// Links of the spanning tree between the members' switches.
fn spanning_links(topology: &Topology, updown: &UpDown, members: &[HostId]) -> u32 {
    let ids = |host: HostId| topology.host(host).unwrap().switch;
    let mut wanted: BTreeMap<SwitchId, u32> = BTreeMap::new();
    for &member in members {
        *wanted.entry(ids(member)).or_default() += 1;
    }
    let all = members.len() as u32;
    let mut links = updown.tree_links(topology);
    links.reverse();
    let mut used = 0;
    for link in links {
        let below = wanted.get(&link.b).copied().unwrap_or(0);
        used += u32::from(below > 0 && below < all);
        *wanted.entry(link.a).or_default() += below;
    }
    used
}

/// Groups of the same members that come one after another take different trees, and together use
/// more links than one tree has.
#[test]
fn turns_spread_groups_over_links() {
    for kind in ["torus:4:1", "irregular:24:9", "irregular:16:5"] {
        let topology = from_spec(kind).unwrap();
        let members: Vec<HostId> = topology
            .hosts()
            .iter()
            .step_by(3)
            .map(|host| host.id)
            .collect();
        let one = trees(&topology, &members, Least::Links, 0, 1)[0].clone();
        let mut used = BTreeSet::new();
        let mut different = BTreeSet::new();
        for turn in 0..8 {
            let tree = trees(&topology, &members, Least::Links, turn, 1)[0].clone();
            for (switch, ports) in tree.ports(&topology) {
                used.extend(ports.iter().map(|&port| (switch, port)));
            }
            different.insert(tree);
        }
        let of_one: usize = one.ports(&topology).map(|(_, ports)| ports.len()).sum();
        assert!(different.len() >= 2, "{kind}: {} trees", different.len());
        assert!(
            used.len() > of_one,
            "{kind}: {} ports, {of_one} of one",
            used.len()
        );
    }
}

#[test]
fn members_that_no_links_join_have_no_tree() {
    let topology = from_spec("testbed").unwrap();
    let updown = UpDown::new(&topology, None).unwrap();
    let unknown = shared_trees(&topology, &updown, &[HostId(999)], Least::Links, 0, 1);
    assert!(unknown.unwrap_err().to_string().contains("999"));
    assert!(shared_trees(&topology, &updown, &[], Least::Links, 0, 1).is_err());
}
