//! How far every switch is from one destination, over paths that are cut where they must
//! be.
//!
//! A state is a switch and whether the worm may still go up there. The search runs from
//! the destination backwards, breadth first over the states; a second part of the key
//! counts cuts and is settled on the way, since a state is expanded only after all
//! states nearer to the destination.

use crate::topology::{SWITCHES_MAX, Topology};
use crate::updown::Phase;
use crate::updown::UpDown;

/// What makes a path short.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Measure {
    /// Links; of as many links, cuts.
    Links,
    /// Switches crossed, those at a cut twice; that is links and cuts together.
    Crossings,
}

/// No way; above all keys, and a sum of two and a step still fits.
pub(super) const FAR: u32 = u32::MAX / 4;
/// One link, or one switch crossed, in a key; what is below counts cuts.
pub(super) const STEP: u32 = 1 << 16;

const UP: u8 = 1;
const DOWN: u8 = 2;

/// Arcs as the searches read them, two bytes each: 2·neighbour + 1 if the arc is up.
pub(super) struct Wiring {
    first: Vec<u32>,
    arcs: Vec<u16>,
    hosts: Vec<u32>,
    transit_hosts: Vec<u32>,
}

const _: () = assert!(2 * SWITCHES_MAX <= 1 << 16, "a neighbour fits in 15 bits");

impl Wiring {
    pub(super) fn new(topology: &Topology, updown: &UpDown) -> Wiring {
        let switches = topology.switch_count() as u32;
        let packed = (0..).zip(topology.arcs());
        Wiring {
            first: (0..switches)
                .map(|switch| topology.arc_first(switch))
                .chain([topology.arcs().len() as u32])
                .collect(),
            arcs: packed
                .map(|(index, arc)| (arc.to as u16) << 1 | u16::from(updown.is_up(index)))
                .collect(),
            hosts: (0..switches)
                .map(|switch| topology.hosts_at(switch).len() as u32)
                .collect(),
            transit_hosts: (0..switches)
                .map(|switch| topology.transit_at(switch).len() as u32)
                .collect(),
        }
    }

    pub(super) fn switches(&self) -> usize {
        self.hosts.len()
    }

    pub(super) fn arc_count(&self) -> usize {
        self.arcs.len()
    }

    pub(super) fn hosts(&self, switch: u32) -> u32 {
        self.hosts[switch as usize]
    }

    /// How many hosts on a switch may re-inject worms.
    pub(super) fn transit_hosts(&self, switch: u32) -> u32 {
        self.transit_hosts[switch as usize]
    }

    /// Index of the first arc that leaves a switch.
    pub(super) fn first(&self, switch: u32) -> u32 {
        self.first[switch as usize]
    }

    /// (neighbour, whether it is up) of the arcs that leave a switch, by port.
    pub(super) fn arcs_of(&self, switch: u32) -> impl Iterator<Item = (u32, bool)> + '_ {
        let (first, last) = (self.first[switch as usize], self.first[switch as usize + 1]);
        self.arcs[first as usize..last as usize]
            .iter()
            .map(|&arc| (u32::from(arc >> 1), arc & 1 == 1))
    }
}

/// Keys of all states towards one destination: [`STEP`] for each unit of the measure,
/// plus the cuts.
pub(super) struct Search<'a> {
    wiring: &'a Wiring,
    measure: Measure,
    /// By switch: the key while the worm may go up, and after it went down.
    pub(super) keys: Vec<[u32; 2]>,
    /// (switch, which phases) in the order they were reached, nearest first.
    order: Vec<(u32, u8)>,
}

