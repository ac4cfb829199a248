//! Who may send to a group: everybody, or the ports of its members.
//!
//! Only numbers that a change concerns are made anew: there may be thousands, each with an entry for each member.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use wormcast_routing::topology::Topology;
use wormcast_wire::{GroupId, HostId, PortId, SwitchId};

use crate::guard::{Guard, INGRESS};
use crate::model::groups::Group;
use crate::model::ids::{GROUP_SENDERS_SIZE, PortSet};
use crate::model::state::{KeyFields, MatchValue, Place, SwitchState, TableEntry, action, exact};

pub(crate) const TABLE_OPEN_GROUPS: &str = "ingress.open_groups";
pub(crate) const TABLE_GROUP_SENDERS: &str = "ingress.group_senders";

/// The groups that carry a number of the switches, and whether each carries it by its address.
pub(crate) type Carriers = Vec<(Arc<Group>, bool)>;

/// Who may send to a number.
#[derive(Clone, Debug, PartialEq)]
enum Senders {
    Everybody,
    Members(BTreeMap<SwitchId, PortSet>),
}

/// What a number has in the plan before.
#[derive(Clone, Debug)]
struct Number {
    carriers: Carriers,
    senders: Senders,
}

/// Who may send to each number, as the switches have it.
#[derive(Clone, Debug)]
pub(crate) struct GroupGuard {
    /// Entries of members that a switch has room for.
    room: usize,
    /// Where hosts are, of switches that are planned and judge.
    places: BTreeMap<HostId, (SwitchId, PortId)>,
    edge: BTreeSet<SwitchId>,
    numbers: BTreeMap<GroupId, Number>,
    /// Switches without room for all members: there everybody may send to groups with members there.
    crowded: BTreeSet<SwitchId>,
    /// Switches hold nothing yet.
    is_new: bool,
}

impl Default for GroupGuard {
    fn default() -> GroupGuard {
        GroupGuard {
            room: GROUP_SENDERS_SIZE,
            places: BTreeMap::new(),
            edge: BTreeSet::new(),
            numbers: BTreeMap::new(),
            crowded: BTreeSet::new(),
            is_new: true,
        }
    }
}

impl GroupGuard {
    /// Switches have none of the entries any more.
    pub(crate) fn forget(&mut self) {
        let room = self.room;
        *self = GroupGuard {
            room,
            ..GroupGuard::default()
        };
    }

    /// Makes switches admit what hosts may send to the groups that carry these numbers; gives where they differ
    /// from before.
    pub(crate) fn change(
        &mut self,
        guard: &Guard,
        known: &Topology,
        mut carriers: BTreeMap<GroupId, Carriers>,
        states: &mut BTreeMap<SwitchId, Arc<SwitchState>>,
    ) -> BTreeMap<SwitchId, Vec<Place>> {
        if self.is_new && !guard.on {
            return BTreeMap::new(); // nothing is there, and nothing is wanted
        }
        let mut places = BTreeMap::new();
        if guard.on {
            let hosts = known.hosts().iter();
            let planned = hosts.filter(|host| states.contains_key(&host.switch));
            places.extend(planned.map(|host| (host.id, (host.switch, host.port))));
        } else {
            carriers.clear()
        }
        let mut anew = self.is_new || self.places != places;
        if anew {
            self.edge = places.values().map(|place| place.0).collect();
            self.places = places;
        }
        let mut before = std::mem::take(&mut self.numbers);
        let mut changed: BTreeMap<GroupId, (Option<Number>, Option<Number>)> = BTreeMap::new();
        for (number, carriers) in carriers {
            let is_open = |(group, by_address): &(Arc<Group>, bool)| {
                *by_address && !guard.closed.contains(&group.id)
            };
            let is_open = carriers.iter().any(is_open);
            let old = before.remove(&number);
            let is_same = |old: &Number| {
                let was_open = old.senders == Senders::Everybody;
                was_open == is_open && (is_open || are_same(&old.carriers, &carriers))
            };
            match old {
                Some(old) if !anew && is_same(&old) => _ = self.numbers.insert(number, old),
                old => {
                    let senders = if is_open {
                        Senders::Everybody
                    } else {
                        self.members(&carriers)
                    };
                    let new = Number { carriers, senders };
                    self.numbers.insert(number, new.clone());
                    changed.insert(number, (old, Some(new)));
                }
            }
        }
        changed.extend(
            before
                .into_iter()
                .map(|(number, old)| (number, (Some(old), None))),
        );
        let crowded = self.find_crowded();
        anew |= crowded != self.crowded;
        self.crowded = crowded;
        if std::mem::take(&mut self.is_new) || anew {
            self.write_all(states)
        } else {
            self.write(&changed, states)
        }
    }

