//! How long the TREE routes are that hosts send. A copy takes two bytes of a route, so that bounds the copies of a worm.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use wormcast_routing::group::paths_along;
use wormcast_wire::{GroupId, HostId, PortId, SchemeName, SwitchId};

use crate::model::agent::{AgentGroup, AgentPlan, AgentTrees, RouteTable};

/// The longest TREE routes of hosts by their plans. Only what a change concerns is measured anew.
#[derive(Clone, Debug, Default)]
pub(crate) struct TreeLengths(BTreeMap<HostId, Measured>);

/// What was measured of one host.
#[derive(Clone, Debug)]
struct Measured {
    routes: Arc<RouteTable>,
    /// Branches to all members of each group; for this group, as it was.
    groups: BTreeMap<GroupId, (Arc<AgentGroup>, usize)>,
}

impl TreeLengths {
    /// Bytes of the longest TREE route that each of these plans has its host send, 0: none; and the roots to which worms
    /// of their groups go up first.
    pub(crate) fn of<'p>(
        &mut self,
        plans: impl Iterator<Item = &'p Arc<AgentPlan>>,
    ) -> (BTreeMap<HostId, u8>, BTreeSet<SwitchId>) {
        let before = std::mem::take(&mut self.0);
        let (mut longest, mut roots) = (BTreeMap::new(), BTreeSet::new());
        for plan in plans {
            let old = before.get(&plan.host);
            let old = old.filter(|old| Arc::ptr_eq(&old.routes, &plan.tree_routes));
            let copied = plan.groups.iter().filter(|group| is_copied(group));
            let measure = |group: &Arc<AgentGroup>| {
                let same = old.and_then(|old| old.groups.get(&group.id));
                let same = same.filter(|(before, _)| Arc::ptr_eq(before, group));
                let branches =
                    same.map_or_else(|| branches(plan, group), |(_, branches)| *branches);
                (group.id, (group.clone(), branches))
            };
            let trees = plan
                .groups
                .iter()
                .filter_map(|group| group.trees.as_deref());
            roots.extend(trees.flat_map(|trees| &trees.roots));
            let groups: BTreeMap<_, _> = copied.map(measure).collect();
            let most = groups.values().map(|(_, branches)| *branches).max();
            let bytes = most.map_or(0, |most| (2 * most + 1).min(plan.tree_route_max.into()));
            longest.insert(plan.host, bytes as u8);
            let routes = plan.tree_routes.clone();
            self.0.insert(plan.host, Measured { routes, groups });
        }
        (longest, roots)
    }
}

/// Whether switches copy messages of a group, in whatever way: where another has no room, and for repairs, it is TREE.
fn is_copied(group: &AgentGroup) -> bool {
    let copying = [SchemeName::Switch, SchemeName::Table, SchemeName::Broadcast];
    let mut structures = group.structures.iter();
    structures.any(|structure| copying.contains(&structure.scheme))
}

/// The most branches that a worm to members needs, all switches together: along any of the trees of the group, and
/// along the spanning tree, by which repairs go.
fn branches(plan: &AgentPlan, group: &AgentGroup) -> usize {
    let spanning = |host: HostId| {
        let routes = &plan.tree_routes.0;
        let at = routes.binary_search_by_key(&host, |route| route.to).ok()?;
        Some(&*routes[at].ports)
    };
    let others = || group.members.iter().filter(|host| **host != plan.host);
    let along_spanning = count(others().filter_map(|host| spanning(*host)).collect());
    let own = group
        .trees
        .iter()
        .flat_map(|trees| own_paths(trees, plan.host));
    let along_own = own.map(|paths| {
        let path = |host: &HostId| {
            paths
                .get(host)
                .map(Vec::as_slice)
                .or_else(|| spanning(*host))
        };
        count(others().filter_map(path).collect())
    });
    along_own.fold(along_spanning, usize::max)
}

fn own_paths(trees: &AgentTrees, from: HostId) -> impl Iterator<Item = BTreeMap<HostId, Vec<u8>>> {
    let leaves = trees.leaves.iter();
    let leaves: BTreeMap<HostId, (SwitchId, PortId)> = leaves
        .map(|leaf| (leaf.host, (leaf.switch, leaf.port)))
        .collect();
    let along = move |links| paths_along(links, &trees.roots, &leaves, from);
    trees
        .trees
        .iter()
        .map(move |links| along(links).expect("links of a tree"))
}

/// Different beginnings of these paths: each is a branch at a switch.
fn count(mut paths: Vec<&[u8]>) -> usize {
    paths.sort_unstable();
    let mut last: &[u8] = &[];
    let mut branches = 0;
    for next in paths {
        let shared = last.iter().zip(next).take_while(|(a, b)| a == b).count();
        branches += next.len() - shared;
        last = next;
    }
    branches
}

#[cfg(test)]
mod tests {
    use super::count;

    #[test]
    fn each_link_that_a_worm_crosses_is_a_branch() {
        assert_eq!(count(vec![]), 0);
        assert_eq!(count(vec![&[3]]), 1);
        assert_eq!(count(vec![&[4, 2, 1], &[3], &[4, 2, 0], &[4, 7]]), 6);
        assert_eq!(count(vec![&[4, 4, 1], &[4, 4, 1]]), 3);
    }
}
