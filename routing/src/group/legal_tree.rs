//! Trees of few links from one switch to others, every branch a legal path.
//!
//! A tree with fewest links is a Steiner tree, which is hard to find; here each switch
//! in turn, nearest first, is joined to the tree by a shortest legal way (Takahashi and
//! Matsuyama, 1980), and then the ways to switches at the ends are taken away and looked
//! for anew until no link is saved. A switch that a path passes going up and another going
//! down counts as two places, because from the second no way leads up.

use super::least::Least;
use crate::topology::Topology;
use crate::updown::UpDown;
use wormcast_wire::SWITCHES_CROSSED_MAX;

const NONE: u32 = u32::MAX;
/// Most passes that look for shorter ways.
const PASSES_MAX: usize = 4;

/// Which way the tree may go from its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    /// Up, then down.
    Legal,
    /// Down only: between any two places of the tree the way through it is legal then.
    Down,
}

/// What a tree is grown for, and by which of equal ways.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Growth {
    /// Where equal ways differ, another is taken for another turn.
    pub(super) turn: u32,
    /// Least links: each way joins the tree where it is nearest. Least depth: each way is a shortest
    /// from the start.
    pub(super) least: Least,
}

/// A tree over places: switch and whether the way there has gone down.
pub(super) struct LegalTree<'t> {
    topology: &'t Topology,
    updown: &'t UpDown,
    start: u32,
    growth: Growth,
    /// Arc to each place of the tree, and the place before it.
    arc: Vec<u32>,
    before: Vec<u32>,
    inside: Vec<bool>,
    /// Branches that leave each place.
    children: Vec<u32>,
    /// For each terminal, the place that serves it.
    served_at: Vec<u32>,
    search: Search,
}

/// A search's scratch: arc to and place before each place seen.
struct Search {
    seen: Vec<u32>,
    round: u32,
    arc: Vec<u32>,
    before: Vec<u32>,
    queue: Vec<u32>,
}

