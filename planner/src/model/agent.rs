//! What an agent is told.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use sha2::{Digest, Sha256};
use wormcast_routing::structure::Recipe;
use wormcast_routing::topology::Link;
use wormcast_wire::{GroupId, HostId, PortId, SchemeName, SwitchId};

use crate::model::state::Name;

/// A source route, and how much of the traffic to its destination takes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedRoute {
    /// Where it leads.
    pub to: HostId,
    /// How many of [`wormcast_wire::SHARES_WHOLE`] messages take it.
    pub share: u32,
    /// Its port bytes; plans that follow from each other share them.
    pub ports: Arc<[u8]>,
}

/// Source routes from one host, by destination; those to one host in the order of their turns,
/// their shares add up to the whole.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RouteTable(pub Vec<PlannedRoute>);

/// Unicast routes from a host, and routes along the spanning tree.
pub(crate) type HostRoutes = (Arc<RouteTable>, Arc<RouteTable>);

/// How messages of a group reach its members (`Structure` of agent.proto).
#[derive(Clone, Debug, PartialEq)]
pub struct AgentStructure {
    /// The longest message that takes it, those that take a structure before aside; `u64::MAX` for any.
    pub bytes_most: u64,
    /// The scheme.
    pub scheme: SchemeName,
    /// Those that take part, in the order that the scheme works on.
    pub order: Vec<HostId>,
    /// The shape, with all choices made.
    pub recipe: Recipe,
    /// Where it was chosen for its time: bytes of messages, and the time expected for each, in ns.
    pub expected: Vec<(u64, f64)>,
}

/// A group as one agent has to know it (`Group` of agent.proto).
#[derive(Clone, Debug)]
pub struct AgentGroup {
    /// Its number.
    pub id: GroupId,
    /// Its name.
    pub name: String,
    /// Those that take part, ascending.
    pub members: Vec<HostId>,
    /// How its messages reach them, by ascending length of messages; any may take the last.
    pub structures: Arc<[AgentStructure]>,
    /// Scheme `table`: the number by which switches copy its messages.
    pub number: Option<GroupId>,
    /// Scheme `switch`: trees of its own; without, TREE routes go along the spanning tree.
    pub trees: Option<Arc<AgentTrees>>,
    /// Ordered group: who says in which order members read the messages of all origins.
    pub sequencer: Option<Sequencer>,
    /// Bytes of its frames after the Ethernet header at most, where links on its ways carry less than
    /// others; without, what the interfaces carry.
    pub mtu: Option<u16>,
    /// Whether agents take its messages where no receiver is open, and drop them.
    pub sink: bool,
    /// Whose ACKs switches gather; `None`: hosts alone acknowledge.
    pub gathered: Option<Gathered>,
    /// Members of the group as configured that are not among `members`, ascending.
    pub left_out: Vec<LeftOut>,
    pub(crate) digest: OnceLock<[u8; 32]>,
}

/// A member that takes no part at the moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOut {
    /// The member.
    pub host: HostId,
    /// Why, for people.
    pub reason: Name,
}

/// ACKs that switches gather (wire/SPEC.md §3.2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gathered {
    /// Of members and branches; a group never has it again with others.
    pub epoch: u32,
    /// Origins whose ACKs switches gather, and the number by which the switch of each names itself.
    pub origins: BTreeMap<HostId, u16>,
}

/// The sequencer of an ordered group. It stays for as long as it takes part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sequencer {
    /// A member that takes part.
    pub host: HostId,
    /// Grows whenever one is chosen anew.
    pub reign: u64,
}

/// Trees of switches that all members of a group share. Where the network is in parts, each joins the
/// members of every part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentTrees {
    /// Links of each tree.
    pub trees: Vec<Vec<Link>>,
    /// Guard B: worms go up to one of these first, the root of their part; else none.
    pub roots: Vec<SwitchId>,
    /// Where the members are, in ascending order.
    pub leaves: Vec<Leaf>,
}

/// Where a member is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Leaf {
    /// The member.
    pub host: HostId,
    /// Its switch.
    pub switch: SwitchId,
    /// The port to it.
    pub port: PortId,
}

