//! Spanning trees to step over, where there is no direct step.
//!
//! From one spanning tree to another there is always a way: take a link in that closes a
//! circle, and let the gap in the circle move along it, link by link, to one that is to
//! go. Two trees whose gaps are next to each other both lack the turn at the switch
//! between them, in both directions, and there is no other circle; so the dependencies of
//! the two together have no cycle. A tree whose links keep to the order in force is safe
//! with the routes in force, and likewise at the other end. So any change between
//! up\*/down\* routes of a connected fabric can be made without ever stopping a pair.

use super::channels::Channels;
use super::dependencies::Dependencies;
use super::paths::{Paths, Side};

/// Links to try first, one after the other; more are seldom of use.
const STARTS_MAX: usize = 32;
/// Most choices of links that are all looked at, to find every spanning tree.
const CHOICES_MAX: u64 = 512;

/// A spanning tree of every part of the new topology: its links, ascending, each by the
/// channel of its first direction.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Tree {
    links: Vec<u32>,
}

impl Tree {
    /// A tree that closes no cycle with the first graph, nor with the second. Takes links
    /// one by one, those of the lowest `rank` first, and tries again from other links if
    /// that does not span. Greedy: there may be a tree where none is found.
    pub fn find(
        channels: &Channels,
        graphs: [&Dependencies; 2],
        rank: impl Fn(u32) -> u32,
    ) -> Option<Tree> {
        let mut links = all_links(channels);
        links.sort_by_key(|&link| rank(link));
        let size = size(channels);
        (0..links.len().clamp(1, STARTS_MAX)).find_map(|first| {
            let mut order = links.clone();
            if let Some(order) = order.get_mut(..=first) {
                order.rotate_right(1);
            }
            let tree = grow(channels, graphs, &order);
            (tree.links.len() == size).then_some(tree)
        })
    }

    /// Every spanning tree; `None` if there may be too many.
    pub fn all(channels: &Channels) -> Option<Vec<Tree>> {
        let (links, size) = (all_links(channels), size(channels));
        let choices = (0..size as u64).try_fold(1u64, |choices, chosen| {
            let more = choices * (links.len() as u64 - chosen) / (chosen + 1);
            (more <= CHOICES_MAX).then_some(more)
        })?;
        let mut trees = Vec::with_capacity(choices as usize);
        choose(channels, &links, size, &mut Vec::new(), &mut trees);
        Some(trees)
    }

    /// The trees after this one on the way to another, that one included.
    pub fn slides(&self, channels: &Channels, to: &Tree) -> Vec<Tree> {
        let mut trees = Vec::new();
        let mut at = self.clone();
        for &link in to.links.iter().filter(|link| !self.links.contains(link)) {
            let circle = at.path_between(channels, link);
            let leaves = |place: &usize| !to.links.contains(&circle[*place]);
            // The circle is the link, then the path from its end back to its start.
            let forward = (0..circle.len())
                .find(leaves)
                .expect("the other tree has no circle");
            let backward = (0..circle.len()).rev().find(leaves).expect("as above");
            let gaps: Vec<u32> = if forward < circle.len() - backward {
                circle[..=forward].to_vec()
            } else {
                circle[backward..].iter().rev().copied().collect()
            };
            let whole = at.with(link);
            for gap in gaps {
                at = whole.without(gap);
                trees.push(at.clone());
            }
        }
        trees
    }

    /// All turns between its links.
    pub fn turns(&self, channels: &Channels) -> Vec<(u32, u32)> {
        let leaving = self.leaving(channels);
        let both = self.links.iter().flat_map(|&link| [link, link + 1]);
        both.flat_map(|held| {
            let next = leaving[channels.hop(held).to as usize].iter();
            next.filter(move |&&needed| needed != held ^ 1)
                .map(move |&needed| (held, needed))
        })
        .collect()
    }

    pub fn paths(&self, channels: &Channels, needed: &Paths) -> Paths {
        let leaving = self.leaving(channels);
        let mut paths = Paths::none(channels, Side::New);
        let mut path_to: Vec<Option<Vec<u32>>> = Vec::new();
        let mut stack = Vec::new();
        for (place, of) in channels.places.iter().enumerate() {
            let Some(start) = of.new else { continue };
            path_to.clear();
            path_to.resize(channels.switches(), None);
            path_to[start as usize] = Some(Vec::new());
            stack.push(start);
            while let Some(at) = stack.pop() {
                for &channel in &leaving[at as usize] {
                    let to = channels.hop(channel).to as usize;
                    if path_to[to].is_none() {
                        let mut on = path_to[at as usize].clone().expect("been there");
                        on.push(channel);
                        path_to[to] = Some(on);
                        stack.push(to as u32);
                    }
                }
            }
            for (other, of) in channels.places.iter().enumerate() {
                if needed.get(place, other).is_some()
                    && let Some(path) = of.new.and_then(|end| path_to[end as usize].as_deref())
                {
                    paths.set(place, other, Some(path.into()));
                }
            }
        }
        paths
    }

