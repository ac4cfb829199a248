//! New paths for the pairs that lost theirs, everything else as it is.
//!
//! The dependencies of the routes in force leave an order of channels open wherever they
//! do not need it. A new path may make any turn that closes no cycle with them, legal in
//! up\*/down\* or not, so that it has more freedom than any one order of the switches has
//! (as in Domke, Hoefler, Matsuoka, "Routing on the dependency graph", HPDC 2016).

use std::collections::BTreeSet;

use super::channels::Channels;
use super::dependencies::Dependencies;
use super::paths::{Path, Paths, Side};
use wormcast_wire::SWITCHES_CROSSED_MAX;

/// Paths for all pairs that `needed` has: the old one where it survives, else a shortest
/// one that closes no cycle with all the others. Pairs for which there is none are left
/// without. `graph` holds the dependencies of the routes in force, and gains the new.
pub(crate) fn plan(
    channels: &Channels,
    old: &Paths,
    needed: &Paths,
    graph: &mut Dependencies,
) -> Paths {
    let mut paths = Paths::none(channels, Side::New);
    let mut lost = Vec::new();
    for (from, to) in needed.pairs() {
        if old.survives(channels, from, to) {
            paths.set(from, to, old.get(from, to).cloned());
        } else if let Some(path) = needed.get(from, to) {
            lost.push((path.len(), from, to));
        }
    }
    // Near pairs first: they have the least choice.
    lost.sort_unstable();
    let mut search = Search::new(channels);
    for (_, from, to) in lost {
        let at = |place: usize| channels.places[place].new.expect("it has a path there");
        paths.set(from, to, search.find(graph, at(from), at(to)));
    }
    paths
}

struct Search<'c> {
    channels: &'c Channels,
    /// Channel before each channel; itself for the first of a path.
    from: Vec<u32>,
    queue: Vec<u32>,
    /// Turns that close a cycle together with others of the same path.
    refused: BTreeSet<(u32, u32)>,
}

const UNSEEN: u32 = u32::MAX;

impl<'c> Search<'c> {
    fn new(channels: &'c Channels) -> Search<'c> {
        let from = vec![UNSEEN; channels.len()];
        Search {
            channels,
            from,
            queue: Vec::new(),
            refused: BTreeSet::new(),
        }
    }

    /// A shortest path whose turns can be added to the graph, and adds them.
    fn find(&mut self, graph: &mut Dependencies, start: u32, end: u32) -> Option<Path> {
        if start == end {
            return Some(Box::new([]));
        }
        self.refused.clear();
        loop {
            let path = self.search(graph, start, end)?;
            let turns: Vec<(u32, u32)> = path.windows(2).map(|pair| (pair[0], pair[1])).collect();
            match graph.add_all(&turns) {
                Ok(()) => return Some(path),
                Err(number) => self.refused.insert(turns[number]),
            };
        }
    }

    fn search(&mut self, graph: &mut Dependencies, start: u32, end: u32) -> Option<Path> {
        self.from.fill(UNSEEN);
        self.queue.clear();
        for &channel in self.channels.from(start) {
            self.from[channel as usize] = channel;
            self.queue.push(channel);
        }
        let mut done = 0;
        while let Some(&at) = self.queue.get(done) {
            done += 1;
            if self.channels.hop(at).to == end {
                let path = self.trace(at);
                return (path.len() < SWITCHES_CROSSED_MAX).then_some(path);
            }
            for &next in self.channels.from(self.channels.hop(at).to) {
                if next != at ^ 1
                    && self.from[next as usize] == UNSEEN
                    && !self.refused.contains(&(at, next))
                    && graph.admits(at, next)
                {
                    self.from[next as usize] = at;
                    self.queue.push(next);
                }
            }
        }
        None
    }

    fn trace(&self, last: u32) -> Path {
        let mut path = vec![last];
        let mut at = last;
        while self.from[at as usize] != at {
            at = self.from[at as usize];
            path.push(at);
        }
        path.reverse();
        path.into()
    }
}
