//! The routes of an algorithm between all pairs of hosts, taken together.
//!
//! What a path does at a switch depends on the destination and on whether it has gone
//! down, not on where it comes from. So the paths to one destination are followed only as
//! far as they are new, and a dependency costs one bit to know.

use super::{Buffers, ChannelGraph, Worm};
use wormcast_routing::intransit::is_cut;
use wormcast_routing::routes::{NO_SLOT, NextHops, Phase, Routes};
use wormcast_routing::topology::Topology;
use wormcast_wire::SWITCHES_CROSSED_MAX;

/// What is known to follow an arc: links out of the switch it leads to, by slot, then the
/// hosts there.
struct Known {
    bits: Vec<u64>,
    /// Words for one arc.
    words: usize,
    /// For each arc, whether some path starts with it.
    first: Vec<bool>,
}

impl Known {
    fn new(topology: &Topology) -> Known {
        let ports = |switch: u32| topology.arcs_of(switch).len() + 1;
        let most = (0..topology.switch_count() as u32).map(ports).max();
        let words = most.unwrap_or(0).div_ceil(64);
        Known {
            bits: vec![0; words * topology.arcs().len()],
            words,
            first: vec![false; topology.arcs().len()],
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

    fn add_first(&mut self, arc: u32) -> bool {
        !std::mem::replace(&mut self.first[arc as usize], true)
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
        if routes.algorithm().uses_in_transit_hosts() && self.model.buffers != Buffers::Spill {
            // Which buffers a worm takes depends on the hosts at both ends.
            for route in routes.iter() {
                self.add_route(&route).expect("planned on this topology");
            }
            return;
        }
        let topology = self.topology;
        // Pairs of hosts that the topology joins: each has a route.
        let mut hosts = vec![0usize; topology.switch_count()];
        for host in 0..topology.hosts().len() as u32 {
            hosts[topology.component_of(topology.switch_of(host)) as usize] += 1;
        }
        let pairs = hosts
            .into_iter()
            .map(|hosts| hosts * hosts.saturating_sub(1));
        self.count("routes", pairs.sum());
        let occupied: Vec<u32> = (0..topology.switch_count() as u32)
            .filter(|&switch| topology.hosts_at(switch).len() > 0)
            .collect();
        let mut known = Known::new(topology);
        match routes.next_hops() {
            Some(tables) => self.follow_next_hops(routes, tables, &occupied, &mut known),
            None => {
                for &dst in &occupied {
                    for &src in occupied.iter().filter(|src| **src != dst) {
                        self.add_paths(routes, src, dst, &mut known);
                    }
                }
            }
        }
        self.add_on_one_switch(&occupied);
    }

    fn follow_next_hops(
        &mut self,
        routes: &Routes<'_>,
        tables: &NextHops,
        occupied: &[u32],
        known: &mut Known,
    ) {
        let (topology, updown) = (self.topology, routes.updown());
        // Switches crossed from each switch and phase, for the destination in `passed`.
        let mut crossed = vec![0u32; 2 * topology.switch_count()];
        let mut passed = vec![u32::MAX; 2 * topology.switch_count()];
        let mut path: Vec<(usize, u32)> = Vec::new();
        for &dst in occupied {
            for &src in occupied.iter().filter(|src| **src != dst) {
                let (mut at, mut phase, mut over) = (src, Phase::Up, None);
                let mut left = 1;
                path.clear();
                while at != dst {
                    let slot = tables.get(dst, at, phase);
                    if slot == NO_SLOT {
                        break;
                    }
                    let arc = topology.arc_first(at) + u32::from(slot);
                    self.add_step(routes, over, arc, (src, dst), known);
                    let cut = over.is_some_and(|over| is_cut(updown, over, arc));
                    let state = 2 * at as usize + usize::from(phase == Phase::Down);
                    if std::mem::replace(&mut passed[state], dst) == dst {
                        left = crossed[state];
                        break;
                    }
                    path.push((state, 1 + u32::from(cut)));
                    (at, over) = (topology.arcs()[arc as usize].to, Some(arc));
                    phase = if updown.is_up(arc) {
                        Phase::Up
                    } else {
                        Phase::Down
                    };
                }
                if at == dst {
                    self.add_last(over, (src, dst), known);
                }
                for &(state, more) in path.iter().rev() {
                    left += more;
                    crossed[state] = left;
                }
                if left as usize > SWITCHES_CROSSED_MAX
                    && routes.algorithm().uses_in_transit_hosts()
                {
                    // These take another way than their next hops.
                    self.add_paths(routes, src, dst, known);
                }
            }
        }
    }

    fn add_paths(&mut self, routes: &Routes<'_>, src: u32, dst: u32, known: &mut Known) {
        for path in routes.paths(src, dst).unwrap_or_default() {
            let mut over = None;
            for &arc in &path.arcs {
                self.add_step(routes, over, arc, (src, dst), known);
                over = Some(arc);
            }
            self.add_last(over, (src, dst), known);
        }
    }

    /// A path between two switches goes on over an arc.
    fn add_step(
        &mut self,
        routes: &Routes<'_>,
        over: Option<u32>,
        arc: u32,
        ends: (u32, u32),
        known: &mut Known,
    ) {
        let topology = self.topology;
        let at = topology.arcs()[topology.arcs()[arc as usize].reverse as usize].to;
        match over {
            None if known.add_first(arc) => {
                for host in topology.hosts_at(at) {
                    let worm = self.unicast(host, self.host_at(ends.1));
                    self.add_dependency(self.numbers.injection(host), arc, &worm);
                }
            }
            Some(over) if known.add(over, arc - topology.arc_first(at)) => {
                let worm = self.unicast(self.host_at(ends.0), self.host_at(ends.1));
                if !is_cut(routes.updown(), over, arc) {
                    self.add_dependency(over, arc, &worm);
                    return;
                }
                // Which of the hosts that may re-injects depends on the pair of hosts.
                for host in topology.transit_at(at) {
                    self.add_dependency(over, self.numbers.ejection(host), &worm);
                    self.add_dependency(self.numbers.injection(host), arc, &worm);
                }
            }
            _ => {}
        }
    }

    fn add_last(&mut self, over: Option<u32>, (src, dst): (u32, u32), known: &mut Known) {
        let topology = self.topology;
        let after_links = topology.arcs_of(dst).len() as u32;
        if let Some(over) = over.filter(|over| known.add(*over, after_links)) {
            for host in topology.hosts_at(dst) {
                let worm = self.unicast(self.host_at(src), host);
                self.add_dependency(over, self.numbers.ejection(host), &worm);
            }
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

    /// One of the hosts on a switch that has some.
    fn host_at(&self, switch: u32) -> u32 {
        self.topology.hosts_at(switch).next().expect("occupied")
    }

    fn unicast(&self, src: u32, dst: u32) -> Worm {
        let id = |host: u32| self.topology.hosts()[host as usize].id;
        Worm::Unicast {
            src: id(src),
            dst: id(dst),
        }
    }
}
