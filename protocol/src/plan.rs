//! What the planner tells an engine: groups, structures, routes.

use core::fmt;
use std::collections::BTreeMap;
use std::sync::Arc;
use wormcast_wire::{ALTERNATIVES_MAX, BufferClass, GroupId, HostId, Replication, SHARES_WHOLE};

/// One send from host to host in a structure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edge {
    pub from: HostId,
    pub to: HostId,
    /// The buffer class the packet is admitted against at `to`.
    pub class: BufferClass,
}

/// A host this host serves in a stream: whose ACKs it takes, and to which it sends what switches
/// copied to it and it misses, or where hosts pass packets on, all of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChildRole {
    pub host: HostId,
    /// The buffer class of the edge to it.
    pub class: BufferClass,
    /// All hosts that receive through the child, itself not among them.
    pub below: Vec<HostId>,
}

/// A host's place in the structure that carries one origin's stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Role {
    /// The host that serves it; none for the origin, unless its messages return to it: then the last host
    /// of the circuit.
    pub parent: Option<HostId>,
    /// The hosts it serves, in schedule order.
    pub children: Vec<ChildRole>,
}

impl Role {
    /// The place of `host` in the structure of `origin` given by all its edges in
    /// schedule order. None if `host` is neither the origin nor reached, or if the
    /// edges are no tree rooted at the origin.
    pub fn from_edges(host: HostId, origin: HostId, edges: &[Edge]) -> Option<Role> {
        let parent_of = |of: HostId| {
            edges
                .iter()
                .find(|edge| edge.to == of)
                .map(|edge| edge.from)
        };
        let parent = parent_of(host);
        if (host == origin) == parent.is_some() || parent_of(origin).is_some() {
            return None;
        }
        let mut children: Vec<ChildRole> = edges
            .iter()
            .filter(|edge| edge.from == host)
            .map(|edge| ChildRole {
                host: edge.to,
                class: edge.class,
                below: Vec::new(),
            })
            .collect();
        for edge in edges {
            // Climb from every host; one that passes through a child is below it.
            let mut at = edge.to;
            let mut steps = 0;
            while let Some(up) = parent_of(at) {
                if up == host && at != edge.to {
                    let child = children.iter_mut().find(|child| child.host == at)?;
                    child.below.push(edge.to);
                }
                at = up;
                steps += 1;
                if steps > edges.len() {
                    return None;
                }
            }
            if at != origin {
                return None;
            }
        }
        Some(Role { parent, children })
    }
}

/// The structures of a group. The shell computes them, lazily if it likes; the
/// engine asks once for each origin, plan and choice.
pub trait Structures: Send + Sync {
    /// The place of the host this engine runs on in the structure that carries the
    /// stream of `origin` by one of [`GroupPlan::choices`]. None: this host has no part in it,
    /// its packets are rejected.
    ///
    /// Where switches copy ([`Replication::Switches`]), it is the tree by which ACKs come up.
    fn role(&self, origin: HostId, choice: u8) -> Option<Role>;

    /// How worms leave the origin, where switches copy.
    fn copies(&self, _choice: u8) -> Copies<'_> {
        Copies::SpanningTree
    }
}

/// Which worms reach all members where switches copy (WORM §3). What a worm misses is sent again
/// along the spanning tree, or by UNICAST.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Copies<'p> {
    /// TREE worms along the spanning tree.
    SpanningTree,
    /// TREE worms along trees of the group: port path to each other member. Messages take them in
    /// turn; a member that one does not reach is reached along the spanning tree.
    Trees(&'p [BTreeMap<HostId, Vec<u8>>]),
    /// GROUP worms of this number.
    Number(GroupId),
    /// BROADCAST worms, if there is a route to the root; else as along the spanning tree.
    Broadcast,
}

/// One of the ways by which messages of a group may travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The longest message that takes it, in bytes.
    pub bytes_most: u64,
    pub replication: Replication,
}

impl Choice {
    /// The only one: every message takes it.
    pub fn only(replication: Replication) -> Vec<Choice> {
        vec![Choice {
            bytes_most: u64::MAX,
            replication,
        }]
    }
}

/// ACKs of a group that switches gather (`wire/SPEC.md` §3.2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gathered {
    /// Of its branches and members; never used twice for a group.
    pub epoch: u32,
    /// Origins whose ACKs are gathered, and the source of those that come to each. ACKs of others go from host to host alone.
    pub origins: BTreeMap<HostId, HostId>,
}

