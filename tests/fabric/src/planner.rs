//! What a controller would send to the agents: routes and group plans, computed by
//! wormcast-routing.

use std::collections::BTreeMap;
use std::sync::Arc;
use wormcast_protocol::{Edge, GroupPlan, Role, Structures};
use wormcast_routing::routes::{Algorithm, Routes};
use wormcast_routing::structure::{CircuitVariant, RootedTree, Structure, TreeVariant, ordering};
use wormcast_routing::topology::Topology;
use wormcast_wire::{GroupId, HostId, Scheme};

/// A group as its users want it.
#[derive(Clone, Debug)]
pub struct GroupWish {
    /// Number.
    pub id: u16,
    /// Scheme.
    pub scheme: Scheme,
    /// Children limit of the k-binomial scheme.
    pub k: u32,
    /// Members.
    pub members: Vec<u16>,
}

impl GroupWish {
    /// A group of these members, k = 2.
    pub fn new(id: u16, scheme: Scheme, members: impl IntoIterator<Item = u16>) -> GroupWish {
        GroupWish {
            id,
            scheme,
            k: 2,
            members: members.into_iter().collect(),
        }
    }
}

/// Everything a host is told.
#[derive(Clone, Debug)]
pub struct HostPlan {
    /// Unicast routes.
    pub routes: BTreeMap<HostId, Vec<u8>>,
    /// Routes along the spanning tree.
    pub tree_routes: BTreeMap<HostId, Vec<u8>>,
    /// Groups.
    pub groups: Vec<GroupPlan>,
}

struct GroupStructures {
    host: HostId,
    scheme: Scheme,
    k: u32,
    order: Arc<[HostId]>,
    tree: Option<Arc<RootedTree>>,
}

impl Structures for GroupStructures {
    fn role(&self, origin: HostId) -> Option<Role> {
        let order = self.order.clone();
        let structure = match self.scheme {
            Scheme::Repeat | Scheme::Switch => Structure::repeat(order, origin),
            Scheme::Circuit => Structure::circuit(order, origin, CircuitVariant::OmitLast),
            Scheme::Tree => Structure::tree(self.tree.clone()?, origin, TreeVariant::Unordered),
            Scheme::KBinomial => Structure::k_binomial(order, origin, self.k),
        };
        let edges: Vec<Edge> = structure
            .ok()?
            .edges()
            .into_iter()
            .map(|edge| Edge {
                from: edge.from,
                to: edge.to,
                class: edge.class,
            })
            .collect();
        Role::from_edges(self.host, origin, &edges)
    }
}

/// The plans of all hosts of a (damaged) topology, unicast by this algorithm.
pub fn plan(
    topology: &Topology,
    unicast: Algorithm,
    groups: &[GroupWish],
    epoch: u32,
) -> BTreeMap<u16, HostPlan> {
    let unicast = Routes::plan(topology, unicast, None).expect("routes");
    let along_tree = Routes::plan(topology, Algorithm::TreeOnly, None).expect("tree routes");
    let mut plans = BTreeMap::new();
    for host in topology.hosts() {
        let table = |routes: &Routes<'_>| {
            let others = topology.hosts().iter().filter(|other| other.id != host.id);
            others
                .filter_map(|other| {
                    let route = routes.route(host.id, other.id).ok()?;
                    Some((other.id, route.ports))
                })
                .collect()
        };
        let groups = groups
            .iter()
            .filter(|wish| wish.members.contains(&host.id.0))
            .map(|wish| plan_group(host.id, &unicast, wish, epoch))
            .collect();
        let plan = HostPlan {
            routes: table(&unicast),
            tree_routes: table(&along_tree),
            groups,
        };
        plans.insert(host.id.0, plan);
    }
    plans
}

fn plan_group(host: HostId, routes: &Routes<'_>, wish: &GroupWish, epoch: u32) -> GroupPlan {
    let members: Vec<HostId> = wish.members.iter().copied().map(HostId).collect();
    let order = match wish.scheme {
        Scheme::KBinomial => {
            ordering::cco(routes.topology(), routes.updown(), &members).expect("members are hosts")
        }
        _ => ordering::by_id(&members),
    };
    let tree = (wish.scheme == Scheme::Tree).then(|| {
        let hops = |a, b| routes.distance(a, b).ok().flatten();
        Arc::new(RootedTree::build(&members, 3, hops).expect("members are hosts"))
    });
    GroupPlan {
        id: GroupId(wish.id),
        epoch,
        scheme: wish.scheme,
        members: wish.members.iter().copied().map(HostId).collect(),
        structures: Arc::new(GroupStructures {
            host,
            scheme: wish.scheme,
            k: wish.k,
            order: order.into(),
            tree,
        }),
    }
}
