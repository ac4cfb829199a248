//! Which routes a fabric uses.

use super::loads::is_legal;
use super::{Algorithm, Balance, RouteError, Routes};
use crate::intransit::{Measure, crossed};
use crate::topology::Topology;
use crate::updown::UpDown;
use wormcast_wire::SwitchId;

/// Which routes a fabric uses: by which algorithm, from which root, balanced or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setting {
    pub algorithm: Algorithm,
    /// The root; `None` lets each part choose.
    pub root: Option<SwitchId>,
    /// Whether root, unless given, and paths are those that [`Balance`] finds.
    pub balanced: bool,
}

impl Setting {
    /// An algorithm with its plain choice of root and paths.
    pub const fn plain(algorithm: Algorithm) -> Setting {
        Setting {
            algorithm,
            root: None,
            balanced: false,
        }
    }

    /// Whether there are such routes in any network.
    ///
    /// # Errors
    /// [`RouteError::NoBalance`]: balanced, and neither osud nor tree-only.
    pub fn check(&self) -> Result<(), RouteError> {
        let algorithm = self.algorithm;
        if self.balanced && !is_legal(algorithm) {
            Err(RouteError::NoBalance { algorithm })
        } else {
            Ok(())
        }
    }

    pub fn root_in(&self, topology: &Topology) -> Option<SwitchId> {
        self.root
            .filter(|&root| topology.switch_index(root).is_ok())
    }

    /// Plans all routes. A part without the root chooses its own, as if none were given.
    ///
    /// # Errors
    /// [`RouteError::NoBalance`], [`RouteError::Unidirectional`].
    pub fn plan<'t>(&self, topology: &'t Topology) -> Result<Routes<'t>, RouteError> {
        let root = self.root_in(topology);
        if self.balanced {
            Balance::find(topology, self.algorithm, root).map(|balance| balance.chosen)
        } else {
            Routes::plan(topology, self.algorithm, root)
        }
    }

    /// Plans all routes along directions that are there already; the root is theirs.
    ///
    /// # Errors
    /// As [`Setting::plan`].
    pub fn plan_along<'t>(
        &self,
        topology: &'t Topology,
        updown: UpDown,
    ) -> Result<Routes<'t>, RouteError> {
        if self.balanced {
            Balance::along(topology, self.algorithm, updown)
        } else {
            Routes::plan_along(topology, self.algorithm, updown)
        }
    }
}

impl Routes<'_> {
    /// Pairs of hosts whose shortest route is longer because some hosts do not re-inject worms:
    /// than it would be if all did.
    ///
    /// # Errors
    /// As [`Routes::plan_along`].
    pub fn lengthened(&self) -> Result<u64, RouteError> {
        let topology = self.topology;
        let all_may = topology.hosts().iter().all(|host| host.transit);
        if all_may || !self.algorithm.uses_in_transit_hosts() {
            return Ok(0);
        }
        let free = topology.with_transit(|_| true);
        let shortest = Routes::plan_along(&free, self.algorithm, self.updown.clone())?;
        let measure = match self.algorithm {
            Algorithm::RrmitMin => Measure::Crossings,
            _ => Measure::Links,
        };
        let length = |routes: &Routes<'_>, from, to| -> Option<usize> {
            let paths = routes.paths(from, to).ok()?;
            let lengths = paths.iter().map(|path| match measure {
                Measure::Links => path.arcs.len(),
                Measure::Crossings => crossed(&self.updown, &path.arcs),
            });
            lengths.min()
        };
        let hosts = |switch| topology.hosts_at(switch).len() as u64;
        let occupied = || (0..topology.switch_count() as u32).filter(|&at| hosts(at) > 0);
        let mut pairs = 0;
        for from in occupied() {
            for to in occupied().filter(|to| *to != from) {
                // Where there is no route at all, there is none that is longer.
                if let Some(is) = length(self, from, to)
                    && length(&shortest, from, to).is_some_and(|least| least < is)
                {
                    pairs += hosts(from) * hosts(to);
                }
            }
        }
        Ok(pairs)
    }
}