    fn members(&self, carriers: &Carriers) -> Senders {
        let mut members: BTreeMap<SwitchId, PortSet> = BTreeMap::new();
        let all = carriers.iter().flat_map(|(group, _)| &group.members);
        for &(switch, port) in all.filter_map(|member| self.places.get(member)) {
            members.entry(switch).or_default().insert(port);
        }
        Senders::Members(members)
    }

    fn find_crowded(&self) -> BTreeSet<SwitchId> {
        let mut needed: BTreeMap<SwitchId, usize> = BTreeMap::new();
        for number in self.numbers.values() {
            if let Senders::Members(members) = &number.senders {
                for (switch, ports) in members {
                    *needed.entry(*switch).or_default() += ports.iter().count();
                }
            }
        }
        needed.retain(|_, needed| *needed > self.room);
        needed.into_keys().collect()
    }

    fn entries(&self, number: GroupId, senders: &Senders) -> Vec<(SwitchId, TableEntry)> {
        let open = |switch: &SwitchId| (*switch, open_entry(number));
        match senders {
            Senders::Everybody => self.edge.iter().map(open).collect(),
            Senders::Members(members) => {
                let of_switch = |(switch, ports): (&SwitchId, &PortSet)| {
                    if self.crowded.contains(switch) {
                        vec![open(switch)]
                    } else {
                        let ports = ports.iter();
                        ports
                            .map(|port| (*switch, sender_entry(port, number)))
                            .collect()
                    }
                };
                members.iter().flat_map(of_switch).collect()
            }
        }
    }

    fn write(
        &self,
        changed: &BTreeMap<GroupId, (Option<Number>, Option<Number>)>,
        states: &mut BTreeMap<SwitchId, Arc<SwitchState>>,
    ) -> BTreeMap<SwitchId, Vec<Place>> {
        let mut touched: BTreeMap<SwitchId, Vec<Place>> = BTreeMap::new();
        for (&number, (old, new)) in changed {
            let entries = |number_is: &Option<Number>| {
                let entries = number_is
                    .as_ref()
                    .map(|is| self.entries(number, &is.senders));
                let keyed = entries.into_iter().flatten();
                keyed
                    .map(|(switch, entry)| ((switch, entry.key), entry.action))
                    .collect::<BTreeMap<_, _>>()
            };
            let (old, new) = (entries(old), entries(new));
            for (switch, key) in old.keys().filter(|place| !new.contains_key(place)) {
                edit(states, *switch).entries.remove(key);
                touched
                    .entry(*switch)
                    .or_default()
                    .push(Place::Entry(key.clone()));
            }
            for ((switch, key), action) in new.iter().filter(|(place, _)| !old.contains_key(place))
            {
                edit(states, *switch)
                    .entries
                    .insert(key.clone(), action.clone());
                touched
                    .entry(*switch)
                    .or_default()
                    .push(Place::Entry(key.clone()));
            }
        }
        touched
    }

    /// The same, where anything may differ.
    fn write_all(
        &self,
        states: &mut BTreeMap<SwitchId, Arc<SwitchState>>,
    ) -> BTreeMap<SwitchId, Vec<Place>> {
        let mut wanted: BTreeMap<SwitchId, BTreeMap<_, _>> = BTreeMap::new();
        for (&number, is) in &self.numbers {
            for (switch, entry) in self.entries(number, &is.senders) {
                wanted
                    .entry(switch)
                    .or_default()
                    .insert(entry.key, entry.action);
            }
        }
        let mut touched = BTreeMap::new();
        for (&switch, state) in states {
            let wanted = wanted.remove(&switch).unwrap_or_default();
            let is_ours = |key: &&Arc<KeyFields>| is_of_groups(&key.table);
            let there: BTreeSet<_> = state.entries.keys().filter(is_ours).cloned().collect();
            let gone = there.iter().filter(|key| !wanted.contains_key(*key));
            let new = wanted.iter().filter(|(key, _)| !there.contains(*key));
            let (gone, new): (Vec<_>, Vec<_>) = (gone.collect(), new.collect());
            if gone.is_empty() && new.is_empty() {
                continue;
            }
            let keys = gone.iter().copied().chain(new.iter().map(|(key, _)| *key));
            touched.insert(switch, keys.cloned().map(Place::Entry).collect());
            let entries = &mut Arc::make_mut(state).entries;
            gone.into_iter().for_each(|key| _ = entries.remove(key));
            entries.extend(
                new.into_iter()
                    .map(|(key, action)| (key.clone(), action.clone())),
            );
        }
        touched
    }
}

