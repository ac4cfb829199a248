//! OSUD: one shortest legal path for each pair of switches, load spread over equals.
//!
//! For each destination, every switch hands the traffic that meets there to one of its
//! arcs that lead on along shortest paths ([`ShortestArcs`]): the one with the least load on its
//! link, plus the
//! least on a link after that, plus what has met at the next switch already; ties to the
//! lowest port. Load is counted in pairs of hosts and carries over from one destination
//! to the next. Looking one link ahead lowers the load of the busiest link by 2 to 10 % in
//! irregular networks of 64 switches (at 16 not at all), by a quarter in tori and to a
//! third in fat trees, against the load of the next link alone. Time O(switches · links),
//! though a switch looks closely only at the links that lead on, two or three of them.
//! Early choices know little of the load to come, which weighs in small networks: these
//! are refined ([`refine`]).

use std::ops::Range;

use super::ranks::{Ranks, state};
use super::refine::refine;
use super::shortest_arcs::{BLOCK, Length, ShortestArcs, TooLong, WORD};
use super::{NO_SLOT, NextHops, Phase};
use crate::topology::Topology;
use crate::updown::UpDown;

/// Networks of so many switches are refined unasked, by one sweep: it takes about as long
/// as all the rest, here a few milliseconds.
const REFINED_SWITCHES_MAX: usize = 256;

/// What is known of a state for one destination.
#[derive(Clone, Copy, Debug, Default)]
struct Meeting {
    /// Traffic that has met here, in pairs of hosts.
    flow: u32,
    /// Least load of a link on the way on from here.
    ahead: u32,
}

#[derive(Clone, Copy, Debug)]
struct Channel {
    /// The state it leads to.
    next: u32,
    /// Pairs of hosts routed over it so far; 65,535 hosts make less than 2³² pairs.
    load: u32,
}

struct Planner<'a> {
    ranks: &'a Ranks,
    channels: Vec<Channel>,
    meetings: Vec<Meeting>,
    /// Slots that lead on from either phase of each rank, a word of them after another.
    words: Vec<[u64; 2]>,
}

/// Plans the next hops to all switches.
pub(super) fn plan(topology: &Topology, updown: &UpDown) -> NextHops {
    let ranks = Ranks::new(topology, updown);
    let mut tables = plan_with::<u8>(&ranks)
        .or_else(|TooLong| plan_with::<u16>(&ranks))
        .expect("no path is longer than twice the switches");
    if topology.switch_count() <= REFINED_SWITCHES_MAX {
        refine(&ranks, &mut tables, 1);
    }
    tables
}

fn plan_with<L: Length>(ranks: &Ranks) -> Result<NextHops, TooLong> {
    let switches = ranks.len();
    let mut tables = NextHops::new(switches);
    let mut arcs = ShortestArcs::<L>::new(ranks);
    let mut planner = Planner {
        ranks,
        channels: ranks
            .next
            .iter()
            .map(|&next| Channel { next, load: 0 })
            .collect(),
        meetings: vec![Meeting::default(); 2 * switches],
        words: Vec::with_capacity(switches),
    };
    for first in (0..switches).step_by(BLOCK) {
        let block = first..(first + BLOCK).min(switches);
        arcs.find(ranks, block.clone())?;
        for dst in block {
            planner.look_ahead(&arcs, dst, dst - first);
            planner.choose(dst, &mut tables);
        }
    }
    Ok(tables)
}

