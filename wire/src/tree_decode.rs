//! TREE routes read back.

use crate::tree_route::{BRANCHES_MAX, TreeDecodeError};
use crate::worm::END_OF_ROUTE;
use crate::{PORT_ID_MAX, PortId};

/// One branch at a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Branch<'r> {
    /// Port the copy leaves by.
    pub port: PortId,
    /// Branches at the next switch, without a marker; empty where a host ends the branch.
    pub sub_route: &'r [u8],
}

impl Branch<'_> {
    /// Route of the copy that leaves by this branch.
    pub fn copy_route(&self) -> Vec<u8> {
        let mut route = self.sub_route.to_vec();
        if !route.is_empty() {
            route.push(END_OF_ROUTE);
        }
        route
    }
}

/// Branches of a route that has been checked.
#[derive(Clone, Debug)]
pub struct Branches<'r> {
    rest: &'r [u8],
}

impl<'r> Iterator for Branches<'r> {
    type Item = Branch<'r>;

    fn next(&mut self) -> Option<Branch<'r>> {
        let [port, length, rest @ ..] = self.rest else {
            return None;
        };
        let (sub_route, after) = rest.split_at(usize::from(*length));
        self.rest = after;
        Some(Branch {
            port: PortId::new(*port).expect("checked"),
            sub_route,
        })
    }
}

/// Branches at the switch that receives this route. Sub-routes are checked by the
/// switches they are for; [`decode_tree`] checks all.
///
/// # Errors
/// Why the switch drops it: see [`TreeDecodeError`].
pub fn branches(route: &[u8]) -> Result<Branches<'_>, TreeDecodeError> {
    let mut end = 0;
    let mut count = 0;
    let mut last = None;
    if route.is_empty() {
        return Err(TreeDecodeError::Empty);
    }
    loop {
        match route.get(end) {
            None => return Err(TreeDecodeError::NoMarker { offset: end }),
            Some(&END_OF_ROUTE) => break,
            Some(&port) => end = check_branch(route, end, port, &mut last, &mut count)?,
        }
    }
    if count == 0 {
        return Err(TreeDecodeError::NoBranches);
    }
    if end + 1 < route.len() {
        let (offset, count) = (end + 1, route.len() - end - 1);
        return Err(TreeDecodeError::BytesAfterMarker { offset, count });
    }
    Ok(Branches {
        rest: &route[..end],
    })
}

/// Checks the branch at `start`; gives where the next one begins.
fn check_branch(
    route: &[u8],
    start: usize,
    port: u8,
    last: &mut Option<u8>,
    count: &mut usize,
) -> Result<usize, TreeDecodeError> {
    if port > PORT_ID_MAX {
        return Err(TreeDecodeError::NotAPort {
            offset: start,
            byte: port,
        });
    }
    if let Some(after) = last.replace(port)
        && after >= port
    {
        return Err(TreeDecodeError::NotAscending {
            offset: start,
            port,
            after,
        });
    }
    *count += 1;
    if *count > BRANCHES_MAX {
        return Err(TreeDecodeError::TooManyBranches { offset: start });
    }
    let Some(&length) = route.get(start + 1) else {
        return Err(TreeDecodeError::NoMarker { offset: start + 1 });
    };
    let left = route.len() - start - 2;
    if usize::from(length) > left {
        return Err(TreeDecodeError::LengthPastEnd {
            offset: start + 1,
            length,
            left,
        });
    }
    Ok(start + 2 + usize::from(length))
}

/// Checks the whole route, and gives the port path of every host it leads to, in
/// ascending order.
///
/// # Errors
/// Why the first switch, or a later one, would drop it: see [`TreeDecodeError`].
pub fn decode_tree(route: &[u8]) -> Result<Vec<Vec<u8>>, TreeDecodeError> {
    branches(route)?;
    let mut paths = Vec::new();
    let mut path = Vec::new();
    // Lists still open: where each ends, the port before, and how many branches it had.
    let mut open = vec![(route.len() - 1, None, 0)];
    let mut at = 0;
    while let Some((end, last, count)) = open.last_mut() {
        if at == *end {
            open.pop();
            path.pop();
            continue;
        }
        let after = check_branch(&route[..*end], at, route[at], last, count)?;
        path.push(route[at]);
        at += 2;
        if at == after {
            paths.push(path.clone());
            path.pop();
        } else {
            open.push((after, None, 0));
        }
    }
    Ok(paths)
}
