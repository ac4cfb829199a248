//! The structures of a planned group, computed when the engine asks for an origin.

use super::group::PlannedGroup;
use std::collections::BTreeMap;
use std::sync::Arc;
use wormcast_protocol::{ChildRole, Choice, Copies, GroupPlan, Role, Structures};
use wormcast_routing::structure::Structure;
use wormcast_wire::{HostId, SchemeName};

/// The structures of one group, seen from one host.
#[derive(Debug)]
pub(super) struct PlannedStructures {
    /// The host this agent runs on.
    pub(super) host: HostId,
    pub(super) group: Arc<PlannedGroup>,
}

impl Structures for PlannedStructures {
    fn role(&self, origin: HostId, choice: u8) -> Option<Role> {
        let structure = self.group.structures.get(usize::from(choice))?;
        role_in(&structure.of(origin).ok()?, self.host)
    }

    fn copies(&self, choice: u8) -> Copies<'_> {
        let structure = self.group.structures.get(usize::from(choice));
        match structure.map(|structure| structure.scheme) {
            Some(SchemeName::Switch) if !self.group.trees.is_empty() => {
                Copies::Trees(&self.group.trees)
            }
            Some(SchemeName::Table) => {
                let number = self.group.number;
                number.map_or(Copies::SpanningTree, Copies::Number)
            }
            Some(SchemeName::Broadcast) => Copies::Broadcast,
            _ => Copies::SpanningTree,
        }
    }
}

impl PlannedGroup {
    /// The plan of the engine of `host`.
    pub fn engine_plan(self: &Arc<Self>, host: HostId) -> GroupPlan {
        GroupPlan {
            id: self.id,
            epoch: self.fingerprint,
            choices: self
                .structures
                .iter()
                .map(|one| Choice {
                    bytes_most: one.bytes_most,
                    replication: one.scheme.replication(),
                })
                .collect(),
            members: self.members.clone(),
            mtu: self.mtu,
            structures: Arc::new(PlannedStructures {
                host,
                group: Arc::clone(self),
            }),
            reports_begin: self.sequencer.is_some(),
            gathered: self.gathered.clone(),
        }
    }
}

/// The place of `host`, with the hosts below each child.
fn role_in(structure: &Structure, host: HostId) -> Option<Role> {
    let own = structure.role_of(host).ok()?;
    let mut children_of: BTreeMap<HostId, Vec<HostId>> = BTreeMap::new();
    for edge in structure.edges() {
        children_of.entry(edge.from).or_default().push(edge.to);
    }
    // What returns to the source goes no further.
    children_of.remove(&structure.source());
    let below = |child: HostId| {
        let mut below = Vec::new();
        let mut open = vec![child];
        while let Some(at) = open.pop() {
            for &next in children_of.get(&at).into_iter().flatten() {
                below.push(next);
                open.push(next);
            }
        }
        below.sort_unstable();
        below
    };
    let children = own.children.iter().map(|&(child, class)| ChildRole {
        host: child,
        class,
        below: below(child),
    });
    Some(Role {
        parent: own.parent,
        children: children.collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::AgentPlan;
    use crate::plan::examples::{group_message, plan_message};

    /// Where switches copy: up to eight members all answer the origin, of more at most five.
    #[test]
    fn an_origin_takes_acks_of_no_more_than_seven_members() {
        for members in [1, 2, 8, 9, 64, 250, 1_000] {
            for k in [0, 3] {
                let hosts: Vec<u32> = (1..=members).collect();
                let mut message = plan_message(1);
                message.groups = vec![group_message(3, "switch", &hosts)];
                message.groups[0].structures[0].k = k.min(members);
                let plan = AgentPlan::parse(&message).unwrap();
                let group = plan.groups[&wormcast_wire::GroupId(3)].clone();
                let structures = PlannedStructures {
                    host: plan.host,
                    group,
                };
                let role = structures.role(plan.host, 0).unwrap();
                let most = match k {
                    0 if members <= 8 => members - 1,
                    0 => 5,
                    _ => 3,
                };
                assert_eq!(role.children.len() as u32, most.min(members - 1));
                let below = role
                    .children
                    .iter()
                    .map(|child| 1 + child.below.len() as u32);
                assert_eq!(below.sum::<u32>(), members - 1, "all are below");
            }
        }
    }

    /// For every scheme and origin: each other member has one parent, which names it as a
    /// child and counts it and what is below it once. So has the origin where a circuit returns.
    #[test]
    fn roles_of_all_members_fit_together() {
        let all = SchemeName::ALL.map(|scheme| (scheme, ""));
        for (scheme, variant) in all.into_iter().chain([(SchemeName::Circuit, "return")]) {
            let members: Vec<u32> = vec![1, 2, 4, 7, 8, 11, 15];
            for &origin in &members {
                let roles: BTreeMap<u16, Role> = members
                    .iter()
                    .map(|&host| {
                        let mut message = plan_message(host);
                        message.groups = vec![group_message(3, scheme.name(), &members)];
                        message.groups[0].structures[0].variant = variant.to_owned();
                        let plan = AgentPlan::parse(&message).unwrap();
                        assert_eq!(plan.refused, []);
                        let group = plan.groups[&wormcast_wire::GroupId(3)].clone();
                        let structures = PlannedStructures {
                            host: plan.host,
                            group,
                        };
                        let role = structures.role(HostId(origin as u16), 0).unwrap();
                        (plan.host.0, role)
                    })
                    .collect();
                let mut reached = Vec::new();
                for (&host, role) in &roles {
                    let has_none = u32::from(host) == origin && variant.is_empty();
                    assert_eq!(role.parent.is_none(), has_none, "{scheme:?}");
                    for child in &role.children {
                        reached.push(child.host.0);
                        let parent = roles[&child.host.0].parent;
                        assert_eq!(parent, Some(HostId(host)), "{scheme:?} from {origin}");
                        let is_last = u32::from(child.host.0) == origin;
                        let mut deeper: Vec<HostId> = roles[&child.host.0]
                            .children
                            .iter()
                            .filter(|_| !is_last)
                            .flat_map(|next| std::iter::once(next.host).chain(next.below.clone()))
                            .collect();
                        deeper.sort_unstable();
                        assert_eq!(deeper, child.below, "{scheme:?} from {origin}");
                    }
                }
                reached.sort_unstable();
                let others = members
                    .iter()
                    .filter(|&&host| host != origin || !variant.is_empty());
                let others: Vec<u16> = others.map(|&host| host as u16).collect();
                assert_eq!(reached, others, "{scheme:?} from {origin}");
            }
        }
    }

    #[test]
    fn an_origin_that_is_no_member_has_no_structure() {
        let mut message = plan_message(1);
        message.groups = vec![group_message(3, "circuit", &[1, 2])];
        let plan = AgentPlan::parse(&message).unwrap();
        let group = plan.groups[&wormcast_wire::GroupId(3)].clone();
        assert_eq!(
            PlannedStructures {
                host: HostId(1),
                group
            }
            .role(HostId(9), 0),
            None
        );
    }
}
