//! What an agent has to know.

use std::collections::BTreeMap;
use std::sync::Arc;

use wormcast_routing::structure::Recipe;
use wormcast_routing::topology::Link;
use wormcast_wire::{GroupId, HostId, PortId, SchemeName, SwitchId};

use crate::model::derived::Derived;
use crate::model::groups::Group;
use crate::model::state::Name;

/// A source route, and how much of the traffic to its destination takes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedRoute {
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
    /// As it was asked for.
    pub group: Arc<Group>,
    pub id: GroupId,
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
    /// Whose ACKs switches gather; `None`: hosts alone acknowledge.
    pub gathered: Option<Gathered>,
    /// Members of the group as configured that are not among `members`, ascending.
    pub left_out: Vec<LeftOut>,
    pub(crate) encoded: Derived<Vec<u8>>,
    pub(crate) digest: Derived<[u8; 32]>,
}

/// A member that takes no part at the moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOut {
    pub host: HostId,
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
    pub epoch: u64,
}

/// Trees of switches that all members of a group share. Where the network is in parts, each joins the
/// members of every part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentTrees {
    pub trees: Vec<Vec<Link>>,
    /// Guard B: worms go up to one of these first, the root of their part; else none.
    pub roots: Vec<SwitchId>,
    /// Where the members are, in ascending order.
    pub leaves: Vec<Leaf>,
}

/// Where a member is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Leaf {
    pub host: HostId,
    pub switch: SwitchId,
    pub port: PortId,
}

/// Those are equal that are the same to an agent, whatever else was asked for.
impl PartialEq for AgentGroup {
    fn eq(&self, other: &AgentGroup) -> bool {
        self.encoded() == other.encoded()
    }
}

impl Eq for AgentGroup {}

/// Everything one agent has to know, without the epoch (`Plan` of agent.proto).
#[derive(Clone, Debug, PartialEq)]
pub struct AgentPlan {
    pub host: HostId,
    pub routes: Arc<RouteTable>,
    /// Whether a message takes any of the unicast routes at random; else they take turns.
    pub at_random: bool,
    /// Routes along the spanning tree.
    pub tree_routes: Arc<RouteTable>,
    /// Port bytes to the root of the spanning tree, from where switches copy to all hosts; nothing while
    /// the tree changes.
    pub root_route: Option<Arc<[u8]>>,
    pub groups: Vec<Arc<AgentGroup>>,
    /// Frames of a train of any kind at most; 1: there are none.
    pub train_frames: u16,
    /// Frames of a UNICAST train at most, no fewer than that; 1: there are none.
    pub unicast_train_frames: u16,
    /// Bytes of a TREE route at most.
    pub tree_route_max: u8,
    /// Bytes a second that the host may send of its own; none: any.
    pub rate_bytes: Option<u64>,
    pub(crate) digest: Derived<[u8; 32]>,
}

impl Eq for AgentPlan {}

impl AgentPlan {
    /// The group with this number.
    pub fn group(&self, id: GroupId) -> Option<&Arc<AgentGroup>> {
        let found = self.groups.binary_search_by_key(&id, |group| group.id);
        found.ok().map(|at| &self.groups[at])
    }
}

impl AgentGroup {
    /// The same with its ACKs by hosts alone.
    pub(crate) fn by_hosts(self: &Arc<AgentGroup>) -> Arc<AgentGroup> {
        match self.gathered {
            None => self.clone(),
            Some(_) => Arc::new(AgentGroup {
                gathered: None,
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
                ..(**self).clone()
            }),
        }
    }
}
