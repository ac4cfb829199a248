//! Spanning trees whose paths agree with two sets of routes, to step from one to the other.

use super::channels::Channels;
use super::dependencies::Dependencies;
use super::paths::{Paths, Side};

/// Links to try first, one after the other; more are seldom of use.
const STARTS_MAX: usize = 32;

/// Paths over a spanning tree of the new topology that close no cycle with the first
/// graph, nor with the second. Takes links one by one, those that `prefer` is least for
/// first, and tries again from other links if that does not span. Greedy: there may be
/// a tree where none is found.
pub(crate) fn common(
    channels: &Channels,
    needed: &Paths,
    graphs: [&Dependencies; 2],
    prefer: impl Fn(u32) -> u32,
) -> Option<Paths> {
    let mut links: Vec<u32> = (0..channels.len() as u32)
        .step_by(2)
        .filter(|&channel| channels.hop(channel).stays)
        .collect();
    links.sort_by_key(|&link| prefer(link));
    (0..links.len().min(STARTS_MAX)).find_map(|first| {
        let mut order = links.clone();
        order[..=first].rotate_right(1);
        let tree = grow(channels, graphs, &order);
        let paths = along(channels, needed, &tree);
        needed
            .pairs()
            .all(|(from, to)| needed.get(from, to).is_none() || paths.get(from, to).is_some())
            .then_some(paths)
    })
}

/// Channels of the tree that leave each switch.
fn grow(channels: &Channels, graphs: [&Dependencies; 2], links: &[u32]) -> Vec<Vec<u32>> {
    let [mut first, mut second] = graphs.map(Clone::clone);
    let mut tree = vec![Vec::new(); channels.switches()];
    let mut part: Vec<u32> = (0..channels.switches() as u32).collect();
    for &link in links {
        let hop = channels.hop(link);
        let (here, there) = (part[hop.from as usize], part[hop.to as usize]);
        if here == there {
            continue;
        }
        let mut turns = Vec::new();
        for (leaves, arrives) in [(link, link ^ 1), (link ^ 1, link)] {
            for &other in &tree[channels.hop(leaves).from as usize] {
                turns.extend([(other ^ 1, leaves), (arrives, other)]);
            }
        }
        if first.add_all(&turns).is_err() {
            continue;
        }
        if second.add_all(&turns).is_err() {
            // What the first has gained only narrows the choice further on.
            continue;
        }
        tree[hop.from as usize].push(link);
        tree[hop.to as usize].push(link ^ 1);
        for part in &mut part {
            if *part == there {
                *part = here;
            }
        }
    }
    tree
}

/// The paths of a tree, where `needed` has one.
pub(crate) fn along(channels: &Channels, needed: &Paths, tree: &[Vec<u32>]) -> Paths {
    let mut paths = Paths::none(channels, Side::New);
    let mut stack = Vec::new();
    let mut way: Vec<Option<Vec<u32>>> = vec![None; channels.switches()];
    for (place, of) in channels.places.iter().enumerate() {
        let Some(start) = of.new else { continue };
        way.fill(None);
        way[start as usize] = Some(Vec::new());
        stack.push(start);
        while let Some(at) = stack.pop() {
            for &channel in &tree[at as usize] {
                let to = channels.hop(channel).to as usize;
                if way[to].is_none() {
                    let mut on = way[at as usize].clone().expect("been there");
                    on.push(channel);
                    way[to] = Some(on);
                    stack.push(to as u32);
                }
            }
        }
        for (other, of) in channels.places.iter().enumerate() {
            if needed.get(place, other).is_some()
                && let Some(end) = of.new
                && let Some(path) = &way[end as usize]
            {
                paths.set(place, other, Some(path.as_slice().into()));
            }
        }
    }
    paths
}
