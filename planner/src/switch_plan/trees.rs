//! What copies of messages go along, where it is not the spanning tree's TREE routes.

use std::collections::BTreeMap;
use std::sync::Arc;

use wormcast_routing::group::{
    Guard, Least, Scheme, SharedTree, SwitchMode, rooted_tree, shared_trees,
};
use wormcast_routing::topology::{Attachment, Link, Topology};
use wormcast_wire::{GroupId, HostId, SwitchId};

use crate::model::agent::{AgentTrees, Leaf};
use crate::model::groups::{Group, GroupScheme};
use crate::model::ids::PortSet;
use crate::order::parts::Part;
use crate::switch_plan::replication::GroupTree;
use crate::switch_plan::table_numbers::Along;

/// The members of a group that are in a part.
fn members_in(topology: &Topology, members: &[HostId]) -> Vec<HostId> {
    let here = members.iter().filter(|host| topology.host(**host).is_ok());
    here.copied().collect()
}

/// Trees of their own in one part, at most `count`; none of fewer than two members.
fn own_trees(
    part: &Part,
    members: &[HostId],
    (least, turn): (Least, u32),
    count: u32,
) -> Vec<SharedTree> {
    let here = members_in(&part.topology, members);
    if here.len() < 2 {
        return Vec::new();
    }
    // A part is connected, and its order joins it; without trees TREE routes serve.
    shared_trees(&part.topology, &part.order, &here, least, turn, count).unwrap_or_default()
}

/// The spanning tree up to the root in one part; none of fewer than two members.
fn through_the_root(part: &Part, members: &[HostId]) -> Vec<SharedTree> {
    let here = members_in(&part.topology, members);
    if here.len() < 2 {
        return Vec::new();
    }
    let tree = rooted_tree(&part.topology, &part.order, &here);
    tree.into_iter().collect()
}

/// Ports of the switches of a part for a number of scheme `table` with a tree of its own. Numbers
/// that come one after another take different trees.
pub(crate) fn own_ports(
    part: &Part,
    members: &[HostId],
    least: Least,
    number: GroupId,
) -> BTreeMap<SwitchId, PortSet> {
    let trees = own_trees(part, members, (least, number.0.into()), 1);
    let ports = trees.iter().flat_map(|tree| tree.ports(&part.topology));
    ports
        .map(|(switch, ports)| (switch, ports.iter().copied().collect()))
        .collect()
}

/// Ports of the switches of a part by which these members of it are reached: along a tree of the group's
/// own where its messages go along one, else along the spanning tree. Between any two of its places the way is legal.
pub(crate) fn ports_to_members(
    (part, spanning): (&Part, &GroupTree),
    group: &Group,
    members: &[HostId],
    turn: GroupId,
) -> BTreeMap<SwitchId, PortSet> {
    let along = match group.scheme {
        GroupScheme::One(Scheme::Switch(parameters)) => Along::of(parameters),
        _ => Along::Spanning,
    };
    let own = match along {
        Along::Own(least) => own_ports(part, members, least, turn),
        Along::Spanning => BTreeMap::new(),
    };
    if own.is_empty() {
        spanning.ports(members).into_iter().collect()
    } else {
        own
    }
}

/// The trees that agents make TREE routes of: those of scheme `switch` with trees of its own, or whose
/// worms all go through the root. Where `by_root` the agents' other routes do that too, and no group has trees of its
/// own.
pub(crate) fn for_agents(
    parts: &[Part],
    group: &Group,
    members: &[HostId],
    by_root: bool,
) -> Option<Arc<AgentTrees>> {
    let GroupScheme::One(Scheme::Switch(parameters)) = group.scheme else {
        return None;
    };
    let through_root = parameters.guard == Guard::B;
    let along = Along::of(parameters);
    let has_own = along != Along::Spanning && !by_root;
    if parameters.mode != SwitchMode::Tree || !(has_own || through_root) {
        return None;
    }
    let mut trees: Vec<Vec<Link>> = Vec::new();
    let (mut roots, mut leaves) = (Vec::new(), Vec::new());
    for part in parts {
        let topology = &part.topology;
        let own = match along {
            Along::Own(least) => {
                let turn = (least, group.id.0.into());
                own_trees(part, members, turn, parameters.trees)
            }
            Along::Spanning => through_the_root(part, members),
        };
        let count = own.len().max(trees.len());
        if own.is_empty() {
            continue;
        }
        if through_root {
            roots.push(part.order.root(topology));
        }
        // Parts have different numbers of good trees: those of the one with fewer come again.
        let before = trees.clone();
        trees = (0..count)
            .map(|at| {
                let others = before.get(at % before.len().max(1));
                let mut links = others.cloned().unwrap_or_default();
                links.extend(links_of(&own[at % own.len()], topology));
                links
            })
            .collect();
        leaves.extend(
            members_in(topology, members)
                .into_iter()
                .filter_map(|host| {
                    let at = topology.host(host).ok()?;
                    Some(Leaf {
                        host,
                        switch: at.switch,
                        port: at.port,
                    })
                }),
        );
    }
    leaves.sort_unstable();
    (!trees.is_empty()).then(|| {
        Arc::new(AgentTrees {
            trees,
            roots,
            leaves,
        })
    })
}

/// Links between the switches of a tree, each once.
fn links_of(tree: &SharedTree, topology: &Topology) -> Vec<Link> {
    let mut links = Vec::new();
    for (a, ports) in tree.ports(topology) {
        for &a_port in ports {
            if let Some(Attachment::Switch(b, b_port)) = topology.attachment(a, a_port)
                && (a, a_port) < (b, b_port)
            {
                links.push(Link {
                    a,
                    a_port,
                    b,
                    b_port,
                });
            }
        }
    }
    links
}

/// Port bytes from each host of a part to the root of its spanning tree.
pub(crate) fn routes_to_root(part: &Part) -> BTreeMap<HostId, Arc<[u8]>> {
    let ways = part.root_ways().into_iter();
    let up: BTreeMap<SwitchId, Arc<[u8]>> =
        ways.map(|(switch, way)| (switch, way.up.into())).collect();
    let hosts = part.topology.hosts().iter();
    hosts
        .map(|host| (host.id, up[&host.switch].clone()))
        .collect()
}
