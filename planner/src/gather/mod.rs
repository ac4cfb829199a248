//! Which ACKs switches gather (wire/SPEC.md §3.2), and the entries for it, kept from plan to plan.
//!
//! An origin that finds no room at one switch goes by hosts alone. Slots stay as long as their tree has the
//! switch. A group takes a new epoch whenever any of its entries changes.

pub(crate) mod tree;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use wormcast_wire::{GroupId, HostId, PortId, SchemeName, SwitchId};

use crate::gather::tree::{End, GatherTree, Gatherer};
use crate::model::agent::{AgentGroup, Gathered};
use crate::model::groups::Group;
use crate::model::hosts::Shortfall;
use crate::model::ids::{
    GATHER_BRANCHES_MAX, GATHER_ENTRIES_MAX, GATHER_SLOTS, GATHER_SOURCE_FIRST, GATHER_SOURCE_LAST,
};
use crate::model::state::{Action, EntryKey, KeyFields, MatchValue, Place, SwitchState, action};
use crate::order::parts::Part;
use crate::switch_plan::replication::GroupTree;
use crate::switch_plan::trees::ports_to_members;

/// By which switches gather ACKs.
pub const TABLE_GATHER: &str = "ingress.gather";

const SCATTERED: &str = "links that are up do not join all members";
const HOSTS_COPY: &str = "no message of the group is copied by switches";
const NO_EPOCH: &str = "no number is left, or can be stored, by which switches tell this plan of the group from others";

type Entries = BTreeMap<(SwitchId, EntryKey), Arc<Action>>;

/// One group as it is planned.
#[derive(Clone, Debug, Default)]
struct Planned {
    epoch: u32,
    /// Of the members that take part.
    tree: Option<GatherTree>,
    /// Slots of each origin that is gathered, by switch.
    slots: BTreeMap<HostId, BTreeMap<SwitchId, u16>>,
    entries: Entries,
    /// Why the others are not.
    by_hosts: BTreeMap<HostId, Cow<'static, str>>,
    gathered: Option<Gathered>,
}

/// What of a switch is taken.
#[derive(Clone, Debug, Default)]
struct Taken {
    slots: BTreeSet<u16>,
    entries: usize,
}

/// Numbers by which a group's plans are told apart.
#[derive(Clone, Debug)]
struct Epochs {
    /// An earlier life of this planner may have taken those before.
    first: u32,
    next: u32,
    /// Not this one, nor any after it.
    end: u32,
    /// The plan in the making has taken one.
    is_taken: bool,
}

/// Keeps the last plan of gathered ACKs, and changes it.
#[derive(Clone, Debug)]
pub(crate) struct GatherPlanner {
    groups: BTreeMap<GroupId, Planned>,
    taken: BTreeMap<SwitchId, Taken>,
    epochs: Epochs,
    /// Where entries are other than the switches were last given; none: it goes.
    edits: BTreeMap<(SwitchId, EntryKey), Option<Arc<Action>>>,
    /// Room, or epochs, have come since groups that lack it were planned.
    has_freed: bool,
}

impl Default for GatherPlanner {
    fn default() -> GatherPlanner {
        GatherPlanner {
            groups: BTreeMap::new(),
            taken: BTreeMap::new(),
            epochs: Epochs {
                first: 1,
                next: 1,
                end: u32::MAX,
                is_taken: false,
            },
            edits: BTreeMap::new(),
            has_freed: false,
        }
    }
}

/// Connected parts with the tree of each.
pub(crate) type Spans<'p> = Vec<(&'p Part, &'p GroupTree)>;

impl GatherPlanner {
    /// Epochs that may be taken from now on. Groups with an epoch before the first need another; whether
    /// there are any.
    pub(crate) fn set_epochs(&mut self, first: u32, end: u32) -> bool {
        self.epochs = Epochs {
            first,
            next: self.epochs.next.max(first),
            end,
            is_taken: false,
        };
        self.has_freed = true; // groups may have waited for an epoch
        let mut planned = self.groups.values();
        planned.any(|planned| planned.gathered.is_some() && planned.epoch < first)
    }

    /// The epoch that the next plan takes, if it takes one.
    pub(crate) fn next_epoch(&self) -> u32 {
        self.epochs.next
    }