impl PartialEq for AgentGroup {
    fn eq(&self, other: &AgentGroup) -> bool {
        let AgentGroup {
            id,
            name,
            members,
            structures,
            number,
            trees,
            sequencer,
            mtu,
            sink,
            gathered,
            left_out,
            digest: _,
        } = self;
        (id, name, members) == (&other.id, &other.name, &other.members)
            && structures == &other.structures
            && (number, trees, sink) == (&other.number, &other.trees, &other.sink)
            && (sequencer, mtu, gathered) == (&other.sequencer, &other.mtu, &other.gathered)
            && left_out == &other.left_out
    }
}

impl Eq for AgentGroup {}

/// Everything one agent has to know, without the epoch (`Plan` of agent.proto).
#[derive(Clone, Debug)]
pub struct AgentPlan {
    /// The agent's host.
    pub host: HostId,
    /// Unicast routes.
    pub routes: Arc<RouteTable>,
    /// Whether a message takes any of the unicast routes at random; else they take turns.
    pub at_random: bool,
    /// Routes along the spanning tree.
    pub tree_routes: Arc<RouteTable>,
    /// Port bytes to the root of the spanning tree, from where switches copy to all hosts; nothing while
    /// the tree changes.
    pub root_route: Option<Arc<[u8]>>,
    /// Groups by number.
    pub groups: Vec<Arc<AgentGroup>>,
    /// Frames of a train of any kind at most; 1: there are none.
    pub train_frames: u16,
    /// Frames of a UNICAST train at most, no fewer than that; 1: there are none.
    pub unicast_train_frames: u16,
    /// Bytes of a TREE route at most.
    pub tree_route_max: u8,
    /// Bytes a second that the host may send of its own; none: any.
    pub rate_bytes: Option<u64>,
    pub(crate) digest: OnceLock<[u8; 32]>,
}

impl PartialEq for AgentPlan {
    fn eq(&self, other: &AgentPlan) -> bool {
        self.host == other.host
            && self.routes == other.routes
            && self.at_random == other.at_random
            && self.tree_routes == other.tree_routes
            && self.root_route == other.root_route
            && self.groups == other.groups
            && self.train_frames == other.train_frames
            && self.unicast_train_frames == other.unicast_train_frames
            && self.tree_route_max == other.tree_route_max
            && self.rate_bytes == other.rate_bytes
    }
}

impl Eq for AgentPlan {}

impl AgentPlan {
    /// The group with this number.
    pub fn group(&self, id: GroupId) -> Option<&Arc<AgentGroup>> {
        let found = self.groups.binary_search_by_key(&id, |group| group.id);
        found.ok().map(|at| &self.groups[at])
    }

    fn digest(&self) -> &[u8; 32] {
        self.digest.get_or_init(|| {
            let mut digest = Sha256::new();
            for RouteTable(routes) in [&*self.routes, &*self.tree_routes] {
                digest.update(self.host.0.to_be_bytes());
                digest.update((routes.len() as u64).to_be_bytes());
                for route in routes {
                    digest.update(route.to.0.to_be_bytes());
                    digest.update(route.share.to_be_bytes());
                    digest.update((route.ports.len() as u64).to_be_bytes());
                    digest.update(&route.ports);
                }
            }
            digest.update([u8::from(self.at_random)]);
            if self.train_frames > 1 {
                digest.update(self.train_frames.to_be_bytes());
            }
            if self.unicast_train_frames > self.train_frames {
                digest.update(b"u");
                digest.update(self.unicast_train_frames.to_be_bytes());
            }
            if self.tree_route_max < u8::MAX {
                digest.update([b't', self.tree_route_max]);
            }
            if let Some(rate) = self.rate_bytes {
                digest.update(b"r");
                digest.update(rate.to_be_bytes());
            }
            if let Some(route) = &self.root_route {
                digest.update((route.len() as u64).to_be_bytes());
                digest.update(route);
            }
            self.groups
                .iter()
                .for_each(|group| digest.update(group.digest()));
            digest.finalize().into()
        })
    }
}

