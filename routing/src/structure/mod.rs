//! Who sends to whom: multicast structures over the hosts of a group.
//!
//! A [`Structure`] is a scheme applied to the ordered members of a group and one
//! source. It answers for one host ([`Structure::role_of`], in O(members) time and
//! without building the rest) or lists every send ([`Structure::edges`]).
//!
//! Buffer classes (WORM §4): a request for a buffer points onward in the order of the
//! members, or from class 1 to class 2, so that requests form no cycle among messages
//! of groups that order their hosts alike. See [`buffers`] for the check.

pub mod buffers;
mod chains;
mod circuit;
mod error;
pub mod k_binomial;
mod members;
pub mod ordering;
pub mod postal;
mod recipe;
mod recursive;
mod repeat;
mod rooted_tree;
mod schedule;
mod sends;
mod torus;
pub mod torus_latency;
mod variants;

use std::sync::Arc;

pub use error::StructureError;
pub use recipe::{ACK_DIRECT_MEMBERS, ACK_FAN_IN_MOST, Recipe};
pub use rooted_tree::{FAN_OUT_DEFAULT, RootedTree};
pub use schedule::{Discipline, Edge, TimedSend};
pub use variants::{CircuitVariant, TreeVariant};

use chains::Chains;
use members::check_members;
use recursive::Division;
use schedule::Schedule;
use sends::Sends;
use wormcast_wire::{BufferClass, HostId};

/// What one host does with the messages of one source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Role {
    /// Host the message comes from; `None` if it starts here. With
    /// [`CircuitVariant::Return`] the source has one: the host that returns it.
    pub parent: Option<HostId>,
    /// Class of the buffer the message is held in here.
    pub class: BufferClass,
    /// Hosts to pass it on to, in the order of the sends, and the class it needs there.
    pub children: Vec<(HostId, BufferClass)>,
    /// Only at a source that is not the root of an ordered structure: where to send the
    /// message first. The host gets it back from `parent` in its turn, and only then
    /// passes it on to `children`.
    pub submit: Option<(HostId, BufferClass)>,
}

/// A scheme applied to the members of a group and one source.
#[derive(Clone, Debug)]
pub struct Structure {
    order: Arc<[HostId]>,
    source: usize,
    shape: Shape,
}

#[derive(Clone, Debug)]
enum Shape {
    Repeat,
    Circuit(CircuitVariant),
    Tree(Arc<RootedTree>, TreeVariant),
    Recursive(Division),
    Chains(Chains),
}

impl Structure {
    /// Separate addressing: the source sends to each in turn.
    ///
    /// # Errors
    /// No members, one twice, or a source that is not among them.
    pub fn repeat(
        order: impl Into<Arc<[HostId]>>,
        source: HostId,
    ) -> Result<Structure, StructureError> {
        Structure::new(order.into(), source, Shape::Repeat)
    }

    /// Directed circuit in the order of the members (WORM §5).
    ///
    /// # Errors
    /// No members, one twice, or a source that is not among them.
    pub fn circuit(
        order: impl Into<Arc<[HostId]>>,
        source: HostId,
        variant: CircuitVariant,
    ) -> Result<Structure, StructureError> {
        Structure::new(order.into(), source, Shape::Circuit(variant))
    }

    /// Rooted tree (WORM §6); its members are the group's.
    ///
    /// # Errors
    /// A source that is not a member.
    pub fn tree(
        tree: impl Into<Arc<RootedTree>>,
        source: HostId,
        variant: TreeVariant,
    ) -> Result<Structure, StructureError> {
        let tree = tree.into();
        Structure::new(tree.members().clone(), source, Shape::Tree(tree, variant))
    }

    /// k-binomial tree (PACKET §4) on the order turned so that the source comes first.
    ///
    /// # Errors
    /// No members, one twice, a source that is not among them, or k = 0.
    pub fn k_binomial(
        order: impl Into<Arc<[HostId]>>,
        source: HostId,
        k: u32,
    ) -> Result<Structure, StructureError> {
        let order = order.into();
        if k == 0 {
            return Err(StructureError::NoChildren { parameter: "k" });
        }
        let division = Division::KBinomial(k_binomial::Cover::new(order.len(), k));
        Structure::new(order, source, Shape::Recursive(division))
    }

    /// Tree by which ACKs come up to the source, where switches copy its messages: no host has
    /// more than `fan_in` children, and whoever is below a host are its neighbours in the order,
    /// turned so that the source comes first.
    ///
    /// # Errors
    /// No members, one twice, a source that is not among them, or a fan-in of 0.
    pub fn acknowledgement(
        order: impl Into<Arc<[HostId]>>,
        source: HostId,
        fan_in: usize,
    ) -> Result<Structure, StructureError> {
        if fan_in == 0 {
            return Err(StructureError::NoChildren {
                parameter: "fan_in",
            });
        }
        let division = Division::Even(fan_in);
        Structure::new(order.into(), source, Shape::Recursive(division))
    }