    /// Links of the path between the ends of a link that is not in the tree, from its end
    /// to its start.
    fn path_between(&self, channels: &Channels, link: u32) -> Vec<u32> {
        let leaving = self.leaving(channels);
        let (start, end) = (channels.hop(link).from, channels.hop(link).to);
        let mut stack = vec![(end, u32::MAX, 0)];
        let mut path: Vec<u32> = Vec::new();
        while let Some((at, came, depth)) = stack.pop() {
            path.truncate(depth);
            if came != u32::MAX {
                path.truncate(depth - 1);
                path.push(came & !1);
            }
            if at == start {
                return path;
            }
            for &channel in leaving[at as usize]
                .iter()
                .filter(|&&channel| channel != came ^ 1)
            {
                stack.push((channels.hop(channel).to, channel, depth + 1));
            }
        }
        unreachable!("both ends are in one part");
    }

    fn with(&self, link: u32) -> Tree {
        let mut links = self.links.clone();
        links.push(link);
        links.sort_unstable();
        Tree { links }
    }

    fn without(&self, gap: u32) -> Tree {
        Tree {
            links: self
                .links
                .iter()
                .copied()
                .filter(|link| *link != gap)
                .collect(),
        }
    }

    fn leaving(&self, channels: &Channels) -> Vec<Vec<u32>> {
        let mut leaving = vec![Vec::new(); channels.switches()];
        for channel in self.links.iter().flat_map(|&link| [link, link + 1]) {
            leaving[channels.hop(channel).from as usize].push(channel);
        }
        leaving
    }
}

fn all_links(channels: &Channels) -> Vec<u32> {
    (0..channels.len() as u32)
        .step_by(2)
        .filter(|&channel| channels.hop(channel).stays)
        .collect()
}

/// Which switches are joined.
#[derive(Clone)]
struct Joined(Vec<u32>);

impl Joined {
    fn none(channels: &Channels) -> Joined {
        Joined((0..channels.switches() as u32).collect())
    }

    /// Joins the ends of a link; false if they were.
    fn join(&mut self, channels: &Channels, link: u32) -> bool {
        let hop = channels.hop(link);
        let (here, there) = (self.0[hop.from as usize], self.0[hop.to as usize]);
        if here == there {
            return false;
        }
        for part in &mut self.0 {
            if *part == there {
                *part = here;
            }
        }
        true
    }
}

/// Links of a spanning tree.
fn size(channels: &Channels) -> usize {
    let mut joined = Joined::none(channels);
    all_links(channels)
        .into_iter()
        .filter(|&link| joined.join(channels, link))
        .count()
}

fn grow(channels: &Channels, graphs: [&Dependencies; 2], links: &[u32]) -> Tree {
    let [mut first, mut second] = graphs.map(Clone::clone);
    let mut tree = Tree { links: Vec::new() };
    let mut leaving = vec![Vec::new(); channels.switches()];
    let mut joined = Joined::none(channels);
    for &link in links {
        let mut then = joined.clone();
        if !then.join(channels, link) {
            continue;
        }
        let mut turns = Vec::new();
        for leaves in [link, link ^ 1] {
            for &other in &leaving[channels.hop(leaves).from as usize] {
                turns.extend([(other ^ 1, leaves), (leaves ^ 1, other)]);
            }
        }
        // What the first gains when the second refuses only narrows the choice further on.
        if first.add_all(&turns).is_ok() && second.add_all(&turns).is_ok() {
            joined = then;
            tree.links.push(link);
            leaving[channels.hop(link).from as usize].push(link);
            leaving[channels.hop(link).to as usize].push(link ^ 1);
        }
    }
    tree.links.sort_unstable();
    tree
}

/// All ways to add links, in their order, up to a spanning tree.
fn choose(
    channels: &Channels,
    links: &[u32],
    size: usize,
    chosen: &mut Vec<u32>,
    trees: &mut Vec<Tree>,
) {
    if chosen.len() == size {
        trees.push(Tree {
            links: chosen.clone(),
        });
        return;
    }
    let mut joined = Joined::none(channels);
    for &link in chosen.iter() {
        joined.join(channels, link);
    }
    for (place, &link) in links.iter().enumerate() {
        if joined.clone().join(channels, link) {
            chosen.push(link);
            choose(channels, &links[place + 1..], size, chosen, trees);
            chosen.pop();
        }
    }
}