    /// Plans a group over those that take part in it; `advertised` is what else they have of it.
    pub(crate) fn plan(
        &mut self,
        spans: &Spans<'_>,
        group: &Group,
        advertised: &AgentGroup,
    ) -> Option<Gathered> {
        if !group.gather || advertised.members.len() < 2 {
            self.forget(group.id);
            return None;
        }
        let tree = match find_tree(spans, group, advertised) {
            Ok(tree) => tree,
            Err(reason) => {
                self.refuse(group.id, &advertised.members, reason);
                return None;
            }
        };
        let before = self.groups.remove(&group.id).unwrap_or_default();
        let is_same = before.tree.as_ref() == Some(&tree)
            && before.epoch >= self.epochs.first
            && (before.by_hosts.is_empty() || !self.has_freed);
        let planned = if is_same {
            before
        } else {
            self.plan_anew(group.id, &advertised.members, tree, before)
        };
        let gathered = planned.gathered.clone();
        self.groups.insert(group.id, planned);
        gathered
    }

    fn plan_anew(
        &mut self,
        group: GroupId,
        members: &[HostId],
        tree: GatherTree,
        before: Planned,
    ) -> Planned {
        for (switch, _) in before.entries.keys() {
            self.taken.entry(*switch).or_default().entries -= 1;
        }
        for (origin, slots) in &before.slots {
            if members.binary_search(origin).is_err() {
                self.give_back(slots);
            }
        }
        let mut planned = Planned::default();
        let mut gathered = BTreeMap::new();
        let nowhere = BTreeMap::new();
        for &origin in members {
            let old = before.slots.get(&origin).unwrap_or(&nowhere);
            let gatherers = tree.towards(origin);
            match self.take_slots(&gatherers, old) {
                Ok(slots) => {
                    let source = source_of(tree.switch_of(origin)).expect("its slots were taken");
                    gathered.insert(origin, source);
                    for gatherer in &gatherers {
                        let slot = slots[&gatherer.switch];
                        planned
                            .entries
                            .extend(entries(group, origin, slot, gatherer));
                    }
                    planned.slots.insert(origin, slots);
                }
                Err(reason) => _ = planned.by_hosts.insert(origin, reason.into()),
            }
        }
        for (origin, old) in &before.slots {
            if members.binary_search(origin).is_ok() {
                let now = planned.slots.get(origin).unwrap_or(&nowhere);
                let left = old.iter().filter(|(at, slot)| now.get(at) != Some(slot));
                self.give_back(&left.map(|(&at, &slot)| (at, slot)).collect());
            }
        }
        let same = |(key, action): (&(SwitchId, EntryKey), &Arc<Action>)| {
            let old = before.entries.get(key);
            old.is_some_and(|old| **old == with_epoch(action, before.epoch))
        };
        // Every member is behind a branch for every other: equal entries have equal members.
        let is_same = before.epoch >= self.epochs.first
            && planned.entries.len() == before.entries.len()
            && planned.entries.iter().all(same);
        let epoch = if is_same {
            Some(before.epoch)
        } else if planned.entries.is_empty() {
            None
        } else {
            self.epochs.take()
        };
        planned.tree = Some(tree);
        match epoch {
            Some(epoch) => {
                planned.epoch = epoch;
                for action in planned.entries.values_mut() {
                    *action = Arc::new(with_epoch(action, epoch));
                }
                planned.gathered = (!gathered.is_empty()).then_some(Gathered {
                    epoch,
                    origins: gathered,
                });
            }
            None => {
                for slots in std::mem::take(&mut planned.slots).values() {
                    self.give_back(slots);
                }
                for (switch, _) in std::mem::take(&mut planned.entries).keys() {
                    self.taken.entry(*switch).or_default().entries -= 1;
                }
                for origin in gathered.into_keys() {
                    planned.by_hosts.insert(origin, NO_EPOCH.into());
                }
            }
        }
        self.has_freed |= !is_same && !before.entries.is_empty();
        self.edit(&before.entries, &planned.entries);
        planned
    }

