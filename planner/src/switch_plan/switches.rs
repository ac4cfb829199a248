//! What every switch must have, planned again and again: only what a change concerns is made anew.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use wormcast_routing::topology::Topology;
use wormcast_wire::{GroupId, HostId, SwitchId};

use crate::gather::Spans;
use crate::guard::groups::Carriers;
use crate::model::copies::{Copies, Neighbours};
use crate::model::groups::Group;
use crate::model::ids::{CLASS_D_SIZE, GROUP_NUMBERS_MAX, MGID_TREE_ALL, Mgid};
use crate::model::state::{Action, EntryKey, Place, SwitchState, TableEntry};
use crate::order::parts::Part;
use crate::switch_plan::class_d::ClassDNumbers;
use crate::switch_plan::entries::{
    class_d_entries, group_entry, port_entries, tree_set_default, tree_set_entries,
};
use crate::switch_plan::replication::{GroupTree, allocate_mgids, port_groups, tree_set_groups};
use crate::switch_plan::table_numbers::{Along, TableNumbers};
use crate::switch_plan::trees::own_ports;
use crate::trace::trace_default;
use crate::wormhole::{Switching, hold_groups, interrupt_group, wormhole_default};

/// Addresses never take all numbers: each number of an address has an entry of `ingress.class_d`.
const _: () = assert!(CLASS_D_SIZE < GROUP_NUMBERS_MAX as usize);

/// A group number as the switches hold it.
#[derive(Clone, Debug, PartialEq)]
struct Number {
    mgid: Mgid,
    copies: BTreeMap<SwitchId, Copies>,
}

impl Number {
    fn at(&self, switch: SwitchId) -> Option<(Mgid, &Copies)> {
        self.copies.get(&switch).map(|copies| (self.mgid, copies))
    }
}

/// What changes at one switch: all that goes, goes before anything comes.
#[derive(Default)]
struct Edit {
    gone: BTreeSet<Place>,
    entries: BTreeMap<EntryKey, Arc<Action>>,
    multicast: BTreeMap<Mgid, Copies>,
}

/// Keeps the last plan of the switches of one network, and changes it.
#[derive(Clone, Debug, Default)]
pub(crate) struct SwitchPlanner {
    pub(crate) switches: BTreeMap<SwitchId, Arc<SwitchState>>,
    parts: Arc<Vec<Part>>,
    trees: Vec<GroupTree>,
    tables: TableNumbers,
    groups: BTreeMap<GroupId, Arc<Group>>,
    numbers_of: BTreeMap<GroupId, Vec<GroupId>>,
    /// Groups that carry a number.
    carriers: BTreeMap<GroupId, BTreeSet<GroupId>>,
    planned: BTreeMap<GroupId, Number>,
    mgids: BTreeMap<GroupId, Mgid>,
    class_d: ClassDNumbers,
    class_d_entries: BTreeMap<EntryKey, Arc<Action>>,
    everyone: BTreeSet<HostId>,
    pub(crate) switching: Switching,
}

impl SwitchPlanner {
    /// Plans connected parts without groups. Where a port led is kept at its switch for as long as it is
    /// known, so that a neighbour may use a link that is not planned for, or not any more.
    pub(crate) fn new(
        parts: Arc<Vec<Part>>,
        known: &Topology,
        switching: Switching,
    ) -> SwitchPlanner {
        let mut planner = SwitchPlanner {
            switching,
            ..SwitchPlanner::default()
        };
        let known_ids = known.switches().iter().map(|switch| switch.id);
        let known: BTreeMap<SwitchId, Neighbours> =
            known_ids.zip(Neighbours::of_all(known)).collect();
        // What TREE worms need is most of what a switch holds, and the same in switches of one size.
        let mut sized: BTreeMap<u16, SwitchState> = BTreeMap::new();
        for Part {
            topology, order, ..
        } in parts.iter()
        {
            let tree = GroupTree::new(topology, order);
            let root = order.root(topology);
            for (switch, uses) in topology.switches().iter().zip(tree.part_ports()) {
                let sized = sized
                    .entry(switch.ports)
                    .or_insert_with(|| sized_state(switch.ports, switching));
                let mut state = sized.clone();
                let led = known.get(&switch.id).unwrap_or(&uses.links);
                port_entries(switch.ports, (&uses.links, led), uses.to_hosts)
                    .into_iter()
                    .for_each(|e| state.add(e));
                let trace = trace_default(switch.id);
                state.defaults.insert(trace.table, trace.action);
                let at_root = wormhole_default(switching, switch.id == root);
                state.defaults.insert(at_root.table, at_root.action);
                state.multicast.extend(uses.fixed_groups());
                let all = state.multicast.get(&MGID_TREE_ALL);
                let interrupt = interrupt_group(switching, all);
                state.multicast.extend(interrupt);
                if !uses.links.backed().is_empty() {
                    state
                        .multicast
                        .extend(tree_set_groups(switch.ports, &uses.links));
                }
                state.multicast.extend(port_groups(&uses.links));
                planner.switches.insert(switch.id, Arc::new(state));
            }
            planner.everyone.extend(tree.hosts());
            planner.trees.push(tree);
        }
        planner.parts = parts;
        planner
    }

