//! One link lost or back, and only what depends on it planned anew.
//!
//! Keeps, for every destination, the length of the shortest legal path from each switch,
//! for paths that may still go up and for those that may not, next to the next hops. When
//! a link goes, the switches that sent over it look for another way of the same length;
//! only where there is none do lengths grow, and then only of what hangs on it (Ramalingam
//! and Reps, "An incremental algorithm for a generalization of the shortest-path problem",
//! J. Algorithms 21, 1996). When a link comes back, lengths shrink from its ends outward.
//!
//! The directions of links stay what they are, so that the routes of before and after are
//! free of deadlock together, whatever comes and goes.

mod repair;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::ChangeError;
use wormcast_routing::routes::{Algorithm, NO_SLOT, NextHops, Phase, Route, RouteError, Routes};
use wormcast_routing::topology::{Link, Topology, TopologyError};
use wormcast_wire::{HostId, PortId, ROUTE_LENGTH_MAX, SWITCHES_CROSSED_MAX, SwitchId};

/// No legal path.
const FAR: u16 = u16::MAX;

/// A place of a path: 2·switch, plus 1 if the path may not go up any more.
type State = u32;

const PHASES: [Phase; 2] = [Phase::Up, Phase::Down];

/// What one link lost or back has changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Touched {
    /// Next hops that are other than before: (destination, switch), each once.
    pub entries: Vec<(SwitchId, SwitchId)>,
    /// Switches with hosts that have no legal path any more: (source, destination). If
    /// the fabric still joins them, it takes another order: see [`super::plan`].
    pub lost: Vec<(SwitchId, SwitchId)>,
    /// Switches with hosts that have a legal path again: (source, destination).
    pub found: Vec<(SwitchId, SwitchId)>,
}

/// OSUD routes of a topology some of whose links may be missing.
#[derive(Clone, Debug)]
pub struct Incremental<'t> {
    topology: &'t Topology,
    tables: NextHops,
    /// Length of the shortest legal path, by destination, phase and switch.
    length: Vec<u16>,
    up: Vec<bool>,
    alive: Vec<bool>,
    /// Pairs of hosts routed over each arc.
    load: Vec<u64>,
    hosts: Vec<u64>,
    work: Work,
}

/// Space that is kept from one destination to the next.
#[derive(Clone, Debug, Default)]
struct Work {
    queue: BinaryHeap<Reverse<(u16, State)>>,
    /// States whose next hop is to be chosen anew, and among them those whose length is.
    stale: Vec<State>,
    is_stale: Vec<bool>,
    is_orphan: Vec<bool>,
    /// Switches whose way leads over a stale state.
    sources: Vec<u32>,
    stack: Vec<State>,
    seen: Vec<bool>,
    all_seen: Vec<State>,
}

