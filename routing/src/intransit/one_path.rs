//! OMIT: one minimal path for each pair of switches, with the fewest cuts, load spread
//! over equals.
//!
//! For each destination the search gives the keys; then every state, farthest first,
//! hands the traffic that meets there to one arc. The one chosen has the
//! least load on its link, plus the least on a link after that, plus what has met there
//! already; a cut counts with what each host on that switch takes in already. Load is
//! counted in pairs of hosts and carries over from one destination to the next; ties go
//! to the lowest port. Time O(switches · links); memory two bytes a pair of switches for
//! the tables, and some words a switch and link for the search.

use super::search::{FAR, Measure, STEP, Search, Wiring};
use crate::topology::Topology;
use crate::updown::UpDown;
use crate::updown::{NextHops, Phase};

struct Spread {
    /// Pairs of hosts routed over each arc so far.
    load: Vec<u64>,
    /// Pairs of hosts whose worms each host of a switch that may takes in so far.
    taken_in: Vec<u64>,
    /// The same in all, by switch.
    taken_in_sum: Vec<u64>,
    /// Traffic that has met in a state.
    flow: Vec<[u64; 2]>,
    /// Least cost of an arc from a state.
    ahead: Vec<[u64; 2]>,
    next_arcs: NextArcs,
}

/// Arcs on shortest paths, switch after switch.
struct NextArcs {
    first: Vec<u32>,
    all: Vec<NextArc>,
}

#[derive(Clone, Copy)]
struct NextArc {
    to: u16,
    slot: u8,
    up: bool,
    /// Whether it leads on while the worm may go up, and after it went down.
    leads_on: [bool; 2],
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
        next_arcs: NextArcs::new(&wiring),
    };
    for dst in 0..switches as u32 {
        search.run(dst);
        spread.next_arcs.find(&wiring, &search);
        spread.look_ahead(&wiring, dst);
        for (at, up, down) in search.order().rev() {
            if at == dst {
                continue;
            }
            let choices = spread.choose(&wiring, at);
            for (phase, reached) in [(Phase::Up, up), (Phase::Down, down)] {
                if reached {
                    let arc = choices[phase as usize].expect("a finite length has a next arc");
                    spread.hand_on(&wiring, at, phase, arc);
                    tables.set(dst, at, phase, arc.slot);
                }
            }
        }
    }
    tables
}

impl NextArcs {
    fn new(wiring: &Wiring) -> NextArcs {
        let none = NextArc {
            to: 0,
            slot: 0,
            up: false,
            leads_on: [false; 2],
        };
        NextArcs {
            first: vec![0; wiring.switches() + 1],
            // One more than there can be: the next is written before it is known to count.
            all: vec![none; wiring.arc_count() + 1],
        }
    }

    fn of(&self, at: u32) -> &[NextArc] {
        let (first, last) = (self.first[at as usize], self.first[at as usize + 1]);
        &self.all[first as usize..last as usize]
    }

    /// Few of the arcs lead on, and which do is hard to foresee: no branches.
    fn find(&mut self, wiring: &Wiring, search: &Search<'_>) {
        let mut count = 0;
        for at in 0..wiring.switches() as u32 {
            let here = search.keys[at as usize];
            let cut = if wiring.transit_hosts(at) > 0 {
                search.cut()
            } else {
                FAR
            };
            for (slot, (to, up)) in (0u8..).zip(wiring.arcs_of(at)) {
                let key = search.keys[to as usize][usize::from(!up)] + STEP;
                let leads_on = [key == here[0], key + u32::from(up) * cut == here[1]];
                self.all[count] = NextArc {
                    to: to as u16,
                    slot,
                    up,
                    leads_on,
                };
                count += usize::from(leads_on[0] | leads_on[1]);
            }
            self.first[at as usize + 1] = count as u32;
        }
    }
}

impl Spread {
    /// Load of a way's link, and of the hosts that take in what is cut before it.
    fn cost(&self, wiring: &Wiring, at: u32, arc: NextArc, phase: Phase) -> u64 {
        let load = self.load[wiring.first(at) as usize + usize::from(arc.slot)];
        if phase == Phase::Down && arc.up {
            load + self.taken_in[at as usize]
        } else {
            load
        }
    }

    fn look_ahead(&mut self, wiring: &Wiring, dst: u32) {
        let into = u64::from(wiring.hosts(dst));
        for at in 0..wiring.switches() as u32 {
            let mut least = [u64::MAX; 2];
            for &arc in self.next_arcs.of(at) {
                for phase in [Phase::Up, Phase::Down] {
                    if arc.leads_on[phase as usize] {
                        let cost = self.cost(wiring, at, arc, phase);
                        least[phase as usize] = least[phase as usize].min(cost);
                    }
                }
            }
            self.ahead[at as usize] = least.map(|cost| if cost == u64::MAX { 0 } else { cost });
            self.flow[at as usize] = [into * u64::from(wiring.hosts(at)), 0];
        }
    }

    /// The cheapest way on in either phase.
    fn choose(&self, wiring: &Wiring, at: u32) -> [Option<NextArc>; 2] {
        let mut best = [(u64::MAX, None); 2];
        for &arc in self.next_arcs.of(at) {
            let (to, state) = (usize::from(arc.to), usize::from(!arc.up));
            let beyond = self.ahead[to][state] + self.flow[to][state];
            for phase in [Phase::Up, Phase::Down] {
                if arc.leads_on[phase as usize] {
                    let cost = beyond + self.cost(wiring, at, arc, phase);
                    // Slots ascend with ports: the first of equals has the lowest port.
                    if cost < best[phase as usize].0 {
                        best[phase as usize] = (cost, Some(arc));
                    }
                }
            }
        }
        best.map(|(_, arc)| arc)
    }

    fn hand_on(&mut self, wiring: &Wiring, at: u32, phase: Phase, arc: NextArc) {
        let flow = self.flow[at as usize][phase as usize];
        self.load[wiring.first(at) as usize + usize::from(arc.slot)] += flow;
        self.flow[usize::from(arc.to)][usize::from(!arc.up)] += flow;
        if arc.up && phase == Phase::Down && flow > 0 {
            self.taken_in_sum[at as usize] += flow;
            self.taken_in[at as usize] =
                self.taken_in_sum[at as usize] / u64::from(wiring.transit_hosts(at));
        }
    }
}
