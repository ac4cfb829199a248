//! One route for each pair of hosts.
//!
//! Routes are kept as next-hop tables between switches (one byte for each pair and
//! phase), and written out for a pair of hosts when asked.

mod error;
mod json;
mod next_hops;
mod osud;
mod tree_only;

pub use error::RouteError;
pub use json::read_routes;
pub(crate) use next_hops::{NO_SLOT, NextHops, Phase};

use crate::ids::{HostId, ROUTE_BYTES_MAX, SWITCHES_CROSSED_MAX, SwitchId};
use crate::topology::Topology;
use crate::updown::UpDown;

/// How paths are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    /// One shortest up\*/down\* path for each pair (ITB §III.A), load spread over equals.
    Osud,
    /// Links of the spanning tree alone (WORM §3, scheme A).
    TreeOnly,
}

impl Algorithm {
    /// All of them.
    pub const ALL: [Algorithm; 2] = [Algorithm::Osud, Algorithm::TreeOnly];

    /// Its name in files and on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Algorithm::Osud => "osud",
            Algorithm::TreeOnly => "tree-only",
        }
    }
}

impl std::str::FromStr for Algorithm {
    type Err = RouteError;

    fn from_str(name: &str) -> Result<Algorithm, RouteError> {
        Algorithm::ALL
            .into_iter()
            .find(|algorithm| algorithm.name() == name)
            .ok_or_else(|| RouteError::UnknownAlgorithm {
                name: name.to_owned(),
            })
    }
}

/// A source route, and where it leads.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Route {
    /// Host that sends.
    pub src: HostId,
    /// Host that receives.
    pub dst: HostId,
    /// Switches crossed, one for each byte of `ports`.
    pub switches: Vec<SwitchId>,
    /// Bytes of the source route; the last leads to `dst`.
    pub ports: Vec<u8>,
    /// Hosts that take the worm and re-inject it, in order (ITB §III.B).
    pub in_transit: Vec<HostId>,
}

/// Two hosts with no usable route between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Unreachable {
    /// Host that would send.
    pub src: HostId,
    /// Host that would receive.
    pub dst: HostId,
}

/// Routes between all hosts of a topology.
#[derive(Clone, Debug)]
pub struct Routes<'t> {
    topology: &'t Topology,
    updown: UpDown,
    algorithm: Algorithm,
    tables: NextHops,
}

