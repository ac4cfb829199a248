//! Cycles through worms whose branches wait for each other (WORM §3, scheme A, Fig. 3).
//!
//! Such a worm, while it waits for a channel, can hold every channel of its tree but
//! that one and those behind it. So it can hold x and wait for y unless y is x or comes
//! before it; and it waits in one place at a time, so that it is in a cycle once.
//!
//! The search is breadth first over (channel waited for, tree worm that waits for it),
//! once from every place where a tree worm can wait. It never enters a tree twice in a
//! row nor returns to the one it started from; a shortest cycle could still pass
//! another tree twice. It could then be cut short at that tree, and a shorter one would
//! have been found, unless the two waits exclude each other; whether there is another
//! cycle where they do not is left open, and reported as not proven.

use std::collections::{BTreeMap, BTreeSet};

/// The channels of one worm that branches; a channel comes after its parent.
#[derive(Clone, Debug)]
pub(super) struct Tree {
    /// Number of the worm.
    pub(super) worm: u32,
    channels: Vec<u32>,
    parents: Vec<u32>,
    places: BTreeMap<u32, u32>,
}

/// A closed chain of (channel held, worm that holds it).
pub(super) struct Found {
    pub(super) waits: Vec<(u32, u32)>,
    pub(super) proven: bool,
}

impl Tree {
    pub(super) fn new(injection: u32) -> Tree {
        Tree {
            worm: 0,
            channels: vec![injection],
            parents: vec![0],
            places: BTreeMap::from([(injection, 0)]),
        }
    }

    /// Adds a channel behind the one at `parent`; gives its place, or nothing if the
    /// worm holds that channel already.
    pub(super) fn grow(&mut self, parent: u32, channel: u32) -> Option<u32> {
        let place = self.channels.len() as u32;
        if self.places.insert(channel, place).is_some() {
            return None;
        }
        self.channels.push(channel);
        self.parents.push(parent);
        Some(place)
    }

    /// (held, needed next) for every channel but the first.
    pub(super) fn steps(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        (1..self.channels.len()).map(|place| {
            (
                self.channels[self.parents[place] as usize],
                self.channels[place],
            )
        })
    }

    pub(super) fn has_step(&self, held: u32, needed: u32) -> bool {
        self.places.get(&needed).is_some_and(|&place| {
            place > 0 && self.channels[self.parents[place as usize] as usize] == held
        })
    }

    /// Whether `upper` is `place` or comes before it.
    fn leads_to(&self, upper: u32, mut place: u32) -> bool {
        while place > upper {
            place = self.parents[place as usize];
        }
        place == upper
    }

    fn branches(&self) -> bool {
        let mut seen = BTreeSet::new();
        self.parents
            .iter()
            .skip(1)
            .any(|parent| !seen.insert(parent))
    }
}

/// A channel somebody waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct State {
    channel: u32,
    /// The tree that waits for it; `None` if it is a unicast worm.
    tree: Option<u32>,
}

/// How a state was reached: from which, and by the worm that holds its channel.
type Reached = BTreeMap<State, Option<(State, u32)>>;

/// `next` are the dependencies of unicast worms; together with the steps of the trees
/// they have no cycle.
pub(super) fn find_cycle(next: &[Vec<(u32, u32)>], trees: &[Tree]) -> Option<Found> {
    let search = Search::new(next, trees);
    let mut best: Option<Vec<(u32, u32)>> = None;
    for (number, tree) in trees.iter().enumerate().filter(|(_, tree)| tree.branches()) {
        for place in 1..tree.channels.len() as u32 {
            let limit = best.as_ref().map_or(usize::MAX, Vec::len);
            if let Some(found) = search.cycle_from(number as u32, place, limit) {
                best = Some(found);
            }
        }
    }
    let waits = best?;
    let mut passed = BTreeSet::new();
    let proven = waits
        .iter()
        .filter(|(_, worm)| trees.iter().any(|tree| tree.worm == *worm))
        .all(|(_, worm)| passed.insert(*worm));
    Some(Found { waits, proven })
}

struct Search<'a> {
    next: &'a [Vec<(u32, u32)>],
    trees: &'a [Tree],
    /// Trees that hold a channel.
    holders: BTreeMap<u32, Vec<u32>>,
}

/// What one search has seen.
struct Seen {
    reached: Reached,
    /// Places of each tree that it is not known to wait at; filled when first met.
    left: BTreeMap<u32, Vec<u32>>,
    /// States to go on from.
    after: Vec<State>,
}

impl<'a> Search<'a> {
    fn new(next: &'a [Vec<(u32, u32)>], trees: &'a [Tree]) -> Search<'a> {
        let mut holders: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for (number, tree) in trees.iter().enumerate() {
            for &channel in &tree.channels {
                holders.entry(channel).or_default().push(number as u32);
            }
        }
        Search {
            next,
            trees,
            holders,
        }
    }

    /// A shortest cycle, of fewer channels than `limit`, in which the tree `start` waits
    /// for its channel at `place`.
    fn cycle_from(&self, start: u32, place: u32, limit: usize) -> Option<Vec<(u32, u32)>> {
        let home = &self.trees[start as usize];
        let first = State {
            channel: home.channels[place as usize],
            tree: Some(start),
        };
        let mut seen = Seen {
            reached: BTreeMap::from([(first, None)]),
            left: BTreeMap::new(),
            after: vec![first],
        };
        let mut length = 1;
        while !seen.after.is_empty() && length < limit {
            for state in std::mem::take(&mut seen.after) {
                // Held by the tree we started from: the circle closes.
                if state != first
                    && let Some(&here) = home.places.get(&state.channel)
                    && !home.leads_to(place, here)
                {
                    return Some(trace(&seen.reached, state, home.worm));
                }
                self.step(state, start, &mut seen);
            }
            length += 1;
        }
        None
    }

    /// Whoever may hold the channel of this state, and what they may wait for.
    fn step(&self, state: State, start: u32, seen: &mut Seen) {
        let Seen {
            reached,
            left,
            after,
        } = seen;
        let mut reach = |to: State, worm: u32| {
            reached.entry(to).or_insert_with(|| {
                after.push(to);
                Some((state, worm))
            });
        };
        for &(needed, worm) in &self.next[state.channel as usize] {
            reach(
                State {
                    channel: needed,
                    tree: None,
                },
                worm,
            );
        }
        for &number in self.holders.get(&state.channel).into_iter().flatten() {
            if number == start || Some(number) == state.tree {
                continue;
            }
            let tree = &self.trees[number as usize];
            let here = tree.places[&state.channel];
            let left = left
                .entry(number)
                .or_insert_with(|| (1..tree.channels.len() as u32).collect());
            left.retain(|&place| {
                let leads_here = tree.leads_to(place, here);
                if !leads_here {
                    let channel = tree.channels[place as usize];
                    reach(
                        State {
                            channel,
                            tree: Some(number),
                        },
                        tree.worm,
                    );
                }
                leads_here
            });
        }
    }
}

/// The chain from the first state to this one, whose channel `worm` holds.
fn trace(reached: &Reached, last: State, worm: u32) -> Vec<(u32, u32)> {
    let mut waits = vec![(last.channel, worm)];
    let mut at = last;
    while let Some((before, worm)) = reached[&at] {
        waits.push((before.channel, worm));
        at = before;
    }
    waits.reverse();
    waits
}
