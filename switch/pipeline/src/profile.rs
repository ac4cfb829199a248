//! Action profiles: members, and groups that choose among them by hash.

use std::collections::{BTreeMap, BTreeSet};

use super::config::PortId;
use super::entry::{ActionSet, GroupMember, SelectionMode};
use super::error::ControlError;
use super::table::{argument_words, check_arguments};
use wormcast_switch_program::ActionCall;
use wormcast_switch_program::Program;

/// A member ready to run.
#[derive(Clone, Debug)]
pub(super) struct Member {
    pub(super) call: ActionCall,
    pub(super) arguments: Vec<u64>,
}

/// A group as it was written, and what of it may be chosen.
#[derive(Clone, Debug)]
pub(super) struct Group {
    members: Vec<GroupMember>,
    max_size: u32,
    mode: SelectionMode,
    /// Members whose port is not down, by id: BMv2 counts through them so, whatever the order
    /// in which they joined.
    live: Vec<u32>,
    /// The weights of `live` added up to each; empty where all weigh 1.
    ends: Vec<u64>,
}

impl Group {
    fn new(
        members: Vec<GroupMember>,
        max_size: u32,
        mode: SelectionMode,
        down: &BTreeSet<PortId>,
    ) -> Self {
        let mut group = Self {
            members,
            max_size,
            mode,
            live: Vec::new(),
            ends: Vec::new(),
        };
        group.refresh(down);
        group
    }

    fn refresh(&mut self, down: &BTreeSet<PortId>) {
        let is_live = |member: &&GroupMember| {
            let port = member.watch_port;
            port.is_none_or(|port| !down.contains(&port))
        };
        let mut live: Vec<&GroupMember> = self.members.iter().filter(is_live).collect();
        live.sort_by_key(|member| member.member);
        self.live = live.iter().map(|member| member.member).collect();
        self.ends.clear();
        if live.iter().any(|member| member.weight != 1) {
            let mut end = 0;
            for member in live {
                end += u64::from(member.weight);
                self.ends.push(end);
            }
        }
    }

    /// Whether members are chosen at random.
    #[inline]
    pub(super) fn is_random(&self) -> bool {
        self.mode == SelectionMode::Random
    }

    /// The member for a hash; `None` if none may be chosen.
    #[inline]
    pub(super) fn choose(&self, hash: u64) -> Option<u32> {
        let place = match self.ends.last() {
            None if self.live.is_empty() => return None,
            None => (hash % self.live.len() as u64) as usize,
            Some(total) => {
                let wanted = hash % total;
                self.ends.partition_point(|end| *end <= wanted)
            }
        };
        self.live.get(place).copied()
    }
}

/// What a set was made into.
#[derive(Debug)]
pub(super) struct RemovedSet {
    group: Group,
    members: Vec<(u32, Member)>,
}

/// The members and groups of one profile.
///
/// Either the control plane writes members and groups, or its entries bring sets of
/// actions (P4Runtime §"One Shot Action Selector Programming"), never both at a time; so
/// the members and groups that sets are made into need no ids of their own.
#[derive(Debug, Default)]
pub(super) struct Profile {
    members: BTreeMap<u32, Member>,
    groups: BTreeMap<u32, Group>,
    /// Entries with sets.
    sets: usize,
}

impl Profile {
    #[inline]
    pub(super) fn member(&self, id: u32) -> Option<&Member> {
        self.members.get(&id)
    }

    #[inline]
    pub(super) fn group(&self, id: u32) -> Option<&Group> {
        self.groups.get(&id)
    }

    /// Whether entries bring sets of actions.
    pub(super) fn has_sets(&self) -> bool {
        self.sets > 0
    }

    /// Members that the control plane has written.
    pub(super) fn members(&self) -> impl Iterator<Item = (u32, &ActionCall)> {
        let written = !self.has_sets();
        self.members
            .iter()
            .filter(move |_| written)
            .map(|(&id, member)| (id, &member.call))
    }

    /// Groups that the control plane has written, with their greatest size.
    pub(super) fn groups(&self) -> impl Iterator<Item = (u32, &[GroupMember], u32)> {
        let written = !self.has_sets();
        self.groups
            .iter()
            .filter(move |_| written)
            .map(|(&id, group)| (id, group.members.as_slice(), group.max_size))
    }

    /// Chooses anew after a port has gone up or down.
    pub(super) fn refresh(&mut self, down: &BTreeSet<PortId>) {
        for group in self.groups.values_mut() {
            if group
                .members
                .iter()
                .any(|member| member.watch_port.is_some())
            {
                group.refresh(down);
            }
        }
    }

