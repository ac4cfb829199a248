//! Where to cut paths that are too many for one TREE route.
//!
//! A route of n branches in all takes 2·n + 1 bytes, so that one of 255 holds 127, and
//! a switch takes at most 16. Every branch is a link that the worm crosses. Fewest worms
//! come first, because each crosses the link of the source; then fewest links.
//!
//! Two ways are tried, and the better is kept. *Runs*: hosts in depth-first order are cut
//! into consecutive runs; among all such cuts the best is found by dynamic programming,
//! once with branches by port and once with the small subtrees first. *Bundles*: each
//! switch packs what its branches lead to into as few worms as it can (first fit,
//! largest first), and what is together stays together on the way up; so no subtree is
//! cut that fits. (Least cuts are bin packing, hence no exact answer.)
//!
//! Bound: a tree of n branches, d deep, needs w ≥ n/127 worms and w ≥ b/16 where a switch
//! has b branches; the runs cross at most n + w + (w − 1)·(d − 1) links.

use crate::SWITCHES_CROSSED_MAX;

/// Most branches of a TREE route at one switch.
pub const BRANCHES_MAX: usize = 16;

/// Bytes that two paths begin with alike.
pub(crate) fn common_prefix(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(x, y)| x == y).count()
}

/// Worms, then links crossed, the source's among them.
type Cost = (u32, u32);

/// Cuts sorted paths, of which none begins another or has more than `links_max` links; gives
/// the paths of each route, ascending.
pub(crate) fn split<'p>(
    sorted: &[u32],
    links_max: usize,
    path: impl Fn(u32) -> &'p [u8] + Copy,
) -> Vec<Vec<u32>> {
    let trie = Trie::new(sorted, path);
    let by_size = trie.smallest_first(sorted);
    let mut best: Option<(Cost, Vec<Vec<u32>>)> = None;
    for routes in [
        cut_runs(sorted, links_max, path),
        cut_runs(&by_size, links_max, path),
        trie.bundle(sorted, links_max),
    ] {
        let cost = cost_of(&routes, path);
        if best.as_ref().is_none_or(|(least, _)| cost < *least) {
            best = Some((cost, routes));
        }
    }
    let mut routes = best.map_or(Vec::new(), |(_, routes)| routes);
    for route in &mut routes {
        route.sort_unstable_by(|&a, &b| path(a).cmp(path(b)));
    }
    routes.sort_unstable_by(|a, b| path(a[0]).cmp(path(b[0])));
    routes
}

fn cost_of<'p>(routes: &[Vec<u32>], path: impl Fn(u32) -> &'p [u8]) -> Cost {
    let mut links = routes.len();
    for route in routes {
        let mut sorted: Vec<&[u8]> = route.iter().map(|&index| path(index)).collect();
        sorted.sort_unstable();
        let mut last: &[u8] = &[];
        for next in sorted {
            links += next.len() - common_prefix(last, next);
            last = next;
        }
    }
    (routes.len() as u32, links as u32)
}

/// The best cut into consecutive runs of an order in which every subtree is together.
fn cut_runs<'p>(order: &[u32], links_max: usize, path: impl Fn(u32) -> &'p [u8]) -> Vec<Vec<u32>> {
    // Cost from each place on, and where the first run from there ends.
    let mut best: Vec<(Cost, usize)> = vec![((0, 0), order.len()); order.len() + 1];
    for start in (0..order.len()).rev() {
        let mut branches = [0usize; SWITCHES_CROSSED_MAX];
        let (mut nodes, mut last): (usize, &[u8]) = (0, &[]);
        let mut found = ((u32::MAX, u32::MAX), start + 1);
        for (place, &index) in order.iter().enumerate().skip(start) {
            let next = path(index);
            let shared = common_prefix(last, next);
            nodes += next.len() - shared;
            if nodes > links_max || branches[shared] == BRANCHES_MAX {
                break;
            }
            branches[shared] += 1;
            branches[shared + 1..next.len().max(shared + 1)].fill(1);
            last = next;
            let (worms, links) = best[place + 1].0;
            found = found.min(((worms + 1, links + nodes as u32 + 1), place + 1));
        }
        best[start] = found;
    }
    let mut routes = Vec::new();
    let mut at = 0;
    while at < order.len() {
        let end = best[at].1;
        routes.push(order[at..end].to_vec());
        at = end;
    }
    routes
}

