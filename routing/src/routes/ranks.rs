//! Switches in the order of up\*/down\*, and where each of their arcs leads a path.

use std::ops::Range;

use super::Phase;
use crate::topology::Topology;
use crate::updown::UpDown;

/// Switches numbered so that an up arc leads to a lower rank and a down arc to a higher
/// one. So states of a path, (switch, phase), have a fixed order in which traffic to any
/// destination meets: first those that may still go up, by falling rank, then those that
/// may not, by rising rank.
#[derive(Clone, Debug)]
pub(super) struct Ranks {
    /// Index of the switch of each rank.
    pub switch: Vec<u32>,
    /// Rank of each switch, by index.
    pub rank: Vec<u32>,
    pub hosts: Vec<u32>,
    /// First arc of each rank, and one past the last.
    arc_first: Vec<u32>,
    /// For each arc, the state it leads to. Arcs of a rank are in the order of its slots.
    pub next: Vec<u32>,
}

/// The state of a path at a switch.
pub(super) const fn state(rank: u32, phase: Phase) -> u32 {
    2 * rank + matches!(phase, Phase::Down) as u32
}

/// The switch of a state.
pub(super) const fn rank_of(state: u32) -> usize {
    (state / 2) as usize
}

/// Whether an arc that leads to this state is up.
pub(super) const fn is_after_up(state: u32) -> bool {
    state.is_multiple_of(2)
}

impl Ranks {
    pub(super) fn new(topology: &Topology, updown: &UpDown) -> Ranks {
        let switches = topology.switch_count();
        let switch = order(topology, updown);
        let mut rank = vec![0; switches];
        for (place, &switch) in switch.iter().enumerate() {
            rank[switch as usize] = place as u32;
        }
        let mut arc_first = vec![0];
        let mut next = Vec::with_capacity(topology.arcs().len());
        for &at in &switch {
            let first = topology.arc_first(at);
            for (index, arc) in (first..).zip(topology.arcs_of(at)) {
                let phase = if updown.is_up(index) {
                    Phase::Up
                } else {
                    Phase::Down
                };
                next.push(state(rank[arc.to as usize], phase));
            }
            arc_first.push(next.len() as u32);
        }
        Ranks {
            hosts: switch
                .iter()
                .map(|&switch| topology.hosts_at(switch).len() as u32)
                .collect(),
            switch,
            rank,
            arc_first,
            next,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.switch.len()
    }

    /// Arcs that leave the switch of this rank, by slot.
    pub(super) fn arcs_of(&self, rank: usize) -> Range<usize> {
        self.arc_first[rank] as usize..self.arc_first[rank + 1] as usize
    }

    /// All states, in the order in which traffic meets.
    pub(super) fn states_onward(&self) -> impl Iterator<Item = u32> + use<> {
        let ranks = self.len() as u32;
        let up = (0..ranks).rev().map(|rank| state(rank, Phase::Up));
        up.chain((0..ranks).map(|rank| state(rank, Phase::Down)))
    }
}

/// Switches so that each comes after those that its up arcs lead to: as each has seen the
/// last of them, in breadth-first order.
fn order(topology: &Topology, updown: &UpDown) -> Vec<u32> {
    let switches = topology.switch_count() as u32;
    let arcs = |at| (topology.arc_first(at)..).zip(topology.arcs_of(at));
    let mut above: Vec<usize> = (0..switches)
        .map(|at| arcs(at).filter(|(index, _)| updown.is_up(*index)).count())
        .collect();
    let mut order: Vec<u32> = (0..switches)
        .filter(|&at| above[at as usize] == 0)
        .collect();
    let mut next = 0;
    while let Some(&at) = order.get(next) {
        next += 1;
        for (index, arc) in arcs(at) {
            if !updown.is_up(index) {
                above[arc.to as usize] -= 1;
                if above[arc.to as usize] == 0 {
                    order.push(arc.to);
                }
            }
        }
    }
    assert_eq!(order.len(), switches as usize, "up arcs make no cycle");
    order
}
