//! Paths between switches, and routes between hosts along them.

use super::choice::Choice;
use super::{Kept, NO_SLOT, Phase, Route, RouteError, Routes};
use crate::intransit::{crossed, fewest_crossings, host_in_turn, is_cut};
use wormcast_wire::{HostId, ROUTE_LENGTH_MAX, SHARES_WHOLE, SWITCHES_CROSSED_MAX};

/// A path between two switches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Path {
    /// Arcs it takes; where one is down and the next up, a host on the switch in between
    /// re-injects.
    pub arcs: Vec<u32>,
    /// How many of 12,600 worms take it.
    pub share: u32,
}

/// Why there is no path between two switches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoPath {
    /// They are in parts that are not connected.
    Apart,
    /// A worm would be dropped on the way.
    TooLong {
        /// How many switches it would cross.
        switches: usize,
    },
}

impl NoPath {
    /// The error of a pair of hosts on these switches.
    pub(super) fn between(self, src: HostId, dst: HostId) -> RouteError {
        match self {
            NoPath::Apart => RouteError::Unreachable { src, dst },
            NoPath::TooLong { switches } => RouteError::TooLong { src, dst, switches },
        }
    }
}

/// Two hosts and their switches, by index.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pair {
    pub(super) from: u32,
    pub(super) to: u32,
    pub(super) start: u32,
    pub(super) end: u32,
}

const _: () = assert!(
    SWITCHES_CROSSED_MAX <= ROUTE_LENGTH_MAX,
    "a route has a byte for each switch crossed"
);

impl Routes<'_> {
    pub(super) fn pair(&self, src: HostId, dst: HostId) -> Result<Pair, RouteError> {
        let from = self.topology.host_index(src)?;
        let to = self.topology.host_index(dst)?;
        if from == to {
            return Err(RouteError::ToItself { host: src });
        }
        Ok(self.pair_of(from, to))
    }

    pub(super) fn pair_of(&self, from: u32, to: u32) -> Pair {
        Pair {
            from,
            to,
            start: self.topology.switch_of(from),
            end: self.topology.switch_of(to),
        }
    }

    /// Every path from one switch to another, one or more; all pairs of hosts on the two
    /// share them. Of paths that would be too long, that with the fewest switches crossed
    /// is tried.
    pub fn paths(&self, from: u32, to: u32) -> Result<Vec<Path>, NoPath> {
        let share = SHARES_WHOLE;
        match &self.kept {
            Kept::NextHops(_) => match self.next_hop_switches(from, to)? {
                switches if switches <= SWITCHES_CROSSED_MAX => {
                    let mut arcs = Vec::with_capacity(switches);
                    self.walk(from, to, |arc| arcs.push(arc));
                    return Ok(vec![Path { arcs, share }]);
                }
                switches if !self.algorithm.uses_in_transit_hosts() => {
                    return Err(NoPath::TooLong { switches });
                }
                _ => {}
            },
            Kept::Lengths(lengths) => {
                let choice = Choice {
                    topology: self.topology,
                    updown: &self.updown,
                    lengths,
                    algorithm: self.algorithm,
                    seed: self.seed,
                };
                let paths = choice.paths(from, to).into_iter();
                let paths: Vec<Path> = paths.map(|(arcs, share)| Path { arcs, share }).collect();
                if !paths.is_empty() {
                    return Ok(paths);
                }
            }
        }
        if self.topology.component_of(from) != self.topology.component_of(to) {
            return Err(NoPath::Apart);
        }
        let arcs = fewest_crossings(self.topology, &self.updown, from, to);
        let arcs = arcs.ok_or(NoPath::Apart)?;
        match crossed(&self.updown, &arcs) {
            switches if switches > SWITCHES_CROSSED_MAX => Err(NoPath::TooLong { switches }),
            _ => Ok(vec![Path { arcs, share }]),
        }
    }

    /// Switches crossed from one to another, by the first path.
    pub(super) fn switches_between(&self, from: u32, to: u32) -> Result<usize, NoPath> {
        if !self.algorithm.uses_in_transit_hosts() {
            return self.next_hop_switches(from, to);
        }
        let paths = self.paths(from, to)?;
        Ok(crossed(&self.updown, &paths[0].arcs))
    }

    /// Switches crossed along the next hops.
    fn next_hop_switches(&self, from: u32, to: u32) -> Result<usize, NoPath> {
        let (mut switches, mut came) = (1, None);
        let arrived = self.walk(from, to, |arc| {
            let cut = came.is_some_and(|came| is_cut(&self.updown, came, arc));
            switches += 1 + usize::from(cut);
            came = Some(arc);
        });
        if arrived {
            Ok(switches)
        } else {
            Err(NoPath::Apart)
        }
    }

    /// Visits the arcs along the next hops from one switch to another; false if there is no
    /// way.
    fn walk(&self, from: u32, to: u32, mut visit: impl FnMut(u32)) -> bool {
        let Kept::NextHops(tables) = &self.kept else {
            return false;
        };
        let (mut at, mut phase) = (from, Phase::Up);
        while at != to {
            let slot = tables.get(to, at, phase);
            if slot == NO_SLOT {
                return false;
            }
            let arc = self.topology.arc_first(at) + u32::from(slot);
            visit(arc);
            at = self.topology.arcs()[arc as usize].to;
            // Up after down is a cut, and a new piece.
            phase = if self.updown.is_up(arc) {
                Phase::Up
            } else {
                Phase::Down
            };
        }
        true
    }

    /// The route of a pair of hosts along a path, which is the alternative of this number.
    pub(super) fn write_out(&self, pair: Pair, number: u32, arcs: &[u32]) -> Route {
        let topology = self.topology;
        let (src, dst) = (
            topology.hosts()[pair.from as usize],
            topology.hosts()[pair.to as usize],
        );
        let length = crossed(&self.updown, arcs);
        let mut route = Route {
            src: src.id,
            dst: dst.id,
            switches: Vec::with_capacity(length),
            ports: Vec::with_capacity(length),
            in_transit: Vec::new(),
        };
        let turn = self.turn(pair);
        let mut at = pair.start;
        for (place, &arc) in arcs.iter().enumerate() {
            if place > 0 && is_cut(&self.updown, arcs[place - 1], arc) {
                let key = [pair.start, pair.end, number << 8 | place as u32];
                let host = host_in_turn(topology, at, turn, key);
                let host = topology.hosts()[host as usize];
                route.switches.push(host.switch);
                route.ports.push(host.port.get());
                route.in_transit.push(host.id);
            }
            let arc = topology.arcs()[arc as usize];
            route.switches.push(topology.switch_id(at));
            route.ports.push(arc.port.get());
            at = arc.to;
        }
        route.switches.push(dst.switch);
        route.ports.push(dst.port.get());
        route
    }

    /// Number of a pair of hosts among those of their two switches.
    fn turn(&self, pair: Pair) -> usize {
        let place = |host: u32, switch: u32| {
            let mut hosts = self.topology.hosts_at(switch);
            hosts.position(|other| other == host).expect("it is there")
        };
        place(pair.from, pair.start) * self.topology.hosts_at(pair.end).len()
            + place(pair.to, pair.end)
    }
}
