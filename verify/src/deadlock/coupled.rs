//! Cycles through worms whose branches wait for each other (WORM §3, scheme A, Fig. 3).
//!
//! Such a worm, while it waits for a channel, can hold every channel of its tree but
//! that one and those behind it. So it can hold x and wait for y unless y is x or comes
//! before it; and it waits in one place at a time, so that it is in a cycle once. It
//! surely holds the channel it waits in, and its way from where x and y part, which no
//! other worm of the cycle can hold then: multicasts that come over one channel to where
//! they branch follow each other, and do not meet in their branches.
//!
//! The search is breadth first over (channel waited for, tree worm that waits for it),
//! once from every place where a tree worm can wait. It never enters a tree twice in a
//! row nor returns to the one it started from; a shortest cycle could still pass
//! another tree twice. It could then be cut short at that tree, and a shorter one would
//! have been found, unless the two waits exclude each other; whether there is another
//! cycle where they do not is left open, and reported as not proven.
//!
//! Worms of one source along one tree follow each other through every channel they
//! share, so that the one ahead never waits for one behind. Take a cycle that passes
//! several of them: the one ahead of all waits for y, and others between it and the next
//! of them, which holds z, are of other sources. z is not behind y, which that one has
//! not passed either. So all of them together act like one worm that holds z and waits
//! for y, and are taken for one ([`Tree::absorb`]); a cycle where no single one has both
//! channels is reported as not proven.

use std::collections::{BTreeMap, BTreeSet};

/// The channels of one worm that branches, or of several that follow each other along
/// one tree; a channel comes after its parent.
#[derive(Clone, Debug)]
pub(super) struct Tree {
    channels: Vec<u32>,
    parents: Vec<u32>,
    /// Numbers of the worms that take each channel.
    worms: Vec<Vec<u32>>,
    places: BTreeMap<u32, u32>,
}

/// Fewest channels of a cycle: nobody waits for itself.
const SHORTEST: usize = 2;

/// A closed chain of (channel held, worm that holds it).
pub(super) struct Found {
    pub(super) waits: Vec<(u32, u32)>,
    pub(super) proven: bool,
}

impl Tree {
    pub(super) fn new(injection: u32) -> Tree {
        Tree {
            channels: vec![injection],
            parents: vec![0],
            worms: vec![Vec::new()],
            places: BTreeMap::from([(injection, 0)]),
        }
    }

    /// Says whose channels these are.
    pub(super) fn belong_to(&mut self, worm: u32) {
        self.worms.fill(vec![worm]);
    }

    /// Takes in the channels of another tree if both are parts of one tree.
    pub(super) fn absorb(&mut self, other: &Tree) -> bool {
        let fits = other.channels[0] == self.channels[0]
            && other.steps().all(|(held, needed)| {
                !self.places.contains_key(&needed) || self.has_step(held, needed)
            });
        if fits {
            for (place, &channel) in other.channels.iter().enumerate() {
                let above = self.places[&other.channels[other.parents[place] as usize]];
                let here = self.places.get(&channel).copied();
                let here = here
                    .or_else(|| self.grow(above, channel))
                    .expect("new or known");
                self.worms[here as usize].extend(&other.worms[place]);
            }
        }
        fits
    }