/// Paths by their beginnings, in depth-first order.
struct Trie {
    /// Ports on the way to each node; the first node has none.
    depth: Vec<u32>,
    parent: Vec<u32>,
    /// Nodes below, itself included.
    size: Vec<u32>,
    /// For each path, its node.
    leaf: Vec<u32>,
}

impl Trie {
    fn new<'p>(sorted: &[u32], path: impl Fn(u32) -> &'p [u8]) -> Trie {
        let mut trie = Trie {
            depth: vec![0],
            parent: vec![0],
            size: Vec::new(),
            leaf: Vec::with_capacity(sorted.len()),
        };
        let mut open = [0u32; SWITCHES_CROSSED_MAX + 1];
        let mut last: &[u8] = &[];
        for &index in sorted {
            let next = path(index);
            for level in common_prefix(last, next)..next.len() {
                trie.parent.push(open[level]);
                trie.depth.push(level as u32 + 1);
                open[level + 1] = trie.depth.len() as u32 - 1;
            }
            trie.leaf.push(open[next.len()]);
            last = next;
        }
        trie.size = vec![1; trie.depth.len()];
        for node in (1..trie.depth.len()).rev() {
            trie.size[trie.parent[node] as usize] += trie.size[node];
        }
        trie
    }

    /// The same paths, the smaller subtrees of a switch before the larger.
    fn smallest_first(&self, sorted: &[u32]) -> Vec<u32> {
        // Nodes are in depth-first order, so that a node's rank follows its parent's.
        let mut children: Vec<(u32, u32, u32)> = (1..self.depth.len() as u32)
            .map(|node| {
                let node_size = self.size[node as usize];
                (self.parent[node as usize], node_size, node)
            })
            .collect();
        children.sort_unstable();
        let mut place_of = vec![0u32; self.depth.len()];
        let (mut parent, mut next) = (u32::MAX, 0);
        // Parents ascend, so a parent has its place before its children get theirs.
        for (above, size, node) in children {
            if above != parent {
                (parent, next) = (above, place_of[above as usize] + 1);
            }
            place_of[node as usize] = next;
            next += size;
        }
        let mut order: Vec<(u32, u32)> = self
            .leaf
            .iter()
            .zip(sorted)
            .map(|(&leaf, &index)| (place_of[leaf as usize], index))
            .collect();
        order.sort_unstable();
        order.into_iter().map(|(_, index)| index).collect()
    }

    /// Packs from the leaves upwards.
    fn bundle(&self, sorted: &[u32], links_max: usize) -> Vec<Vec<u32>> {
        struct Bundle {
            nodes: usize,
            children: Vec<u32>,
            paths: Vec<u32>,
        }
        let mut made: Vec<Vec<Bundle>> = (0..self.depth.len()).map(|_| Vec::new()).collect();
        // What each switch has to pack: nodes with the link to the child, child, paths.
        let mut items: Vec<Vec<(usize, u32, Vec<u32>)>> = vec![Vec::new(); self.depth.len()];
        let mut leaves = self.leaf.iter().zip(sorted).rev().peekable();
        for node in (0..self.depth.len() as u32).rev() {
            let at = node as usize;
            if let Some((_, &index)) = leaves.next_if(|(leaf, _)| **leaf == node) {
                items[self.parent[at] as usize].push((1, node, vec![index]));
                continue;
            }
            let room = links_max - self.depth[at] as usize;
            let mut packing = std::mem::take(&mut items[at]);
            packing.sort_by(|a, b| (b.0, a.1).cmp(&(a.0, b.1)));
            let bins = &mut made[at];
            for (nodes, child, mut paths) in packing {
                let fits = |bin: &&mut Bundle| {
                    bin.nodes + nodes <= room
                        && bin.children.len() < BRANCHES_MAX
                        && !bin.children.contains(&child)
                };
                match bins.iter_mut().find(fits) {
                    Some(bin) => {
                        bin.nodes += nodes;
                        bin.children.push(child);
                        bin.paths.append(&mut paths);
                    }
                    None => bins.push(Bundle {
                        nodes,
                        children: vec![child],
                        paths,
                    }),
                }
            }
            if node > 0 {
                for bin in std::mem::take(bins) {
                    items[self.parent[at] as usize].push((bin.nodes + 1, node, bin.paths));
                }
            }
        }
        made.swap_remove(0)
            .into_iter()
            .map(|bin| bin.paths)
            .collect()
    }
}
