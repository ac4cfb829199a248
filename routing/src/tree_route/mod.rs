//! Source routes that branch (protocol/SPEC.md §3 TREE; WORM §3, Fig. 2).
//!
//! From the port paths to some hosts, all from one source, to the bytes of one or
//! several TREE routes, and back. The agent builds such a route for every retransmission
//! to exactly the hosts that miss a packet, so encoding costs one sort and no allocation
//! but the routes themselves once a [`TreeEncoder`] has warmed up.

mod decode;
mod error;
mod walk;

pub use decode::{Branch, Branches, branches, decode_tree};
pub use error::{TreeDecodeError, TreeEncodeError};
pub use walk::{Delivery, Loss, LossReason, TreeWalk, walk_tree};

use crate::ids::{HostId, PORT_ID_MAX, ROUTE_BYTES_MAX, SWITCHES_CROSSED_MAX};

/// Most branches of a TREE route at one switch.
pub const BRANCHES_MAX: usize = 16;
/// Ends the list of branches at a switch.
pub const END_OF_ROUTE: u8 = 0xFF;

/// One TREE route and whom it reaches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreeRoute {
    /// The route as it goes on the wire, marker included; at most 255 bytes.
    pub bytes: Vec<u8>,
    /// Hosts it reaches, in the order of their branches.
    pub hosts: Vec<HostId>,
}

/// Encodes paths; keeps its scratch space from one call to the next.
#[derive(Clone, Debug, Default)]
pub struct TreeEncoder {
    order: Vec<u32>,
}

/// Encodes once; see [`TreeEncoder::encode`].
///
/// # Errors
/// As [`TreeEncoder::encode`].
pub fn encode_tree<P: AsRef<[u8]>>(
    paths: &[(HostId, P)],
) -> Result<Vec<TreeRoute>, TreeEncodeError> {
    TreeEncoder::default().encode(paths)
}

impl TreeEncoder {
    /// TREE routes that together reach every host once. `paths` are source routes from
    /// one source: port bytes, the last one leading to the host. Routes over 255 bytes,
    /// or with more than [`BRANCHES_MAX`] branches at a switch, are split; hosts near
    /// each other stay together. No paths give no routes.
    ///
    /// # Errors
    /// A path that is empty, too long or has a byte that is no port; two hosts at the
    /// same place; a host at a place that another path passes.
    pub fn encode<P: AsRef<[u8]>>(
        &mut self,
        paths: &[(HostId, P)],
    ) -> Result<Vec<TreeRoute>, TreeEncodeError> {
        for (host, path) in paths {
            check_path(*host, path.as_ref())?;
        }
        let path = |index: u32| paths[index as usize].1.as_ref();
        self.order.clear();
        self.order.extend(0..paths.len() as u32);
        self.order.sort_unstable_by(|&a, &b| path(a).cmp(path(b)));

        let mut routes = Vec::new();
        let mut rest = self.order.as_slice();
        while !rest.is_empty() {
            let taken = count_fitting(rest, path).map_err(|(first, second)| {
                let (first, second) = (rest[first], rest[second]);
                TreeEncodeError::PathsOverlap {
                    first: paths[first as usize].0,
                    second: paths[second as usize].0,
                    path: path(first).to_vec(),
                }
            })?;
            let (route, after) = rest.split_at(taken);
            routes.push(TreeRoute {
                bytes: write_route(route, path),
                hosts: route.iter().map(|&index| paths[index as usize].0).collect(),
            });
            rest = after;
        }
        Ok(routes)
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

fn common_prefix(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(x, y)| x == y).count()
}

/// How many of the sorted paths fit into one route, at least one. Fails with the places
/// of two paths of which the first is where the second passes or ends.
fn count_fitting<'p>(
    sorted: &[u32],
    path: impl Fn(u32) -> &'p [u8],
) -> Result<usize, (usize, usize)> {
    // Branches so far at each switch along the path added last.
    let mut branches = [0usize; SWITCHES_CROSSED_MAX];
    let mut bytes = 1;
    let mut last: &[u8] = &[];
    for (place, &index) in sorted.iter().enumerate() {
        let next = path(index);
        let shared = common_prefix(last, next);
        if place > 0 && shared == last.len() {
            return Err((place - 1, place));
        }
        bytes += 2 * (next.len() - shared);
        if bytes > ROUTE_BYTES_MAX || branches[shared] == BRANCHES_MAX {
            return check_overlap(sorted, place, path);
        }
        branches[shared] += 1;
        branches[shared + 1..next.len().max(shared + 1)].fill(1);
        last = next;
    }
    Ok(sorted.len())
}

/// The cut before `place` is fine unless the paths on its two sides overlap.
fn check_overlap<'p>(
    sorted: &[u32],
    place: usize,
    path: impl Fn(u32) -> &'p [u8],
) -> Result<usize, (usize, usize)> {
    let (before, after) = (path(sorted[place - 1]), path(sorted[place]));
    if after.starts_with(before) {
        Err((place - 1, place))
    } else {
        Ok(place)
    }
}

/// Writes sorted paths, of which none is the beginning of another, as one route.
fn write_route<'p>(sorted: &[u32], path: impl Fn(u32) -> &'p [u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(ROUTE_BYTES_MAX);
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
