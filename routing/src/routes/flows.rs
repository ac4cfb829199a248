//! How much traffic each arc carries along next hops, in pairs of hosts.

use super::ranks::{Ranks, rank_of};
use super::{NO_SLOT, NextHops, Phase};

/// Traffic towards one destination, state by state. All hosts of other switches send to
/// all hosts of the destination.
#[derive(Debug)]
pub(super) struct Flows {
    pub states: Vec<u32>,
}

impl Flows {
    pub(super) fn new(ranks: &Ranks) -> Flows {
        Flows {
            states: vec![0; 2 * ranks.len()],
        }
    }

    /// Every switch sends; nothing has been handed on.
    pub(super) fn start(&mut self, ranks: &Ranks, dst: u32) {
        let into = ranks.hosts[ranks.rank[dst as usize] as usize];
        for (states, hosts) in self.states.chunks_exact_mut(2).zip(&ranks.hosts) {
            states[0] = into * hosts;
            states[1] = 0;
        }
    }

    /// Hands everything on to the destination; visits (arc by rank and slot, traffic).
    pub(super) fn hand_on(
        &mut self,
        ranks: &Ranks,
        tables: &NextHops,
        dst: u32,
        mut visit: impl FnMut(usize, u32),
    ) {
        self.start(ranks, dst);
        let rows = [Phase::Up, Phase::Down].map(|phase| tables.row(dst, phase));
        for state in ranks.states_onward() {
            let flow = self.states[state as usize];
            let rank = rank_of(state);
            let slot = rows[(state % 2) as usize][ranks.switch[rank] as usize];
            if flow != 0 && slot != NO_SLOT {
                let arc = ranks.arcs_of(rank).start + usize::from(slot);
                self.states[ranks.next[arc] as usize] += flow;
                visit(arc, flow);
            }
        }
    }
}

/// Traffic of each arc, by rank and slot, from all hosts to all hosts.
pub(super) fn channel_loads(ranks: &Ranks, tables: &NextHops) -> Vec<u32> {
    let mut loads = vec![0; ranks.next.len()];
    let mut flows = Flows::new(ranks);
    for dst in 0..ranks.len() as u32 {
        flows.hand_on(ranks, tables, dst, |arc, flow| loads[arc] += flow);
    }
    loads
}
