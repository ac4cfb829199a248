//! The worms by which switches copy a message to the members of a group.

use super::shared::Shared;
use crate::plan::Copies;
use std::collections::BTreeMap;
use wormcast_wire::HostId;
use wormcast_wire::tree_route::{TreeRoute, encode_what_fits};
use wormcast_wire::worm::Kind;

/// A worm that switches copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CopiedWorm<T> {
    pub kind: Kind,
    pub route: Vec<u8>,
    /// What was given for the members it reaches.
    pub to: Vec<T>,
}

/// How long routes may be.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RouteRoom {
    /// Bytes that a route to the root may have.
    pub root: usize,
    /// Bytes that a TREE route may have; what does not fit in one is split.
    pub tree: usize,
}

/// The worms that together reach all of `others` that a route leads to, for each tree of the group; as
/// one where it has none of its own. Empty: there is nobody to reach.
pub(crate) fn copied_worms<T: Copy>(
    copies: Copies<'_>,
    others: &[(HostId, T)],
    room: RouteRoom,
    shared: &Shared,
) -> Vec<Vec<CopiedWorm<T>>> {
    if others.is_empty() {
        return Vec::new();
    }
    let one = |kind, route: Vec<u8>| {
        let to = others.iter().map(|(_, given)| *given).collect();
        vec![vec![CopiedWorm { kind, route, to }]]
    };
    let along = |tree: &BTreeMap<HostId, Vec<u8>>| {
        let path = |(host, given): &(HostId, T)| {
            let path = tree.get(host).or_else(|| shared.tree.get(host))?;
            Some((*given, path.clone()))
        };
        let paths: Vec<(T, Vec<u8>)> = others.iter().filter_map(path).collect();
        let worm = |worm: TreeRoute<T>| CopiedWorm {
            kind: Kind::Tree,
            route: worm.bytes,
            to: worm.hosts,
        };
        let routes = encode_what_fits(&paths, room.tree).into_iter();
        routes.map(worm).collect::<Vec<CopiedWorm<T>>>()
    };
    let worms = match (copies, &shared.root) {
        (Copies::Number(number), _) => one(Kind::Group, number.0.to_be_bytes().to_vec()),
        (Copies::Broadcast, Some(root)) if root.len() <= room.root => {
            one(Kind::Broadcast, root.clone())
        }
        (Copies::Trees(trees), _) => trees.iter().map(along).collect(),
        (Copies::SpanningTree | Copies::Broadcast, _) => vec![along(&shared.tree)],
    };
    if worms.iter().all(Vec::is_empty) {
        Vec::new()
    } else {
        worms
    }
}
