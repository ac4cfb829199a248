//! What changes, and the steps that are planned for it.

use wormcast_routing::routes::{Algorithm, Route, Unreachable};
use wormcast_routing::topology::Topology;
use wormcast_verify::deadlock::Channel;
use wormcast_wire::SwitchId;

#[derive(Clone, Copy, Debug)]
pub struct Change<'a> {
    /// The topology that the routes in force were planned on; it may be split.
    pub old: &'a Topology,
    /// The topology from now on; it may be split.
    pub new: &'a Topology,
    /// How paths are chosen, before and after.
    pub algorithm: Algorithm,
    /// Root of the routes in force; `None` for the one of least eccentricity.
    pub root: Option<SwitchId>,
    /// The routes in force; `None` if they are as the algorithm plans them.
    pub routes: Option<&'a [Route]>,
    /// Asks for the plan from scratch with this root, in as many steps as that takes.
    pub new_root: Option<SwitchId>,
    /// Links that go are taken out after the change; else they have failed.
    pub planned: bool,
}

/// How a step was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Method {
    /// Along the order in force.
    KeptOrder,
    /// Along the order in force, some switches moved behind.
    RepairedOrder,
    /// New paths for broken pairs alone.
    Detours,
    Fresh,
    /// Along a spanning tree.
    Tree,
    /// Some pairs have their next path already.
    Staged,
    /// Some pairs stop, so that the next step is safe.
    Drain,
}

impl Method {
    /// Its name in files.
    pub const fn name(self) -> &'static str {
        match self {
            Method::KeptOrder => "kept-order",
            Method::RepairedOrder => "repaired-order",
            Method::Detours => "detours",
            Method::Fresh => "fresh",
            Method::Tree => "tree",
            Method::Staged => "staged",
            Method::Drain => "drain",
        }
    }
}

/// A step: routes to install at once. They are safe with those in force before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    pub method: Method,
    /// Root of the order that the routes keep to; `None` if they keep to none.
    pub root: Option<SwitchId>,
    /// Routes that are new or other than before, by source and destination.
    pub changed: Vec<Route>,
    /// Pairs of hosts that had a route and have none now, though they will again.
    pub drained: Vec<Unreachable>,
    /// Pairs of hosts without a route until a later step.
    pub waiting: usize,
    /// The certificate: all links of both topologies that carry worms, in an order in
    /// which every route takes them, old and new.
    pub order: Vec<Channel>,
}

/// Steps to make one after the other; none if no route changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangeSteps {
    pub steps: Vec<Step>,
    /// Pairs of hosts of the new topology without a route in the end.
    pub unreachable: Vec<Unreachable>,
    /// Pairs of hosts whose route lost a link or a host, or crosses a switch that lost one
    /// of the hosts that re-inject there.
    pub broken: usize,
    /// Pairs of hosts that have a route in the end.
    pub routes: usize,
    /// Links of all routes in the end, added up.
    pub links_crossed: u64,
}
