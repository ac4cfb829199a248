//! Source routes that branch (wire/SPEC.md §3 TREE; WORM §3, Fig. 2).
//!
//! From the port paths to some hosts, all from one source, to the bytes of one or
//! several TREE routes, and back. The agent builds such a route for every retransmission
//! to exactly the hosts that miss a packet, so encoding what fits one route costs one sort
//! and no allocation but the route itself once a [`TreeEncoder`] has warmed up.

mod decode;
mod error;
mod split;
mod walk;

pub use decode::{Branch, Branches, branches, decode_tree};
pub use error::{TreeDecodeError, TreeEncodeError};
pub use walk::{Delivery, Loss, LossReason, TreeWalk, walk_tree};

use wormcast_wire::{HostId, PORT_ID_MAX, ROUTE_LENGTH_MAX, SWITCHES_CROSSED_MAX};

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
    /// one source: port bytes, the last one leading to the host. What would take more than
    /// 255 bytes, or [`BRANCHES_MAX`] branches at a switch, is split into as few routes as
    /// can be found, and of these into those that cross the fewest links. No paths give no
    /// routes.
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

        check_overlaps(&self.order, path).map_err(|(first, second)| {
            TreeEncodeError::PathsOverlap {
                first: paths[first as usize].0,
                second: paths[second as usize].0,
                path: path(first).to_vec(),
            }
        })?;
        let write = |route: &[u32]| TreeRoute {
            bytes: write_route(route, path),
            hosts: route.iter().map(|&index| paths[index as usize].0).collect(),
        };
        if self.order.is_empty() {
            return Ok(Vec::new());
        }
        if fits_one_route(&self.order, path) {
            return Ok(vec![write(&self.order)]);
        }
        let routes = split::split(&self.order, path);
        Ok(routes.iter().map(|route| write(route)).collect())
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

/// Fails with two paths of which the first begins the second; sorting has put such paths
/// next to each other.
fn check_overlaps<'p>(sorted: &[u32], path: impl Fn(u32) -> &'p [u8]) -> Result<(), (u32, u32)> {
    let overlapping = sorted
        .windows(2)
        .find(|pair| path(pair[1]).starts_with(path(pair[0])));
    overlapping.map_or(Ok(()), |pair| Err((pair[0], pair[1])))
}

/// Whether sorted paths make one route.
fn fits_one_route<'p>(sorted: &[u32], path: impl Fn(u32) -> &'p [u8]) -> bool {
    // Branches so far at each switch along the path added last.
    let mut branches = [0usize; SWITCHES_CROSSED_MAX];
    let mut bytes = 1;
    let mut last: &[u8] = &[];
    for &index in sorted {
        let next = path(index);
        let shared = common_prefix(last, next);
        bytes += 2 * (next.len() - shared);
        if bytes > ROUTE_LENGTH_MAX || branches[shared] == BRANCHES_MAX {
            return false;
        }
        branches[shared] += 1;
        branches[shared + 1..next.len().max(shared + 1)].fill(1);
        last = next;
    }
    true
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