    pub(super) fn put_member(
        &mut self,
        program: &Program,
        profile: usize,
        id: u32,
        call: &ActionCall,
        replace: bool,
    ) -> Result<(), ControlError> {
        let info = &program.action_profiles()[profile];
        self.refuse_sets(&info.name)?;
        let what = || format!("member {id} of action profile {}", info.name);
        match (self.members.contains_key(&id), replace) {
            (true, false) => return Err(ControlError::AlreadyExists { what: what() }),
            (false, true) => return Err(ControlError::NotFound { what: what() }),
            _ => {}
        }
        check_member(program, profile, what, call)?;
        if !replace && self.members.len() >= info.size {
            return Err(full(&info.name, info.size));
        }
        self.members.insert(id, ready(program, call));
        Ok(())
    }

    fn refuse_sets(&self, name: &str) -> Result<(), ControlError> {
        if !self.has_sets() {
            return Ok(());
        }
        Err(ControlError::InvalidArgument {
            what: format!("way to write action profile {name}"),
            value: "a member or group".to_string(),
            bound: "action sets, as long as entries have such".to_string(),
        })
    }

    pub(super) fn delete_member(&mut self, name: &str, id: u32) -> Result<(), ControlError> {
        if self.has_sets() || !self.members.contains_key(&id) {
            return Err(ControlError::NotFound {
                what: format!("member {id} of action profile {name}"),
            });
        }
        let user = self
            .groups
            .iter()
            .find(|(_, group)| group.members.iter().any(|member| member.member == id));
        if let Some((group, _)) = user {
            return Err(ControlError::InUse {
                what: format!("member {id} of action profile {name}"),
                user: format!("group {group}"),
            });
        }
        self.members.remove(&id);
        Ok(())
    }

    /// Brings a member to what it was; `None`: it was not there.
    pub(super) fn put_back_member(&mut self, id: u32, before: Option<Member>) {
        match before {
            Some(member) => self.members.insert(id, member),
            None => self.members.remove(&id),
        };
    }

    /// Brings a group to what it was; `None`: it was not there.
    pub(super) fn put_back_group(&mut self, id: u32, before: Option<Group>) {
        match before {
            Some(group) => self.groups.insert(id, group),
            None => self.groups.remove(&id),
        };
    }

    pub(super) fn put_group(
        &mut self,
        name: &str,
        id: u32,
        (members, max_size): (&[GroupMember], u32),
        replace: bool,
        down: &BTreeSet<PortId>,
    ) -> Result<(), ControlError> {
        self.refuse_sets(name)?;
        let what = || format!("group {id} of action profile {name}");
        match (self.groups.get(&id), replace) {
            (Some(_), false) => return Err(ControlError::AlreadyExists { what: what() }),
            (None, true) => return Err(ControlError::NotFound { what: what() }),
            (Some(group), true) if group.max_size != max_size => {
                return Err(ControlError::InvalidArgument {
                    what: format!("greatest size of {}", what()),
                    value: max_size.to_string(),
                    bound: format!("{}, as when it was inserted", group.max_size),
                });
            }
            _ => {}
        }
        let mut seen = BTreeSet::new();
        for member in members {
            if !self.members.contains_key(&member.member) {
                return Err(ControlError::NotFound {
                    what: format!("member {} of action profile {name}", member.member),
                });
            }
            if !seen.insert(member.member) {
                return Err(ControlError::InvalidArgument {
                    what: format!("list of members of {}", what()),
                    value: format!("member {} twice", member.member),
                    bound: "each member once, with a weight".to_string(),
                });
            }
        }
        let mode = SelectionMode::Selector;
        let group = Group::new(members.to_vec(), max_size, mode, down);
        self.groups.insert(id, group);
        Ok(())
    }

    pub(super) fn delete_group(&mut self, name: &str, id: u32) -> Result<(), ControlError> {
        let removed = if self.has_sets() {
            None
        } else {
            self.groups.remove(&id)
        };
        match removed {
            Some(_) => Ok(()),
            None => Err(ControlError::NotFound {
                what: format!("group {id} of action profile {name}"),
            }),
        }
    }

    /// Checks a set before [`add_set`](Self::add_set); `freed` actions of another set go.
    pub(super) fn check_set(
        &self,
        program: &Program,
        profile: usize,
        set: &ActionSet,
        freed: usize,
    ) -> Result<(), ControlError> {
        let info = &program.action_profiles()[profile];
        if !info.has_selector {
            return Err(ControlError::InvalidArgument {
                what: "action of an entry".to_string(),
                value: "a set of actions".to_string(),
                bound: format!("members: action profile {} has no selector", info.name),
            });
        }
        let has_members = !self.members.is_empty() || !self.groups.is_empty();
        if has_members && !self.has_sets() {
            return Err(ControlError::InvalidArgument {
                what: format!("way to write action profile {}", info.name),
                value: "a set of actions".to_string(),
                bound: "members and groups, as long as there are any".to_string(),
            });
        }
        for action in &set.actions {
            let what = || format!("action of a set of action profile {}", info.name);
            check_member(program, profile, what, &action.call)?;
        }
        if self.members.len() - freed + set.actions.len() > info.size {
            return Err(full(&info.name, info.size));
        }
        Ok(())
    }

