//! Routes for each pair of hosts: one, or several with a share each.
//!
//! Where there is one, it is kept in next-hop tables between switches (one byte for each
//! pair and phase); where there are several, the lengths are kept (as many bytes), and
//! the paths are worked out from them. Routes are written out for a pair of hosts when
//! asked.

mod alternatives;
mod balance;
mod choice;
mod error;
mod flows;
mod forwarding;
mod json;
mod loads;
mod osud;
mod path;
mod ranks;
mod refine;
mod setting;
mod shortest_arcs;
mod summary;
mod tree_only;

pub use crate::updown::{NO_SLOT, NextHops, Phase};
pub use alternatives::{Alternative, Share};
pub use balance::Balance;
pub use error::RouteError;
pub use forwarding::{ForwardingTables, NO_PORT};
pub use json::read_routes;
pub use loads::{ChannelLoads, LinkLoad};
pub use path::{NoPath, Path};
pub use setting::Setting;
pub use summary::Summary;

use crate::intransit::{self, Lengths, Measure};
use crate::topology::Topology;
use crate::updown::UpDown;
use wormcast_wire::{HostId, SwitchId};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    /// One shortest up\*/down\* path for each pair (ITB §III.A), load spread over equals.
    Osud,
    /// Links of the spanning tree alone (WORM §3, scheme A).
    TreeOnly,
    /// One minimal path, re-injected on the way where it is not legal; load spread over
    /// those with the fewest in-transit hosts (ITB §III.B, as all below).
    Omit,
    /// Minimal paths, ten at most; a random one for each message.
    Rmit,
    /// The same paths in turn.
    Rrmit,
    /// 80 % of messages as [`Algorithm::Rmit`], 20 % over paths one hop longer.
    Pit,
    /// Paths that cross the fewest switches, those at in-transit hosts counted twice, in
    /// turn.
    RrmitMin,
}

impl Algorithm {
    pub const ALL: [Algorithm; 7] = [
        Algorithm::Osud,
        Algorithm::TreeOnly,
        Algorithm::Omit,
        Algorithm::Rmit,
        Algorithm::Rrmit,
        Algorithm::Pit,
        Algorithm::RrmitMin,
    ];

    /// Its name in files and on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Algorithm::Osud => "osud",
            Algorithm::TreeOnly => "tree-only",
            Algorithm::Omit => "omit",
            Algorithm::Rmit => "rmit",
            Algorithm::Rrmit => "rrmit",
            Algorithm::Pit => "pit",
            Algorithm::RrmitMin => "rrmit-min",
        }
    }

    /// Whether hosts may have to re-inject worms.
    pub const fn uses_in_transit_hosts(self) -> bool {
        !matches!(self, Algorithm::Osud | Algorithm::TreeOnly)
    }

    /// Whether a message takes any of a pair's routes at random; else they take turns.
    pub const fn draws_routes(self) -> bool {
        matches!(self, Algorithm::Rmit | Algorithm::Pit)
    }

    /// Whether a pair may have several routes.
    pub const fn has_alternatives(self) -> bool {
        self.uses_in_transit_hosts() && !matches!(self, Algorithm::Omit)
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
    pub src: HostId,
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
    pub src: HostId,
    pub dst: HostId,
}

/// Routes between all hosts of a topology.
#[derive(Clone, Debug)]
pub struct Routes<'t> {
    topology: &'t Topology,
    updown: UpDown,
    algorithm: Algorithm,
    seed: u64,
    kept: Kept,
}

/// What routes are written out from.
#[derive(Clone, Debug)]
enum Kept {
    /// One path for each pair of switches.
    NextHops(NextHops),
    /// The length of the shortest paths, of which several are taken.
    Lengths(Lengths),
}

impl<'t> Routes<'t> {
    /// Seed of what is drawn at random, if none is asked for.
    pub const SEED_DEFAULT: u64 = 1;

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
        let lengths = |measure| Kept::Lengths(Lengths::new(topology, &updown, measure));
        let kept = match algorithm {
            Algorithm::Osud => Kept::NextHops(osud::plan(topology, &updown)),
            Algorithm::TreeOnly => Kept::NextHops(tree_only::plan(topology, &updown)),
            Algorithm::Omit => Kept::NextHops(intransit::plan_one(topology, &updown)),
            Algorithm::Rmit | Algorithm::Rrmit | Algorithm::Pit => lengths(Measure::Links),
            Algorithm::RrmitMin => lengths(Measure::Crossings),
        };
        Ok(Routes {
            topology,
            updown,
            algorithm,
            seed: Routes::SEED_DEFAULT,
            kept,
        })
    }

    /// The same with another seed: which ten of many paths are kept depends on it.
    #[must_use]
    pub fn with_seed(mut self, seed: u64) -> Routes<'t> {
        self.seed = seed;
        self
    }

    /// What the routes are planned on.
    pub fn topology(&self) -> &'t Topology {
        self.topology
    }

    /// Levels and directions the routes keep to.
    pub fn updown(&self) -> &UpDown {
        &self.updown
    }

    pub fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// Seed of what is drawn at random.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// The route from one host to another; of several, the first.
    ///
    /// # Errors
    /// Unknown hosts, a route to oneself, hosts in parts that are not connected, and
    /// paths longer than a worm may go.
    pub fn route(&self, src: HostId, dst: HostId) -> Result<Route, RouteError> {
        let pair = self.pair(src, dst)?;
        let paths = self.paths(pair.start, pair.end);
        let paths = paths.map_err(|reason| reason.between(src, dst))?;
        Ok(self.write_out(pair, 0, &paths[0].arcs))
    }

    /// Switches crossed between two hosts, 1 if they share a switch; `None` if they
    /// cannot reach each other, and 0 from a host to itself. Of several routes, it is the
    /// first that counts.
    ///
    /// # Errors
    /// [`RouteError::Topology`] if there is no such host.
    pub fn distance(&self, src: HostId, dst: HostId) -> Result<Option<u32>, RouteError> {
        let from = self.topology.host_index(src)?;
        let to = self.topology.host_index(dst)?;
        if from == to {
            return Ok(Some(0));
        }
        let (start, end) = (self.topology.switch_of(from), self.topology.switch_of(to));
        Ok(match self.switches_between(start, end) {
            Ok(switches) | Err(NoPath::TooLong { switches }) => Some(switches as u32),
            Err(NoPath::Apart) => None,
        })
    }

    /// All routes, by source and then destination, alternatives one after another; pairs
    /// without one are left out.
    pub fn iter(&self) -> impl Iterator<Item = Route> + '_ {
        self.answers(None, None).flat_map(|answer| {
            let all = answer.alternatives.unwrap_or_default();
            all.into_iter().map(|alternative| alternative.route)
        })
    }

    /// Pairs of hosts without a usable route: in parts that are not connected, or too
    /// far apart.
    pub fn unreachable(&self) -> impl Iterator<Item = Unreachable> + '_ {
        self.answers(None, None)
            .filter(|answer| answer.alternatives.is_err())
            .map(|answer| answer.pair)
    }

    /// The next hops that paths follow, if that is how they are kept. After an arc that
    /// leads up a path may go up, after one that leads down not without a cut.
    pub fn next_hops(&self) -> Option<&NextHops> {
        match &self.kept {
            Kept::NextHops(tables) => Some(tables),
            Kept::Lengths(_) => None,
        }
    }
}