impl<'a> Search<'a> {
    pub(super) fn new(wiring: &'a Wiring, measure: Measure) -> Search<'a> {
        Search {
            wiring,
            measure,
            keys: vec![[FAR; 2]; wiring.switches()],
            order: Vec::with_capacity(2 * wiring.switches()),
        }
    }

    /// What going up after going down adds to a key.
    pub(super) fn cut(&self) -> u32 {
        match self.measure {
            Measure::Links => 1,
            Measure::Crossings => STEP + 1,
        }
    }

    /// States that reach the destination: (switch, may go up, has gone down), where both
    /// may hold; nearest first.
    pub(super) fn order(&self) -> impl DoubleEndedIterator<Item = (u32, bool, bool)> + '_ {
        self.order
            .iter()
            .map(|&(at, phases)| (at, phases & UP != 0, phases & DOWN != 0))
    }

    pub(super) fn run(&mut self, dst: u32) {
        self.keys.fill([FAR; 2]);
        self.order.clear();
        self.keys[dst as usize] = [0, 0];
        self.order.push((dst, UP | DOWN));
        let mut next = 0;
        while let Some(&(at, phases)) = self.order.get(next) {
            next += 1;
            self.expand(at, phases);
        }
    }

    /// Reaches all switches one link farther. A link that is up from here is down on the
    /// way here.
    fn expand(&mut self, at: u32, phases: u8) {
        let [up, down] = self.keys[at as usize];
        let wiring = self.wiring;
        if self.measure == Measure::Crossings && phases & UP != 0 && wiring.transit_hosts(at) > 0 {
            // The cut is a step of its own, so that states are reached in order.
            self.reach(at, FAR, up + self.cut());
        }
        for (from, away_is_up) in wiring.arcs_of(at) {
            if away_is_up {
                if phases & DOWN != 0 {
                    self.reach(from, down + STEP, down + STEP);
                }
            } else if phases & UP != 0 {
                let after_cut = match self.measure {
                    Measure::Links if wiring.transit_hosts(from) > 0 => up + STEP + 1,
                    _ => FAR,
                };
                self.reach(from, up + STEP, after_cut);
            }
        }
    }

    fn reach(&mut self, at: u32, up: u32, down: u32) {
        let keys = &mut self.keys[at as usize];
        let mut reached = 0;
        if up < keys[0] {
            reached |= if keys[0] == FAR { UP } else { 0 };
            keys[0] = up;
        }
        if down < keys[1] {
            reached |= if keys[1] == FAR { DOWN } else { 0 };
            keys[1] = down;
        }
        if reached != 0 {
            self.order.push((at, reached));
        }
    }

    /// Arcs from a state that lead on by a shortest way: (slot, neighbour, up).
    pub(super) fn next_arcs(
        &self,
        at: u32,
        phase: Phase,
    ) -> impl Iterator<Item = (u8, u32, bool)> + '_ {
        let key = self.keys[at as usize][usize::from(phase == Phase::Down)];
        let cut = match (phase, self.wiring.transit_hosts(at)) {
            (Phase::Up, _) => Some(0),
            (Phase::Down, 0) => None,
            (Phase::Down, _) => Some(self.cut()),
        };
        self.wiring
            .arcs_of(at)
            .enumerate()
            .filter_map(move |(slot, (to, up))| {
                let extra = if up { cut? } else { 0 };
                let next = self.keys[to as usize][usize::from(!up)];
                let leads_on = next != FAR && key == next + STEP + extra;
                leads_on.then_some((slot as u8, to, up))
            })
    }
}

/// A path that crosses the fewest switches, by the lowest ports; none if there is no way.
pub(crate) fn fewest_crossings(
    topology: &Topology,
    updown: &UpDown,
    from: u32,
    to: u32,
) -> Option<Vec<u32>> {
    let wiring = Wiring::new(topology, updown);
    let mut search = Search::new(&wiring, Measure::Crossings);
    search.run(to);
    let (mut at, mut phase, mut arcs) = (from, Phase::Up, Vec::new());
    while at != to {
        let (slot, next, up) = search.next_arcs(at, phase).next()?;
        arcs.push(wiring.first(at) + u32::from(slot));
        at = next;
        phase = if up { Phase::Up } else { Phase::Down };
    }
    Some(arcs)
}
