//! TREE routes (SPEC §3; WORM §3, Fig. 2): port paths merged into branches.

use crate::ROUTE_LENGTH_MAX;
use crate::worm::{MARKER_END, PORT_RECIRCULATE};

/// Most branches a switch takes.
pub const BRANCHES_MAX: usize = 16;

/// Why a set of port paths has no TREE route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TreeRouteError {
    /// Longer than the room given, or a branch longer than 255 bytes.
    TooLong,
    /// More branches at a switch than it takes.
    TooManyBranches,
    /// Two paths are equal, or one is the start of another: it would end at a switch.
    NotPrefixFree,
    /// A byte is no port.
    NotPort,
    /// No paths, or an empty one.
    Empty,
}

/// Appends to `route` the TREE route that reaches the end of every path, marker
/// included. `paths` must be sorted. On an error `route` is left as it was.
pub fn encode(
    paths: &[&[u8]],
    length_max: usize,
    route: &mut Vec<u8>,
) -> Result<(), TreeRouteError> {
    debug_assert!(paths.is_sorted());
    let start = route.len();
    let result = encode_branches(paths, 0, route).and_then(|()| {
        route.push(MARKER_END);
        if route.len() - start > length_max.min(ROUTE_LENGTH_MAX) {
            return Err(TreeRouteError::TooLong);
        }
        Ok(())
    });
    if result.is_err() {
        route.truncate(start);
    }
    result
}

fn encode_branches(
    paths: &[&[u8]],
    depth: usize,
    route: &mut Vec<u8>,
) -> Result<(), TreeRouteError> {
    if paths.is_empty() {
        return Err(TreeRouteError::Empty);
    }
    let mut rest = paths;
    let mut branches = 0;
    while let Some(first) = rest.first() {
        let port = *first.get(depth).ok_or(if depth == 0 {
            TreeRouteError::Empty
        } else {
            TreeRouteError::NotPrefixFree
        })?;
        if port >= PORT_RECIRCULATE {
            return Err(TreeRouteError::NotPort);
        }
        let same = rest
            .iter()
            .take_while(|path| path.get(depth) == Some(&port))
            .count();
        let (branch, others) = rest.split_at(same);
        branches += 1;
        if branches > BRANCHES_MAX {
            return Err(TreeRouteError::TooManyBranches);
        }
        route.push(port);
        let length_at = route.len();
        route.push(0);
        // A branch that ends here leads to one host and has no sub-route.
        if same > 1 || branch[0].len() > depth + 1 {
            encode_branches(branch, depth + 1, route)?;
        }
        let length = route.len() - length_at - 1;
        route[length_at] = u8::try_from(length).map_err(|_| TreeRouteError::TooLong)?;
        rest = others;
    }
    Ok(())
}

/// The branches of a TREE route at one switch: (port, sub-route).
pub type Branches<'a> = Vec<(u8, &'a [u8])>;

/// Reads a TREE route as a switch does; None where the switch drops the worm
/// (SPEC §3). The copy for a branch carries the sub-route and the marker, or
/// nothing where the sub-route is empty.
pub fn decode(route: &[u8]) -> Option<Branches<'_>> {
    let mut branches: Branches<'_> = Vec::new();
    let mut rest = route;
    loop {
        let (&port, tail) = rest.split_first()?;
        if port == MARKER_END {
            return (tail.is_empty() && !branches.is_empty()).then_some(branches);
        }
        let (&length, tail) = tail.split_first()?;
        let in_order = branches.last().is_none_or(|(before, _)| *before < port);
        if port == PORT_RECIRCULATE || branches.len() == BRANCHES_MAX || !in_order {
            return None;
        }
        let sub_route = tail.get(..usize::from(length))?;
        branches.push((port, sub_route));
        rest = &tail[usize::from(length)..];
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    /// Walks a route as the switches would and gives the paths it reaches.
    fn reached(route: &[u8], before: &[u8], out: &mut BTreeSet<Vec<u8>>) {
        for (port, sub_route) in decode(route).expect("own encoding") {
            let mut path = before.to_vec();
            path.push(port);
            if sub_route.is_empty() {
                assert!(out.insert(path), "reached twice");
            } else {
                let mut rest = sub_route.to_vec();
                rest.push(MARKER_END);
                reached(&rest, &path, out);
            }
        }
    }

    #[test]
    fn the_route_of_worm_fig_2_shape() {
        let paths: [&[u8]; 3] = [&[1], &[4, 0], &[4, 2]];
        let mut route = Vec::new();
        encode(&paths, 255, &mut route).expect("fits");
        assert_eq!(route, [1, 0, 4, 4, 0, 0, 2, 0, 0xFF]);
    }

    #[test]
    fn what_has_no_route_is_refused_and_leaves_nothing() {
        let mut route = vec![7];
        let mut refuse = |paths: &[&[u8]], most| {
            let error = encode(paths, most, &mut route).expect_err("has no route");
            assert_eq!(route, [7]);
            error
        };
        assert_eq!(refuse(&[], 255), TreeRouteError::Empty);
        assert_eq!(refuse(&[&[]], 255), TreeRouteError::Empty);
        assert_eq!(refuse(&[&[1], &[1]], 255), TreeRouteError::NotPrefixFree);
        assert_eq!(refuse(&[&[1], &[1, 2]], 255), TreeRouteError::NotPrefixFree);
        assert_eq!(refuse(&[&[254]], 255), TreeRouteError::NotPort);
        assert_eq!(refuse(&[&[1, 2, 3]], 6), TreeRouteError::TooLong);
        let many: Vec<Vec<u8>> = (0..17).map(|port| vec![port]).collect();
        let many: Vec<&[u8]> = many.iter().map(Vec::as_slice).collect();
        assert_eq!(refuse(&many, 255), TreeRouteError::TooManyBranches);
        let deep: Vec<Vec<u8>> = (0..9)
            .map(|port| [&[port][..], &[1; 14]].concat())
            .collect();
        let deep: Vec<&[u8]> = deep.iter().map(Vec::as_slice).collect();
        assert_eq!(refuse(&deep, 255), TreeRouteError::TooLong);
    }

    #[test]
    fn what_a_switch_drops_does_not_decode() {
        for bad in [
            &[][..],
            &[0xFF],
            &[1, 0],
            &[1, 2, 3, 0xFF],
            &[1, 0, 1, 0, 0xFF],
            &[2, 0, 1, 0, 0xFF],
            &[254, 0, 0xFF],
            &[1, 0, 0xFF, 1],
        ] {
            assert_eq!(decode(bad), None, "{bad:?}");
        }
    }

    proptest! {
        #[test]
        fn a_route_reaches_exactly_its_paths(
            paths in proptest::collection::btree_set(proptest::collection::vec(0u8..8, 3), 1..9)
        ) {
            let sorted: Vec<&[u8]> = paths.iter().map(Vec::as_slice).collect();
            let mut route = Vec::new();
            prop_assert_eq!(encode(&sorted, 255, &mut route), Ok(()));
            let mut out = BTreeSet::new();
            reached(&route, &[], &mut out);
            prop_assert_eq!(out, paths);
        }

        #[test]
        fn random_routes_never_panic(route in proptest::collection::vec(any::<u8>(), 0..64)) {
            let _ = decode(&route);
        }
    }
}
