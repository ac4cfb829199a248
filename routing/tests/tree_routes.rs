//! TREE routes: round trips, walks through modelled switches, splits, golden errors.

use crate::graphs;

use graphs::tree_walk::walk_tree;
use std::collections::BTreeSet;

use proptest::prelude::*;
use wormcast_routing::generate::{Irregular, full_mesh, irregular, line, star, testbed};
use wormcast_routing::routes::{Algorithm, Routes};
use wormcast_routing::topology::Topology;
use wormcast_wire::HostId;
use wormcast_wire::tree_route::{
    BRANCHES_MAX, TreeDecodeError, branches, decode_tree, encode_tree,
};

fn paths(topology: &Topology, src: HostId, members: &[HostId]) -> Vec<(HostId, Vec<u8>)> {
    let routes = Routes::plan(topology, Algorithm::TreeOnly, None).unwrap();
    members
        .iter()
        .map(|&dst| (dst, routes.route(src, dst).unwrap().ports))
        .collect()
}

/// Every member gets one copy, nobody else any, nothing is lost, and no link carries the
/// worm twice unless it had to be split.
fn check_reaches(topology: &Topology, src: HostId, members: &[HostId]) -> usize {
    let paths = paths(topology, src, members);
    let routes = encode_tree(&paths).unwrap();
    let mut reached = Vec::new();
    for route in &routes {
        assert!(route.bytes.len() <= 255);
        let walk = walk_tree(topology, src, &route.bytes).unwrap();
        assert_eq!(walk.losses, []);
        let links: BTreeSet<_> = walk.channels.iter().collect();
        assert_eq!(
            links.len(),
            walk.channels.len(),
            "a link carries a byte twice"
        );
        let mut here: Vec<HostId> = walk.deliveries.iter().map(|copy| copy.host).collect();
        for copy in &walk.deliveries {
            assert!(copy.route.is_empty(), "a host gets an empty route");
            let path = &paths.iter().find(|(host, _)| *host == copy.host).unwrap().1;
            assert_eq!(copy.hops, path.len());
        }
        here.sort();
        let mut named = route.hosts.clone();
        named.sort();
        assert_eq!(here, named, "the hosts named are the hosts reached");
        reached.extend(here);
    }
    reached.sort();
    let mut expected = members.to_vec();
    expected.sort();
    assert_eq!(reached, expected);
    let mut decoded: Vec<Vec<u8>> = routes
        .iter()
        .flat_map(|route| decode_tree(&route.bytes).unwrap())
        .collect();
    decoded.sort();
    let mut given: Vec<Vec<u8>> = paths.into_iter().map(|(_, path)| path).collect();
    given.sort();
    assert_eq!(decoded, given);
    routes.len()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(120))]

    #[test]
    fn exactly_the_members_are_reached(
        switches in 2usize..40,
        seed in any::<u64>(),
        src in any::<prop::sample::Index>(),
        wanted in prop::collection::vec(any::<bool>(), 160),
    ) {
        let topology = irregular(&Irregular::of_itb(switches, seed)).unwrap();
        let src = topology.hosts()[src.index(topology.hosts().len())].id;
        let members: Vec<HostId> = topology
            .hosts()
            .iter()
            .zip(wanted)
            .filter(|(host, wanted)| *wanted && host.id != src)
            .map(|(host, _)| host.id)
            .collect();
        check_reaches(&topology, src, &members);
    }

    #[test]
    fn any_paths_come_back(
        paths in prop::collection::btree_set(prop::collection::vec(0u8..=253, 3), 1..80),
        mut short in prop::collection::btree_set(0u8..=253, 0..20),
    ) {
        // Paths of one length do not end within each other; short ones are kept apart.
        short.retain(|port| paths.iter().all(|path| path[0] != *port));
        let all: Vec<Vec<u8>> =
            paths.iter().cloned().chain(short.iter().map(|port| vec![*port])).collect();
        let named: Vec<(HostId, &[u8])> =
            all.iter().enumerate().map(|(at, path)| (HostId(at as u16), path.as_slice())).collect();
        let routes = encode_tree(&named).unwrap();
        let mut back = Vec::new();
        for route in &routes {
            prop_assert!(route.bytes.len() <= 255);
            let decoded = decode_tree(&route.bytes).unwrap();
            for (host, path) in route.hosts.iter().zip(&decoded) {
                prop_assert_eq!(&all[usize::from(host.0)], path);
            }
            back.extend(decoded);
        }
        let (back, all): (BTreeSet<_>, BTreeSet<_>) = (back.into_iter().collect(), all.into_iter().collect());
        prop_assert_eq!(back, all);
    }

    #[test]
    fn any_bytes_are_decoded_or_refused(route in prop::collection::vec(0u8..=255, 0..255)) {
        if let Ok(paths) = decode_tree(&route) {
            let named: Vec<(HostId, Vec<u8>)> =
                paths.into_iter().enumerate().map(|(at, path)| (HostId(at as u16), path)).collect();
            prop_assert_eq!(&encode_tree(&named).unwrap()[0].bytes, &route);
        }
    }

    #[test]
    fn damaged_routes_are_decoded_or_refused(
        wanted in prop::collection::vec(any::<bool>(), 31),
        at in any::<prop::sample::Index>(),
        byte in any::<u8>(),
    ) {
        let topology = irregular(&Irregular::of_itb(8, 3)).unwrap();
        let members: Vec<HostId> = (1..32u16).zip(&wanted).filter(|(_, wanted)| **wanted).map(|(host, _)| HostId(host)).collect();
        for route in encode_tree(&paths(&topology, HostId(0), &members)).unwrap() {
            let mut bytes = route.bytes;
            let at = at.index(bytes.len());
            bytes[at] = byte;
            let whole = decode_tree(&bytes);
            let walk = walk_tree(&topology, HostId(0), &bytes).unwrap();
            if whole.is_err() {
                prop_assert!(!walk.losses.is_empty() || walk.deliveries.iter().any(|copy| !copy.route.is_empty()));
            }
        }
    }
}

