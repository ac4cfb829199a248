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
//! 3. *detours*: broken pairs alone get new paths, any that close no cycle.
//! 4. *fresh*: the plan from scratch, with the root that it chooses.
//! 5. *tree*: a spanning tree of the new topology.
//!
//! With in-transit buffers (ITB §III.B) the first always serves where each switch has a
//! host: a path is cut wherever it would break the order in force, and each piece is
//! legal under that order. So one step always suffices.
//!
//! Otherwise the fewest steps found by [`sequence`] towards any of these, straight or by
//! way of a spanning tree. One step is never missed where one of the routings above
//! makes it; a longer sequence is the shortest of those tried, which is not a proof that
//! none is shorter.

mod channels;
mod dependencies;
mod detours;
mod error;
mod incremental;

mod json;
mod order;
mod paths;
mod sequence;
mod trees;

pub use error::ChangeError;
pub use incremental::{Incremental, Touched};

use std::collections::BTreeMap;

use self::channels::Channels;
use self::dependencies::Dependencies;
use self::order::Order;
use self::paths::{Paths, Side};
use crate::deadlock::{Branching, Channel, ChannelGraph};
use crate::ids::{HostId, SwitchId};
use crate::routes::{Algorithm, Route, Routes, Unreachable};
use crate::topology::Topology;

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
pub struct Plan {
    /// The steps.
    pub steps: Vec<Step>,
    /// Pairs of hosts of the new topology without a route in the end.
    pub unreachable: Vec<Unreachable>,
    /// Pairs of hosts whose route broke.
    pub broken: usize,
    /// Pairs of hosts that have a route in the end.
    pub routes: usize,
    /// Links of all routes in the end, added up.
    pub links_crossed: u64,
}

/// A routing on the new topology.
struct Candidate {
    method: Method,
    root: Option<SwitchId>,
    paths: Paths,
}

/// Plans the steps of a change.
///
/// # Errors
/// [`ChangeError`]: roots that are not there, routes that do not fit the old topology or
/// can deadlock, an algorithm with more than one path a pair.
pub fn plan(change: &Change<'_>) -> Result<Plan, ChangeError> {
    Planner::new(change)?.plan()
}

struct Planner<'a> {
    change: &'a Change<'a>,
    channels: Channels,
    old: Paths,
    /// Dependencies of the routes in force.
    in_force: Dependencies,
    kept: Order,
    fresh: Candidate,
}