impl<'t> LegalTree<'t> {
    /// Grows a tree from a switch to these; `None` if one is out of reach, or farther
    /// than a worm may go.
    pub(super) fn grow(
        topology: &'t Topology,
        updown: &'t UpDown,
        start: u32,
        direction: Direction,
        growth: Growth,
        terminals: &[u32],
    ) -> Option<LegalTree<'t>> {
        let places = 2 * topology.switch_count();
        let mut tree = LegalTree {
            topology,
            updown,
            start: 2 * start + u32::from(direction == Direction::Down),
            growth,
            arc: vec![NONE; places],
            before: vec![NONE; places],
            inside: vec![false; places],
            children: vec![0; places],
            served_at: vec![NONE; terminals.len()],
            search: Search {
                seen: vec![0; places],
                round: 0,
                arc: vec![NONE; places],
                before: vec![NONE; places],
                queue: Vec::with_capacity(places),
            },
        };
        tree.inside[tree.start as usize] = true;
        let mut wanted = vec![NONE; topology.switch_count()];
        for (number, &terminal) in terminals.iter().enumerate() {
            wanted[terminal as usize] = number as u32;
        }
        tree.serve(tree.start, &mut wanted);
        match growth.least {
            Least::Links => {
                while tree.served_at.contains(&NONE) {
                    let found = tree.find(|switch| wanted[switch as usize] != NONE)?;
                    tree.attach(found, |tree, place| tree.serve(place, &mut wanted));
                }
                tree.shorten(terminals);
            }
            Least::Depth => {
                // One search from the start alone finds a shortest way to every place.
                tree.find(|_| false);
                for &terminal in terminals {
                    let seen = |place: &u32| tree.search.seen[*place as usize] == tree.search.round;
                    let depth = |place: &u32| tree.searched_depth(*place);
                    let ends = [2 * terminal, 2 * terminal + 1].into_iter().filter(seen);
                    let end = ends.min_by_key(depth)?;
                    tree.attach(end, |tree, place| tree.serve(place, &mut wanted));
                }
            }
        }
        let depth = |place| tree.path(place).len();
        let fits = |place: &u32| depth(*place) < SWITCHES_CROSSED_MAX;
        tree.served_at.iter().all(fits).then_some(tree)
    }

    pub(super) fn links(&self) -> usize {
        self.inside.iter().filter(|inside| **inside).count() - 1
    }

    /// Arcs from the start to each terminal, in the order they were given.
    pub(super) fn paths(&self) -> Vec<Vec<u32>> {
        self.served_at
            .iter()
            .map(|&place| self.path(place))
            .collect()
    }

    fn path(&self, mut place: u32) -> Vec<u32> {
        let mut arcs = Vec::new();
        while place != self.start {
            arcs.push(self.arc[place as usize]);
            place = self.before[place as usize];
        }
        arcs.reverse();
        arcs
    }

    /// Links from the start to a place that the last search has seen, where the tree was the start
    /// alone.
    fn searched_depth(&self, mut place: u32) -> u32 {
        let mut depth = 0;
        while place != self.start {
            place = self.search.before[place as usize];
            depth += 1;
        }
        depth
    }

    fn serve(&mut self, place: u32, wanted: &mut [u32]) {
        let number = std::mem::replace(&mut wanted[place as usize / 2], NONE);
        if number != NONE {
            self.served_at[number as usize] = place;
        }
    }

    /// The nearest place, seen from all of the tree, whose switch will do.
    fn find(&mut self, will_do: impl Fn(u32) -> bool) -> Option<u32> {
        let search = &mut self.search;
        search.round += 1;
        search.queue.clear();
        for (place, _) in (0..).zip(&self.inside).filter(|(_, inside)| **inside) {
            search.seen[place as usize] = search.round;
            search.queue.push(place);
        }
        let mut next = 0;
        while let Some(&place) = search.queue.get(next) {
            next += 1;
            if will_do(place / 2) {
                return Some(place);
            }
            let (switch, went_down) = (place / 2, place % 2);
            let first = self.topology.arc_first(switch);
            let arcs = self.topology.arcs_of(switch);
            for step in 0..arcs.len() {
                let number = (step + self.growth.turn as usize) % arcs.len();
                let (arc, index) = (&arcs[number], first + number as u32);
                let down = u32::from(!self.updown.is_up(index));
                let to = 2 * arc.to + down;
                if down >= went_down && search.seen[to as usize] != search.round {
                    search.seen[to as usize] = search.round;
                    search.arc[to as usize] = index;
                    search.before[to as usize] = place;
                    search.queue.push(to);
                }
            }
        }
        None
    }

    /// Adds the way that was found to this place, and calls `visit` for each new place.
    fn attach(&mut self, found: u32, mut visit: impl FnMut(&mut Self, u32)) {
        let mut place = found;
        while !self.inside[place as usize] {
            let before = self.search.before[place as usize];
            self.inside[place as usize] = true;
            self.arc[place as usize] = self.search.arc[place as usize];
            self.before[place as usize] = before;
            self.children[before as usize] += 1;
            visit(self, place);
            place = before;
        }
    }

    /// Takes away the way to each terminal that ends a branch, and looks for a shorter one.
    fn shorten(&mut self, terminals: &[u32]) {
        // Terminals that each place serves: such a place stays.
        let mut serves = vec![0u32; self.inside.len()];
        for &place in &self.served_at {
            serves[place as usize] += 1;
        }
        for _ in 0..PASSES_MAX {
            let links = self.links();
            for (number, &terminal) in terminals.iter().enumerate() {
                let end = self.served_at[number];
                if self.children[end as usize] > 0 || end == self.start {
                    continue;
                }
                serves[end as usize] -= 1;
                let mut place = end;
                while place != self.start
                    && self.children[place as usize] == 0
                    && serves[place as usize] == 0
                {
                    self.inside[place as usize] = false;
                    place = self.before[place as usize];
                    self.children[place as usize] -= 1;
                }
                // The way that was taken away is still there to be found.
                if let Some(found) = self.find(|switch| switch == terminal) {
                    self.attach(found, |_, _| ());
                    self.served_at[number] = found;
                    serves[found as usize] += 1;
                }
            }
            if self.links() == links {
                break;
            }
        }
    }
}
