//! What no way of reaching a group's members can undercut.

use std::collections::VecDeque;

use crate::topology::Topology;

/// Above so many switches the spanning tree over their distances is left out.
const SPANNED_MAX: usize = 512;

/// Links between switches that any tree from `start` to the others must have at least:
/// one for each of them, as many as the way to the farthest, and half of a least spanning
/// tree over their distances, because going round a tree of n links visits all within 2·n
/// (for t switches, t / (2·(t − 1)) of the spanning tree).
pub(super) fn links_at_least(topology: &Topology, start: u32, others: &[u32]) -> u64 {
    let mut waiting: Vec<u32> = others.iter().copied().filter(|&at| at != start).collect();
    waiting.sort_unstable();
    waiting.dedup();
    let count = waiting.len() as u64;
    let mut distance = vec![u32::MAX; topology.switch_count()];
    let mut queue = VecDeque::new();
    measure(topology, start, &mut distance, &mut queue);
    let farthest = waiting.iter().map(|&at| distance[at as usize]).max();
    let mut least = count.max(farthest.unwrap_or(0).into());
    if waiting.len() < 2 || waiting.len() > SPANNED_MAX {
        return least;
    }
    // Prim: how far each that waits is from the tree.
    let mut nearest: Vec<u32> = waiting.iter().map(|&at| distance[at as usize]).collect();
    let mut spanned = 0;
    while let Some(place) = (0..waiting.len()).min_by_key(|&place| (nearest[place], waiting[place]))
    {
        spanned += u64::from(nearest[place]);
        let joined = waiting.swap_remove(place);
        nearest.swap_remove(place);
        measure(topology, joined, &mut distance, &mut queue);
        for (near, &at) in nearest.iter_mut().zip(&waiting) {
            *near = (*near).min(distance[at as usize]);
        }
    }
    least = least.max((spanned * (count + 1)).div_ceil(2 * count));
    least
}

/// Distances of all switches from one, in links.
fn measure(topology: &Topology, from: u32, distance: &mut [u32], queue: &mut VecDeque<u32>) {
    distance.fill(u32::MAX);
    distance[from as usize] = 0;
    queue.push_back(from);
    while let Some(at) = queue.pop_front() {
        for arc in topology.arcs_of(at) {
            if distance[arc.to as usize] == u32::MAX {
                distance[arc.to as usize] = distance[at as usize] + 1;
                queue.push_back(arc.to);
            }
        }
    }
}