impl<'a> Planner<'a> {
    fn new(change: &'a Change<'a>) -> Result<Planner<'a>, ChangeError> {
        let choices = [Algorithm::Osud, Algorithm::TreeOnly];
        if !choices.contains(&change.algorithm) {
            let (algorithm, choices) = (change.algorithm, choices.to_vec());
            return Err(ChangeError::Algorithm { algorithm, choices });
        }
        let channels = Channels::new(change.old, change.new, change.routes.is_some());
        let before = Routes::plan(change.old, change.algorithm, change.root)?;
        let old = match change.routes {
            None => Paths::of_routes(&channels, Side::Old, &before),
            Some(routes) => {
                check_routes(change.old, routes)?;
                Paths::of_list(&channels, Side::Old, routes)
            }
        };
        let mut in_force = Dependencies::new(channels.len());
        if !old.add_to(&channels, change.planned, &mut in_force) {
            return Err(ChangeError::Deadlock);
        }
        let root = match (change.new_root, change.root) {
            (Some(root), _) => Some(root),
            (None, root) => root.filter(|root| change.new.switch_index(*root).is_ok()),
        };
        let after = Routes::plan(change.new, change.algorithm, root)?;
        let fresh = Candidate {
            method: Method::Fresh,
            root: Some(after.updown().root(change.new)),
            paths: Paths::of_routes(&channels, Side::New, &after),
        };
        let kept = Order::kept(&channels, change.old, before.updown(), change.new);
        Ok(Planner {
            change,
            channels,
            old,
            in_force,
            kept,
            fresh,
        })
    }

    fn plan(&self) -> Result<Plan, ChangeError> {
        let goals = match self.change.new_root {
            Some(_) => vec![self.fresh_again()],
            None => {
                let mut goals = Vec::new();
                for candidate in self.candidates() {
                    if self.serves(&candidate.paths) {
                        if self.is_safe(&self.in_force, &candidate.paths) {
                            return Ok(self.write(vec![candidate], &[]));
                        }
                        goals.push(candidate);
                    }
                }
                goals
            }
        };
        Ok(self.plan_steps(goals))
    }

    /// Routings to try for one step, the preferred first; planned only when it is their
    /// turn.
    fn candidates(&self) -> impl Iterator<Item = Candidate> + '_ {
        let kept = std::iter::once_with(|| self.along(&self.kept, Method::KeptOrder));
        let repaired = std::iter::once_with(|| self.kept.repaired(&self.channels, self.change.new))
            .flatten()
            .map(|order| self.along(&order, Method::RepairedOrder));
        let detours = std::iter::once_with(|| {
            let mut graph = self.in_force.clone();
            let paths = detours::plan(&self.channels, &self.old, &self.fresh.paths, &mut graph);
            Candidate {
                method: Method::Detours,
                root: None,
                paths,
            }
        });
        let fresh = std::iter::once_with(|| self.fresh_again());
        let tree = std::iter::once_with(|| self.tree(&self.in_force, &self.in_force)).flatten();
        kept.chain(repaired).chain(detours).chain(fresh).chain(tree)
    }

    fn plan_steps(&self, goals: Vec<Candidate>) -> Plan {
        let mut best: Option<(Vec<Candidate>, Vec<(usize, usize)>)> = None;
        for goal in goals {
            let mut found = vec![self.stage(&self.old, &self.in_force, goal.again())];
            let after = self.dependencies(&goal.paths);
            if let Some(tree) = self.tree(&self.in_force, &after) {
                found.push((vec![tree, goal], Vec::new()));
            }
            for (states, drained) in found {
                let cost = |states: &[Candidate], drained: &[_]| (drained.len(), states.len());
                let better = best
                    .as_ref()
                    .is_none_or(|(best, stopped)| cost(&states, &drained) < cost(best, stopped));
                if better {
                    best = Some((states, drained));
                }
            }
        }
        let (states, drained) = best.expect("the plan from scratch is a goal");
        self.write(states, &drained)
    }

    fn stage(
        &self,
        from: &Paths,
        in_force: &Dependencies,
        goal: Candidate,
    ) -> (Vec<Candidate>, Vec<(usize, usize)>) {
        if self.is_safe(in_force, &goal.paths) {
            return (vec![goal], Vec::new());
        }
        let found = sequence::staged(&self.channels, from, &goal.paths, self.change.planned);
        let steps = found.states.len();
        let states = found.states.into_iter().enumerate().map(|(step, paths)| {
            let method = match step + 1 {
                step if step == steps => goal.method,
                step if step + 1 == steps && !found.drained.is_empty() => Method::Drain,
                _ => Method::Staged,
            };
            let root = (step + 1 == steps).then_some(goal.root).flatten();
            Candidate {
                method,
                root,
                paths,
            }
        });
        (states.collect(), found.drained)
    }

    fn along(&self, order: &Order, method: Method) -> Candidate {
        let updown = order.direct(&self.channels, self.change.new);
        let root = Some(updown.root(self.change.new));
        let routes = Routes::plan_along(self.change.new, self.change.algorithm, updown)
            .expect("the plan from scratch was not refused");
        let mut paths = Paths::of_routes(&self.channels, Side::New, &routes);
        // As short, and no new route to install: the old path stays.
        for (from, to) in paths.pairs() {
            if self.old.survives(&self.channels, from, to)
                && let (Some(was), Some(is)) = (self.old.get(from, to), paths.get(from, to))
                && was.len() == is.len()
                && order.is_legal(&self.channels, was)
            {
                paths.set(from, to, Some(was.clone()));
            }
        }
        Candidate {
            method,
            root,
            paths,
        }
    }

    fn fresh_again(&self) -> Candidate {
        self.fresh.again()
    }

    fn tree(&self, before: &Dependencies, after: &Dependencies) -> Option<Candidate> {
        let place = before.order();
        let mut rank = vec![0; place.len()];
        for (at, channel) in (0..).zip(place) {
            rank[channel as usize] = at;
        }
        let prefer = |link: u32| rank[link as usize].min(rank[link as usize ^ 1]);
        let paths = trees::common(&self.channels, &self.fresh.paths, [before, after], prefer)?;
        Some(Candidate {
            method: Method::Tree,
            root: None,
            paths,
        })
    }

    /// Whether all pairs have a path that have one in the plan from scratch.
    fn serves(&self, paths: &Paths) -> bool {
        let needed = &self.fresh.paths;
        needed
            .pairs()
            .all(|(from, to)| needed.get(from, to).is_none() || paths.get(from, to).is_some())
    }

    fn is_safe(&self, in_force: &Dependencies, paths: &Paths) -> bool {
        paths.add_to(&self.channels, self.change.planned, &mut in_force.clone())
    }

    fn dependencies(&self, paths: &Paths) -> Dependencies {
        let mut graph = Dependencies::new(self.channels.len());
        let free = paths.add_to(&self.channels, self.change.planned, &mut graph);
        assert!(free, "a routing by itself has no cycle");
        graph
    }
}