impl AgentGroup {
    fn digest(&self) -> &[u8; 32] {
        self.digest.get_or_init(|| {
            let mut digest = Sha256::new();
            let mut number = |number: usize| digest.update((number as u64).to_be_bytes());
            number(self.id.0.into());
            number(self.name.len());
            number(self.members.len());
            self.members.iter().for_each(|host| number(host.0.into()));
            for structure in self.structures.iter() {
                number(structure.bytes_most as usize);
                number(structure.scheme as usize);
                structure
                    .order
                    .iter()
                    .for_each(|host| number(host.0.into()));
                match &structure.recipe {
                    Recipe::Repeat | Recipe::UTorus | Recipe::STorus => {}
                    Recipe::Circuit(variant) => number(*variant as usize),
                    Recipe::Tree(tree, variant) => {
                        number(*variant as usize);
                        let ends = tree.edges().flat_map(|(parent, child)| [parent, child]);
                        ends.for_each(|host| number(host.0.into()));
                    }
                    Recipe::KBinomial { k: only }
                    | Recipe::Postal { lambda: only }
                    | Recipe::MuTorus { r: only }
                    | Recipe::Copied { fan_in: only } => number(*only as usize),
                    Recipe::MdTorus { rings } => rings.iter().for_each(|&ring| number(ring)),
                }
                for &(bytes, ns) in &structure.expected {
                    number(bytes as usize);
                    number(ns.to_bits() as usize);
                }
            }
            if let Some(Sequencer { host, reign }) = self.sequencer {
                number(2 << 16 | usize::from(host.0));
                number(reign as usize);
            }
            if let Some(at) = self.number {
                number(1 << 16 | usize::from(at.0));
            }
            if let Some(mtu) = self.mtu {
                number(1 << 17 | usize::from(mtu));
            }
            if let Some(Gathered { epoch, origins }) = &self.gathered {
                number(1 << 32 | *epoch as usize);
                for (host, source) in origins {
                    number(4 << 16 | usize::from(host.0));
                    number((*source).into());
                }
            }
            if let Some(AgentTrees {
                trees,
                roots,
                leaves,
            }) = self.trees.as_deref()
            {
                roots
                    .iter()
                    .for_each(|root| number(3 << 16 | usize::from(root.0)));
                for tree in trees {
                    number(tree.len());
                    for link in tree {
                        let Link {
                            a,
                            a_port,
                            b,
                            b_port,
                        } = *link;
                        [(a, a_port), (b, b_port)]
                            .into_iter()
                            .for_each(|(at, port)| {
                                number(usize::from(at.0) << 8 | usize::from(port.get()))
                            });
                    }
                }
                for leaf in leaves {
                    number(leaf.host.0.into());
                    number(usize::from(leaf.switch.0) << 8 | usize::from(leaf.port.get()));
                }
            }
            if self.sink {
                digest.update([1]);
            }
            for LeftOut { host, reason } in &self.left_out {
                digest.update((5_u64 << 16 | u64::from(host.0)).to_be_bytes());
                digest.update((reason.len() as u64).to_be_bytes());
                digest.update(reason.as_bytes());
            }
            digest.update(&self.name);
            digest.finalize().into()
        })
    }

    /// The same with its ACKs by hosts alone.
    pub(crate) fn by_hosts(self: &Arc<AgentGroup>) -> Arc<AgentGroup> {
        match self.gathered {
            None => self.clone(),
            Some(_) => Arc::new(AgentGroup {
                gathered: None,
                digest: OnceLock::new(),
                ..(**self).clone()
            }),
        }
    }

    /// The group as it is to be used while the tree of switches changes: its messages go by the TREE
    /// routes of that time, which carry `mtu`, and its ACKs by hosts.
    pub(crate) fn without_trees(self: &Arc<AgentGroup>, mtu: Option<u16>) -> Arc<AgentGroup> {
        match (self.number, &self.trees, &self.gathered) {
            (None, None, None) if self.mtu == mtu => self.clone(),
            _ => Arc::new(AgentGroup {
                number: None,
                trees: None,
                gathered: None,
                mtu,
                digest: OnceLock::new(),
                ..(**self).clone()
            }),
        }
    }
}

/// A fingerprint of all agent plans: equal plans, equal digest, in every run.
pub fn digest_agents(agents: &BTreeMap<HostId, Arc<AgentPlan>>) -> String {
    let mut digest = Sha256::new();
    agents
        .values()
        .for_each(|plan| digest.update(plan.digest()));
    digest
        .finalize()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}
