//! The routes of an algorithm between all pairs of hosts, taken together.
//!
//! What a path does at a switch depends on the destination and on whether it has gone
//! down, not on where it comes from. So the paths to one destination are followed only as
//! far as they are new, and a dependency costs one bit to know.

use super::{ChannelGraph, Worm};
use crate::routes::{Phase, Routes};
use crate::topology::Topology;

/// For every arc, which channels out of the switch it leads to are known to follow it:
/// links by slot, then hosts.
struct Known {
    bits: Vec<u64>,
    /// Words for one arc.
    words: usize,
}

impl Known {
    fn new(topology: &Topology, arcs: usize) -> Known {
        let ports = |switch: u32| topology.arcs_of(switch).len() + topology.hosts_at(switch).len();
        let most = (0..topology.switch_count() as u32).map(ports).max();
        let words = most.unwrap_or(0).div_ceil(64);
        Known {
            bits: vec![0; words * arcs],
            words,
        }
    }

    /// Marks a place after an arc; true the first time.
    fn add(&mut self, arc: u32, place: u32) -> bool {
        let word = &mut self.bits[arc as usize * self.words + place as usize / 64];
        let bit = 1 << (place % 64);
        let new = *word & bit == 0;
        *word |= bit;
        new
    }
}

impl ChannelGraph<'_> {
    /// Adds the routes between all hosts.
    ///
    /// # Panics
    /// If they were planned on another topology.
    pub fn add_routes(&mut self, routes: &Routes<'_>) {
        assert!(
            self.topology == routes.topology(),
            "routes of another topology"
        );
        let topology = self.topology;
        let occupied: Vec<u32> = (0..topology.switch_count() as u32)
            .filter(|&switch| topology.hosts_at(switch).len() > 0)
            .collect();
        let mut known = Known::new(topology, topology.arcs().len());
        let mut first_known = vec![false; topology.arcs().len()];
        // For each switch and phase, the last destination it was passed on the way to.
        let mut passed = vec![u32::MAX; 2 * topology.switch_count()];
        for &dst in &occupied {
            let slots_at_dst = topology.arcs_of(dst).len() as u32;
            for &src in &occupied {
                let (mut at, mut phase, mut over) = (src, Phase::Up, None);
                while at != dst {
                    let Some((arc, to, next_phase)) = routes.next_arc(dst, at, phase) else {
                        break;
                    };
                    let slot = arc - topology.arc_first(at);
                    match over {
                        Some(over) if known.add(over, slot) => {
                            self.add_between(over, arc, src, dst);
                        }
                        None if !first_known[arc as usize] => {
                            first_known[arc as usize] = true;
                            self.add_first(src, arc, dst);
                        }
                        _ => {}
                    }
                    let state = &mut passed[2 * at as usize + usize::from(phase == Phase::Down)];
                    if std::mem::replace(state, dst) == dst {
                        break;
                    }
                    (at, phase, over) = (to, next_phase, Some(arc));
                }
                if let Some(over) = over.filter(|_| at == dst)
                    && known.add(over, slots_at_dst)
                {
                    self.add_last(src, over, dst);
                }
            }
        }
        self.add_on_one_switch(&occupied);
    }

    fn add_between(&mut self, held: u32, needed: u32, src: u32, dst: u32) {
        let host = |switch| self.topology.hosts_at(switch).next().expect("occupied");
        let worm = self.unicast(host(src), host(dst));
        self.add_dependency(held, needed, &worm);
    }

    fn add_first(&mut self, src: u32, arc: u32, dst: u32) {
        let topology = self.topology;
        let to = topology.hosts_at(dst).next().expect("occupied");
        for host in topology.hosts_at(src) {
            let worm = self.unicast(host, to);
            self.add_dependency(self.numbers.injection(host), arc, &worm);
        }
    }

    fn add_last(&mut self, src: u32, arc: u32, dst: u32) {
        let topology = self.topology;
        let from = topology.hosts_at(src).next().expect("occupied");
        for host in topology.hosts_at(dst) {
            let worm = self.unicast(from, host);
            self.add_dependency(arc, self.numbers.ejection(host), &worm);
        }
    }

    fn add_on_one_switch(&mut self, occupied: &[u32]) {
        let topology = self.topology;
        for &switch in occupied {
            for src in topology.hosts_at(switch) {
                for dst in topology.hosts_at(switch).filter(|dst| *dst != src) {
                    let (held, needed) = (self.numbers.injection(src), self.numbers.ejection(dst));
                    let worm = self.unicast(src, dst);
                    self.add_dependency(held, needed, &worm);
                }
            }
        }
    }

    fn unicast(&self, src: u32, dst: u32) -> Worm {
        let id = |host: u32| self.topology.hosts()[host as usize].id;
        Worm::Unicast {
            src: id(src),
            dst: id(dst),
        }
    }
}