impl Candidate {
    fn again(&self) -> Candidate {
        Candidate {
            method: self.method,
            root: self.root,
            paths: self.paths.clone(),
        }
    }
}

/// Checks routes of a file against the topology they are said to be on.
fn check_routes(topology: &Topology, routes: &[Route]) -> Result<(), ChangeError> {
    let mut graph = ChannelGraph::new(topology, Branching::Independent);
    for route in routes {
        graph
            .add_route(route)
            .map_err(|error| ChangeError::NoSuchRoute {
                src: route.src,
                dst: route.dst,
                reason: error.to_string(),
            })?;
    }
    Ok(())
}

impl Planner<'_> {
    /// Writes the steps out: what each changes, and why it is safe.
    fn write(&self, states: Vec<Candidate>, drained: &[(usize, usize)]) -> Plan {
        let channels = &self.channels;
        let ports: BTreeMap<HostId, u8> = (self.change.new.hosts().iter())
            .map(|host| (host.id, host.port.get()))
            .collect();
        let last = &states.last().expect("one step at least").paths;
        let mut plan = Plan {
            steps: Vec::new(),
            unreachable: Vec::new(),
            broken: 0,
            routes: 0,
            links_crossed: 0,
        };
        for (from, to) in last.pairs() {
            let pairs = || self.host_pairs(from, to);
            let is_broken =
                self.old.get(from, to).is_some() && !self.old.survives(channels, from, to);
            plan.broken += if is_broken { pairs().count() } else { 0 };
            match last.get(from, to) {
                Some(path) => {
                    plan.routes += pairs().count();
                    plan.links_crossed += path.len() as u64 * pairs().count() as u64;
                }
                None => plan.unreachable.extend(pairs()),
            }
        }
        plan.unreachable.sort_unstable();
        for step in 0..states.len() {
            let state = &states[step];
            let before = step
                .checked_sub(1)
                .map_or(&self.old, |before| &states[before].paths);
            let mut written = Step {
                method: state.method,
                root: state.root,
                changed: Vec::new(),
                drained: Vec::new(),
                waiting: 0,
                order: self.certificate(before, &state.paths),
            };
            for (from, to) in last.pairs() {
                let path = state.paths.get(from, to);
                let same = path == before.get(from, to)
                    && (step > 0 || before.survives(channels, from, to));
                match path {
                    Some(path) if !same => {
                        let start = channels.places[from].new.expect("it has a path there");
                        written
                            .changed
                            .extend(self.host_pairs(from, to).map(|pair| {
                                let pair = (pair.src, pair.dst);
                                Paths::route(channels, path, start, pair, |host| ports[&host])
                            }));
                    }
                    None if last.get(from, to).is_some() => {
                        written.waiting += self.host_pairs(from, to).count();
                    }
                    _ => {}
                }
            }
            if state.method == Method::Drain {
                let stopped = drained
                    .iter()
                    .flat_map(|&(from, to)| self.host_pairs(from, to));
                written.drained.extend(stopped);
                written.drained.sort_unstable();
            }
            written.changed.sort_unstable();
            plan.steps.push(written);
        }
        plan.steps
            .retain(|step| !step.changed.is_empty() || !step.drained.is_empty());
        plan
    }

    /// Pairs of hosts of the new topology at two places.
    fn host_pairs(&self, from: usize, to: usize) -> impl Iterator<Item = Unreachable> + '_ {
        let hosts = move |place: usize| {
            let place = &self.channels.places[place];
            let there = place.new.is_some();
            place.hosts.iter().copied().filter(move |_| there)
        };
        hosts(from).flat_map(move |src| {
            let pair = move |dst| Unreachable { src, dst };
            hosts(to).filter(move |dst| *dst != src).map(pair)
        })
    }

    fn certificate(&self, before: &Paths, after: &Paths) -> Vec<Channel> {
        let mut graph = Dependencies::new(self.channels.len());
        let free = before.add_to(&self.channels, self.change.planned, &mut graph)
            && after.add_to(&self.channels, self.change.planned, &mut graph);
        assert!(free, "each step is safe with the one before");
        let carries = |channel: &u32| self.change.planned || self.channels.hop(*channel).stays;
        graph
            .order()
            .into_iter()
            .filter(carries)
            .map(|channel| self.channel(channel))
            .collect()
    }

    fn channel(&self, channel: u32) -> Channel {
        let hop = self.channels.hop(channel);
        Channel::Link {
            from: self.channels.switch_id(hop.from),
            from_port: hop.from_port,
            to: self.channels.switch_id(hop.to),
            to_port: hop.to_port,
        }
    }
}