    /// A worm that takes this channel, and if one does, both channels.
    pub(super) fn worm_with(&self, held: u32, needed: u32) -> (u32, bool) {
        let of = |channel| &self.worms[self.places[&channel] as usize];
        match of(held).iter().find(|worm| of(needed).contains(worm)) {
            Some(&worm) => (worm, true),
            None => (of(held)[0], false),
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
        self.worms.push(Vec::new());
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

    /// Whether the tree surely holds a channel while it holds the one at `here` and waits
    /// for the one at `place`: its way from where the two part to both of them. A worm
    /// whose end has passed there would let the one at `here` go.
    fn surely_holds(&self, here: u32, place: u32, channel: u32) -> bool {
        let Some(&at) = self.places.get(&channel) else {
            return false;
        };
        let before = self.parents[place as usize];
        // Of worms that follow each other, the one ahead waits, and another may hold.
        if at == before || self.is_several() {
            return at == before;
        }
        let mut parting = here;
        while !self.leads_to(parting, before) {
            parting = self.parents[parting as usize];
        }
        self.leads_to(parting, at) && (self.leads_to(at, before) || self.leads_to(at, here))
    }

    /// All such channels.
    fn sure_channels(&self, here: u32, place: u32) -> impl Iterator<Item = u32> + '_ {
        let sure = move |channel: &u32| self.surely_holds(here, place, *channel);
        self.channels.iter().copied().filter(sure)
    }

    fn is_several(&self) -> bool {
        self.worms[0].len() > 1
    }

    /// The channel that a wait for this one is made from.
    fn before(&self, place: u32) -> u32 {
        self.channels[self.parents[place as usize] as usize]
    }

    fn branches(&self) -> bool {
        let mut seen = BTreeSet::new();
        self.parents
            .iter()
            .skip(1)
            .any(|parent| !seen.insert(parent))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Waiter {
    /// A unicast worm, which may be flushed.
    Unicast,
    /// A host that has a worm in a buffer, and sends it again if it is flushed.
    Adapter,
    /// The tree of this number.
    Tree(u32),
}

/// A channel somebody waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct State {
    channel: u32,
    waiter: Waiter,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Holder {
    /// The worm of this number.
    Unicast(u32),
    /// The tree of this number.
    Tree(u32),
}

/// How a state was reached: from which, and by whom that holds its channel.
type Reached = BTreeMap<State, Option<(State, Holder)>>;

/// `next` are the dependencies of unicast worms; together with the steps of the trees
/// they have no cycle. With `flushes`, no unicast worm waits for a channel that a tree
/// fills with IDLE. Resources from `first_buffer` on are no channels.
pub(super) fn find_cycle(
    next: &[Vec<(u32, u32)>],
    trees: &[Tree],
    flushes: bool,
    first_buffer: u32,
) -> Option<Found> {
    let mut search = Search::new(next, trees);
    (search.flushes, search.first_buffer) = (flushes, first_buffer);
    let (mut best, mut unproven): (Option<Found>, Option<Found>) = (None, None);
    for (number, tree) in trees.iter().enumerate().filter(|(_, tree)| tree.branches()) {
        for place in 1..tree.channels.len() as u32 {
            let limit = best.as_ref().map_or(usize::MAX, |found| found.waits.len());
            if let Some(chain) = search.cycle_from(number as u32, place, limit) {
                let found = name_worms(&chain, trees);
                let kept = if found.proven {
                    &mut best
                } else {
                    &mut unproven
                };
                let shorter = |known: &Found| found.waits.len() < known.waits.len();
                if kept.as_ref().is_none_or(shorter) {
                    *kept = Some(found);
                }
                if best
                    .as_ref()
                    .is_some_and(|best| best.waits.len() == SHORTEST)
                {
                    return best;
                }
            }
        }
    }
    best.or(unproven)
}

fn name_worms(chain: &[(u32, Holder)], trees: &[Tree]) -> Found {
    let mut proven = true;
    let mut passed = BTreeSet::new();
    let mut sure = BTreeSet::new();
    let waits = chain
        .iter()
        .enumerate()
        .map(|(place, &(held, holder))| match holder {
            Holder::Unicast(worm) => {
                proven &= sure.insert(held);
                (held, worm)
            }
            Holder::Tree(number) => {
                let tree = &trees[number as usize];
                let needed = chain[(place + 1) % chain.len()].0;
                let (worm, takes_both) = tree.worm_with(held, needed);
                proven &= takes_both && passed.insert(number);
                // A channel is held by one worm at a time.
                let places = (tree.places[&held], tree.places[&needed]);
                for channel in tree.sure_channels(places.0, places.1) {
                    proven &= sure.insert(channel);
                }
                (held, worm)
            }
        })
        .collect();
    Found { waits, proven }
}

struct Search<'a> {
    next: &'a [Vec<(u32, u32)>],
    trees: &'a [Tree],
    /// Trees that hold a channel.
    holders: BTreeMap<u32, Vec<u32>>,
    flushes: bool,
    first_buffer: u32,
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
            flushes: false,
            first_buffer: u32::MAX,
        }
    }

    /// Whether somebody can wait, as in this state, for the channel of a tree at `here`
    /// while the tree waits for the one at `place`.
    fn may_hold(&self, tree: &Tree, here: u32, place: u32, state: State) -> bool {
        match state.waiter {
            // What is not on the way to the wait is filled with IDLE.
            Waiter::Unicast if self.flushes => here != place && tree.leads_to(here, place),
            Waiter::Tree(other) if !tree.leads_to(place, here) => {
                let other = &self.trees[other as usize];
                let before = other.before(other.places[&state.channel]);
                !tree.surely_holds(here, place, before)
            }
            _ => !tree.leads_to(place, here),
        }
    }

    /// A shortest cycle, of fewer channels than `limit`, in which the tree `start` waits
    /// for its channel at `place`.
    fn cycle_from(&self, start: u32, place: u32, limit: usize) -> Option<Vec<(u32, Holder)>> {
        let home = &self.trees[start as usize];
        let first = State {
            channel: home.channels[place as usize],
            waiter: Waiter::Tree(start),
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
                    && self.may_hold(home, here, place, state)
                {
                    return Some(trace(&seen.reached, state, Holder::Tree(start)));
                }
                self.step(state, start, home.before(place), &mut seen);
            }
            length += 1;
        }
        None
    }

    /// Whoever may hold the channel of this state, and what they may wait for; `taken` is
    /// a channel that the tree `start` holds.
    fn step(&self, state: State, start: u32, taken: u32, seen: &mut Seen) {
        let Seen {
            reached,
            left,
            after,
        } = seen;
        let mut reach = |to: State, holder: Holder| {
            reached.entry(to).or_insert_with(|| {
                after.push(to);
                Some((state, holder))
            });
        };
        let waiter = if state.channel >= self.first_buffer {
            Waiter::Adapter
        } else {
            Waiter::Unicast
        };
        for &(channel, worm) in &self.next[state.channel as usize] {
            reach(State { channel, waiter }, Holder::Unicast(worm));
        }
        for &number in self.holders.get(&state.channel).into_iter().flatten() {
            if number == start || Waiter::Tree(number) == state.waiter {
                continue;
            }
            let tree = &self.trees[number as usize];
            let here = tree.places[&state.channel];
            let left = left
                .entry(number)
                .or_insert_with(|| (1..tree.channels.len() as u32).collect());
            left.retain(|&place| {
                let holds = self.may_hold(tree, here, place, state)
                    && !tree.surely_holds(here, place, taken);
                if holds {
                    let channel = tree.channels[place as usize];
                    let waiter = Waiter::Tree(number);
                    reach(State { channel, waiter }, Holder::Tree(number));
                }
                !holds
            });
        }
    }
}

/// The chain from the first state to this one, whose channel `holder` holds.
fn trace(reached: &Reached, last: State, holder: Holder) -> Vec<(u32, Holder)> {
    let mut chain = vec![(last.channel, holder)];
    let mut at = last;
    while let Some((before, holder)) = reached[&at] {
        chain.push((before.channel, holder));
        at = before;
    }
    chain.reverse();
    chain
}