impl<'t> Routes<'t> {
    /// Plans all routes. The topology may be split; `root` is the root of the part it
    /// lies in, else each part chooses (see [`UpDown::new`]).
    ///
    /// # Errors
    /// [`RouteError::Topology`] if there is no switch `root`,
    /// [`RouteError::Unidirectional`] if links lead one way only.
    pub fn plan(
        topology: &'t Topology,
        algorithm: Algorithm,
        root: Option<SwitchId>,
    ) -> Result<Routes<'t>, RouteError> {
        Routes::plan_along(topology, algorithm, UpDown::new(topology, root)?)
    }

    /// As [`Routes::plan`], keeping to levels and a spanning tree that are there already.
    ///
    /// # Errors
    /// [`RouteError::Unidirectional`].
    pub fn plan_along(
        topology: &'t Topology,
        algorithm: Algorithm,
        updown: UpDown,
    ) -> Result<Routes<'t>, RouteError> {
        if topology.grid().is_some_and(|grid| grid.unidirectional) {
            return Err(RouteError::Unidirectional { algorithm });
        }
        let tables = match algorithm {
            Algorithm::Osud => osud::plan(topology, &updown),
            Algorithm::TreeOnly => tree_only::plan(topology, &updown),
        };
        Ok(Routes {
            topology,
            updown,
            algorithm,
            tables,
        })
    }

    /// What the routes are planned on.
    pub fn topology(&self) -> &'t Topology {
        self.topology
    }

    /// Levels and directions the routes keep to.
    pub fn updown(&self) -> &UpDown {
        &self.updown
    }

    /// How paths were chosen.
    pub fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// The route from one host to another.
    ///
    /// # Errors
    /// Unknown hosts, a route to oneself, hosts in parts that are not connected, and
    /// paths longer than a worm may go.
    pub fn route(&self, src: HostId, dst: HostId) -> Result<Route, RouteError> {
        let mut route = Route {
            src,
            dst,
            switches: Vec::new(),
            ports: Vec::new(),
            in_transit: Vec::new(),
        };
        let from = self.topology.host_index(src)?;
        let to = self.topology.host_index(dst)?;
        if from == to {
            return Err(RouteError::ToItself { host: src });
        }
        let end = self.topology.switch_of(to);
        let arrived = self.walk(self.topology.switch_of(from), end, |at, arc| {
            route.switches.push(self.topology.switch_id(at));
            route
                .ports
                .push(self.topology.arcs()[arc as usize].port.get());
        });
        if !arrived {
            return Err(RouteError::Unreachable { src, dst });
        }
        route.switches.push(self.topology.switch_id(end));
        route
            .ports
            .push(self.topology.hosts()[to as usize].port.get());
        if route.switches.len() > SWITCHES_CROSSED_MAX || route.ports.len() > ROUTE_BYTES_MAX {
            return Err(RouteError::TooLong {
                src,
                dst,
                switches: route.switches.len(),
            });
        }
        Ok(route)
    }

    /// Switches crossed between two hosts, 1 if they share a switch; `None` if they
    /// cannot reach each other, and 0 from a host to itself.
    ///
    /// # Errors
    /// [`RouteError::Topology`] if there is no such host.
    pub fn distance(&self, src: HostId, dst: HostId) -> Result<Option<u32>, RouteError> {
        let from = self.topology.host_index(src)?;
        let to = self.topology.host_index(dst)?;
        if from == to {
            return Ok(Some(0));
        }
        let mut crossed = 1;
        let (start, end) = (self.topology.switch_of(from), self.topology.switch_of(to));
        Ok(self
            .walk(start, end, |_, _| crossed += 1)
            .then_some(crossed))
    }

    /// All routes, by source and then destination; pairs without one are left out.
    pub fn iter(&self) -> impl Iterator<Item = Route> + '_ {
        self.pairs()
            .filter_map(|(src, dst)| self.route(src, dst).ok())
    }

    /// Pairs of hosts without a usable route: in parts that are not connected, or too
    /// far apart.
    pub fn unreachable(&self) -> impl Iterator<Item = Unreachable> + '_ {
        self.pairs()
            .filter(|&(src, dst)| self.route(src, dst).is_err())
            .map(|(src, dst)| Unreachable { src, dst })
    }

    /// Visits (index of switch, arc that leaves it) from one switch to another; false if
    /// there is no way.
    pub(crate) fn walk(&self, from: u32, to: u32, mut visit: impl FnMut(u32, u32)) -> bool {
        let (mut at, mut phase) = (from, Phase::Up);
        while at != to {
            let slot = self.tables.get(to, at, phase);
            if slot == NO_SLOT {
                return false;
            }
            let arc = self.topology.arc_first(at) + u32::from(slot);
            visit(at, arc);
            at = self.topology.arcs()[arc as usize].to;
            if !self.updown.is_up(arc) {
                phase = Phase::Down;
            }
        }
        true
    }

    /// The slot towards a switch in the tables, [`NO_SLOT`] where there is none.
    pub(crate) fn slot(&self, dst: u32, at: u32, phase: Phase) -> u8 {
        self.tables.get(dst, at, phase)
    }

    fn pairs(&self) -> impl Iterator<Item = (HostId, HostId)> + '_ {
        let hosts = self.topology.hosts();
        hosts.iter().flat_map(move |src| {
            hosts
                .iter()
                .filter(move |dst| dst.id != src.id)
                .map(move |dst| (src.id, dst.id))
        })
    }
}
