//! Source routes that branch (SPEC §3 TREE; WORM §3, Fig. 2).
//!
//! From the port paths to some hosts, all from one source, to the bytes of one or
//! several TREE routes, and back.

pub use crate::tree_decode::{Branch, Branches, branches, decode_tree};
pub use crate::tree_error::{TreeDecodeError, TreeEncodeError};
pub use crate::tree_split::BRANCHES_MAX;

use crate::tree_split::{self, common_prefix};
use crate::worm::END_OF_ROUTE;
use crate::{HostId, PORT_ID_MAX, ROUTE_LENGTH_MAX, SWITCHES_CROSSED_MAX};

/// One TREE route and whom it reaches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreeRoute<T = HostId> {
    /// The route as it goes on the wire, marker included.
    pub bytes: Vec<u8>,
    /// Hosts it reaches, by what the caller calls them, in the order of their branches.
    pub hosts: Vec<T>,
}

/// TREE routes that together reach every host once. `paths` are source routes from one
/// source: port bytes, the last one leading to the host. What would take more than
/// [`ROUTE_LENGTH_MAX`] bytes, or [`BRANCHES_MAX`] branches at a switch, is split into as
/// few routes as can be found, and of these into those that cross the fewest links. No
/// paths give no routes.
///
/// # Errors
/// A path that is empty, too long or has a byte that is no port; two hosts at the
/// same place; a host at a place that another path passes.
pub fn encode_tree<P: AsRef<[u8]>>(
    paths: &[(HostId, P)],
) -> Result<Vec<TreeRoute>, TreeEncodeError> {
    for (host, path) in paths {
        check_path(*host, path.as_ref())?;
    }
    let order = sorted(paths);
    let path = |index: u32| paths[index as usize].1.as_ref();
    if let Some(pair) = order
        .windows(2)
        .find(|pair| overlap(path(pair[0]), path(pair[1])))
    {
        return Err(TreeEncodeError::PathsOverlap {
            first: paths[pair[0] as usize].0,
            second: paths[pair[1] as usize].0,
            path: path(pair[0]).to_vec(),
        });
    }
    Ok(write_all(paths, &order, ROUTE_LENGTH_MAX))
}

/// As [`encode_tree`], with routes of at most `length_max` bytes; hosts whose paths make no
/// such route are left out.
pub fn encode_what_fits<T: Copy, P: AsRef<[u8]>>(
    paths: &[(T, P)],
    length_max: usize,
) -> Vec<TreeRoute<T>> {
    write_all(paths, &usable(paths, length_max), length_max)
}

/// One route of at most `length_max` bytes to as many hosts as it holds, in the order of
/// their paths; hosts whose paths make no such route are left out. Costs no more than to
/// sort the paths.
pub fn encode_first<T: Copy, P: AsRef<[u8]>>(
    paths: &[(T, P)],
    length_max: usize,
) -> Option<TreeRoute<T>> {
    let order = usable(paths, length_max);
    let path = |index: u32| paths[index as usize].1.as_ref();
    let fitting = count_fitting(&order, length_max, path);
    (fitting > 0).then(|| write(paths, &order[..fitting]))
}

/// Indices of the paths in ascending order.
fn sorted<T, P: AsRef<[u8]>>(paths: &[(T, P)]) -> Vec<u32> {
    let mut order: Vec<u32> = (0..paths.len() as u32).collect();
    order.sort_unstable_by_key(|&index| paths[index as usize].1.as_ref());
    order
}

/// Indices, in ascending order of the paths, of those that have a route each and do not
/// overlap.
fn usable<T, P: AsRef<[u8]>>(paths: &[(T, P)], length_max: usize) -> Vec<u32> {
    let path = |index: u32| paths[index as usize].1.as_ref();
    let mut order = sorted(paths);
    let links_max = links_max(length_max).min(SWITCHES_CROSSED_MAX);
    let mut last: Option<u32> = None;
    order.retain(|&index| {
        let fits = (1..=links_max).contains(&path(index).len())
            && path(index).iter().all(|port| *port <= PORT_ID_MAX)
            && !last.is_some_and(|before| overlap(path(before), path(index)));
        if fits {
            last = Some(index);
        }
        fits
    });
    order
}

