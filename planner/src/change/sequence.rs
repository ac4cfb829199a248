//! Several steps, where one would let old and new worms wait for each other in a circle.

use super::channels::Channels;
use super::dependencies::Dependencies;
use super::paths::Paths;
use super::trees::Tree;

/// One set of paths after the other.
pub(crate) struct Sequence {
    /// Paths after each step; the last are the goal.
    pub states: Vec<Paths>,
    /// Pairs of places that stop before the last step, if there is no other way.
    pub drained: Vec<(usize, usize)>,
}

/// Moves pairs from their paths to those of the goal, in each step as many as close no
/// cycle with what is in force before it. Pairs without a path come first. Where no pair
/// can move, those that stand in the way stop: no smaller part of them would do, though a
/// smaller set of others might.
pub(crate) fn staged(
    channels: &Channels,
    old: &Paths,
    goal: &Paths,
    leaving_carry: bool,
) -> Sequence {
    let mut states: Vec<Paths> = Vec::new();
    let mut current = old.clone();
    loop {
        let mut graph = Dependencies::new(channels.len());
        let free = current.add_to(channels, leaving_carry, &mut graph);
        assert!(free, "each state was checked");
        let first = states.is_empty();
        // What has not survived is out of force as soon as the first step is made.
        let mut next = current.clone();
        next.side = goal.side;
        let mut waiting = Vec::new();
        for (from, to) in goal.pairs() {
            let kept = !first || current.survives(channels, from, to);
            if !kept {
                next.set(from, to, None);
            }
            if next.get(from, to) != goal.get(from, to) {
                waiting.push((next.get(from, to).is_some(), from, to));
            }
        }
        waiting.sort_unstable();
        let (mut moved, mut left) = (0, Vec::new());
        for &(_, from, to) in &waiting {
            let path = goal.get(from, to);
            let turns: Vec<(u32, u32)> = path
                .map(|path| Paths::turns(channels, path, leaving_carry).collect())
                .unwrap_or_default();
            if graph.add_all(&turns).is_ok() {
                next.set(from, to, path.cloned());
                moved += 1;
            } else {
                left.push((from, to));
            }
        }
        if left.is_empty() {
            states.push(goal.clone());
            return Sequence {
                states,
                drained: Vec::new(),
            };
        }
        if moved == 0 {
            let drained = drain(channels, &current, goal, leaving_carry, &mut next);
            states.push(next);
            states.push(goal.clone());
            return Sequence { states, drained };
        }
        states.push(next.clone());
        current = next;
    }
}

/// Stops the pairs that stand in the way of the goal.
fn drain(
    channels: &Channels,
    current: &Paths,
    goal: &Paths,
    leaving_carry: bool,
    next: &mut Paths,
) -> Vec<(usize, usize)> {
    let mut graph = Dependencies::new(channels.len());
    let free = goal.add_to(channels, leaving_carry, &mut graph);
    assert!(free, "the goal was checked");
    let mut drained = Vec::new();
    for (from, to) in current.pairs() {
        let Some(path) = next.get(from, to) else {
            continue;
        };
        let turns: Vec<(u32, u32)> = Paths::turns(channels, path, leaving_carry).collect();
        if graph.add_all(&turns).is_err() {
            next.set(from, to, None);
            drained.push((from, to));
        }
    }
    drained
}

/// Fewest of these trees to step over from one set of dependencies to another; `None` if
/// they lead nowhere.
pub(crate) fn through<'t>(
    channels: &Channels,
    trees: &'t [Tree],
    before: &Dependencies,
    after: &Dependencies,
) -> Option<Vec<&'t Tree>> {
    let turns: Vec<Vec<(u32, u32)>> = trees.iter().map(|tree| tree.turns(channels)).collect();
    let fits = |graph: &Dependencies, tree: usize| graph.clone().add_all(&turns[tree]).is_ok();
    // Breadth first: each tree with the one it was reached from.
    let mut reached: Vec<(usize, Option<usize>)> = Vec::new();
    let mut left: Vec<usize> = Vec::new();
    for tree in 0..trees.len() {
        if fits(before, tree) {
            reached.push((tree, None))
        } else {
            left.push(tree)
        }
    }
    let mut next = 0;
    while let Some(&(tree, _)) = reached.get(next) {
        if fits(after, tree) {
            let mut way = vec![&trees[tree]];
            let mut at = next;
            while let Some(from) = reached[at].1 {
                at = from;
                way.push(&trees[reached[at].0]);
            }
            way.reverse();
            return Some(way);
        }
        let mut graph = Dependencies::new(channels.len());
        graph.add_all(&turns[tree]).expect("a tree has no circle");
        left.retain(|&other| {
            let fits = fits(&graph, other);
            if fits {
                reached.push((other, Some(next)));
            }
            !fits
        });
        next += 1;
    }
    None
}
