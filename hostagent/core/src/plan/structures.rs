//! The structures of a planned group, computed when the engine asks for an origin.

use super::PlannedGroup;
use std::collections::BTreeMap;
use std::sync::Arc;
use wormcast_protocol::{ChildRole, Role, Structures};
use wormcast_routing::structure::{
    CircuitVariant, Structure, StructureError, TreeVariant, k_binomial,
};
use wormcast_wire::{HostId, Scheme};

/// Packets of a message for which `k` is picked when the plan leaves it open: a transfer so
/// long that the pipeline's rate counts and its depth does not.
pub const BULK_PACKETS: u32 = 64;

/// Most members whose ACKs one host takes, where switches copy: the ACKs of a group of more come up
/// a tree of members. An ACK costs a host about as much as a packet, and comes with every fourth one.
pub const ACK_FAN_IN: usize = 6;

/// The structures of one group, seen from one host.
#[derive(Debug)]
pub(super) struct PlannedStructures {
    /// The host this agent runs on.
    pub(super) host: HostId,
    /// The group.
    pub(super) group: Arc<PlannedGroup>,
}

impl Structures for PlannedStructures {
    fn role(&self, origin: HostId) -> Option<Role> {
        let structure = self.group.structure(origin).ok()?;
        role_in(&structure, self.host)
    }
}

impl PlannedGroup {
    /// The structure that carries the stream of `origin`.
    ///
    /// # Errors
    /// If `origin` is not a member.
    pub fn structure(&self, origin: HostId) -> Result<Structure, StructureError> {
        let (order, source) = (self.order.clone(), origin);
        match self.scheme {
            Scheme::Repeat => Structure::repeat(order, source),
            Scheme::Switch => Structure::acknowledgement(order, source, ACK_FAN_IN),
            Scheme::Circuit => Structure::circuit(order, source, CircuitVariant::OmitLast),
            Scheme::KBinomial => {
                let k = match self.k {
                    0 => k_binomial::optimal_k(order.len(), BULK_PACKETS),
                    k => k,
                };
                Structure::k_binomial(order, source, k)
            }
            Scheme::Tree => match &self.tree {
                Some(tree) => Structure::tree(tree.clone(), source, TreeVariant::Unordered),
                None => Structure::repeat(order, source),
            },
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
    use crate::plan::tests::{group_message, plan_message};

    /// For every scheme and origin: each other member has one parent, which names it as a
    /// child and counts it and what is below it once.
    #[test]
    fn roles_of_all_members_fit_together() {
        for scheme in Scheme::ALL {
            let members: Vec<u32> = vec![1, 2, 4, 7, 8, 11, 15];
            for &origin in &members {
                let roles: BTreeMap<u16, Role> = members
                    .iter()
                    .map(|&host| {
                        let mut message = plan_message(host);
                        message.groups = vec![group_message(3, scheme.name(), &members)];
                        let plan = AgentPlan::parse(&message).unwrap();
                        let group = plan.groups[&wormcast_wire::GroupId(3)].clone();
                        let structures = PlannedStructures {
                            host: plan.host,
                            group,
                        };
                        (plan.host.0, structures.role(HostId(origin as u16)).unwrap())
                    })
                    .collect();
                let mut reached = Vec::new();
                for (&host, role) in &roles {
                    assert_eq!(
                        role.parent.is_none(),
                        u32::from(host) == origin,
                        "{scheme:?}"
                    );
                    for child in &role.children {
                        reached.push(child.host.0);
                        let parent = roles[&child.host.0].parent;
                        assert_eq!(parent, Some(HostId(host)), "{scheme:?} from {origin}");
                        let mut deeper: Vec<HostId> = roles[&child.host.0]
                            .children
                            .iter()
                            .flat_map(|next| std::iter::once(next.host).chain(next.below.clone()))
                            .collect();
                        deeper.sort_unstable();
                        assert_eq!(deeper, child.below, "{scheme:?} from {origin}");
                    }
                }
                reached.sort_unstable();
                let others: Vec<u16> = members
                    .iter()
                    .filter(|&&host| host != origin)
                    .map(|&host| host as u16)
                    .collect();
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
            .role(HostId(9)),
            None
        );
    }
}