impl<'t> Incremental<'t> {
    /// Takes over planned routes, all links there.
    ///
    /// # Errors
    /// [`ChangeError::Algorithm`] if they are not OSUD.
    pub fn new(routes: &Routes<'t>) -> Result<Incremental<'t>, ChangeError> {
        let planned = match (routes.algorithm(), routes.next_hops()) {
            (Algorithm::Osud, Some(planned)) => planned,
            (algorithm, _) => {
                let choices = vec![Algorithm::Osud];
                return Err(ChangeError::Algorithm { algorithm, choices });
            }
        };
        let topology = routes.topology();
        let switches = topology.switch_count();
        let arcs = topology.arcs().len() as u32;
        let mut made = Incremental {
            topology,
            tables: NextHops::new(switches),
            length: vec![FAR; 2 * switches * switches],
            up: (0..arcs).map(|arc| routes.updown().is_up(arc)).collect(),
            alive: vec![true; arcs as usize],
            load: vec![0; arcs as usize],
            hosts: (0..switches as u32)
                .map(|at| topology.hosts_at(at).len() as u64)
                .collect(),
            work: Work {
                is_stale: vec![false; 2 * switches],
                is_orphan: vec![false; 2 * switches],
                seen: vec![false; 2 * switches],
                ..Work::default()
            },
        };
        for dst in 0..switches as u32 {
            made.measure(dst);
            made.adopt(dst, planned);
        }
        Ok(made)
    }

    /// The link that leaves a switch by this port is lost.
    ///
    /// # Errors
    /// [`ChangeError::Topology`] if there is none, [`ChangeError::Link`] if it is lost already.
    pub fn lose(&mut self, switch: SwitchId, port: PortId) -> Result<Touched, ChangeError> {
        let arc = self.find(switch, port)?;
        if !self.alive[arc as usize] {
            let reason = "is lost already";
            return Err(ChangeError::Link {
                switch,
                port: port.get(),
                reason,
            });
        }
        let (rising, falling) = self.both_ways(arc);
        self.alive[rising as usize] = false;
        self.alive[falling as usize] = false;
        let (low, high) = (self.to(falling), self.to(rising));
        let mut touched = Touched::default();
        for dst in 0..self.hosts.len() as u32 {
            for (at, phase, arc) in [
                (low, Phase::Up, rising),
                (high, Phase::Up, falling),
                (high, Phase::Down, falling),
            ] {
                let slot = self.tables.get(dst, at, phase);
                if slot != NO_SLOT && self.topology.arc_first(at) + u32::from(slot) == arc {
                    let state = state(at, phase);
                    self.work
                        .queue
                        .push(Reverse((self.length(dst, state), state)));
                }
            }
            if !self.work.queue.is_empty() {
                self.find_orphans(dst);
                self.replan(dst, &mut touched);
            }
        }
        Ok(touched)
    }

    /// The link that left a switch by this port is back.
    ///
    /// # Errors
    /// [`ChangeError::Topology`] if there never was one, [`ChangeError::Link`] if it is there.
    pub fn gain(&mut self, switch: SwitchId, port: PortId) -> Result<Touched, ChangeError> {
        let arc = self.find(switch, port)?;
        if self.alive[arc as usize] {
            let reason = "is there already";
            return Err(ChangeError::Link {
                switch,
                port: port.get(),
                reason,
            });
        }
        let (rising, falling) = self.both_ways(arc);
        self.alive[rising as usize] = true;
        self.alive[falling as usize] = true;
        let (low, high) = (self.to(falling), self.to(rising));
        let mut touched = Touched::default();
        for dst in 0..self.hosts.len() as u32 {
            let ways = [
                (state(low, Phase::Up), state(high, Phase::Up), rising),
                (state(high, Phase::Down), state(low, Phase::Down), falling),
                (state(high, Phase::Up), state(low, Phase::Down), falling),
            ];
            for (at, next, _) in ways {
                self.shorten(dst, at, self.length(dst, next).saturating_add(1));
            }
            if !self.work.queue.is_empty() {
                self.spread(dst);
            } else {
                for (at, next, arc) in ways {
                    let as_short = self.length(dst, at) != FAR
                        && self.length(dst, next).saturating_add(1) == self.length(dst, at);
                    if as_short && self.is_lighter(dst, at, arc) {
                        self.mark(at);
                    }
                }
            }
            if !self.work.stale.is_empty() {
                self.replan(dst, &mut touched);
            }
        }
        Ok(touched)
    }

    /// All links of a switch that are there are lost.
    ///
    /// # Errors
    /// [`ChangeError::Topology`] if there is no such switch.
    pub fn lose_switch(&mut self, switch: SwitchId) -> Result<Vec<Touched>, ChangeError> {
        self.links_of(switch, true)?
            .into_iter()
            .map(|port| self.lose(switch, port))
            .collect()
    }

    /// All links of a switch that are lost are back.
    ///
    /// # Errors
    /// [`ChangeError::Topology`] if there is no such switch.
    pub fn gain_switch(&mut self, switch: SwitchId) -> Result<Vec<Touched>, ChangeError> {
        self.links_of(switch, false)?
            .into_iter()
            .map(|port| self.gain(switch, port))
            .collect()
    }

    /// The route from one host to another, over links that are there.
    ///
    /// # Errors
    /// As [`Routes::route`]; [`RouteError::Unreachable`] also where the directions of
    /// links leave no legal path.
    pub fn route(&self, src: HostId, dst: HostId) -> Result<Route, RouteError> {
        let (from, to) = (
            self.topology.host_index(src)?,
            self.topology.host_index(dst)?,
        );
        if from == to {
            return Err(RouteError::ToItself { host: src });
        }
        let (start, end) = (self.topology.switch_of(from), self.topology.switch_of(to));
        if self.length(end, state(start, Phase::Up)) == FAR {
            return Err(RouteError::Unreachable { src, dst });
        }
        let mut route = Route {
            src,
            dst,
            switches: Vec::new(),
            ports: Vec::new(),
            in_transit: Vec::new(),
        };
        self.walk(end, start, |at, arc| {
            route.switches.push(self.topology.switch_id(at));
            route
                .ports
                .push(self.topology.arcs()[arc as usize].port.get());
        });
        route.switches.push(self.topology.switch_id(end));
        route
            .ports
            .push(self.topology.hosts()[to as usize].port.get());
        if route.switches.len() > SWITCHES_CROSSED_MAX || route.ports.len() > ROUTE_LENGTH_MAX {
            return Err(RouteError::TooLong {
                src,
                dst,
                switches: route.switches.len(),
            });
        }
        Ok(route)
    }

    /// Links of the route between two switches; `None` if no legal path joins them.
    ///
    /// # Errors
    /// [`TopologyError::UnknownSwitch`].
    pub fn links_between(
        &self,
        from: SwitchId,
        to: SwitchId,
    ) -> Result<Option<u16>, TopologyError> {
        let from = self.topology.switch_index(from)?;
        let length = self.length(self.topology.switch_index(to)?, state(from, Phase::Up));
        Ok((length != FAR).then_some(length))
    }

    /// Pairs of hosts routed over the busiest direction of a link.
    pub fn load_max(&self) -> u64 {
        self.load.iter().copied().max().unwrap_or(0)
    }

    /// Links that are there, in the order of the topology.
    pub fn links(&self) -> impl Iterator<Item = Link> + '_ {
        let links = self.topology.links().iter();
        links.copied().filter(|link| {
            let arc = self
                .find(link.a, link.a_port)
                .expect("a link of the topology");
            self.alive[arc as usize]
        })
    }