impl Planner<'_> {
    /// Notes what each switch sends, its next arcs, and the least load on them.
    fn look_ahead<L: Length>(&mut self, arcs: &ShortestArcs<L>, dst: usize, column: usize) {
        let into = self.ranks.hosts[self.ranks.rank[dst] as usize];
        self.words.clear();
        for (rank, meetings) in self.meetings.chunks_exact_mut(2).enumerate() {
            let channels = &self.channels[self.ranks.arcs_of(rank)];
            let mut ahead = [u32::MAX; 2];
            for (words, channels) in arcs.words(rank, column).zip(channels.chunks(WORD)) {
                self.words.push(words);
                for (ahead, word) in ahead.iter_mut().zip(words) {
                    each(word, |slot| *ahead = (*ahead).min(channels[slot].load));
                }
            }
            let flow = into * self.ranks.hosts[rank];
            for (meeting, (flow, ahead)) in
                meetings.iter_mut().zip([flow, 0].into_iter().zip(ahead))
            {
                // Where nothing leads on, the destination is.
                let ahead = if ahead == u32::MAX { 0 } else { ahead };
                *meeting = Meeting { flow, ahead };
            }
        }
    }

    /// Hands all traffic on, in the order in which it meets.
    fn choose(&mut self, dst: usize, tables: &mut NextHops) {
        let (up_row, down_row) = tables.rows_mut(dst as u32);
        let mut word = self.words.len();
        for rank in (0..self.ranks.len()).rev() {
            let words = self.ranks.arcs_of(rank).len().div_ceil(WORD);
            word -= words;
            let slot = self.hand_on(rank, Phase::Up, word..word + words);
            up_row[self.ranks.switch[rank] as usize] = slot;
        }
        for rank in 0..self.ranks.len() {
            let words = self.ranks.arcs_of(rank).len().div_ceil(WORD);
            let slot = self.hand_on(rank, Phase::Down, word..word + words);
            down_row[self.ranks.switch[rank] as usize] = slot;
            word += words;
        }
    }

    #[inline]
    fn hand_on(&mut self, rank: usize, phase: Phase, words: Range<usize>) -> u8 {
        let channels = &mut self.channels[self.ranks.arcs_of(rank)];
        // Slots ascend with ports, so that the first of equals has the lowest port.
        let mut best = u64::MAX;
        for (place, words) in self.words[words].iter().enumerate() {
            each(words[phase as usize], |slot| {
                let slot = place * WORD + slot;
                let channel = channels[slot];
                let beyond = self.meetings[channel.next as usize];
                let cost =
                    u64::from(channel.load) + u64::from(beyond.ahead) + u64::from(beyond.flow);
                best = best.min(cost << u8::BITS | slot as u64);
            });
        }
        if best == u64::MAX {
            return NO_SLOT;
        }
        let slot = best as u8;
        let flow = self.meetings[state(rank as u32, phase) as usize].flow;
        let channel = &mut channels[usize::from(slot)];
        channel.load += flow;
        self.meetings[channel.next as usize].flow += flow;
        slot
    }
}

/// Visits the bits of a word: the first, the last, then those between. Most words have
/// one or two; without a loop for these, the processor mispredicts less.
#[inline(always)]
fn each(word: u64, mut visit: impl FnMut(usize)) {
    if word == 0 {
        return;
    }
    let (first, last) = (word.trailing_zeros(), 63 - word.leading_zeros());
    visit(first as usize);
    visit(last as usize);
    let mut rest = word & (word - 1) & !(1 << last);
    while rest != 0 {
        visit(rest.trailing_zeros() as usize);
        rest &= rest - 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::from_spec;
    use crate::routes::flows::channel_loads;

    fn rows(tables: &NextHops, switches: u32) -> Vec<Vec<u8>> {
        let phases = [Phase::Up, Phase::Down];
        (0..switches)
            .flat_map(|dst| phases.map(|phase| tables.row(dst, phase).to_vec()))
            .collect()
    }

    #[test]
    fn the_type_of_lengths_makes_no_difference() {
        for spec in [
            "irregular:90:3",
            "irregular:70:1:2:7",
            "torus:6",
            "fat-tree:4",
            "line:40",
        ] {
            let topology = from_spec(spec).unwrap();
            let updown = UpDown::new(&topology, None).unwrap();
            let ranks = Ranks::new(&topology, &updown);
            let [short, long] = [plan_with::<u8>(&ranks), plan_with::<u16>(&ranks)];
            let switches = topology.switch_count() as u32;
            assert_eq!(
                rows(&short.unwrap(), switches),
                rows(&long.unwrap(), switches),
                "{spec}"
            );
        }
    }

    /// Largest loads before any refinement; without looking ahead they are a third larger
    /// in tori, and up to three times as large in fat trees.
    #[test]
    fn looking_one_link_ahead_spreads_the_load() {
        let bounds = [
            ("torus:8", 285),
            ("torus:4x4x4", 122),
            ("fat-tree:8", 180),
            ("fat-tree:16", 1750),
        ];
        for (spec, busiest_most) in bounds {
            let topology = from_spec(spec).unwrap();
            let updown = UpDown::new(&topology, None).unwrap();
            let ranks = Ranks::new(&topology, &updown);
            let loads = channel_loads(&ranks, &plan_with::<u8>(&ranks).unwrap());
            let busiest = loads.into_iter().max().unwrap();
            assert!(busiest <= busiest_most, "{spec}: {busiest}");
        }
    }

    #[test]
    fn lengths_that_do_not_fit_are_noticed() {
        for (switches, fits) in [(254, true), (255, false), (600, false)] {
            let topology = from_spec(&format!("line:{switches}")).unwrap();
            let root = Some(wormcast_wire::SwitchId(0));
            let updown = UpDown::new(&topology, root).unwrap();
            let ranks = Ranks::new(&topology, &updown);
            assert_eq!(plan_with::<u8>(&ranks).is_ok(), fits, "{switches}");
            assert!(plan_with::<u16>(&ranks).is_ok());
        }
    }
}
