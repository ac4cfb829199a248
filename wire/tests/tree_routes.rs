//! TREE routes with less room than a header has, and paths that make none.

use proptest::prelude::*;
use std::collections::BTreeSet;
use wormcast_wire::tree_route::{
    TreeEncodeError, decode_tree, encode_first, encode_tree, encode_what_fits,
};
use wormcast_wire::{HostId, PORT_ID_MAX, ROUTE_LENGTH_MAX};

/// Paths of any bytes and lengths, many of which overlap.
fn any_paths() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let port = prop_oneof![8 => 0u8..4, 2 => 0u8..40, 1 => any::<u8>()];
    prop::collection::vec(prop::collection::vec(port, 0..12), 0..60)
}

proptest! {
    #[test]
    fn each_host_with_a_path_of_its_own_is_reached_once(
        paths in any_paths(),
        length_max in 0usize..300,
    ) {
        let named: Vec<(usize, &[u8])> = paths.iter().map(Vec::as_slice).enumerate().collect();
        let mut reached = BTreeSet::new();
        for route in encode_what_fits(&named, length_max) {
            prop_assert!(route.bytes.len() <= length_max.min(ROUTE_LENGTH_MAX));
            let there: Vec<Vec<u8>> = route.hosts.iter().map(|at| paths[*at].clone()).collect();
            prop_assert_eq!(decode_tree(&route.bytes), Ok(there));
            for host in route.hosts {
                prop_assert!(reached.insert(host), "reached twice");
            }
        }
        for (host, path) in named {
            let fits = !path.is_empty() && 2 * path.len() < length_max;
            let has_ports = path.iter().all(|port| *port <= PORT_ID_MAX);
            if reached.contains(&host) {
                prop_assert!(fits && has_ports);
            } else if fits && has_ports {
                prop_assert!(reached.iter().any(|other| path.starts_with(&paths[*other])));
            }
        }
    }

    #[test]
    fn the_first_route_holds_as_many_as_follow_each_other(
        paths in prop::collection::btree_set(prop::collection::vec(0u8..20, 4), 1..80),
        length_max in 0usize..300,
    ) {
        let named: Vec<(usize, &[u8])> = paths.iter().map(Vec::as_slice).enumerate().collect();
        let Some(first) = encode_first(&named, length_max) else {
            prop_assert!(length_max < 9);
            return Ok(());
        };
        prop_assert!(first.bytes.len() <= length_max.min(ROUTE_LENGTH_MAX));
        let count = first.hosts.len();
        prop_assert_eq!(&first.hosts, &(0..count).collect::<Vec<_>>());
        prop_assert_eq!(decode_tree(&first.bytes).unwrap().len(), count);
        if count < named.len() {
            let more = encode_what_fits(&named[..=count], length_max);
            prop_assert!(more.len() > 1, "one more would fit");
        }
    }
}

#[test]
fn the_route_of_worm_fig_2_shape() {
    let paths: [(HostId, &[u8]); 3] = [
        (HostId(7), &[4, 2]),
        (HostId(8), &[1]),
        (HostId(9), &[4, 0]),
    ];
    let routes = encode_tree(&paths).unwrap();
    assert_eq!(routes.len(), 1);
    assert_eq!(routes[0].bytes, [1, 0, 4, 4, 0, 0, 2, 0, 0xFF]);
    assert_eq!(routes[0].hosts, [HostId(8), HostId(9), HostId(7)]);
}

#[test]
fn two_hosts_at_one_place_have_no_routes() {
    let paths: [(HostId, &[u8]); 2] = [(HostId(1), &[3]), (HostId(2), &[3, 0])];
    assert!(matches!(
        encode_tree(&paths),
        Err(TreeEncodeError::PathsOverlap { .. })
    ));
    assert_eq!(encode_what_fits(&paths, 255)[0].hosts, [HostId(1)]);
}