    fn find(&self, switch: SwitchId, port: PortId) -> Result<u32, ChangeError> {
        let at = self.topology.switch_index(switch)?;
        let slot = self
            .topology
            .arcs_of(at)
            .binary_search_by_key(&port, |arc| arc.port);
        let slot = slot.map_err(|_| TopologyError::UnknownLink {
            link: format!("{switch}:{port}"),
            among: format!("ports of switch {switch} with links to switches are"),
            choices: (self.topology.arcs_of(at).iter())
                .map(|arc| arc.port.to_string())
                .collect(),
        })?;
        Ok(self.topology.arc_first(at) + slot as u32)
    }

    fn links_of(&self, switch: SwitchId, alive: bool) -> Result<Vec<PortId>, ChangeError> {
        let at = self.topology.switch_index(switch)?;
        let arcs = self
            .topology
            .arcs_of(at)
            .iter()
            .zip(self.topology.arc_first(at)..);
        Ok(arcs
            .filter(|(_, index)| self.alive[*index as usize] == alive)
            .map(|(arc, _)| arc.port)
            .collect())
    }

    /// The direction of a link that goes up, and the other.
    fn both_ways(&self, arc: u32) -> (u32, u32) {
        let back = self.topology.arcs()[arc as usize].reverse;
        if self.up[arc as usize] {
            (arc, back)
        } else {
            (back, arc)
        }
    }

    fn to(&self, arc: u32) -> u32 {
        self.topology.arcs()[arc as usize].to
    }

    fn index(&self, dst: u32, state: State) -> usize {
        (2 * dst as usize + (state & 1) as usize) * self.hosts.len() + (state / 2) as usize
    }

    fn length(&self, dst: u32, state: State) -> u16 {
        self.length[self.index(dst, state)]
    }

    fn set_length(&mut self, dst: u32, state: State, length: u16) {
        let index = self.index(dst, state);
        self.length[index] = length;
    }