    fn new(
        order: Arc<[HostId]>,
        source: HostId,
        shape: Shape,
    ) -> Result<Structure, StructureError> {
        check_members(&order)?;
        let Some(source) = order.iter().position(|member| *member == source) else {
            return Err(StructureError::NotMember {
                host: source,
                members: order.to_vec(),
            });
        };
        Ok(Structure {
            order,
            source,
            shape,
        })
    }

    /// Members, in the order the scheme works on.
    pub fn order(&self) -> &Arc<[HostId]> {
        &self.order
    }

    /// Host whose messages these are.
    pub fn source(&self) -> HostId {
        self.order[self.source]
    }

    /// What one member does.
    ///
    /// # Errors
    /// [`StructureError::NotMember`].
    pub fn role_of(&self, host: HostId) -> Result<Role, StructureError> {
        let Some(at) = self.order.iter().position(|member| *member == host) else {
            return Err(StructureError::NotMember {
                host,
                members: self.order.to_vec(),
            });
        };
        let members = self.order.len();
        let place = match &self.shape {
            Shape::Repeat => repeat::place(members, self.source, at),
            Shape::Circuit(variant) => circuit::place(members, self.source, *variant, at),
            Shape::Tree(tree, variant) => tree.place(self.source, *variant, at),
            Shape::Recursive(division) => division.place(members, self.source, at),
            Shape::Chains(chains) => chains.place(self.source, at),
        };
        let name = |(at, class): (usize, BufferClass)| (self.order[at], class);
        Ok(Role {
            parent: place.parent.map(|at| self.order[at]),
            class: place.class,
            children: place.children.into_iter().map(name).collect(),
            submit: place.submit.map(name),
        })
    }

    /// Every send of the first packet, in the order of the schedule (FPFS).
    pub fn edges(&self) -> Vec<Edge> {
        self.edges_under(1, Discipline::Fpfs)
    }

    /// Every send of the first packet of a message of so many, in the order of the
    /// schedule.
    pub fn edges_under(&self, packets: u32, discipline: Discipline) -> Vec<Edge> {
        self.schedule().edges(&self.order, packets, discipline)
    }

    /// Steps until the last host has received the last of `packets` packets, every host
    /// sending one packet a step, First-Packet-First-Served (PACKET §3.2). 0 for a
    /// group of one, or no packets. A packet is received in the step it is sent in; in a
    /// tree of the postal model, λ − 1 steps later.
    pub fn steps(&self, packets: u32) -> u64 {
        self.steps_under(packets, Discipline::Fpfs)
    }

    /// T(λ, k, m): thousandths of a send time until the last host has the last of `packets` packets, where each has been
    /// received λ send times after its sending began, whatever the tree was made for. λ is 1 at least. With λ = 1 these are the
    /// steps of PACKET §4.3.1, with one packet the time of NIC §5.5.
    pub fn time_at(&self, lambda: f64, packets: u32) -> u64 {
        let schedule = Schedule {
            send: 1_000,
            flight: ((lambda - 1.0).max(0.0) * 1e3).round() as u64,
            ..self.schedule()
        };
        schedule.steps(packets, Discipline::Fpfs)
    }

    /// As [`Structure::steps`], in another discipline.
    pub fn steps_under(&self, packets: u32, discipline: Discipline) -> u64 {
        self.schedule().steps(packets, discipline)
    }

    /// Every send and when each packet goes, parents before children.
    pub fn timed_sends(&self, packets: u32, discipline: Discipline) -> Vec<TimedSend> {
        self.schedule().timed_sends(packets, discipline)
    }

    /// Send times until a packet has been received: λ of the postal model, 1 in others.
    pub fn lambda(&self) -> u32 {
        match &self.shape {
            Shape::Recursive(Division::Postal(postal)) => postal.lambda(),
            _ => 1,
        }
    }

    /// Place of the source in the order of the members.
    pub(crate) fn place_of_source(&self) -> usize {
        self.source
    }

    fn schedule(&self) -> Schedule {
        Schedule {
            sends: self.sends(),
            source: self.source,
            members: self.order.len(),
            send: 1,
            flight: u64::from(self.lambda()) - 1,
        }
    }

    fn sends(&self) -> Sends {
        let members = self.order.len();
        match &self.shape {
            Shape::Repeat => repeat::sends(members, self.source),
            Shape::Circuit(variant) => circuit::sends(members, self.source, *variant),
            Shape::Tree(tree, variant) => tree.sends(self.source, *variant),
            Shape::Recursive(division) => division.sends(members, self.source),
            Shape::Chains(chains) => chains.sends(self.source),
        }
    }
}
