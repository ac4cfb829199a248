//! From the routes in force to new ones, while worms of both are in the network.
//!
//! Routes that are free of deadlock before and after can still deadlock together: worms
//! of both hold channels at the same time. A change is safe if the channel dependencies
//! of old and new routes together have no cycle. Where one such step exists, it is
//! planned; else several, each safe with the one before. Between two steps the worms of
//! the routes before the last step have to have left the network.
//!
//! What counts as old: every dependency of a route in force between channels that still
//! exist, of routes that broke too, on both sides of the break: parts of their worms may
//! still be on their way. A channel that was lost drops what needs it. With
//! [`Change::planned`] channels that are to go carry worms until the change is done.
//!
//! One step is looked for in this order:
//!
//! 1. *kept order*: OSUD along the order of switches in force, the new topology's links
//!    directed by it. Paths legal under one order never make a cycle, so that this is
//!    safe whenever it serves all pairs; it does exactly if in each part all switches
//!    with hosts have, two by two, a switch above both.
//! 2. *repaired order*: the switches that lost every way up to the root of their part
//!    move behind the others.
//! 3. *detours*: broken pairs alone get new paths, any that close no cycle; where some
//!    find none, with the turns of a spanning tree kept in reserve for them.
//! 4. *fresh*: the plan from scratch, with the root that it chooses.
//!
//! With in-transit buffers (ITB §III.B) the first always serves where each switch has a
//! host: a path is cut wherever it would break the order in force, and each piece is
//! legal under that order. So one step always suffices.
//!
//! Otherwise several steps: each moves as many pairs as it can from their path to that of
//! the goal, or the steps lead over spanning trees of the new topology (`trees.rs`), and
//! the fewest that are found are taken. Only if no such sequence is found do pairs have
//! to stop (*drain*). That every change between two up\*/down\* plans of a fabric can be
//! made over trees without stopping a pair is shown there. One step is found
//! wherever one of the routings above makes it. Several are the fewest that any sequence
//! of OSUD plans along all orders of the switches and of all spanning trees has, in every
//! graph of up to five switches (by trying all, in the tests); in larger ones they are the
//! fewest of those tried, and there may be fewer.

#[cfg(test)]
mod by_force;
mod channels;
mod dependencies;
mod detours;
mod error;
mod json;
mod paths;
mod planner;
mod sequence;
mod trees;
mod written;

pub use error::ChangeError;

use self::planner::Planner;
use wormcast_routing::deadlock::Channel;
use wormcast_routing::routes::{Algorithm, Route, Unreachable};
use wormcast_routing::topology::Topology;
use wormcast_wire::SwitchId;

/// What changes.
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
    /// From scratch.
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
    /// How it was found.
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
    /// The steps.
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

/// Plans the steps of a change.
///
/// # Errors
/// [`ChangeError`]: roots that are not there, routes that do not fit the old topology or
/// can deadlock, an algorithm with more than one path a pair.
pub fn plan(change: &Change<'_>) -> Result<ChangeSteps, ChangeError> {
    Planner::new(change)?.plan()
}