#[test]
fn encodes_as_the_specification_says() {
    // Host 0 of the testbed to host 1 on the same switch, and hosts 2 and 3 on the next.
    let topology = testbed();
    let members = [HostId(1), HostId(2), HostId(3)];
    let routes = encode_tree(&paths(&topology, HostId(0), &members)).unwrap();
    assert_eq!(routes.len(), 1);
    assert_eq!(routes[0].bytes, [1, 0, 4, 4, 0, 0, 1, 0, 0xFF]);
    assert_eq!(routes[0].hosts, members);
    let copies: Vec<(u8, Vec<u8>)> = branches(&routes[0].bytes)
        .unwrap()
        .map(|branch| (branch.port.get(), branch.copy_route()))
        .collect();
    assert_eq!(copies, [(1, vec![]), (4, vec![0, 0, 1, 0, 0xFF])]);
}

#[test]
fn splits_where_a_route_is_too_long() {
    let topology = irregular(&Irregular::of_itb(64, 1)).unwrap();
    let members: Vec<HostId> = topology.hosts()[1..].iter().map(|host| host.id).collect();
    let routes = check_reaches(&topology, HostId(0), &members);
    // 255 hosts and 63 links: 2 · 318 + 1 bytes would be needed in one route.
    assert!((3..=6).contains(&routes), "{routes} routes");
}

/// Worms, and links they cross with the source's, when routes are filled one after another
/// in order of ports.
fn fill_in_order(paths: &[(HostId, Vec<u8>)]) -> (usize, usize) {
    let mut paths: Vec<&Vec<u8>> = paths.iter().map(|(_, path)| path).collect();
    paths.sort();
    let mut worms: Vec<BTreeSet<&[u8]>> = vec![BTreeSet::new()];
    for path in paths {
        let beginnings = (1..=path.len()).map(|end| &path[..end]);
        let mut with = worms.last().unwrap().clone();
        with.extend(beginnings.clone());
        if fits(&with) {
            *worms.last_mut().unwrap() = with;
        } else {
            worms.push(beginnings.collect());
        }
    }
    (
        worms.len(),
        worms.len() + worms.iter().map(BTreeSet::len).sum::<usize>(),
    )
}

/// Whether branches, each given by its path, make one route.
fn fits(branches: &BTreeSet<&[u8]>) -> bool {
    let siblings = |of: &&[u8]| {
        let same =
            |other: &&&[u8]| other.len() == of.len() && other[..of.len() - 1] == of[..of.len() - 1];
        branches.iter().filter(same).count()
    };
    2 * branches.len() < 255
        && branches
            .iter()
            .all(|branch| siblings(branch) <= BRANCHES_MAX)
}

