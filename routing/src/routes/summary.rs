//! What a set of routes costs, in figures.

use serde_json::{Value, json};

use super::alternatives::Hops;
use super::{Algorithm, NoPath, Routes};
use crate::intransit::{crossed, cuts, host_in_turn, is_cut};
use wormcast_wire::{HostId, SHARES_WHOLE};

/// Figures over all ordered pairs of hosts; alternatives count by their share.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    pub algorithm: Algorithm,
    /// Pairs with a route.
    pub pairs: u64,
    /// Pairs without one.
    pub unreachable: u64,
    /// Share of routes that no path undercuts in links, 0 to 1.
    pub minimal: f64,
    /// Links between switches on a route, mean.
    pub links_mean: f64,
    /// Switches crossed, those at in-transit hosts twice: mean.
    pub switches_mean: f64,
    /// The most that a route crosses.
    pub switches_max: u32,
    /// In-transit hosts on a route, mean.
    pub in_transit_mean: f64,
    /// The most on one route.
    pub in_transit_max: u32,
    /// Routes kept for a pair, mean.
    pub alternatives_mean: f64,
    /// Pairs whose worms a host re-injects, by share: mean over all hosts.
    pub in_transit_load_mean: f64,
    /// The same of the busiest host.
    pub in_transit_load_max: f64,
    /// The busiest host, the lowest of several; none if no worm is re-injected.
    pub in_transit_busiest: Option<HostId>,
    /// Pairs over a link between switches, by share: mean over both directions of all.
    pub link_load_mean: f64,
    /// The same of the busiest direction of a link.
    pub link_load_max: f64,
}

#[derive(Default)]
struct Sums {
    pairs: u64,
    unreachable: u64,
    minimal: u128,
    links: u128,
    switches: u128,
    switches_max: usize,
    cuts: u128,
    cuts_max: usize,
    alternatives: u128,
    re_injected: Vec<u128>,
    carried: Vec<u128>,
}

impl Routes<'_> {
    /// Counts over all pairs; works switch by switch, so that many hosts cost no more.
    pub fn summary(&self) -> Summary {
        let topology = self.topology;
        let hosts_at = |switch| topology.hosts_at(switch).len() as u64;
        let occupied: Vec<u32> = (0..topology.switch_count() as u32)
            .filter(|&switch| hosts_at(switch) > 0)
            .collect();
        let mut sums = Sums {
            re_injected: vec![0; topology.hosts().len()],
            carried: vec![0; topology.arcs().len()],
            ..Sums::default()
        };
        let mut hops = Hops::new();
        for &from in &occupied {
            for &to in &occupied {
                let pairs = if from == to {
                    hosts_at(from) * (hosts_at(from) - 1)
                } else {
                    hosts_at(from) * hosts_at(to)
                };
                let shortest = hops.between(topology, from, to);
                match self.paths(from, to) {
                    _ if pairs == 0 => {}
                    Err(NoPath::Apart | NoPath::TooLong { .. }) => sums.unreachable += pairs,
                    Ok(paths) => {
                        sums.pairs += pairs;
                        sums.alternatives += u128::from(pairs) * paths.len() as u128;
                        for (number, path) in (0..).zip(&paths) {
                            let weight = u128::from(pairs) * u128::from(path.share);
                            let minimal = path.arcs.len() as u32 == shortest;
                            self.count(&mut sums, &path.arcs, weight, minimal);
                            self.count_hosts(&mut sums, (from, to), number, path.share, &path.arcs);
                        }
                    }
                }
            }
        }
        sums.summary(self)
    }

    fn count(&self, sums: &mut Sums, arcs: &[u32], weight: u128, minimal: bool) {
        let (cuts, switches) = (cuts(&self.updown, arcs), crossed(&self.updown, arcs));
        sums.minimal += if minimal { weight } else { 0 };
        sums.links += weight * arcs.len() as u128;
        sums.switches += weight * switches as u128;
        sums.switches_max = sums.switches_max.max(switches);
        sums.cuts += weight * cuts as u128;
        sums.cuts_max = sums.cuts_max.max(cuts);
        for &arc in arcs {
            sums.carried[arc as usize] += weight;
        }
    }

    /// Which hosts re-inject, over all pairs of hosts of two switches.
    fn count_hosts(
        &self,
        sums: &mut Sums,
        (from, to): (u32, u32),
        number: u32,
        share: u32,
        arcs: &[u32],
    ) {
        let topology = self.topology;
        let pairs = topology.hosts_at(from).len() * topology.hosts_at(to).len();
        for place in 1..arcs.len() {
            if !is_cut(&self.updown, arcs[place - 1], arcs[place]) {
                continue;
            }
            let at = topology.arcs()[arcs[place - 1] as usize].to;
            let hosts = topology.transit_at(at).len();
            // Turns repeat after as many as there are hosts.
            for turn in 0..hosts.min(pairs) {
                let key = [from, to, number << 8 | place as u32];
                let host = host_in_turn(topology, at, turn, key);
                let turns = (pairs - turn).div_ceil(hosts);
                sums.re_injected[host as usize] += turns as u128 * u128::from(share);
            }
        }
    }
}

impl Sums {
    fn summary(&self, routes: &Routes<'_>) -> Summary {
        let pairs = self.pairs.max(1) as f64;
        let whole = f64::from(SHARES_WHOLE);
        let mean = |sum: u128| sum as f64 / whole / pairs;
        let spread = |loads: &[u128]| {
            let sum: u128 = loads.iter().sum();
            let most = loads.iter().max().copied().unwrap_or(0);
            let count = loads.len().max(1) as f64;
            (sum as f64 / whole / count, most as f64 / whole, most)
        };
        let (in_transit_load_mean, in_transit_load_max, most) = spread(&self.re_injected);
        let (link_load_mean, link_load_max, _) = spread(&self.carried);
        let busiest = self.re_injected.iter().position(|&load| load == most);
        Summary {
            algorithm: routes.algorithm,
            pairs: self.pairs,
            unreachable: self.unreachable,
            minimal: mean(self.minimal),
            links_mean: mean(self.links),
            switches_mean: mean(self.switches),
            switches_max: self.switches_max as u32,
            in_transit_mean: mean(self.cuts),
            in_transit_max: self.cuts_max as u32,
            alternatives_mean: self.alternatives as f64 / pairs,
            in_transit_load_mean,
            in_transit_load_max,
            in_transit_busiest: busiest
                .filter(|_| most > 0)
                .map(|host| routes.topology.hosts()[host].id),
            link_load_mean,
            link_load_max,
        }
    }
}

impl Summary {
    /// The figures as one object of a file.
    pub fn to_value(&self) -> Value {
        json!({
            "algorithm": self.algorithm.name(),
            "pairs": self.pairs,
            "unreachable": self.unreachable,
            "minimal": self.minimal,
            "alternatives_mean": self.alternatives_mean,
            "links_mean": self.links_mean,
            "switches_mean": self.switches_mean,
            "switches_max": self.switches_max,
            "in_transit_mean": self.in_transit_mean,
            "in_transit_max": self.in_transit_max,
            "in_transit_load": {
                "mean": self.in_transit_load_mean,
                "max": self.in_transit_load_max,
                "busiest": self.in_transit_busiest.map(|host| host.0),
            },
            "link_load": {"mean": self.link_load_mean, "max": self.link_load_max},
        })
    }
}