    /// Takes a slot at each of these switches, the old one where it has one, or none at all.
    fn take_slots(
        &mut self,
        gatherers: &[Gatherer<'_>],
        old: &BTreeMap<SwitchId, u16>,
    ) -> Result<BTreeMap<SwitchId, u16>, String> {
        let mut slots = BTreeMap::new();
        for gatherer in gatherers {
            let switch = gatherer.switch;
            source_of(switch)?;
            let count = gatherer.branches.len();
            if count > GATHER_BRANCHES_MAX {
                return Err(format!(
                    "switch {switch} would gather {count} branches; at most {GATHER_BRANCHES_MAX}"
                ));
            }
            let taken = self.taken.entry(switch).or_default();
            let slot = match old.get(&switch) {
                Some(&slot) => slot,
                None => taken.free_slot().ok_or_else(|| {
                    format!("switch {switch} gathers for {GATHER_SLOTS} origins already, the most it can")
                })?,
            };
            let entries = taken.entries + gatherer.entries();
            if entries > GATHER_ENTRIES_MAX {
                return Err(format!(
                    "switch {switch} would have {entries} entries of gathered ACKs; at most {GATHER_ENTRIES_MAX}"
                ));
            }
            slots.insert(switch, slot);
        }
        for gatherer in gatherers {
            let taken = self.taken.entry(gatherer.switch).or_default();
            taken.slots.insert(slots[&gatherer.switch]);
            taken.entries += gatherer.entries();
        }
        Ok(slots)
    }

    fn give_back(&mut self, slots: &BTreeMap<SwitchId, u16>) {
        for (switch, slot) in slots {
            self.taken.entry(*switch).or_default().slots.remove(slot);
        }
        self.has_freed |= !slots.is_empty();
    }

    /// Only these groups are there.
    pub(crate) fn keep(&mut self, is_there: impl Fn(GroupId) -> bool) {
        let groups = self.groups.keys().copied();
        let gone: Vec<GroupId> = groups.filter(|group| !is_there(*group)).collect();
        gone.into_iter().for_each(|group| self.forget(group));
    }

    /// The group is gone, or gathers no more.
    pub(crate) fn forget(&mut self, group: GroupId) {
        let Some(before) = self.groups.remove(&group) else {
            return;
        };
        for slots in before.slots.values() {
            self.give_back(slots);
        }
        for (switch, _) in before.entries.keys() {
            self.taken.entry(*switch).or_default().entries -= 1;
        }
        self.edit(&before.entries, &Entries::new());
    }

    /// None of its members is gathered, for one reason.
    fn refuse(&mut self, group: GroupId, members: &[HostId], reason: Cow<'static, str>) {
        self.forget(group);
        let reason = |&member| (member, reason.clone());
        let refused = Planned {
            by_hosts: members.iter().map(reason).collect(),
            ..Planned::default()
        };
        self.groups.insert(group, refused);
    }

    fn edit(&mut self, before: &Entries, after: &Entries) {
        for place in before.keys().filter(|place| !after.contains_key(place)) {
            self.edits.insert(place.clone(), None);
        }
        for (place, action) in after {
            if before.get(place) != Some(action) {
                self.edits.insert(place.clone(), Some(action.clone()));
            }
        }
    }

    /// Groups with origins that found no room, if there may be some now.
    pub(crate) fn waiting(&mut self) -> Vec<GroupId> {
        if !self.has_freed {
            return Vec::new();
        }
        let waits = |(_, planned): &(&GroupId, &Planned)| {
            planned.tree.is_some() && !planned.by_hosts.is_empty()
        };
        let waiting = self.groups.iter().filter(waits);
        waiting.map(|(&group, _)| group).collect()
    }

    /// Origins whose ACKs come by hosts alone, and why; groups by id.
    pub(crate) fn by_hosts(&self) -> Vec<Shortfall> {
        let of = |(&group, planned): (&GroupId, &Planned)| {
            let hosts = planned.by_hosts.iter();
            let short = hosts.map(move |(&host, reason)| Shortfall {
                group,
                host,
                reason: reason.clone(),
            });
            short.collect::<Vec<_>>()
        };
        self.groups.iter().flat_map(of).collect()
    }

    /// Switches hold nothing of it any more.
    pub(crate) fn forget_switches(&mut self) {
        self.edits.clear();
        let entries = self
            .groups
            .values()
            .flat_map(|planned| planned.entries.iter());
        let all = entries.map(|(place, action)| (place.clone(), Some(action.clone())));
        self.edits.extend(all);
    }

    /// Ends a plan: makes switches hold what it has, and gives where they differ from before.
    pub(crate) fn apply(
        &mut self,
        states: &mut BTreeMap<SwitchId, Arc<SwitchState>>,
    ) -> BTreeMap<SwitchId, Vec<Place>> {
        self.epochs.end_plan();
        self.has_freed = false;
        let mut touched: BTreeMap<SwitchId, Vec<Place>> = BTreeMap::new();
        for ((switch, key), action) in std::mem::take(&mut self.edits) {
            let Some(state) = states.get_mut(&switch) else {
                continue; // it is not planned, and keeps what it has
            };
            let entries = &mut Arc::make_mut(state).entries;
            match action {
                Some(action) => _ = entries.insert(key.clone(), action),
                None => _ = entries.remove(&key),
            }
            touched.entry(switch).or_default().push(Place::Entry(key));
        }
        touched
    }
}

impl Epochs {
    /// One for all groups that a plan changes.
    fn take(&mut self) -> Option<u32> {
        self.is_taken |= self.next < self.end;
        (self.next < self.end).then_some(self.next)
    }