/// Everything the engine has to know about a group it is a member of.
#[derive(Clone)]
pub struct GroupPlan {
    pub id: GroupId,
    /// Names this version of the plan. Two hosts must have equal epochs exactly if
    /// they have the same plan of the group; order does not matter. (Reports of
    /// subtree stability count only between hosts of equal epoch.)
    pub epoch: u32,
    /// How messages travel, by their length: 1 to [`wormcast_wire::pdu::CHOICES_MAX`], ascending;
    /// any message may take the last one.
    pub choices: Vec<Choice>,
    /// All members, this host among them.
    pub members: Vec<HostId>,
    /// Bytes of a frame of the group after its Ethernet header, at most: what all its ways carry. None, or
    /// more: [`crate::EngineConfig::mtu`]; less than [`crate::MTU_MIN`] counts as that.
    pub mtu: Option<u16>,
    pub structures: Arc<dyn Structures>,
    /// [`crate::Event::Begun`] is wanted for every message.
    pub reports_begin: bool,
    /// Which of its ACKs switches gather, where they copy; none: all go from host to host alone.
    pub gathered: Option<Gathered>,
}

impl GroupPlan {
    /// The choice of that number; the last one if there is none.
    pub(crate) fn choice(&self, number: u8) -> Choice {
        let last = self.choices.len().saturating_sub(1);
        let only = Choice::only(Replication::Hosts)[0];
        let chosen = self.choices.get(usize::from(number).min(last));
        chosen.copied().unwrap_or(only)
    }

    /// The first choice that a message of so many bytes may take; one of unknown length takes
    /// the last.
    pub(crate) fn choice_for(&self, bytes: Option<u64>) -> u8 {
        let last = self.choices.len().saturating_sub(1);
        let fits = |choice: &Choice| bytes.is_some_and(|bytes| bytes <= choice.bytes_most);
        self.choices.iter().position(fits).unwrap_or(last) as u8
    }

    /// Names this version of the plan together with a choice.
    pub(crate) fn epoch_of(&self, choice: u8) -> u32 {
        self.epoch
            .wrapping_add(u32::from(choice).wrapping_mul(0x9E37_79B9))
    }
}

impl fmt::Debug for GroupPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GroupPlan")
            .field("id", &self.id)
            .field("epoch", &self.epoch)
            .field("choices", &self.choices)
            .field("members", &self.members)
            .finish_non_exhaustive()
    }
}

/// A plan or a route table the engine refuses; it keeps what it had.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// The group number is 255.
    #[error("group 255 is broadcast; groups are 0 to 65535 without 255")]
    GroupReserved,
    /// As many groups as [`crate::Limits::groups`] exist.
    #[error("this host is in {limit} groups already, the most it takes")]
    GroupsFull { limit: usize },
    /// This host is not among the members.
    #[error("host {host} is not among the members of group {group}")]
    NotMember { group: GroupId, host: HostId },
    /// A host has no routes, or too many.
    #[error("host {host} has {count} routes; it must have 1 to {ALTERNATIVES_MAX}")]
    Alternatives { host: HostId, count: usize },
    /// The routes to a host do not share all of the messages.
    #[error(
        "the shares of the routes to host {host} add up to {shares}; each must be 1 or more, and all together {SHARES_WHOLE}"
    )]
    Shares {
        host: HostId,
        /// The sum of their shares.
        shares: u64,
    },
    /// A route is empty or too long.
    #[error("the route to host {host} has {length} bytes; it must have 1 to {most}")]
    RouteLength {
        host: HostId,
        length: usize,
        /// The most bytes a route may have.
        most: usize,
    },
    /// A byte of a route is not a port (0–253; 254 also in a unicast route).
    #[error("the route to host {host} has byte {port}; ports are 0 to 253")]
    RoutePort { host: HostId, port: u8 },
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edge(from: u16, to: u16) -> Edge {
        Edge {
            from: HostId(from),
            to: HostId(to),
            class: BufferClass::One,
        }
    }

    #[test]
    fn a_role_has_the_hosts_below_each_child() {
        let edges = [edge(1, 2), edge(1, 5), edge(2, 3), edge(3, 4)];
        let root = Role::from_edges(HostId(1), HostId(1), &edges).expect("the origin has a role");
        assert_eq!(root.parent, None);
        assert_eq!(root.children[0].below, vec![HostId(3), HostId(4)]);
        assert_eq!(root.children[1].below, vec![]);
        let inner = Role::from_edges(HostId(3), HostId(1), &edges).expect("reached");
        assert_eq!(inner.parent, Some(HostId(2)));
        assert_eq!(inner.children.len(), 1);
        assert_eq!(
            Role::from_edges(HostId(9), HostId(1), &edges),
            None,
            "not reached"
        );
    }

    #[test]
    fn edges_that_are_no_tree_of_the_origin_give_no_role() {
        let cycle = [edge(1, 2), edge(3, 4), edge(4, 3)];
        assert_eq!(Role::from_edges(HostId(2), HostId(1), &cycle), None);
        assert_eq!(Role::from_edges(HostId(1), HostId(1), &[edge(2, 1)]), None);
    }
}
