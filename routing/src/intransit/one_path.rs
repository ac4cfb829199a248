//! OMIT: one minimal path for each pair of switches, with the fewest cuts, load spread
//! over equals.
//!
//! For each destination the search gives the keys; then every state, farthest first,
//! hands the traffic that meets there to one of its ways on. The one chosen has the
//! least load on its link, plus the least on a link after that, plus what has met there
//! already; a cut counts with what each host on that switch takes in already. Load is
//! counted in pairs of hosts and carries over from one destination to the next; ties go
//! to the lowest port. Time O(switches · links); memory two bytes a pair of switches for
//! the tables, and some words a switch and link for the search.

use super::search::{FAR, Measure, Search, Wiring};
use crate::routes::{NO_SLOT, NextHops, Phase};
use crate::topology::Topology;
use crate::updown::UpDown;

struct Spread {
    /// Pairs of hosts routed over each arc so far.
    load: Vec<u64>,
    /// Pairs of hosts whose worms each host of a switch takes in so far.
    taken_in: Vec<u64>,
    /// The same in all, by switch.
    taken_in_sum: Vec<u64>,
    /// Traffic that has met in a state.
    flow: Vec<[u64; 2]>,
    /// Least cost of a way on from a state.
    ahead: Vec<[u64; 2]>,
}

/// Plans the paths between all switches.
pub(crate) fn plan(topology: &Topology, updown: &UpDown) -> NextHops {
    let wiring = Wiring::new(topology, updown);
    let switches = wiring.switches();
    let mut tables = NextHops::new(switches);
    let mut search = Search::new(&wiring, Measure::Links);
    let mut spread = Spread {
        load: vec![0; wiring.arc_count()],
        taken_in: vec![0; switches],
        taken_in_sum: vec![0; switches],
        flow: vec![[0; 2]; switches],
        ahead: vec![[0; 2]; switches],
    };
    for dst in 0..switches as u32 {
        search.run(dst);
        spread.look_ahead(&wiring, &search, dst);
        for (at, up, down) in search.order().rev() {
            if at == dst {
                continue;
            }
            let choices = spread.choose(&wiring, &search, at);
            for (phase, reached) in [(Phase::Up, up), (Phase::Down, down)] {
                if reached {
                    let slot = choices[usize::from(phase == Phase::Down)];
                    spread.hand_on(&wiring, at, phase, slot);
                    tables.set(dst, at, phase, slot);
                }
            }
        }
    }
    tables
}

impl Spread {
    fn look_ahead(&mut self, wiring: &Wiring, search: &Search<'_>, dst: u32) {
        let into = u64::from(wiring.hosts(dst));
        for (at, _, _) in search.order() {
            let mut least = [u64::MAX; 2];
            self.visit_ways(wiring, search, at, |phase, _, cost, _, _| {
                least[phase] = least[phase].min(cost);
            });
            self.ahead[at as usize] = least.map(|cost| if cost == u64::MAX { 0 } else { cost });
            self.flow[at as usize] = [into * u64::from(wiring.hosts(at)), 0];
        }
    }

    /// The cheapest way on in either phase.
    fn choose(&self, wiring: &Wiring, search: &Search<'_>, at: u32) -> [u8; 2] {
        let mut best = [(u64::MAX, NO_SLOT); 2];
        self.visit_ways(wiring, search, at, |phase, slot, cost, to, up| {
            let state = usize::from(!up);
            let cost = cost + self.ahead[to as usize][state] + self.flow[to as usize][state];
            // Slots ascend with ports, so that the first of equals has the lowest port.
            if cost < best[phase].0 {
                best[phase] = (cost, slot);
            }
        });
        best.map(|(_, slot)| slot)
    }

    /// Visits (phase, slot, load, neighbour, up) of every shortest way on, in one pass for
    /// both phases.
    fn visit_ways(
        &self,
        wiring: &Wiring,
        search: &Search<'_>,
        at: u32,
        mut visit: impl FnMut(usize, u8, u64, u32, bool),
    ) {
        let here = search.keys[at as usize];
        let first = wiring.first(at);
        let (cut, can_cut) = (search.cut(), wiring.hosts(at) > 0);
        for (slot, (to, up)) in (0u8..).zip(wiring.arcs_of(at)) {
            let next = search.keys[to as usize][usize::from(!up)];
            if next == FAR {
                continue;
            }
            let key = next + super::search::STEP;
            let load = self.load[first as usize + usize::from(slot)];
            if key == here[0] {
                visit(0, slot, load, to, up);
            }
            if !up && key == here[1] {
                visit(1, slot, load, to, up);
            } else if up && can_cut && key + cut == here[1] {
                visit(1, slot, load + self.taken_in[at as usize], to, up);
            }
        }
    }

    fn hand_on(&mut self, wiring: &Wiring, at: u32, phase: Phase, slot: u8) {
        debug_assert_ne!(slot, NO_SLOT, "a finite length has a way on");
        let flow = self.flow[at as usize][usize::from(phase == Phase::Down)];
        let (to, up) = wiring
            .arcs_of(at)
            .nth(usize::from(slot))
            .expect("a slot of the switch");
        self.load[wiring.first(at) as usize + usize::from(slot)] += flow;
        self.flow[to as usize][usize::from(!up)] += flow;
        if up && phase == Phase::Down && flow > 0 {
            self.taken_in_sum[at as usize] += flow;
            self.taken_in[at as usize] =
                self.taken_in_sum[at as usize] / u64::from(wiring.hosts(at));
        }
    }
}
