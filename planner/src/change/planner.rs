//! What is tried, in which order.

use super::channels::Channels;
use super::dependencies::Dependencies;
use super::error::ChangeError;
use super::paths::{Paths, Side, is_legal};
use super::steps::{Change, ChangeSteps, Method};
use super::trees::Tree;
use super::{detours, sequence};
use crate::order::switch_order::Order;
use wormcast_routing::routes::{Algorithm, Route, Routes};
use wormcast_routing::topology::Topology;
use wormcast_verify::deadlock::{Branching, ChannelGraph};
use wormcast_wire::SwitchId;

/// A routing on the new topology.
pub(super) struct Candidate {
    pub method: Method,
    pub root: Option<SwitchId>,
    pub paths: Paths,
}

/// A sequence of routings, and pairs of places that stop before the last.
type Found = (Vec<Candidate>, Vec<(usize, usize)>);

/// The change, as channels and paths.
pub(super) struct Planner<'a> {
    pub change: &'a Change<'a>,
    pub channels: Channels,
    pub old: Paths,
    /// Dependencies of the routes in force.
    in_force: Dependencies,
    kept: Order,
    fresh: Candidate,
}

impl<'a> Planner<'a> {
    pub fn new(change: &'a Change<'a>) -> Result<Planner<'a>, ChangeError> {
        if change.algorithm.has_alternatives() {
            let algorithm = change.algorithm;
            let all = Algorithm::ALL.into_iter();
            let choices = all.filter(|choice| !choice.has_alternatives()).collect();
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
        let kept = Order::of(change.old, before.updown()).with_all(change.new);
        Ok(Planner {
            change,
            channels,
            old,
            in_force,
            kept,
            fresh,
        })
    }

    pub fn plan(&self) -> Result<ChangeSteps, ChangeError> {
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
        let repaired = std::iter::once_with(|| self.kept.repaired(self.change.new))
            .flatten()
            .map(|order| self.along(&order, Method::RepairedOrder));
        let detours = std::iter::once_with(|| {
            let paths = self.detours(self.in_force.clone());
            if self.serves(&paths) {
                return Some(paths);
            }
            // With the turns of a spanning tree in reserve, every pair has a way left.
            let tree = Tree::find(
                &self.channels,
                [&self.in_force, &self.in_force],
                rank_in(&self.in_force),
            )?;
            let mut graph = self.in_force.clone();
            let free = graph.add_all(&tree.turns(&self.channels));
            assert!(free.is_ok(), "the tree was grown so");
            Some(self.detours(graph))
        })
        .flatten()
        .map(|paths| Candidate {
            method: Method::Detours,
            root: None,
            paths,
        });
        let fresh = std::iter::once_with(|| self.fresh_again());
        kept.chain(repaired).chain(detours).chain(fresh)
    }

    fn plan_steps(&self, goals: Vec<Candidate>) -> ChangeSteps {
        let mut best: Option<Found> = None;
        for goal in goals {
            let mut found = vec![self.stage(&self.old, &self.in_force, goal.again())];
            let after = self.dependencies(&goal.paths);
            let needed = &self.fresh.paths;
            let trees = self.trees(&after);
            if let Some(way) = sequence::through(&self.channels, &trees, &self.in_force, &after) {
                let step = |tree: &Tree| Candidate {
                    method: Method::Tree,
                    root: None,
                    paths: tree.paths(&self.channels, needed),
                };
                let mut states: Vec<Candidate> = way.into_iter().map(step).collect();
                states.push(goal);
                found.push((states, Vec::new()));
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

    fn stage(&self, from: &Paths, in_force: &Dependencies, goal: Candidate) -> Found {
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
        let updown = order.direct(self.change.new);
        let root = Some(updown.root(self.change.new));
        let routes = Routes::plan_along(self.change.new, self.change.algorithm, updown)
            .expect("the plan from scratch was not refused");
        let mut paths = Paths::of_routes(&self.channels, Side::New, &routes);
        // As short, and no new route to install: the old path stays.
        for (from, to) in paths.pairs() {
            if self.old.survives(&self.channels, from, to)
                && let (Some(was), Some(is)) = (self.old.get(from, to), paths.get(from, to))
                && was.len() == is.len()
                && is_legal(order, &self.channels, was)
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

    fn detours(&self, mut graph: Dependencies) -> Paths {
        detours::plan(&self.channels, &self.old, &self.fresh.paths, &mut graph)
    }

    fn fresh_again(&self) -> Candidate {
        self.fresh.again()
    }

    /// Trees to step over from the routes in force to those that make these dependencies:
    /// all there are, or one that fits both, or a way from one that fits the first to one
    /// that fits the second.
    fn trees(&self, after: &Dependencies) -> Vec<Tree> {
        let channels = &self.channels;
        if let Some(trees) = Tree::all(channels) {
            return trees;
        }
        let mut trees = Vec::new();
        trees.extend(Tree::find(
            channels,
            [&self.in_force, after],
            rank_in(&self.in_force),
        ));
        let start = [&self.in_force, &self.in_force];
        let first = Tree::find(channels, start, rank_in(after));
        let last = Tree::find(channels, [after, after], rank_in(&self.in_force));
        if let (Some(first), Some(last)) = (first, last) {
            trees.extend(first.slides(channels, &last));
            trees.push(first);
        }
        trees
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

/// Links by the place of their first direction in the order of dependencies.
fn rank_in(graph: &Dependencies) -> impl Fn(u32) -> u32 + use<> {
    let order = graph.order();
    let mut rank = vec![0; order.len()];
    for (at, channel) in (0..).zip(order) {
        rank[channel as usize] = at;
    }
    move |link| rank[link as usize].min(rank[link as usize ^ 1])
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