fn edit(states: &mut BTreeMap<SwitchId, Arc<SwitchState>>, switch: SwitchId) -> &mut SwitchState {
    Arc::make_mut(states.get_mut(&switch).expect("hosts are of these"))
}

/// Whether the same groups carry a number.
fn are_same(before: &Carriers, after: &Carriers) -> bool {
    type Carrier = (Arc<Group>, bool);
    let same = |(old, new): (&Carrier, &Carrier)| Arc::ptr_eq(&old.0, &new.0) && old.1 == new.1;
    before.len() == after.len() && before.iter().zip(after).all(same)
}

/// Whether entries of this table are about groups.
pub(crate) fn is_of_groups(table: &str) -> bool {
    [TABLE_OPEN_GROUPS, TABLE_GROUP_SENDERS].contains(&table)
}

fn open_entry(number: GroupId) -> TableEntry {
    exact(
        TABLE_OPEN_GROUPS,
        "group",
        number.0,
        "ingress.group_open",
        &[],
    )
}

fn sender_entry(port: PortId, number: GroupId) -> TableEntry {
    let matches = [(INGRESS, port.get().into()), ("group", number.0)];
    let matches =
        matches.map(|(field, value): (_, u16)| (field.into(), MatchValue::Exact(value.into())));
    TableEntry {
        key: Arc::new(KeyFields {
            table: TABLE_GROUP_SENDERS.into(),
            matches: matches.into(),
            priority: 0,
        }),
        action: action("ingress.sender_known", &[]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::groups;
    use wormcast_routing::group::Scheme;

    fn group(id: u16, members: &[u16]) -> Arc<Group> {
        Arc::new(groups::tests::group(id, Scheme::Repeat, members))
    }

    /// Numbers that everybody may send to at switch 0, and how many entries of members it has.
    fn held(states: &BTreeMap<SwitchId, Arc<SwitchState>>) -> (Vec<u16>, usize) {
        let keys = states[&SwitchId(0)].entries.keys();
        let (mut open, mut members) = (Vec::new(), 0);
        for key in keys {
            match key.matches[..] {
                [(_, MatchValue::Exact(number))] => open.push(number as u16),
                _ => members += 1,
            }
        }
        (open, members)
    }

    #[test]
    fn a_switch_without_room_for_all_members_opens_their_groups() {
        let known = wormcast_routing::generate::from_spec("ring:3:2").expect("a topology");
        let hosts: Vec<u16> = known.hosts().iter().map(|host| host.id.0).collect();
        let mut guard = GroupGuard {
            room: 5,
            ..GroupGuard::default()
        };
        let on = Guard {
            on: true,
            ..Guard::default()
        };
        let mut states: BTreeMap<SwitchId, Arc<SwitchState>> = (known.switches().iter())
            .map(|switch| (switch.id, Arc::default()))
            .collect();
        let at_0: Vec<u16> = (known.hosts().iter())
            .filter(|host| host.switch == SwitchId(0))
            .map(|host| host.id.0)
            .collect();
        assert!(at_0.len() >= 2, "{hosts:?}");
        let two = group(1, &at_0[..2]);
        let mut change = |groups: &[&Arc<Group>]| {
            let carriers = groups
                .iter()
                .map(|group| (group.id, vec![((*group).clone(), false)]));
            let touched = guard.change(&on, &known, carriers.collect(), &mut states);
            (held(&states), touched.get(&SwitchId(0)).map_or(0, Vec::len))
        };
        let (three, four) = (group(2, &at_0[..2]), group(3, &at_0[..2]));
        assert_eq!(change(&[&two, &three]), ((vec![], 4), 4));
        assert_eq!(change(&[&two, &three]), ((vec![], 4), 0));
        assert_eq!(change(&[&two, &three, &four]), ((vec![1, 2, 3], 0), 7));
        assert_eq!(change(&[&two, &four]), ((vec![], 4), 7));
    }
}
