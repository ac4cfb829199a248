//! Deadlock check: the dependency graph of a set of worms.
//!
//! A channel is one direction of a link, a host's link included. A worm that holds a
//! channel and needs the next one on its way makes the second a dependency of the
//! first. Hosts that pass worms on, members (WORM §4) and in-transit hosts (ITB §III.B),
//! cut a way into pieces; between them stand [`Buffers`], which worms hold and wait for
//! in their turn. If the graph has no cycle, no set of worms can wait for each other, and
//! an order of all resources that every worm follows says so; [`certificate`] checks such
//! an order without the graph.
//!
//! Worms that branch add more where a branch that is blocked stops the others, which
//! keep their channels ([`Branching::Coupled`], [`Branching::Flushed`]): such a worm
//! holds channels of its other branches while it waits. These are dependencies *of one
//! worm*, in both directions between two branches, so that a cycle counts only if every
//! worm that branches is in it once; see `coupled.rs`.
//!
//! Where the others end what they sent as a fragment ([`Branching::Interrupted`]), a
//! fragment holds a way from where it was cut to where it waits, and no channel beside
//! it: each of its channels waits only for those below, as if branches were independent.
//! What is left of the coupling is the root: a message waits there, holding its way up,
//! until the one before has left the root by all ports, so that its [`Resource::Turn`]
//! stands between the way up and the channels down.

pub mod certificate;
mod coupled;
mod error;
mod forwards;
mod groups;
mod json;
mod model;
mod multicast;
mod pairs;
mod resource;

pub use error::DeadlockError;
pub use forwards::Forward;
pub use groups::{PlannedGroup, read_groups};
pub use model::{Branching, Buffers, Forwarding, Model};
pub use multicast::TableEntry;
pub use resource::{Channel, Resource};

use std::collections::BTreeMap;

use resource::Numbers;
use wormcast_routing::digraph::Digraph;
use wormcast_routing::routes::Route;
use wormcast_routing::topology::Topology;
use wormcast_routing::updown::UpDown;
use wormcast_wire::{HostId, SwitchId};

/// What makes a dependency.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Worm {
    Unicast {
        src: HostId,
        dst: HostId,
    },
    /// One worm that switches copy.
    Tree {
        src: HostId,
        /// Hosts that receive, ascending.
        hosts: Vec<HostId>,
    },
    /// A message of a group that hosts forward, on its way between two of them.
    Forwarded {
        /// Host the message started at.
        src: HostId,
        /// Host that passes it on.
        from: HostId,
        /// Host it is passed on to.
        to: HostId,
    },
}

/// A resource held by a worm that waits for the next resource of the cycle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wait {
    pub resource: Resource,
    pub worm: Worm,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// No set of worms can wait for each other.
    DeadlockFree {
        /// All channels, and what else worms wait for, so that every worm takes them in
        /// this order.
        order: Vec<Resource>,
        model: Model,
    },
    /// Worms that can wait for each other.
    Deadlock {
        /// A shortest cycle; each worm waits for the resource after its own, the last for
        /// the first.
        cycle: Vec<Wait>,
        /// False if a worm that branches is in the cycle twice, and no cycle was found
        /// where none is: then there may be a deadlock, and may not.
        proven: bool,
        model: Model,
    },
}

/// Resources of a topology, and who waits for which.
#[derive(Clone, Debug)]
pub struct ChannelGraph<'t> {
    topology: &'t Topology,
    numbers: Numbers<'t>,
    model: Model,
    /// Directions and spanning tree; planned when a worm needs them.
    updown: Option<UpDown>,
    /// Of parts whose multicasts start elsewhere than the model says.
    roots: Vec<SwitchId>,
    /// What was added, and how much of it.
    added: BTreeMap<&'static str, usize>,
    worms: Vec<Worm>,
    /// For each resource, those that worms need next, and one that does.
    next: Vec<Vec<(u32, u32)>>,
    trees: Vec<coupled::Tree>,
}