    /// The number by which switches copy the messages of a group of scheme `table`; nothing for
    /// another, or where switches have no room for it.
    pub(crate) fn table_number(&self, group: GroupId) -> Option<GroupId> {
        self.tables.of(group)
    }

    /// Connected parts with the tree of each.
    pub(crate) fn spans(&self) -> Spans<'_> {
        self.parts.iter().zip(&self.trees).collect()
    }

    /// Group numbers with the groups that carry them, and whether each carries it by its address; that of broadcast
    /// too, where a group has such an address.
    pub(crate) fn carriers(&self) -> BTreeMap<GroupId, Carriers> {
        let of = |number: GroupId| {
            move |id: &GroupId| {
                let group = &self.groups[id];
                let by_address = self.address_number(group) == Some(number);
                (group.clone(), by_address)
            }
        };
        let carried = self.carriers.iter();
        let carried = carried.map(|(&number, ids)| (number, ids.iter().map(of(number)).collect()));
        let mut all: BTreeMap<GroupId, Carriers> = carried.collect();
        let is_broadcast = |group: &&Arc<Group>| {
            let number = group.class_d.map(|address| self.class_d.number(address));
            number == Some(GroupId::BROADCAST)
        };
        let broadcast = self.groups.values().filter(is_broadcast);
        let broadcast: Carriers = broadcast.map(|group| (group.clone(), true)).collect();
        if !broadcast.is_empty() {
            all.insert(GroupId::BROADCAST, broadcast);
        }
        all
    }

    /// Groups of scheme `table` that switches have no room for.
    pub(crate) fn without_room(&self) -> impl Iterator<Item = GroupId> + '_ {
        let groups = self.groups.keys().copied();
        groups.filter(|group| self.tables.is_left_out(*group))
    }

    /// Takes groups away and adds or replaces others; returns where switches differ from before, and
    /// the groups of scheme `table` whose number is another than before.
    pub(crate) fn change(
        &mut self,
        gone: &[GroupId],
        new: &[Arc<Group>],
        class_d: &ClassDNumbers,
    ) -> (BTreeMap<SwitchId, Vec<Place>>, BTreeSet<GroupId>) {
        let renumbered = *class_d != self.class_d;
        self.class_d = class_d.clone();
        let mut addresses_changed = renumbered;
        let mut stale = BTreeSet::new();
        for id in gone.iter().copied().chain(new.iter().map(|group| group.id)) {
            if let Some(old) = self.groups.remove(&id) {
                addresses_changed |= old.class_d.is_some();
                self.leave_numbers(id, &mut stale);
            }
        }
        for group in new {
            self.groups.insert(group.id, group.clone());
            addresses_changed |= group.class_d.is_some();
        }
        let numbers = self
            .groups
            .values()
            .filter_map(|group| self.address_number(group));
        let for_addresses = numbers.collect::<BTreeSet<GroupId>>().len();
        let room = usize::from(GROUP_NUMBERS_MAX) - for_addresses;
        let news = new.iter().map(|group| &**group);
        let moved = self.tables.change(gone.iter().copied(), news, room);
        let joins = |group: &&Arc<Group>| {
            let numbers = self.numbers_of.get(&group.id);
            numbers.map_or(&[][..], Vec::as_slice) != self.numbers(group)
        };
        let joining: Vec<Arc<Group>> = if renumbered {
            self.groups.values().filter(joins).cloned().collect()
        } else {
            let ids = moved
                .iter()
                .copied()
                .chain(new.iter().map(|group| group.id));
            let ids: BTreeSet<GroupId> = ids.collect();
            let groups = ids.iter().filter_map(|id| self.groups.get(id));
            groups.filter(joins).cloned().collect()
        };
        for group in joining {
            self.leave_numbers(group.id, &mut stale);
            self.join_numbers(&group, &mut stale);
        }
        let mut edits = BTreeMap::new();
        self.plan_numbers(stale, &mut edits);
        if addresses_changed {
            self.plan_class_d(&mut edits);
        }
        let touched = edits
            .into_iter()
            .map(|(switch, edit)| (switch, self.apply(switch, edit)))
            .collect();
        (touched, moved)
    }

    /// That of its address; broadcast is not a group's.
    fn address_number(&self, group: &Group) -> Option<GroupId> {
        let number = group.class_d.map(|address| self.class_d.number(address));
        number.filter(|&number| number != GroupId::BROADCAST)
    }

    /// Those of its address and of its scheme.
    fn numbers(&self, group: &Group) -> Vec<GroupId> {
        let of_table = self.tables.of(group.id);
        let another = self.address_number(group).filter(|&n| Some(n) != of_table);
        of_table.into_iter().chain(another).collect()
    }

    /// What a number goes along: a tree of its own if only groups of scheme `table` carry it, which all
    /// ask for that.
    fn along(&self, number: GroupId) -> Along {
        let mut carriers = self.carriers.get(&number).into_iter().flatten();
        let own = |id: &GroupId| {
            let group = &self.groups[id];
            let is_address = self.address_number(group) == Some(number);
            (!is_address).then(|| self.tables.along(*id)).flatten()
        };
        let first = carriers.next().and_then(own);
        match first {
            Some(first) if carriers.all(|id| own(id) == Some(first)) => first,
            _ => Along::Spanning,
        }
    }

    fn leave_numbers(&mut self, group: GroupId, stale: &mut BTreeSet<GroupId>) {
        for number in self.numbers_of.remove(&group).unwrap_or_default() {
            self.carriers.entry(number).or_default().remove(&group);
            stale.insert(number);
        }
    }

    fn join_numbers(&mut self, group: &Group, stale: &mut BTreeSet<GroupId>) {
        let numbers = self.numbers(group);
        for &number in &numbers {
            self.carriers.entry(number).or_default().insert(group.id);
            stale.insert(number);
        }
        self.numbers_of.insert(group.id, numbers);
    }

    fn plan_numbers(&mut self, mut stale: BTreeSet<GroupId>, edits: &mut BTreeMap<SwitchId, Edit>) {
        for number in &stale {
            if self.carriers.get(number).is_some_and(BTreeSet::is_empty) {
                self.carriers.remove(number);
            }
        }
        let is_wanted = |n: &GroupId| self.carriers.contains_key(n) || *n == GroupId::BROADCAST;
        let known = self.mgids.contains_key(&GroupId::BROADCAST);
        if !known
            || stale
                .iter()
                .any(|n| is_wanted(n) != self.mgids.contains_key(n))
        {
            let wanted = self.carriers.keys().copied().chain([GroupId::BROADCAST]);
            let after = allocate_mgids(wanted).expect("numbers are no more than there is room for");
            let before = std::mem::replace(&mut self.mgids, after);
            stale.extend(
                before
                    .iter()
                    .filter(|(n, m)| self.mgids.get(n) != Some(m))
                    .map(|e| e.0),
            );
            stale.extend(self.mgids.keys().filter(|n| !before.contains_key(n)));
        }
        for number in stale {
            let old = self.planned.remove(&number);
            let new = self.plan_number(number);
            self.edit_number(number, old.as_ref(), new.as_ref(), edits);
            if let Some(new) = new {
                self.planned.insert(number, new);
            }
        }
    }

    fn plan_number(&self, number: GroupId) -> Option<Number> {
        let mgid = *self.mgids.get(&number)?;
        let union;
        let members = if number == GroupId::BROADCAST {
            &self.everyone
        } else {
            let carriers = self.carriers[&number].iter();
            union = carriers
                .flat_map(|group| &self.groups[group].members)
                .copied()
                .collect();
            &union
        };
        let copies = match self.along(number) {
            Along::Spanning => {
                let trees = self.trees.iter();
                trees.flat_map(|tree| tree.copies(members)).collect()
            }
            Along::Own(least) => {
                let members: Vec<HostId> = members.iter().copied().collect();
                let parts = self.parts.iter().zip(&self.trees);
                let own = |(part, tree): (&Part, &GroupTree)| {
                    let ports = own_ports(part, &members, least, number).into_iter();
                    let copies = ports.map(|(at, ports)| (at, tree.copies_at(at, &ports)));
                    copies.collect::<Vec<_>>()
                };
                parts.flat_map(own).collect()
            }
        };
        Some(Number { mgid, copies })
    }

    fn edit_number(
        &self,
        number: GroupId,
        old: Option<&Number>,
        new: Option<&Number>,
        edits: &mut BTreeMap<SwitchId, Edit>,
    ) {
        for &switch in self.switches.keys() {
            let had = old.and_then(|old| old.at(switch));
            let has = new.and_then(|new| new.at(switch));
            if had == has {
                continue;
            }
            let edit = edits.entry(switch).or_default();
            if let Some((mgid, _)) = had {
                edit.gone
                    .insert(Place::Entry(group_entry(number, mgid).key));
                edit.gone.insert(Place::Group(mgid));
            }
            if let Some((mgid, copies)) = has {
                let TableEntry { key, action } = group_entry(number, mgid);
                edit.multicast.insert(mgid, copies.clone());
                edit.entries.insert(key, action);
            }
        }
    }

    fn plan_class_d(&mut self, edits: &mut BTreeMap<SwitchId, Edit>) {
        let addresses = self.groups.values().filter_map(|group| group.class_d);
        let entries = class_d_entries(addresses, &self.class_d);
        let after: BTreeMap<_, _> = entries.map(|entry| (entry.key, entry.action)).collect();
        let before = std::mem::replace(&mut self.class_d_entries, after.clone());
        let gone: Vec<&EntryKey> = before
            .iter()
            .filter(|(key, action)| after.get(*key) != Some(action))
            .map(|e| e.0)
            .collect();
        let new: Vec<_> = after
            .iter()
            .filter(|(key, action)| before.get(*key) != Some(action))
            .collect();
        if gone.is_empty() && new.is_empty() {
            return;
        }
        for &switch in self.switches.keys() {
            let edit = edits.entry(switch).or_default();
            edit.gone
                .extend(gone.iter().map(|&key| Place::Entry(key.clone())));
            edit.entries.extend(
                new.iter()
                    .map(|&(key, action)| (key.clone(), action.clone())),
            );
        }
    }

    /// Edits one switch; returns where it differs. States before it stay: they may be on their way
    /// to the switches.
    fn apply(&mut self, switch: SwitchId, edit: Edit) -> Vec<Place> {
        let state = Arc::make_mut(
            self.switches
                .get_mut(&switch)
                .expect("edits are of switches"),
        );
        for place in &edit.gone {
            match place {
                Place::Entry(key) => _ = state.entries.remove(key),
                Place::Group(mgid) => _ = state.multicast.remove(mgid),
                Place::Default(_) | Place::Rate(_) => {}
            }
        }
        let mut touched = edit.gone;
        touched.extend(edit.entries.keys().cloned().map(Place::Entry));
        touched.extend(edit.multicast.keys().copied().map(Place::Group));
        edit.entries
            .into_iter()
            .for_each(|(key, action)| state.add(TableEntry { key, action }));
        state.multicast.extend(edit.multicast);
        touched.into_iter().collect()
    }
}

/// What TREE worms need in a switch of that size, if no links of it are parallel.
fn sized_state(ports: u16, switching: Switching) -> SwitchState {
    let mut state = SwitchState::default();
    tree_set_entries(ports).for_each(|entry| state.add(entry));
    let default = tree_set_default(ports);
    state.defaults.insert(default.table, default.action);
    state.multicast = tree_set_groups(ports, &Neighbours::default())
        .chain(hold_groups(switching, ports))
        .collect();
    state
}
