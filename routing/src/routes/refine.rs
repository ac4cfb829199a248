//! Moves traffic off busy links, along other shortest legal paths.
//!
//! For every destination, and every state with more than one way on, the traffic that
//! meets there moves to another way if that lowers the load of the busiest link of those
//! it touches: those it leaves and those it joins, up to where the two paths meet again.
//! Each move makes the list of loads, sorted from the busiest, smaller in dictionary
//! order; so the busiest link never gets busier, and the moves come to an end.

use super::flows::{Flows, channel_loads};
use super::ranks::{Ranks, rank_of};
use super::shortest_arcs::{BLOCK, Length, ShortestArcs, TooLong, WORD};
use super::{NO_SLOT, NextHops, Phase};

/// Refines next hops that follow shortest legal paths, in so many sweeps over all
/// destinations at most. Gives the number of moves.
pub(super) fn refine(ranks: &Ranks, tables: &mut NextHops, sweeps_max: usize) -> u64 {
    let mut refiner = Refiner {
        loads: channel_loads(ranks, tables),
        flows: Flows::new(ranks),
        ranks,
    };
    refiner
        .sweep::<u8>(tables, sweeps_max)
        .or_else(|TooLong| refiner.sweep::<u16>(tables, sweeps_max))
        .expect("no path is longer than twice the switches")
}

struct Refiner<'a> {
    ranks: &'a Ranks,
    loads: Vec<u32>,
    flows: Flows,
}

impl Refiner<'_> {
    fn sweep<L: Length>(&mut self, tables: &mut NextHops, sweeps: usize) -> Result<u64, TooLong> {
        let mut arcs = ShortestArcs::<L>::new(self.ranks);
        let mut moves = 0;
        for _ in 0..sweeps {
            let before = moves;
            for first in (0..self.ranks.len()).step_by(BLOCK) {
                let block = first..(first + BLOCK).min(self.ranks.len());
                arcs.find(self.ranks, block.clone())?;
                for dst in block {
                    moves += self.reroute(&arcs, dst as u32, dst - first, tables);
                }
            }
            if moves == before {
                break;
            }
        }
        Ok(moves)
    }

    fn reroute<L: Length>(
        &mut self,
        arcs: &ShortestArcs<L>,
        dst: u32,
        column: usize,
        tables: &mut NextHops,
    ) -> u64 {
        self.flows.hand_on(self.ranks, tables, dst, |_, _| {});
        let mut moves = 0;
        for state in self.ranks.states_onward() {
            let flow = self.flows.states[state as usize];
            if flow == 0 {
                continue;
            }
            let rank = rank_of(state);
            for (place, words) in arcs.words(rank, column).enumerate() {
                let mut word = words[(state % 2) as usize];
                // Of a single way on there is no other.
                if word & word.wrapping_sub(1) == 0 && self.ranks.arcs_of(rank).len() <= WORD {
                    continue;
                }
                while word != 0 {
                    let slot = (place * WORD) as u32 + word.trailing_zeros();
                    word &= word - 1;
                    moves += u64::from(self.try_move(tables, dst, state, slot as u8, flow));
                }
            }
        }
        moves
    }

    /// Moves the traffic of a state to another slot, if that is better.
    fn try_move(
        &mut self,
        tables: &mut NextHops,
        dst: u32,
        state: u32,
        slot: u8,
        flow: u32,
    ) -> bool {
        let rank = rank_of(state);
        let (up_row, down_row) = tables.rows_mut(dst);
        let switch = self.ranks.switch[rank] as usize;
        let row = if state % 2 == Phase::Up as u32 {
            &mut *up_row
        } else {
            &mut *down_row
        };
        let old_slot = row[switch];
        if old_slot == slot {
            return false;
        }
        row[switch] = slot;
        let first = self.ranks.arcs_of(rank).start;
        let start = (first + usize::from(old_slot), first + usize::from(slot));
        let (mut busiest, mut joined) = (0, 0);
        self.side_by_side(start, [up_row, down_row], |refiner, (old, new)| {
            busiest = busiest.max(refiner.loads[old]);
            joined = joined.max(refiner.loads[new]);
        });
        let better = u64::from(joined) + u64::from(flow) < u64::from(busiest);
        if !better {
            let row = if state % 2 == Phase::Up as u32 {
                up_row
            } else {
                down_row
            };
            row[switch] = old_slot;
            return false;
        }
        self.side_by_side(start, [up_row, down_row], |refiner, (old, new)| {
            refiner.loads[old] -= flow;
            refiner.flows.states[refiner.ranks.next[old] as usize] -= flow;
            refiner.loads[new] += flow;
            refiner.flows.states[refiner.ranks.next[new] as usize] += flow;
        });
        true
    }

    /// Visits the arcs of two equally long paths to the destination, until they meet.
    fn side_by_side(
        &mut self,
        start: (usize, usize),
        rows: [&[u8]; 2],
        mut visit: impl FnMut(&mut Self, (usize, usize)),
    ) {
        let (mut old, mut new) = start;
        loop {
            visit(self, (old, new));
            let (a, b) = (self.ranks.next[old], self.ranks.next[new]);
            if a == b || rank_of(a) == rank_of(b) {
                return;
            }
            let on = |state: u32| {
                let rank = rank_of(state);
                let slot = rows[(state % 2) as usize][self.ranks.switch[rank] as usize];
                debug_assert_ne!(slot, NO_SLOT, "a way leads on");
                self.ranks.arcs_of(rank).start + usize::from(slot)
            };
            (old, new) = (on(a), on(b));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::from_spec;
    use crate::routes::{Algorithm, Kept, Routes};

    #[test]
    fn every_sweep_makes_the_sorted_loads_smaller_or_moves_nothing() {
        for spec in [
            "irregular:300:1",
            "irregular:290:2:2:9",
            "torus:17",
            "fat-tree:16",
            "ring:300",
        ] {
            let topology = from_spec(spec).unwrap();
            let routes = Routes::plan(&topology, Algorithm::Osud, None).unwrap();
            let ranks = Ranks::new(&topology, routes.updown());
            let Kept::NextHops(mut tables) = routes.kept.clone() else {
                panic!("osud keeps next hops")
            };
            let sorted = |tables: &NextHops| {
                let mut loads = channel_loads(&ranks, tables);
                loads.sort_unstable_by(|a, b| b.cmp(a));
                loads
            };
            let mut before = sorted(&tables);
            let total: u64 = before.iter().map(|&load| u64::from(load)).sum();
            let mut settled = false;
            for sweep in 0..40 {
                let moves = refine(&ranks, &mut tables, 1);
                let after = sorted(&tables);
                assert_eq!(moves > 0, after < before, "{spec}, sweep {sweep}");
                assert!(after <= before, "{spec}, sweep {sweep}");
                let links: u64 = after.iter().map(|&load| u64::from(load)).sum();
                assert_eq!(links, total, "routes stay as long as they are");
                before = after;
                if moves == 0 {
                    settled = true;
                    break;
                }
            }
            assert!(settled, "{spec} still moves");
        }
    }
}
