//! How remote every switch is: its eccentricity and the sum of its distances.
//!
//! Breadth-first searches from [`SOURCES`] switches go on side by side, a bit of a word
//! for each; a switch passes on what is new to it. No more work than search by search,
//! and in networks of small diameter a hundredth of it.

use crate::topology::Topology;

/// Words of bits at each switch.
const WORDS: usize = 4;
/// Searches that go on side by side.
const SOURCES: usize = 64 * WORDS;

type Bits = [u64; WORDS];

/// Distances of every switch, by index, to those in its part of the fabric.
#[derive(Debug)]
pub(crate) struct Remoteness {
    /// To the farthest, in links.
    pub eccentricity: Vec<u32>,
    /// To all of them together, in links.
    pub sum: Vec<u64>,
}

impl Remoteness {
    pub(crate) fn of(topology: &Topology) -> Remoteness {
        let switches = topology.switch_count();
        let mut found = Remoteness {
            eccentricity: vec![0; switches],
            sum: vec![0; switches],
        };
        let mut search = Search {
            topology,
            seen: vec![[0; WORDS]; switches],
            new: vec![[0; WORDS]; switches],
            arriving: vec![[0; WORDS]; switches],
            active: Vec::with_capacity(switches),
            touched: Vec::with_capacity(switches),
        };
        for first in (0..switches).step_by(SOURCES) {
            search.start(first, (first + SOURCES).min(switches));
            let mut distance = 0;
            while search.advance() {
                distance += 1;
                // Links lead both ways, so that the distance from is the distance to.
                for &switch in &search.active {
                    let new = search.new[switch as usize];
                    let count: u32 = new.iter().map(|word| word.count_ones()).sum();
                    found.sum[switch as usize] += u64::from(distance) * u64::from(count);
                    let farthest = &mut found.eccentricity[switch as usize];
                    *farthest = (*farthest).max(distance);
                }
            }
        }
        found
    }
}

struct Search<'a> {
    topology: &'a Topology,
    /// Sources that have reached each switch.
    seen: Vec<Bits>,
    /// Sources that have just reached it.
    new: Vec<Bits>,
    /// Sources that reach a neighbour of it.
    arriving: Vec<Bits>,
    /// Switches that some source has just reached.
    active: Vec<u32>,
    /// Switches with something arriving.
    touched: Vec<u32>,
}

impl Search<'_> {
    fn start(&mut self, first: usize, last: usize) {
        self.seen.fill([0; WORDS]);
        self.active.clear();
        for (bit, switch) in (first..last).enumerate() {
            let mut only = [0; WORDS];
            only[bit / 64] = 1 << (bit % 64);
            self.seen[switch] = only;
            self.new[switch] = only;
            self.active.push(switch as u32);
        }
    }

    /// One link further; false if no source has reached anything new.
    fn advance(&mut self) -> bool {
        self.touched.clear();
        for &at in &self.active {
            let new = self.new[at as usize];
            for arc in self.topology.arcs_of(at) {
                let arriving = &mut self.arriving[arc.to as usize];
                if *arriving == [0; WORDS] {
                    self.touched.push(arc.to);
                }
                for (arriving, new) in arriving.iter_mut().zip(new) {
                    *arriving |= new;
                }
            }
        }
        self.active.clear();
        for &at in &self.touched {
            let arriving = std::mem::take(&mut self.arriving[at as usize]);
            let seen = &mut self.seen[at as usize];
            let new = &mut self.new[at as usize];
            for ((new, seen), arriving) in new.iter_mut().zip(seen).zip(arriving) {
                *new = arriving & !*seen;
                *seen |= arriving;
            }
            if *new != [0; WORDS] {
                self.active.push(at);
            }
        }
        !self.active.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::generate::from_spec;
    use crate::topology::Damage;
    use wormcast_wire::SwitchId;

    fn distances(topology: &Topology, from: u32) -> Vec<u32> {
        let mut found = vec![u32::MAX; topology.switch_count()];
        found[from as usize] = 0;
        let mut queue = vec![from];
        let mut next = 0;
        while let Some(&at) = queue.get(next) {
            next += 1;
            for arc in topology.arcs_of(at) {
                if found[arc.to as usize] == u32::MAX {
                    found[arc.to as usize] = found[at as usize] + 1;
                    queue.push(arc.to);
                }
            }
        }
        found.retain(|&distance| distance != u32::MAX);
        found
    }

    #[test]
    fn agrees_with_one_search_after_another() {
        let cut = Damage {
            switches: BTreeSet::from([SwitchId(40), SwitchId(90)]),
            ..Damage::default()
        };
        for topology in [
            from_spec("line:1").unwrap(),
            from_spec("irregular:600:4").unwrap(),
            from_spec("mesh:20x15").unwrap(),
            from_spec("ring:300").unwrap().without(&cut).unwrap(),
        ] {
            let found = Remoteness::of(&topology);
            for switch in 0..topology.switch_count() as u32 {
                let distances = distances(&topology, switch);
                let sum: u64 = distances.iter().map(|&distance| u64::from(distance)).sum();
                assert_eq!(found.sum[switch as usize], sum);
                let farthest = distances.iter().max();
                assert_eq!(Some(&found.eccentricity[switch as usize]), farthest);
            }
        }
    }
}
