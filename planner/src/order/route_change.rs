//! How the routes of a plan follow from those before.

use std::collections::BTreeMap;
use std::sync::Arc;

use wormcast_wire::HostId;

use crate::model::agent::{AgentPlan, HostRoutes, RouteTable};
use crate::order::route_order::RouteOrder;

/// How the routes of a plan follow from those before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Method {
    /// Along the order of switches in force: safe at once.
    #[default]
    KeptOrder,
    /// Along that order, repaired where switches lost every way up.
    RepairedOrder,
    /// Along an order from scratch.
    NewOrder,
}

impl Method {
    /// Its name in files and events.
    pub const fn name(self) -> &'static str {
        match self {
            Method::KeptOrder => "kept-order",
            Method::RepairedOrder => "repaired-order",
            Method::NewOrder => "new-order",
        }
    }
}

/// How to get from the routes before to those of a plan.
///
/// At every moment all worms in flight keep to one order of switches. Under the order in force new
/// routes may be used at once, in one step. So they may under another order that allows all turns that
/// worms of the order in force can still take; links that carry nothing then stay out of use, should
/// they come back, until older worms have left ([`Planner::drained`](crate::Planner::drained)). To any other order it takes two: first all hosts use the
/// *bridge*, routes that keep to both orders, and switches copy along what both trees have (their
/// stage SHRINK). When all hosts have confirmed that and older worms have left, the new order is
/// in force ([`Planner::settle`](crate::Planner::settle)), and what keeps to it alone may be used.
#[derive(Clone, Debug, Default)]
pub struct RouteChange {
    /// How the order was found.
    pub method: Method,
    /// The order in force, which is to be stored before worms use it.
    pub in_force: RouteOrder,
    /// The order to which it changes, if it does.
    pub next: Option<RouteOrder>,
    /// What every agent must have first, if the order changes.
    pub bridge: Option<BTreeMap<HostId, Arc<AgentPlan>>>,
    /// Pairs of hosts that have a route in the end and none on the bridge.
    pub stopped: u64,
    /// Pairs of hosts whose routes are other in the end than in the state that the same planner
    /// gave before.
    pub changed: u64,
    /// Pairs of hosts whose routes are other on the bridge than in the state before.
    pub bridged: u64,
    /// Switches that a worm crosses at most, by any route of this plan or the one before.
    pub crossed_max: u32,
    /// Whether to say when older worms have left ([`Planner::drained`](crate::Planner::drained)).
    pub drains: bool,
}

/// Most switches that a worm crosses by these routes.
pub(crate) fn crossed_max<'r>(routes: impl Iterator<Item = &'r HostRoutes>) -> u32 {
    let lengths = routes.flat_map(|(unicast, tree)| {
        let all = unicast.0.iter().chain(&tree.0);
        all.map(|route| route.ports.len())
    });
    lengths.max().unwrap_or(0) as u32
}

/// Pairs of hosts whose unicast routes differ.
pub(crate) fn count_changed<'r>(
    before: &BTreeMap<HostId, HostRoutes>,
    routes: impl Iterator<Item = (HostId, &'r HostRoutes)>,
) -> u64 {
    let none = HostRoutes::default();
    let changed = routes.map(|(host, routes)| {
        let old = before.get(&host).unwrap_or(&none);
        if Arc::ptr_eq(&old.0, &routes.0) {
            0
        } else {
            pairs_changed(&old.0, &routes.0)
        }
    });
    changed.sum()
}

/// Destinations to which the routes differ.
fn pairs_changed(old: &RouteTable, new: &RouteTable) -> u64 {
    let mut before = old.0.chunk_by(|a, b| a.to == b.to).peekable();
    let changed = new.0.chunk_by(|a, b| a.to == b.to).filter(|own| {
        while before.next_if(|old| old[0].to < own[0].to).is_some() {}
        before.next_if(|old| old[0].to == own[0].to) != Some(own)
    });
    changed.count() as u64
}