impl<'t> ChannelGraph<'t> {
    /// All resources of a topology, and no worms yet.
    pub fn new(topology: &'t Topology, model: impl Into<Model>) -> ChannelGraph<'t> {
        let numbers = Numbers::new(topology);
        ChannelGraph {
            topology,
            numbers,
            model: model.into(),
            updown: None,
            roots: Vec::new(),
            added: BTreeMap::from(["routes", "multicasts"].map(|kind| (kind, 0))),
            worms: Vec::new(),
            next: vec![Vec::new(); numbers.count()],
            trees: Vec::new(),
        }
    }

    /// With [`Branching::Interrupted`], multicasts of the parts where these are start there.
    pub fn set_roots(&mut self, roots: Vec<SwitchId>) {
        self.roots = roots;
    }

    /// Adds one route, cut at its in-transit hosts.
    ///
    /// # Errors
    /// A route that the topology does not have.
    pub fn add_route(&mut self, route: &Route) -> Result<(), DeadlockError> {
        let worm = Worm::Unicast {
            src: route.src,
            dst: route.dst,
        };
        // The source keeps the message in its memory, the destination takes it out.
        self.add_message(route, None, None, &worm)?;
        self.count("routes", 1);
        Ok(())
    }

    /// So many more of a kind have been added.
    fn count(&mut self, kind: &'static str, more: usize) {
        *self.added.entry(kind).or_default() += more;
    }

    /// Looks for worms that can wait for each other.
    pub fn check(&self) -> Verdict {
        let model = self.model;
        let graph = self.digraph();
        if let Some(order) = graph.topological_order() {
            let couples = matches!(model.branching, Branching::Coupled | Branching::Flushed);
            let flushes = model.branching == Branching::Flushed;
            let first_buffer = self.numbers.ejection(self.topology.hosts().len() as u32);
            let found = couples
                .then(|| coupled::find_cycle(&self.next, &self.trees, flushes, first_buffer));
            return match found.flatten() {
                Some(found) => Verdict::Deadlock {
                    cycle: found
                        .waits
                        .iter()
                        .map(|wait| self.name_wait(*wait))
                        .collect(),
                    proven: found.proven,
                    model,
                },
                None => Verdict::DeadlockFree {
                    order: self.name_order(&order),
                    model,
                },
            };
        }
        let cycle = graph.shortest_cycle().expect("there is no order");
        Verdict::Deadlock {
            cycle: self.name_cycle(&cycle),
            proven: true,
            model,
        }
    }

    fn digraph(&self) -> Digraph {
        let mut graph = Digraph::default();
        for _ in &self.next {
            graph.add_node();
        }
        for (held, needed) in self.next.iter().enumerate() {
            for &(needed, _) in needed {
                graph.add_arc(held as u32, needed);
            }
        }
        for (held, needed) in self.trees.iter().flat_map(coupled::Tree::steps) {
            graph.add_arc(held, needed);
        }
        graph
    }

    fn add_dependency(&mut self, held: u32, needed: u32, worm: &Worm) {
        // A channel leads to one switch, so that there are few.
        if self.next[held as usize]
            .iter()
            .all(|(known, _)| *known != needed)
        {
            let worm = self.number(worm);
            self.next[held as usize].push((needed, worm));
        }
    }

    /// Number of a worm; one that is added over and over keeps its number.
    fn number(&mut self, worm: &Worm) -> u32 {
        if self.worms.last() != Some(worm) {
            self.worms.push(worm.clone());
        }
        self.worms.len() as u32 - 1
    }

    fn name(&self, number: u32) -> Resource {
        self.numbers
            .name(number, self.model.buffers == Buffers::Shared)
    }

    /// All channels, and of the rest what worms take.
    fn name_order(&self, order: &[u32]) -> Vec<Resource> {
        let mut taken = vec![false; self.next.len()];
        let steps = self.trees.iter().flat_map(coupled::Tree::steps);
        let waits = self
            .next
            .iter()
            .zip(0..)
            .flat_map(|(next, held)| next.iter().map(move |(needed, _)| (held, *needed)));
        for (held, needed) in waits.chain(steps) {
            taken[held as usize] = true;
            taken[needed as usize] = true;
        }
        order
            .iter()
            .filter(|&&number| taken[number as usize] || self.numbers.is_channel(number))
            .map(|&number| self.name(number))
            .collect()
    }

    fn name_wait(&self, (held, worm): (u32, u32)) -> Wait {
        Wait {
            resource: self.name(held),
            worm: self.worms[worm as usize].clone(),
        }
    }

    fn name_cycle(&self, cycle: &[u32]) -> Vec<Wait> {
        (0..cycle.len())
            .map(|place| {
                let (held, needed) = (cycle[place], cycle[(place + 1) % cycle.len()]);
                let plain = self.next[held as usize]
                    .iter()
                    .find(|(known, _)| *known == needed);
                let worm = plain.map(|(_, worm)| *worm).or_else(|| {
                    let tree = self.trees.iter().find(|tree| tree.has_step(held, needed));
                    tree.map(|tree| tree.worm_with(held, needed).0)
                });
                self.name_wait((held, worm.expect("somebody makes every dependency")))
            })
            .collect()
    }
}