    fn end_plan(&mut self) {
        self.next += u32::from(std::mem::take(&mut self.is_taken));
    }
}

impl Taken {
    fn free_slot(&self) -> Option<u16> {
        let mut next = 0;
        for &slot in &self.slots {
            if slot > next {
                break;
            }
            next = slot + 1;
        }
        (next < GATHER_SLOTS).then_some(next)
    }
}

impl Gatherer<'_> {
    /// How many it needs: one for each port.
    fn entries(&self) -> usize {
        let branches = self.branches.iter();
        branches.map(|branch| branch.ports.iter().count()).sum()
    }
}

/// The tree of all members, or why there is none.
fn find_tree(
    spans: &Spans<'_>,
    group: &Group,
    advertised: &AgentGroup,
) -> Result<GatherTree, Cow<'static, str>> {
    let copied = [SchemeName::Switch, SchemeName::Table, SchemeName::Broadcast];
    let mut structures = advertised.structures.iter();
    if !structures.any(|structure| copied.contains(&structure.scheme)) {
        return Err(HOSTS_COPY.into());
    }
    let joins = |(part, _): &&(&Part, &GroupTree)| {
        let mut members = advertised.members.iter();
        members.all(|member| part.topology.host(*member).is_ok())
    };
    let &(part, along) = spans.iter().find(joins).ok_or(SCATTERED)?;
    let hosts = spans.iter().flat_map(|(part, _)| part.topology.hosts());
    if let Some(host) = hosts.map(|host| host.id.0).max()
        && host >= GATHER_SOURCE_FIRST
    {
        return Err(format!(
            "host {host} has a number that switches take in gathered ACKs, {GATHER_SOURCE_FIRST} to {GATHER_SOURCE_LAST}"
        )
        .into());
    }
    let turn = advertised.number.unwrap_or(group.id);
    let ports = ports_to_members((part, along), group, &advertised.members, turn);
    Ok(GatherTree::new((part, along), &advertised.members, &ports))
}

/// The number by which a switch names itself to the next one.
fn source_of(switch: SwitchId) -> Result<u16, String> {
    let most = GATHER_SOURCE_LAST - GATHER_SOURCE_FIRST;
    if switch.0 <= most {
        Ok(GATHER_SOURCE_FIRST + switch.0)
    } else {
        Err(format!(
            "switch {switch} has no number for gathered ACKs; switches 0 to {most} have one"
        ))
    }
}

/// What a switch needs to know for an origin, without an epoch.
fn entries(group: GroupId, origin: HostId, slot: u16, gatherer: &Gatherer<'_>) -> Entries {
    let named = source_of(gatherer.switch).expect("its slot was taken");
    let last = gatherer.branches.len() as u128 - 1;
    let mut entries = Entries::new();
    for (number, branch) in gatherer.branches.iter().enumerate() {
        let from = match branch.to {
            End::Host(host) => host.0,
            End::Switch(switch) => source_of(switch).expect("its slot was taken"),
        };
        let action = action(
            "ingress.gather_branch",
            &[
                ("as", named.into()),
                ("branch", number as u128),
                ("epoch", 0),
                ("from", from.into()),
                ("last", last),
                ("slot", slot.into()),
                ("up", gatherer.up.get().into()),
            ],
        );
        for port in branch.ports.iter() {
            let key = key(group, origin, port);
            entries.insert((gatherer.switch, key), action.clone());
        }
    }
    entries
}

fn key(group: GroupId, origin: HostId, port: PortId) -> EntryKey {
    let matches = [
        ("group", group.0),
        ("origin", origin.0),
        ("port", port.get().into()),
    ];
    let exact = matches.map(|(field, value)| (field.into(), MatchValue::Exact(value.into())));
    Arc::new(KeyFields {
        table: TABLE_GATHER.into(),
        matches: exact.into(),
        priority: 0,
    })
}

/// Where a switch sends on what it gathers of a tree by a port.
pub(crate) fn gathered_up(
    state: Option<&Arc<SwitchState>>,
    (group, origin, port): (GroupId, HostId, PortId),
) -> Option<PortId> {
    let action = state?.entries.get(&key(group, origin, port))?;
    let up = action.parameters.iter().find(|(name, _)| name == "up")?.1;
    PortId::new(u8::try_from(up).ok()?)
}

fn with_epoch(entry: &Action, epoch: u32) -> Action {
    let mut entry = entry.clone();
    for (name, value) in &mut entry.parameters {
        if name == "epoch" {
            *value = epoch.into();
        }
    }
    entry
}