    /// Arc that a state sends over; `None` at the destination and where there is no way.
    fn next_arc(&self, dst: u32, at: State) -> Option<u32> {
        let slot = self.tables.get(dst, at / 2, PHASES[(at & 1) as usize]);
        (slot != NO_SLOT).then(|| self.topology.arc_first(at / 2) + u32::from(slot))
    }

    /// Where an arc leads from a state; `None` if the path may not take it.
    fn after(&self, at: State, arc: u32) -> Option<State> {
        if !self.alive[arc as usize] {
            return None;
        }
        match (at & 1, self.up[arc as usize]) {
            (0, true) => Some(state(self.to(arc), Phase::Up)),
            (_, false) => Some(state(self.to(arc), Phase::Down)),
            _ => None,
        }
    }

    /// Visits the states from which an arc leads to this one: (state, arc).
    fn before(&self, at: State, mut visit: impl FnMut(State, u32)) {
        for arc in self.topology.arcs_of(at / 2) {
            let (back, from) = (arc.reverse, arc.to);
            if !self.alive[back as usize] {
                continue;
            }
            match (at & 1, self.up[back as usize]) {
                (0, true) => visit(state(from, Phase::Up), back),
                (1, false) => {
                    visit(state(from, Phase::Up), back);
                    visit(state(from, Phase::Down), back);
                }
                _ => {}
            }
        }
    }

    /// Visits (switch, arc that leaves it) from a switch with a way to the destination.
    fn walk(&self, dst: u32, from: u32, mut visit: impl FnMut(u32, u32)) {
        let mut at = state(from, Phase::Up);
        while at / 2 != dst {
            let arc = self.next_arc(dst, at).expect("there is an arc");
            visit(at / 2, arc);
            let falls = !self.up[arc as usize];
            at = 2 * self.to(arc) + u32::from(at & 1 == 1 || falls);
        }
    }

    /// Lengths of all ways to a destination.
    fn measure(&mut self, dst: u32) {
        for phase in PHASES {
            self.set_length(dst, state(dst, phase), 0);
            self.work.stack.push(state(dst, phase));
        }
        let mut queue = std::mem::take(&mut self.work.stack);
        let mut next = 0;
        while let Some(&at) = queue.get(next) {
            next += 1;
            let length = self.length(dst, at) + 1;
            let first = queue.len();
            self.before(at, |from, _| queue.push(from));
            let mut kept = first;
            for place in first..queue.len() {
                let from = queue[place];
                if self.length(dst, from) == FAR {
                    self.set_length(dst, from, length);
                    queue[kept] = from;
                    kept += 1;
                }
            }
            queue.truncate(kept);
        }
        queue.clear();
        self.work.stack = queue;
    }

    /// Takes over the next hops to a destination, and counts their load.
    fn adopt(&mut self, dst: u32, planned: &NextHops) {
        for at in 0..2 * self.hosts.len() as u32 {
            let phase = PHASES[(at & 1) as usize];
            let slot = planned.get(dst, at / 2, phase);
            let arc = self
                .topology
                .arc_first(at / 2)
                .wrapping_add(u32::from(slot));
            let fits = slot != NO_SLOT && self.leads_on(dst, at, arc);
            let slot = if fits { slot } else { self.choose(dst, at) };
            self.tables.set(dst, at / 2, phase, slot);
        }
        for from in 0..self.hosts.len() as u32 {
            self.count(dst, from, true);
        }
    }

    /// Adds the traffic of a switch to a destination to the load of its way, or takes it off.
    fn count(&mut self, dst: u32, from: u32, add: bool) {
        let pairs = self.hosts[from as usize] * self.hosts[dst as usize];
        if pairs == 0 || self.length(dst, state(from, Phase::Up)) == FAR {
            return;
        }
        let mut at = state(from, Phase::Up);
        while at / 2 != dst {
            let arc = self.next_arc(dst, at).expect("there is an arc") as usize;
            self.load[arc] = if add {
                self.load[arc] + pairs
            } else {
                self.load[arc] - pairs
            };
            at = 2 * self.topology.arcs()[arc].to + u32::from(at & 1 == 1 || !self.up[arc]);
        }
    }

