//! Under which numbers switches know the groups of scheme `table`.
//!
//! Groups with the same members, along the same kind of tree, share the number of the lowest of them: a
//! switch holds one entry and one replication group for all of them, and hosts tell their messages
//! apart by the group in each. Where a switch has no room for all numbers, the highest stay without;
//! messages of their groups go by TREE routes.

use std::collections::{BTreeMap, BTreeSet};

use wormcast_routing::group::{Least, Scheme, SwitchMode, SwitchParameters};
use wormcast_wire::{GroupId, HostId};

use crate::model::groups::{Group, GroupScheme};

/// What copies of a group's messages go along.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Along {
    Spanning,
    /// A tree of the group's own.
    Own(Least),
}

impl Along {
    /// That of a group with these parameters.
    pub(crate) fn of(parameters: SwitchParameters) -> Along {
        if parameters.has_own_trees() {
            Along::Own(parameters.least)
        } else {
            Along::Spanning
        }
    }
}

/// Groups that can share a number.
type Alike = (Along, Vec<HostId>);

/// What a group of scheme `table` asks of switches; nothing for another.
fn asked(group: &Group) -> Option<Alike> {
    match group.scheme {
        GroupScheme::One(Scheme::Switch(parameters)) if parameters.mode == SwitchMode::Table => {
            Some((Along::of(parameters), group.members.clone()))
        }
        _ => None,
    }
}

/// The numbers, kept from change to change.
#[derive(Clone, Debug, Default)]
pub(crate) struct TableNumbers {
    asked: BTreeMap<GroupId, Alike>,
    alike: BTreeMap<Alike, BTreeSet<GroupId>>,
    /// Numbers that switches have no room for.
    left_out: BTreeSet<GroupId>,
}

impl TableNumbers {
    /// The number of a group; nothing if it needs none, or there is no room.
    pub(crate) fn of(&self, group: GroupId) -> Option<GroupId> {
        let number = self.wanted(group)?;
        (!self.left_out.contains(&number)).then_some(number)
    }

    /// What the messages of a group of scheme `table` go along; nothing for another.
    pub(crate) fn along(&self, group: GroupId) -> Option<Along> {
        self.asked.get(&group).map(|(along, _)| *along)
    }

    /// Whether there is no room for the group.
    pub(crate) fn is_left_out(&self, group: GroupId) -> bool {
        self.wanted(group)
            .is_some_and(|number| self.left_out.contains(&number))
    }

    fn wanted(&self, group: GroupId) -> Option<GroupId> {
        let alike = self.asked.get(&group)?;
        self.alike[alike].first().copied()
    }

    /// Takes groups away and adds or replaces others, with room for so many numbers; gives the groups
    /// whose number is another than before.
    pub(crate) fn change<'g>(
        &mut self,
        gone: impl IntoIterator<Item = GroupId>,
        new: impl IntoIterator<Item = &'g Group>,
        room: usize,
    ) -> BTreeSet<GroupId> {
        let mut before: BTreeMap<GroupId, Option<GroupId>> = BTreeMap::new();
        for id in gone {
            self.leave(id, &mut before);
        }
        for group in new {
            self.leave(group.id, &mut before);
            if let Some(alike) = asked(group) {
                before.entry(group.id).or_insert(None);
                self.note(&alike, &mut before);
                self.alike
                    .entry(alike.clone())
                    .or_default()
                    .insert(group.id);
                self.asked.insert(group.id, alike);
            }
        }
        let numbers = self.alike.values().filter_map(|groups| groups.first());
        let left_out: BTreeSet<GroupId> = if self.alike.len() > room {
            let numbers: BTreeSet<GroupId> = numbers.copied().collect();
            numbers.into_iter().skip(room).collect()
        } else {
            BTreeSet::new()
        };
        let moved: Vec<GroupId> = left_out
            .symmetric_difference(&self.left_out)
            .copied()
            .collect();
        for number in moved {
            if let Some(alike) = self.asked.get(&number).cloned() {
                self.note(&alike, &mut before);
            }
        }
        self.left_out = left_out;
        let changed = before.into_iter().filter(|(id, was)| self.of(*id) != *was);
        changed.map(|(id, _)| id).collect()
    }

    fn leave(&mut self, id: GroupId, before: &mut BTreeMap<GroupId, Option<GroupId>>) {
        let Some(alike) = self.asked.get(&id).cloned() else {
            return;
        };
        self.note(&alike, before);
        self.asked.remove(&id);
        if let Some(groups) = self.alike.get_mut(&alike) {
            groups.remove(&id);
            if groups.is_empty() {
                self.alike.remove(&alike);
            }
        }
    }

    /// Remembers what numbers these had.
    fn note(&self, alike: &Alike, before: &mut BTreeMap<GroupId, Option<GroupId>>) {
        for &id in self.alike.get(alike).into_iter().flatten() {
            let number = self.of(id);
            before.entry(id).or_insert(number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::groups;
    use wormcast_routing::group::Guard;

    fn group(id: u16, guard: Guard, members: &[u16]) -> Group {
        let parameters = SwitchParameters::new(SwitchMode::Table, guard);
        groups::tests::group(id, Scheme::Switch(parameters), members)
    }

    fn ids(ids: &[u16]) -> BTreeSet<GroupId> {
        ids.iter().copied().map(GroupId).collect()
    }

    #[test]
    fn groups_of_the_same_members_and_tree_share_a_number() {
        let mut numbers = TableNumbers::default();
        let groups = [
            group(7, Guard::A, &[1, 2]),
            group(4, Guard::A, &[1, 2]),
            group(5, Guard::C, &[1, 2]),
            group(6, Guard::A, &[1, 3]),
        ];
        assert_eq!(numbers.change([], &groups, 9), ids(&[4, 5, 6, 7]));
        let of = |numbers: &TableNumbers, id| numbers.of(GroupId(id)).map(|number| number.0);
        assert_eq!(
            [4, 5, 6, 7].map(|id| of(&numbers, id)),
            [4, 5, 6, 4].map(Some)
        );
        // The lowest goes: the next gives the number.
        assert_eq!(numbers.change([GroupId(4)], [], 9), ids(&[4, 7]));
        assert_eq!(of(&numbers, 7), Some(7));
        // Other members: a number of its own.
        assert_eq!(
            numbers.change([], [&group(6, Guard::A, &[1, 2])], 9),
            ids(&[7])
        );
        assert_eq!(of(&numbers, 7), Some(6));
        assert_eq!(
            numbers.change([], [&group(6, Guard::A, &[1, 2])], 9),
            ids(&[])
        );
    }

    #[test]
    fn the_highest_numbers_stay_without_where_there_is_no_room() {
        let mut numbers = TableNumbers::default();
        let all: Vec<Group> = (0..6).map(|id| group(id, Guard::A, &[id, 9])).collect();
        numbers.change([], &all, 4);
        let without = |numbers: &TableNumbers| -> Vec<u16> {
            (0..6)
                .filter(|&id| numbers.is_left_out(GroupId(id)))
                .collect()
        };
        assert_eq!(without(&numbers), [4, 5]);
        assert_eq!(numbers.of(GroupId(5)), None);
        assert_eq!(numbers.change([GroupId(1)], [], 4), ids(&[1, 4]));
        assert_eq!(without(&numbers), [5]);
        // A group alike needs no room.
        assert_eq!(
            numbers.change([], [&group(9, Guard::A, &[0, 9])], 4),
            ids(&[9])
        );
        assert_eq!(numbers.change([], [], 3), ids(&[4]));
    }
}
