//! From the state a switch has to the state it must have, one safe step after another.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use wormcast_wire::PortId;

use crate::difference::update::{Entity, MulticastGroup, Operation, PortRate, Stage, Update};
use crate::gather::TABLE_GATHER;
use crate::guard::difference::is_of_guard;
use crate::guard::{self, TABLE_GUARD, is_on, set_default};
use crate::model::copies::Copies;
use crate::model::ids::{MGID_BROADCAST, MGID_GROUP_FIRST, Mgid};
use crate::model::state::{Action, EntryKey, Place, SwitchState, TableDefault, TableEntry};
use crate::switch_plan::entries::TABLE_PORT_ROLES;

/// Updates that turn `actual` into `desired`, by stage; empty when nothing differs.
///
/// Within a stage replication groups come before the entries that name them, and go after them.
/// Updates of a stage assume those of the stages before it. `within` is where the two may differ;
/// `None`: anywhere.
pub fn difference(
    desired: &SwitchState,
    actual: &SwitchState,
    within: Option<&[Place]>,
) -> Vec<Update> {
    let Places {
        groups,
        mut entries,
        rates,
    } = places(desired, actual, within);
    let (permit, revoke) = guard::difference::updates(desired, actual, &entries, &rates);
    entries.retain(|key| !is_of_guard(key));
    let mut found = Difference {
        desired,
        actual,
        updates: permit,
    };
    let left = found.shrink(&groups, &entries);
    found.grow(&left);
    found.retire(&left);
    found.updates.extend(revoke);
    found.updates
}

/// Where two states differ, the defaults of tables included, and entries that lead to a replication
/// group that differs: they go where it has to lose all of its ports.
pub(crate) fn differing(desired: &SwitchState, actual: &SwitchState) -> Vec<Place> {
    if desired == actual {
        return Vec::new();
    }
    let Places {
        mut groups,
        entries,
        mut rates,
    } = places(desired, actual, None);
    rates.retain(|port| desired.rates.get(port) != actual.rates.get(port));
    let turns = is_on(desired) != is_on(actual);
    groups.retain(|mgid| desired.multicast.get(mgid) != actual.multicast.get(mgid));
    let leads_there = |action: Option<&Arc<Action>>| {
        action.is_some_and(|action| mgid_of(action).is_some_and(|mgid| groups.contains(&mgid)))
    };
    let differs = |key: &&EntryKey| {
        let (wanted, there) = (desired.entries.get(*key), actual.entries.get(*key));
        // What an entry of the guard permits beside what was there before depends on the default.
        wanted != there || leads_there(there) || turns && is_of_guard(key)
    };
    let entries = entries.into_iter().filter(differs);
    let entries: Vec<Place> = entries.map(|key| Place::Entry(key.clone())).collect();
    let defaults = (desired.defaults.iter())
        .filter(|(table, action)| {
            *table != TABLE_GUARD && actual.defaults.get(*table) != Some(action)
        })
        .map(|(table, _)| Place::Default(table.clone()));
    let defaults = defaults.chain(turns.then(|| Place::Default(TABLE_GUARD.into())));
    let groups = groups.into_iter().map(Place::Group);
    let rates = rates.into_iter().map(Place::Rate);
    groups.chain(entries).chain(defaults).chain(rates).collect()
}

#[derive(Default)]
struct Places<'s> {
    groups: BTreeSet<Mgid>,
    entries: BTreeSet<&'s EntryKey>,
    rates: BTreeSet<PortId>,
}

fn places<'s>(
    desired: &'s SwitchState,
    actual: &'s SwitchState,
    within: Option<&'s [Place]>,
) -> Places<'s> {
    let Some(within) = within else {
        let groups = desired.multicast.keys().chain(actual.multicast.keys());
        let entries = desired.entries.keys().chain(actual.entries.keys());
        let rates = desired.rates.keys().chain(actual.rates.keys());
        return Places {
            groups: groups.copied().collect(),
            entries: entries.collect(),
            rates: rates.copied().collect(),
        };
    };
    let mut found = Places::default();
    for place in within {
        match place {
            Place::Group(mgid) => _ = found.groups.insert(*mgid),
            Place::Entry(key) => _ = found.entries.insert(key),
            Place::Rate(port) => _ = found.rates.insert(*port),
            Place::Default(_) => {}
        }
    }
    found
}