fn worms_and_links(paths: &[(HostId, Vec<u8>)]) -> (usize, usize) {
    let routes = encode_tree(paths).unwrap();
    let links = routes
        .iter()
        .map(|route| (route.bytes.len() - 1) / 2 + 1)
        .sum();
    (routes.len(), links)
}

/// What no split undercuts, and what this one stays within: see tree_route/split.rs.
fn check_bounds(paths: &[(HostId, Vec<u8>)]) {
    let branches: BTreeSet<&[u8]> = paths
        .iter()
        .flat_map(|(_, path)| (1..=path.len()).map(|end| &path[..end]))
        .collect();
    let deepest = paths.iter().map(|(_, path)| path.len()).max().unwrap();
    let (worms, links) = worms_and_links(paths);
    let naive = fill_in_order(paths);
    assert!((worms, links) <= naive, "{worms} {links} {naive:?}");
    assert!(worms >= branches.len().div_ceil(127));
    assert!(links >= branches.len() + worms);
    assert!(links <= branches.len() + worms + (worms - 1) * (deepest - 1));
}

#[test]
fn subtrees_that_fit_are_not_cut() {
    // 12 switches of 15 hosts are 192 branches: two routes of 6 switches each, where
    // filling in order cuts the eighth switch in two.
    let paths: Vec<(HostId, Vec<u8>)> = (0..180u16)
        .map(|host| (HostId(host), vec![(host / 15) as u8, (host % 15) as u8]))
        .collect();
    assert_eq!(fill_in_order(&paths), (2, 195));
    assert_eq!(worms_and_links(&paths), (2, 194));
    // Subtrees of 80, 40, 80 and 40 branches pair up only out of order of ports.
    let mut paths: Vec<(HostId, Vec<u8>)> = Vec::new();
    for (port, hosts) in [(0, 74), (1, 37), (2, 74), (3, 37)] {
        for host in 0..hosts {
            paths.push((HostId(paths.len() as u16), vec![port, host / 15, host % 15]));
        }
    }
    assert_eq!(worms_and_links(&paths).0, 2);
    check_bounds(&paths);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(6))]

    #[test]
    fn a_split_is_no_worse_than_filling_in_order(
        hosts in prop::collection::btree_set((0u8..20, 0u8..6, 0u8..18), 100..400),
        shallow in prop::collection::btree_set((20u8..40, 0u8..40), 0..60),
    ) {
        let deep = hosts.into_iter().map(|(a, b, c)| vec![a, b, c]);
        let paths: Vec<(HostId, Vec<u8>)> = deep
            .chain(shallow.into_iter().map(|(a, b)| vec![a, b]))
            .zip(0..)
            .map(|(path, host)| (HostId(host), path))
            .collect();
        check_bounds(&paths);
        let mut back: Vec<Vec<u8>> = Vec::new();
        for route in encode_tree(&paths).unwrap() {
            back.extend(decode_tree(&route.bytes).unwrap());
        }
        back.sort();
        let mut given: Vec<Vec<u8>> = paths.into_iter().map(|(_, path)| path).collect();
        given.sort();
        prop_assert_eq!(back, given);
    }
}

#[test]
fn splits_where_a_switch_has_too_many_branches() {
    let topology = line(1, 40).unwrap();
    let members: Vec<HostId> = topology.hosts()[1..].iter().map(|host| host.id).collect();
    assert_eq!(
        check_reaches(&topology, HostId(0), &members),
        39usize.div_ceil(BRANCHES_MAX)
    );
    let topology = star(20, 2).unwrap();
    let members: Vec<HostId> = topology.hosts()[1..].iter().map(|host| host.id).collect();
    assert_eq!(check_reaches(&topology, HostId(0), &members), 2);
}

#[test]
fn one_branch_more_than_fits_makes_one_route_more() {
    let topology = full_mesh(1, 18).unwrap();
    for (members, expected) in [(BRANCHES_MAX, 1), (BRANCHES_MAX + 1, 2)] {
        let members: Vec<HostId> = (1..=members as u16).map(HostId).collect();
        assert_eq!(check_reaches(&topology, HostId(0), &members), expected);
    }
}

