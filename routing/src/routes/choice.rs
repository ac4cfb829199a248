//! RMIT, RRMIT, PIT and RRMIT-MIN: which paths of a pair are kept, in which order, and
//! what share of the worms takes each.

use rand_chacha::ChaCha8Rng;
use rand_core::SeedableRng;

use super::Algorithm;
use crate::intransit::{Lengths, PATHS_MAX, PathGraph, crossed, mix};
use crate::topology::Topology;
use crate::updown::UpDown;
use wormcast_wire::{ALTERNATIVES_MAX, SHARES_WHOLE, SWITCHES_CROSSED_MAX};

const _: () = assert!(
    2 * PATHS_MAX <= ALTERNATIVES_MAX,
    "PIT keeps paths of two lengths"
);

/// What the choice depends on.
pub(crate) struct Choice<'a> {
    pub(crate) topology: &'a Topology,
    pub(crate) updown: &'a UpDown,
    pub(crate) lengths: &'a Lengths,
    pub(crate) algorithm: Algorithm,
    pub(crate) seed: u64,
}

impl Choice<'_> {
    /// Paths from one switch to another and the share of each; empty if no shortest path
    /// fits on the wire. The draw depends on the seed and the ids of the two alone.
    pub(crate) fn paths(&self, from: u32, to: u32) -> Vec<(Vec<u32>, u32)> {
        if from == to {
            return vec![(Vec::new(), SHARES_WHOLE)];
        }
        let mut rng = ChaCha8Rng::seed_from_u64(self.seed);
        let [a, b] = [from, to].map(|switch| u64::from(self.topology.switch_id(switch).0));
        rng.set_stream(a << 16 | b);
        let mut shortest = self.draw(from, to, 0, &mut rng);
        match self.algorithm {
            Algorithm::Pit => {
                let mut longer = self.draw(from, to, 1, &mut rng);
                self.sort(&mut shortest);
                self.sort(&mut longer);
                probabilistic(shortest, longer)
            }
            Algorithm::Rrmit | Algorithm::RrmitMin => {
                self.sort(&mut shortest);
                let start = mix(a << 16 | b) % shortest.len().max(1) as u64;
                shared(in_turn(shortest, start as usize), SHARES_WHOLE)
            }
            _ => {
                self.sort(&mut shortest);
                shared(shortest, SHARES_WHOLE)
            }
        }
    }

    fn draw(&self, from: u32, to: u32, longer: u32, rng: &mut ChaCha8Rng) -> Vec<Vec<u32>> {
        let graph = PathGraph::new(self.topology, self.updown, self.lengths, (from, to), longer);
        graph.draw(PATHS_MAX, rng, |arcs| {
            let fits = crossed(self.updown, arcs) <= SWITCHES_CROSSED_MAX;
            fits && (longer == 0 || self.is_simple(from, arcs))
        })
    }

    /// Whether no switch is passed twice.
    fn is_simple(&self, from: u32, arcs: &[u32]) -> bool {
        let mut passed: Vec<u32> = arcs
            .iter()
            .map(|&arc| self.topology.arcs()[arc as usize].to)
            .chain([from])
            .collect();
        passed.sort_unstable();
        passed.windows(2).all(|pair| pair[0] != pair[1])
    }

    /// Fewest switches crossed first, then by the numbers of the arcs.
    fn sort(&self, paths: &mut [Vec<u32>]) {
        paths.sort_by_cached_key(|arcs| (crossed(self.updown, arcs), arcs.clone()));
    }
}

/// Equal shares of so many parts.
fn shared(paths: Vec<Vec<u32>>, parts: u32) -> Vec<(Vec<u32>, u32)> {
    let each = parts / paths.len().max(1) as u32;
    paths.into_iter().map(|arcs| (arcs, each)).collect()
}

/// PIT: 80 % over the shortest paths, 20 % over those one hop longer; all over either
/// where there is none of the other.
fn probabilistic(shortest: Vec<Vec<u32>>, longer: Vec<Vec<u32>>) -> Vec<(Vec<u32>, u32)> {
    let of_longer = match (shortest.is_empty(), longer.is_empty()) {
        (_, true) => 0,
        (true, false) => SHARES_WHOLE,
        (false, false) => SHARES_WHOLE / 5,
    };
    let mut paths = shared(shortest, SHARES_WHOLE - of_longer);
    paths.extend(shared(longer, of_longer));
    paths
}

/// Order for taking turns: each path shares as few links as may be with the one before
/// it, then with all before. It starts at a different place for each pair, so that
/// senders do not go in step.
fn in_turn(mut paths: Vec<Vec<u32>>, start: usize) -> Vec<Vec<u32>> {
    if paths.is_empty() {
        return paths;
    }
    let common = |a: &[u32], b: &[u32]| a.iter().filter(|arc| b.contains(arc)).count();
    let mut ordered = vec![paths.remove(start)];
    while !paths.is_empty() {
        let last = ordered.last().expect("not empty");
        let nearness = |path: &Vec<u32>| {
            let with_all: usize = ordered.iter().map(|other| common(path, other)).sum();
            (common(path, last), with_all)
        };
        let best = (0..paths.len())
            .min_by_key(|&index| nearness(&paths[index]))
            .expect("not empty");
        let best = paths.remove(best);
        ordered.push(best);
    }
    ordered
}