    fn leads_on(&self, dst: u32, at: State, arc: u32) -> bool {
        let length = self.length(dst, at);
        length != FAR
            && length != 0
            && self
                .after(at, arc)
                .is_some_and(|next| self.length(dst, next) == length - 1)
    }

    /// Slot of the least loaded shortest way on, the load of the link after it included;
    /// ties to the lowest port.
    fn choose(&self, dst: u32, at: State) -> u8 {
        let mut best = (u64::MAX, NO_SLOT);
        let first = self.topology.arc_first(at / 2);
        for slot in 0..self.topology.arcs_of(at / 2).len() as u32 {
            if self.leads_on(dst, at, first + slot) {
                let cost = self.cost(dst, at, first + slot);
                if cost < best.0 {
                    best = (cost, slot as u8);
                }
            }
        }
        best.1
    }

    fn cost(&self, dst: u32, at: State, arc: u32) -> u64 {
        let next = self.after(at, arc).expect("it leads on");
        let ahead = match next / 2 == dst || self.work.is_stale[next as usize] {
            true => 0,
            false => self
                .next_arc(dst, next)
                .map_or(0, |arc| self.load[arc as usize]),
        };
        self.load[arc as usize] + ahead
    }

    /// Whether an arc that is as short costs less than the way there is.
    fn is_lighter(&self, dst: u32, at: State, arc: u32) -> bool {
        self.next_arc(dst, at)
            .is_some_and(|way| self.cost(dst, at, arc) < self.cost(dst, at, way))
    }
}

fn state(at: u32, phase: Phase) -> State {
    2 * at + u32::from(phase == Phase::Down)
}

#[cfg(test)]
mod tests {
    use super::Incremental;
    use crate::order::Order;
    use wormcast_routing::generate::{Irregular, irregular};
    use wormcast_routing::routes::{Algorithm, Routes};
    use wormcast_routing::topology::Damage;

    /// Against a plan from scratch along the same directions, after many links have gone
    /// one by one: the busiest link carries no more than a quarter above it.
    #[test]
    fn loads_stay_near_those_of_a_plan_from_scratch() {
        for seed in 0..4 {
            let topology = irregular(&Irregular::of_itb(48, seed)).unwrap();
            let routes = Routes::plan(&topology, Algorithm::Osud, None).unwrap();
            let mut kept = Incremental::new(&routes).unwrap();
            assert_eq!(kept.load.iter().sum::<u64>(), total(&kept));
            let gone: Vec<_> = topology.links().iter().step_by(9).collect();
            let mut damage = Damage::default();
            for link in &gone {
                kept.lose(link.a, link.a_port).unwrap();
                damage.links.insert((link.a, link.a_port));
            }
            let left = topology.without(&damage).unwrap();
            let order = Order::of(&topology, routes.updown());
            let again = Routes::plan_along(&left, Algorithm::Osud, order.direct(&left)).unwrap();
            let scratch = Incremental::new(&again).unwrap();
            assert_eq!(total(&kept), total(&scratch), "as short as from scratch");
            let (kept_most, most) = (kept.load_max(), scratch.load_max());
            assert!(
                kept_most * 4 <= most * 5,
                "seed {seed}: {kept_most} against {most}"
            );
            for link in &gone {
                kept.gain(link.a, link.a_port).unwrap();
            }
            let planned = Incremental::new(&routes).unwrap();
            assert_eq!(total(&kept), total(&planned));
            let (kept_most, most) = (kept.load_max(), planned.load_max());
            assert!(
                kept_most * 4 <= most * 5,
                "seed {seed}: {kept_most} against {most}"
            );
        }
    }

    /// Links of all routes, added up by their lengths.
    fn total(kept: &Incremental<'_>) -> u64 {
        let switches = kept.hosts.len();
        (0..switches * switches)
            .map(|pair| (pair / switches, pair % switches))
            .filter(|(dst, at)| kept.length[2 * dst * switches + at] != super::FAR)
            .map(|(dst, at)| {
                let length = u64::from(kept.length[2 * dst * switches + at]);
                length * kept.hosts[dst] * kept.hosts[at]
            })
            .sum()
    }
}