#[test]
fn branches_are_counted_for_each_switch_by_itself() {
    // Two switches side by side behind the first, each with 16 hosts, fit into one route;
    // a 17th host on either does not.
    let route_count = |left: u8, right: u8| {
        let paths: Vec<(HostId, Vec<u8>)> = (0..left)
            .map(|port| vec![1, port])
            .chain((0..right).map(|port| vec![2, port]))
            .enumerate()
            .map(|(at, path)| (HostId(at as u16), path))
            .collect();
        let routes = encode_tree(&paths).unwrap();
        for route in &routes {
            decode_tree(&route.bytes).unwrap();
        }
        routes.len()
    };
    assert_eq!(route_count(16, 16), 1);
    assert_eq!(route_count(17, 16), 2);
    assert_eq!(route_count(16, 17), 2);
}

#[test]
fn nobody_to_reach_needs_no_route() {
    assert_eq!(encode_tree::<Vec<u8>>(&[]).unwrap(), []);
}

#[test]
fn refuses_paths_that_make_no_tree() {
    let refuse = |paths: &[(HostId, &[u8])]| encode_tree(paths).unwrap_err().to_string();
    assert_eq!(
        refuse(&[(HostId(3), &[])]),
        "path to host 3 is empty; it needs one port for each switch crossed"
    );
    assert_eq!(
        refuse(&[(HostId(3), &[1, 254])]),
        "path to host 3 has byte 254; ports are 0 to 253"
    );
    assert_eq!(
        refuse(&[(HostId(3), &[1; 65])]),
        "path to host 3 crosses 65 switches; a worm crosses at most 64"
    );
    assert_eq!(
        refuse(&[(HostId(4), &[1, 2]), (HostId(3), &[1])]),
        "path [1] ends at host 3, but the path to host 4 goes there too"
    );
    assert_eq!(
        refuse(&[(HostId(4), &[1, 2]), (HostId(3), &[1, 2])]),
        "path [1, 2] ends at host 4, but the path to host 3 goes there too"
    );
}

#[test]
fn refuses_routes_that_do_not_parse() {
    use TreeDecodeError::*;
    let cases: &[(&[u8], TreeDecodeError, &str)] = &[
        (
            &[],
            Empty,
            "route is empty; a tree route has a branch and the marker 255 at least",
        ),
        (
            &[255],
            NoBranches,
            "tree route has no branches; it needs 1 to 16",
        ),
        (
            &[1, 0],
            NoMarker { offset: 2 },
            "tree route ends at byte 2, without the marker 255",
        ),
        (
            &[1],
            NoMarker { offset: 1 },
            "tree route ends at byte 1, without the marker 255",
        ),
        (
            &[1, 9, 2, 255],
            LengthPastEnd {
                offset: 1,
                length: 9,
                left: 2,
            },
            "length 9 at byte 1 is more than the 2 bytes left",
        ),
        (
            &[1, 0, 255, 7, 7],
            BytesAfterMarker {
                offset: 3,
                count: 2,
            },
            "2 bytes after the marker 255, from byte 3; there may be none",
        ),
        (
            &[254, 0, 255],
            NotAPort {
                offset: 0,
                byte: 254,
            },
            "byte 254 at byte 0 is no port; ports are 0 to 253",
        ),
        (
            &[2, 0, 2, 0, 255],
            NotAscending {
                offset: 2,
                port: 2,
                after: 2,
            },
            "port 2 at byte 2 follows port 2; ports ascend",
        ),
    ];
    for (route, error, message) in cases {
        assert_eq!(branches(route).unwrap_err(), *error);
        assert_eq!(decode_tree(route).unwrap_err(), *error);
        assert_eq!(error.to_string(), *message);
    }
    let many: Vec<u8> = (0..17).flat_map(|port| [port, 0]).chain([255]).collect();
    assert_eq!(branches(&many).unwrap_err(), TooManyBranches { offset: 32 });
    assert_eq!(
        TooManyBranches { offset: 32 }.to_string(),
        "branch at byte 32 is one too many; a switch takes 16"
    );
    // Only whoever decodes the whole route sees what is wrong further down.
    let nested = [1, 3, 2, 9, 0, 255];
    assert!(branches(&nested).is_ok());
    assert_eq!(
        decode_tree(&nested).unwrap_err(),
        LengthPastEnd {
            offset: 3,
            length: 9,
            left: 1
        }
    );
    let marker_within = [1, 2, 255, 0, 255];
    assert_eq!(
        decode_tree(&marker_within).unwrap_err(),
        NotAPort {
            offset: 2,
            byte: 255
        }
    );
}