struct Difference<'s> {
    desired: &'s SwitchState,
    actual: &'s SwitchState,
    updates: Vec<Update>,
}

/// What is at each place after stage SHRINK.
struct Left<'s> {
    groups: BTreeMap<Mgid, Option<Cow<'s, Copies>>>,
    entries: BTreeMap<&'s EntryKey, Option<&'s Arc<Action>>>,
}

impl<'s> Difference<'s> {
    /// Takes away the ports a group must not keep; where none stay, what leads to it: a group
    /// without ports is not universally accepted. Says which neighbour each port leads to: worms
    /// that come from it do not go back there, so its neighbour may begin to send by another link.
    fn shrink(&mut self, groups: &BTreeSet<Mgid>, entries: &BTreeSet<&'s EntryKey>) -> Left<'s> {
        let mut emptied = BTreeSet::new();
        let mut left = Left {
            groups: BTreeMap::new(),
            entries: BTreeMap::new(),
        };
        for &mgid in groups {
            let there = self.actual.multicast.get(&mgid);
            left.groups.insert(mgid, there.map(Cow::Borrowed));
            let Some(there) = there.filter(|_| is_tree(mgid)) else {
                continue;
            };
            let wanted = self.desired.multicast.get(&mgid);
            let kept = wanted.map_or_else(Copies::default, |wanted| there.kept(wanted));
            if kept == *there {
                continue;
            }
            if !kept.is_empty() {
                self.group(Stage::Shrink, Operation::Modify, mgid, &kept);
                left.groups.insert(mgid, Some(Cow::Owned(kept)));
            } else if mgid == MGID_BROADCAST {
                // No entry leads to it.
                self.group(Stage::Shrink, Operation::Delete, mgid, there);
                left.groups.insert(mgid, None);
            } else {
                emptied.insert(mgid);
            }
        }
        for &key in entries {
            let mut action = self.actual.entries.get(key);
            if let Some(there) = action
                && mgid_of(there).is_some_and(|m| emptied.contains(&m) && !self.keeps_ports(key, m))
            {
                self.entry(Stage::Shrink, Operation::Delete, key, there);
                action = None;
            }
            let wanted = self.desired.entries.get(key);
            // By what gathers ACKs worms leave a switch. It goes here and comes in GROW, so no ACK meets ways
            // of an old and of a new order.
            if let Some(there) =
                action.filter(|there| key.table == TABLE_GATHER && wanted != Some(there))
            {
                self.entry(Stage::Shrink, Operation::Delete, key, there);
                action = None;
            }
            if let Some(wanted) = wanted.filter(|_| key.table == TABLE_PORT_ROLES)
                && action != Some(wanted)
            {
                let operation = insert_or_modify(action.is_none());
                self.entry(Stage::Shrink, operation, key, wanted);
                action = Some(wanted);
            }
            left.entries.insert(key, action);
        }
        left
    }

    /// Whether an entry whose group goes will lead to another that holds all its ports.
    fn keeps_ports(&self, key: &EntryKey, mgid: Mgid) -> bool {
        let moved = self
            .desired
            .entries
            .get(key)
            .and_then(|after| mgid_of(after));
        moved.filter(|&moved| moved != mgid).is_some_and(|moved| {
            let after = self.desired.multicast.get(&moved);
            after.is_some_and(|after| self.actual.multicast[&mgid].lead_within(after))
        })
    }

    fn grow(&mut self, left: &Left<'s>) {
        for (&mgid, there) in &left.groups {
            if let Some(wanted) = self.desired.multicast.get(&mgid)
                && there.as_deref() != Some(wanted)
                && !there
                    .as_deref()
                    .is_some_and(|there| wanted.lack_backups_of(there))
            {
                self.group(Stage::Grow, insert_or_modify(there.is_none()), mgid, wanted);
            }
        }
        for (key, there) in &left.entries {
            if let Some(wanted) = self.desired.entries.get(*key)
                && *there != Some(wanted)
                && !self.takes_backups_away(*there, wanted)
            {
                self.entry(Stage::Grow, insert_or_modify(there.is_none()), key, wanted);
            }
        }
        for (table, action) in &self.desired.defaults {
            if *table != TABLE_GUARD && self.actual.defaults.get(table) != Some(action) {
                let default = TableDefault {
                    table: table.clone(),
                    action: action.clone(),
                };
                self.write(Stage::Grow, Operation::Modify, Entity::Default(default));
            }
        }
    }

    fn retire(&mut self, left: &Left<'s>) {
        for (key, there) in &left.entries {
            let Some(there) = *there else { continue };
            match self.desired.entries.get(*key) {
                None => self.entry(Stage::Retire, Operation::Delete, key, there),
                Some(wanted) if self.takes_backups_away(Some(there), wanted) => {
                    self.entry(Stage::Retire, Operation::Modify, key, wanted);
                }
                Some(_) => {}
            }
        }
        for (&mgid, there) in &left.groups {
            let Some(there) = there.as_deref() else {
                continue;
            };
            match self.desired.multicast.get(&mgid) {
                None => self.group(Stage::Retire, Operation::Delete, mgid, there),
                Some(wanted) if wanted.lack_backups_of(there) => {
                    self.group(Stage::Retire, Operation::Modify, mgid, wanted);
                }
                Some(_) => {}
            }
        }
    }

    /// Whether an entry leads to a replication group for the sake of its backups, and will no more.
    fn takes_backups_away(&self, there: Option<&Arc<Action>>, wanted: &Arc<Action>) -> bool {
        let leads = there.and_then(|there| mgid_of(there));
        leads.is_some_and(|mgid| !is_tree(mgid)) && mgid_of(wanted).is_none()
    }

    fn group(&mut self, stage: Stage, operation: Operation, mgid: Mgid, copies: &Copies) {
        let copies = copies.clone();
        self.write(
            stage,
            operation,
            Entity::Group(MulticastGroup { mgid, copies }),
        );
    }

    fn entry(&mut self, stage: Stage, operation: Operation, key: &EntryKey, action: &Arc<Action>) {
        let entry = TableEntry {
            key: key.clone(),
            action: action.clone(),
        };
        self.write(stage, operation, Entity::Entry(entry));
    }

    fn write(&mut self, stage: Stage, operation: Operation, entity: Entity) {
        self.updates.push(Update {
            stage,
            operation,
            entity,
        });
    }
}

fn insert_or_modify(is_new: bool) -> Operation {
    if is_new {
        Operation::Insert
    } else {
        Operation::Modify
    }
}

/// Whether worms are copied along a tree of switches by this group. Others copy where a route says.
fn is_tree(mgid: Mgid) -> bool {
    mgid == MGID_BROADCAST || mgid.0 >= MGID_GROUP_FIRST
}

/// The replication group an action leads to.
pub fn mgid_of(action: &Action) -> Option<Mgid> {
    let found = action.parameters.iter().find(|(name, _)| name == "mgid");
    found.and_then(|&(_, value)| u16::try_from(value).ok().map(Mgid))
}

/// What a switch does with an update it accepted: the shadow of a real one, the whole of a fake
/// one.
pub fn execute(update: &Update, state: &mut SwitchState) {
    let deletes = update.operation == Operation::Delete;
    match &update.entity {
        Entity::Group(group) if deletes => _ = state.multicast.remove(&group.mgid),
        Entity::Group(group) => _ = state.multicast.insert(group.mgid, group.copies.clone()),
        Entity::Entry(entry) if deletes => _ = state.entries.remove(&entry.key),
        Entity::Entry(entry) => {
            state
                .entries
                .insert(entry.key.clone(), entry.action.clone());
        }
        Entity::Default(default) => set_default(state, default.clone()),
        Entity::Rate(PortRate { port, bytes }) => match bytes {
            Some(bytes) => _ = state.rates.insert(*port, *bytes),
            None => _ = state.rates.remove(port),
        },
    }
}