/// Most branches of a route of so many bytes, all switches together: two bytes each, and
/// the marker.
fn links_max(length_max: usize) -> usize {
    length_max.min(ROUTE_LENGTH_MAX).saturating_sub(1) / 2
}

fn write_all<T: Copy, P: AsRef<[u8]>>(
    paths: &[(T, P)],
    order: &[u32],
    length_max: usize,
) -> Vec<TreeRoute<T>> {
    let path = |index: u32| paths[index as usize].1.as_ref();
    if order.is_empty() {
        return Vec::new();
    }
    if count_fitting(order, length_max, path) == order.len() {
        return vec![write(paths, order)];
    }
    let routes = tree_split::split(order, links_max(length_max), path);
    routes.iter().map(|route| write(paths, route)).collect()
}

fn write<T: Copy, P: AsRef<[u8]>>(paths: &[(T, P)], order: &[u32]) -> TreeRoute<T> {
    TreeRoute {
        bytes: write_route(order, |index| paths[index as usize].1.as_ref()),
        hosts: order.iter().map(|&index| paths[index as usize].0).collect(),
    }
}

fn check_path(host: HostId, path: &[u8]) -> Result<(), TreeEncodeError> {
    if path.is_empty() {
        return Err(TreeEncodeError::EmptyPath { host });
    }
    if path.len() > SWITCHES_CROSSED_MAX {
        return Err(TreeEncodeError::PathTooLong {
            host,
            switches: path.len(),
        });
    }
    match path.iter().find(|port| **port > PORT_ID_MAX) {
        Some(&byte) => Err(TreeEncodeError::NotAPort { host, byte }),
        None => Ok(()),
    }
}

/// Whether the second of two sorted paths ends or passes where the first one ends.
fn overlap(first: &[u8], second: &[u8]) -> bool {
    second.starts_with(first)
}

/// How many of the sorted paths, from the first on, make one route.
fn count_fitting<'p>(sorted: &[u32], length_max: usize, path: impl Fn(u32) -> &'p [u8]) -> usize {
    let links_max = links_max(length_max);
    // Branches so far at each switch along the path added last.
    let mut branches = [0usize; SWITCHES_CROSSED_MAX];
    let mut links = 0;
    let mut last: &[u8] = &[];
    for (count, &index) in sorted.iter().enumerate() {
        let next = path(index);
        let shared = common_prefix(last, next);
        links += next.len() - shared;
        if links > links_max || branches[shared] == BRANCHES_MAX {
            return count;
        }
        branches[shared] += 1;
        branches[shared + 1..next.len().max(shared + 1)].fill(1);
        last = next;
    }
    sorted.len()
}

/// Writes sorted paths, of which none is the beginning of another, as one route.
fn write_route<'p>(sorted: &[u32], path: impl Fn(u32) -> &'p [u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(ROUTE_LENGTH_MAX);
    // Where the length bytes are of the branches that are still open.
    let mut open = [0usize; SWITCHES_CROSSED_MAX];
    let mut depth = 0;
    let mut last: &[u8] = &[];
    let close = |bytes: &mut Vec<u8>, open: &[usize]| {
        for &at in open.iter().rev() {
            bytes[at] = (bytes.len() - at - 1) as u8;
        }
    };
    for &index in sorted {
        let next = path(index);
        let shared = common_prefix(last, next);
        close(&mut bytes, &open[shared..depth]);
        for (level, &port) in next.iter().enumerate().skip(shared) {
            bytes.push(port);
            open[level] = bytes.len();
            bytes.push(0);
        }
        depth = next.len();
        last = next;
    }
    close(&mut bytes, &open[..depth]);
    bytes.push(END_OF_ROUTE);
    bytes
}