    /// Makes a set that was checked into a group. Gives the group's id.
    pub(super) fn add_set(
        &mut self,
        program: &Program,
        set: &ActionSet,
        down: &BTreeSet<PortId>,
    ) -> u32 {
        let mut members = Vec::with_capacity(set.actions.len());
        for action in &set.actions {
            let member = unused(&self.members);
            self.members.insert(member, ready(program, &action.call));
            members.push(GroupMember {
                member,
                weight: action.weight,
                watch_port: action.watch_port,
            });
        }
        let id = unused(&self.groups);
        self.groups
            .insert(id, Group::new(members, 0, set.mode, down));
        self.sets += 1;
        id
    }

    /// Takes back a set that [`add_set`](Self::add_set) made; gives what it was made of.
    pub(super) fn remove_set(&mut self, id: u32) -> Option<RemovedSet> {
        let group = self.groups.remove(&id)?;
        self.sets -= 1;
        let ids = group.members.iter().map(|member| member.member);
        let members = ids
            .filter_map(|id| Some((id, self.members.remove(&id)?)))
            .collect();
        Some(RemovedSet { group, members })
    }

    /// Undoes [`remove_set`](Self::remove_set).
    pub(super) fn put_back_set(&mut self, id: u32, removed: RemovedSet) {
        self.groups.insert(id, removed.group);
        self.members.extend(removed.members);
        self.sets += 1;
    }
}

/// An id that is not in use: the one after the highest, else the lowest that is free.
fn unused<T>(map: &BTreeMap<u32, T>) -> u32 {
    let after = map
        .last_key_value()
        .map_or(Some(0), |(id, _)| id.checked_add(1));
    after.unwrap_or_else(|| {
        let taken = (0..).zip(map.keys()).take_while(|(id, key)| id == *key);
        taken.count() as u32
    })
}

fn ready(program: &Program, call: &ActionCall) -> Member {
    Member {
        arguments: argument_words(program, call),
        call: call.clone(),
    }
}

fn check_member(
    program: &Program,
    profile: usize,
    what: impl Fn() -> String,
    call: &ActionCall,
) -> Result<(), ControlError> {
    let allowed = program.tables().iter().any(|table| {
        table.action_profile.is_some_and(|id| id.index() == profile)
            && table.actions.contains(&call.action)
    });
    if !allowed {
        return Err(ControlError::InvalidArgument {
            what: what(),
            value: format!("action {}", call.action.index()),
            bound: "the actions of the tables that use the profile".to_string(),
        });
    }
    check_arguments(program, call)
}

fn full(name: &str, size: usize) -> ControlError {
    ControlError::ResourceExhausted {
        what: format!("action profile {name}"),
        limit: size,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(members: &[(u32, u32, Option<u16>)], down: &BTreeSet<PortId>) -> Group {
        let members = members.iter().map(|&(member, weight, port)| GroupMember {
            member,
            weight,
            watch_port: port.map(PortId),
        });
        Group::new(members.collect(), 0, SelectionMode::Selector, down)
    }

    fn chosen(group: &Group, hashes: std::ops::Range<u64>) -> Vec<u32> {
        hashes.filter_map(|hash| group.choose(hash)).collect()
    }

    #[test]
    fn members_are_chosen_as_often_as_they_weigh() {
        let none = BTreeSet::new();
        let group = group(&[(5, 1, None), (6, 3, None), (7, 2, None)], &none);
        assert_eq!(chosen(&group, 0..6), [5, 6, 6, 6, 7, 7]);
        let heavy = self::group(&[(1, i32::MAX as u32, None), (2, 1, None)], &none);
        assert_eq!(heavy.choose(i32::MAX as u64), Some(2));
        assert_eq!(heavy.choose(i32::MAX as u64 - 1), Some(1));
    }

    #[test]
    fn members_are_chosen_in_the_order_of_their_ids() {
        let none = BTreeSet::new();
        let joined_late = group(&[(7, 1, None), (5, 2, None)], &none);
        assert_eq!(chosen(&joined_late, 0..3), [5, 5, 7]);
    }

    #[test]
    fn a_member_is_left_out_while_its_port_is_down() {
        let mut down = BTreeSet::from([PortId(2)]);
        let mut group = group(&[(5, 1, Some(1)), (6, 4, Some(2)), (7, 1, None)], &down);
        assert_eq!(chosen(&group, 0..4), [5, 7, 5, 7]);
        down = BTreeSet::from([PortId(1)]);
        group.refresh(&down);
        assert_eq!(chosen(&group, 0..5), [6, 6, 6, 6, 7]);
        let none_left = self::group(&[(5, 1, Some(1))], &down);
        assert_eq!(none_left.choose(3), None);
    }

    #[test]
    fn unused_ids_are_found_at_the_end_of_the_range() {
        let mut map = BTreeMap::new();
        assert_eq!(unused(&map), 0);
        map.insert(u32::MAX, ());
        assert_eq!(unused(&map), 0);
        map.insert(0, ());
        assert_eq!(unused(&map), 1);
    }
}
