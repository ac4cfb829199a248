//! Rooted tree (WORM §6): every child has a higher id than its parent.

use std::sync::Arc;

use super::error::StructureError;
use super::members::check_members;
use super::sends::{Place, Send, Sends};
use super::variants::TreeVariant;
use wormcast_wire::{BufferClass, HostId};

/// Most children of a host by default.
pub const FAN_OUT_DEFAULT: u32 = 3;

/// A tree over the members of a group; its root is the member with the lowest id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RootedTree {
    members: Arc<[HostId]>,
    /// For every place but the first, the place of the parent, which is before it.
    parent: Vec<usize>,
    /// Children of each place, ascending.
    children: Vec<Vec<usize>>,
}

impl RootedTree {
    /// Inserts the members in order of id, each under the parent with the fewest hops to
    /// it among those that have room, ties to the shallower, then to the lower id.
    /// `hops` counts the switches crossed between two hosts; `None` if there is no way.
    ///
    /// # Errors
    /// No members, one twice, a fan-out of 0, or members with no way between them.
    pub fn build(
        members: &[HostId],
        fan_out_max: u32,
        mut hops: impl FnMut(HostId, HostId) -> Option<u32>,
    ) -> Result<RootedTree, StructureError> {
        check_members(members)?;
        if fan_out_max == 0 {
            return Err(StructureError::NoChildren {
                parameter: "fan-out",
            });
        }
        let mut members = members.to_vec();
        members.sort_unstable();
        let mut tree = RootedTree::bare(members.into());
        let mut depth = vec![0u32; tree.members.len()];
        let mut room: Vec<usize> = vec![0];
        for at in 1..tree.members.len() {
            let host = tree.members[at];
            let nearest = room
                .iter()
                .filter_map(|&up| Some((hops(tree.members[up], host)?, depth[up], up)))
                .min();
            let Some((_, _, up)) = nearest else {
                return Err(StructureError::Apart {
                    a: tree.members[0],
                    b: host,
                });
            };
            tree.attach(at, up);
            depth[at] = depth[up] + 1;
            if tree.children[up].len() >= fan_out_max as usize {
                room.retain(|&place| place != up);
            }
            room.push(at);
        }
        Ok(tree)
    }

    /// The tree with these edges, each (parent, child).
    ///
    /// # Errors
    /// No members, one twice, an edge with a host that is none,
    /// [`StructureError::NotATree`] if a member has no parent or several, or one with a
    /// higher id.
    pub fn from_edges(
        members: &[HostId],
        edges: &[(HostId, HostId)],
    ) -> Result<RootedTree, StructureError> {
        check_members(members)?;
        let mut members = members.to_vec();
        members.sort_unstable();
        let place = |host: HostId| {
            members
                .binary_search(&host)
                .map_err(|_| StructureError::NotMember {
                    host,
                    members: members.clone(),
                })
        };
        let not_a_tree = |reason: String| StructureError::NotATree { reason };
        let mut parent = vec![usize::MAX; members.len()];
        for &(above, below) in edges {
            let (up, at) = (place(above)?, place(below)?);
            if up >= at {
                return Err(not_a_tree(format!(
                    "host {below} is below host {above}; a child has a higher id than its parent"
                )));
            }
            if parent[at] != usize::MAX {
                let first = members[parent[at]];
                return Err(not_a_tree(format!(
                    "host {below} is below both {first} and {above}"
                )));
            }
            parent[at] = up;
        }
        if let Some(at) = (1..members.len()).find(|&at| parent[at] == usize::MAX) {
            let (host, root) = (members[at], members[0]);
            return Err(not_a_tree(format!(
                "host {host} has no parent; only the root {root} has none"
            )));
        }
        let mut tree = RootedTree::bare(members.into());
        for (at, &up) in parent.iter().enumerate().skip(1) {
            tree.attach(at, up);
        }
        Ok(tree)
    }

    /// Members, ascending; the first is the root.
    pub fn members(&self) -> &Arc<[HostId]> {
        &self.members
    }

    /// Edges, each (parent, child), in ascending order of child.
    pub fn edges(&self) -> impl Iterator<Item = (HostId, HostId)> + '_ {
        (1..self.members.len()).map(|at| (self.members[self.parent[at]], self.members[at]))
    }

    fn bare(members: Arc<[HostId]>) -> RootedTree {
        let count = members.len();
        RootedTree {
            members,
            parent: vec![usize::MAX; count],
            children: vec![Vec::new(); count],
        }
    }

    fn attach(&mut self, at: usize, up: usize) {
        self.parent[at] = up;
        self.children[up].push(at);
    }

    pub(super) fn place(&self, source: usize, variant: TreeVariant, at: usize) -> Place {
        let tree_parent = (at > 0).then(|| self.parent[at]);
        let down = |to: &usize| (*to, BufferClass::Two);
        if variant == TreeVariant::Ordered {
            let submitted = source != 0;
            let parent = tree_parent.or(submitted.then_some(source));
            return Place {
                parent,
                class: if parent.is_some() {
                    BufferClass::Two
                } else {
                    BufferClass::One
                },
                children: self.children[at].iter().map(down).collect(),
                submit: (submitted && at == source).then_some((0, BufferClass::Two)),
            };
        }
        match self.towards(source, at) {
            // The message comes from below, or starts here: it climbs and descends.
            from if from.is_some() || at == source => Place {
                parent: from,
                class: BufferClass::One,
                children: tree_parent
                    .map(|up| (up, BufferClass::One))
                    .into_iter()
                    .chain(
                        self.children[at]
                            .iter()
                            .filter(|to| Some(**to) != from)
                            .map(down),
                    )
                    .collect(),
                submit: None,
            },
            _ => Place {
                parent: tree_parent,
                class: BufferClass::Two,
                children: self.children[at].iter().map(down).collect(),
                submit: None,
            },
        }
    }

    /// The child of `at` that has `source` below it or is it.
    fn towards(&self, source: usize, at: usize) -> Option<usize> {
        let mut below = source;
        while below > at {
            if self.parent[below] == at {
                return Some(below);
            }
            below = self.parent[below];
        }
        None
    }

    pub(super) fn sends(&self, source: usize, variant: TreeVariant) -> Sends {
        let mut all = Sends::default();
        let mut start = source;
        if variant == TreeVariant::Ordered {
            start = 0;
            if source != 0 {
                let class = BufferClass::Two;
                all.submission = Some(Send {
                    from: source,
                    to: 0,
                    class,
                });
            }
        }
        let climbs = variant == TreeVariant::Unordered;
        // Places that have the message and where they have it from.
        let mut reached = vec![(start, None)];
        let mut next = 0;
        while let Some(&(at, from)) = reached.get(next) {
            next += 1;
            let descends = at != 0 && from == Some(self.parent[at]);
            if climbs && at != 0 && !descends {
                let to = self.parent[at];
                all.sends.push(Send {
                    from: at,
                    to,
                    class: BufferClass::One,
                });
                reached.push((to, Some(at)));
            }
            for &to in self.children[at].iter().filter(|to| Some(**to) != from) {
                all.sends.push(Send {
                    from: at,
                    to,
                    class: BufferClass::Two,
                });
                reached.push((to, Some(at)));
            }
        }
        all
    }
}
