//! What the guard of each switch admits (wire/SPEC.md §7): by each port only what the plan of the host
//! behind it may send.
//!
//! A change first permits what is new, and takes away last what is not needed any more
//! ([`Stage::Permit`](crate::Stage), [`Stage::Revoke`](crate::Stage)). So a plan states what is needed by it
//! alone.

pub(crate) mod difference;
pub(crate) mod groups;
mod planner;
pub(crate) mod trees;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use wormcast_routing::group::{Scheme, SwitchMode};
use wormcast_routing::topology::{Host, Topology};
use wormcast_wire::worm::Kind;
use wormcast_wire::{GroupId, HostId, PortId, SWITCHES_CROSSED_MAX, SwitchId};

use crate::model::groups::{Group, GroupScheme};
use crate::model::ids::SOURCES_SIZE;
use crate::model::state::{
    Action, EntryKey, KeyFields, MatchValue, Place, SwitchState, TableDefault, TableEntry, action,
    exact,
};

/// What may enter by each port.
pub const TABLE_GUARD: &str = "ingress.guard";
pub(crate) const TABLE_SOURCES: &str = "ingress.sources";
/// Nothing is looked at. Default of a switch whose guard is off.
pub(crate) const ACTION_TRUST: &str = "ingress.trust_port";
/// A switch is behind the port.
pub(crate) const ACTION_LINK: &str = "ingress.link_port";
pub(crate) const ACTION_ADMIT: &str = "ingress.admit_host";
const ACTION_REFUSE: &str = "ingress.refuse_port";
pub(crate) const INGRESS: &str = "standard_metadata.ingress_port";

/// Bounds of routes that switches get: the least that holds all routes, so that it seldom changes.
const ROUTE_BOUNDS: [usize; 4] = [8, 16, 32, SWITCHES_CROSSED_MAX];

/// What the operator asks of the guard.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Guard {
    /// Whether switches judge what enters.
    pub on: bool,
    /// Groups with a class D address to which members alone may send. Groups of scheme `table` without one
    /// are closed in any case.
    pub closed: BTreeSet<GroupId>,
    /// Bytes a second that a host may send; others have no bound. Agents pace what they send, whether the guard is on
    /// or not. Worms in transit count at the switch, so hosts with a rate are to re-inject none.
    pub rates: BTreeMap<HostId, u64>,
}

/// What it follows from.
pub(crate) struct Needs<'p> {
    pub(crate) guard: &'p Guard,
    pub(crate) known: &'p Topology,
    pub(crate) agents: &'p BTreeSet<HostId>,
    pub(crate) groups: &'p BTreeMap<GroupId, Arc<Group>>,
    /// Hosts that may re-inject worms by some route.
    pub(crate) transit: BTreeSet<HostId>,
    /// Port bytes of the longest route that is not a TREE route.
    pub(crate) route_longest: usize,
    /// Bytes of the longest TREE route of each host.
    pub(crate) trees_longest: BTreeMap<HostId, u8>,
    /// Switches that send TREE worms back by the port that they came by: roots, where hosts send them by the root.
    pub(crate) hairpins: BTreeSet<SwitchId>,
}

/// The guard of one switch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Guarded {
    entries: BTreeMap<EntryKey, Arc<Action>>,
    rates: BTreeMap<PortId, u64>,
    on: bool,
}

/// The guards of these switches; none is the guard of a switch that admits everything.
pub(crate) fn plan(
    needs: &Needs<'_>,
    switches: impl Iterator<Item = SwitchId>,
) -> BTreeMap<SwitchId, Guarded> {
    let mut guards: BTreeMap<SwitchId, Guarded> = switches
        .map(|switch| (switch, Guarded::default()))
        .collect();
    if !needs.guard.on {
        return guards;
    }
    guards.values_mut().for_each(|guarded| guarded.on = true);
    for (switch, ports) in neighbours(needs.known) {
        if let Some(guarded) = guards.get_mut(&switch) {
            let may_hairpin = needs.hairpins.contains(&switch);
            for back in ports.values() {
                back.iter().for_each(|&port| {
                    guarded.add(link(port, if may_hairpin { &[] } else { back }))
                });
            }
        }
    }
    let kinds = kinds(needs);
    let sources: Vec<TableEntry> = source_entries(needs.agents, needs.known).collect();
    for host in needs.known.hosts() {
        let Some(guarded) = guards.get_mut(&host.switch) else {
            continue;
        };
        let transit = needs.transit.contains(&host.id) && needs.agents.contains(&host.id);
        let kinds = kinds.get(&host.id).copied().unwrap_or(0);
        let tree_max = needs.trees_longest.get(&host.id).copied().unwrap_or(0);
        guarded.add(admit(host, kinds, transit, (needs.route_bound(), tree_max)));
        if transit && !guarded.entries.contains_key(&sources[0].key) {
            sources.iter().cloned().for_each(|entry| guarded.add(entry));
        }
        if let Some(&rate) = needs.guard.rates.get(&host.id) {
            guarded.rates.insert(host.port, rate);
        }
    }
    guards
}

/// Makes a switch hold what it must in place of what it held before; gives where it differs.
pub(crate) fn apply(state: &mut Arc<SwitchState>, before: &Guarded, after: &Guarded) -> Vec<Place> {
    let mut touched = Vec::new();
    if before == after {
        return touched;
    }
    let state = Arc::make_mut(state);
    for key in before.entries.keys() {
        if !after.entries.contains_key(key) {
            state.entries.remove(key);
            touched.push(Place::Entry(key.clone()));
        }
    }
    for (key, action) in &after.entries {
        if before.entries.get(key) != Some(action) {
            state.entries.insert(key.clone(), action.clone());
            touched.push(Place::Entry(key.clone()));
        }
    }
    for &port in before.rates.keys().chain(after.rates.keys()) {
        match after.rates.get(&port) {
            Some(&rate) => _ = state.rates.insert(port, rate),
            None => _ = state.rates.remove(&port),
        }
        if before.rates.get(&port) != after.rates.get(&port) {
            touched.push(Place::Rate(port));
        }
    }
    if before.on != after.on {
        set_default(state, default(after.on));
        touched.push(Place::Default(TABLE_GUARD.into()));
        // What an entry permits beside what was there before depends on the default.
        touched.extend(after.entries.keys().cloned().map(Place::Entry));
    }
    touched
}

impl Needs<'_> {
    fn route_bound(&self) -> u16 {
        let holds = |bound: &&usize| **bound >= self.route_longest;
        let least = ROUTE_BOUNDS.iter().find(holds);
        *least.unwrap_or(&SWITCHES_CROSSED_MAX) as u16
    }
}

impl Guarded {
    fn add(&mut self, entry: TableEntry) {
        self.entries.insert(entry.key, entry.action);
    }
}

/// What happens to worms by ports without an entry.
pub(crate) fn default(on: bool) -> TableDefault {
    TableDefault {
        table: TABLE_GUARD.into(),
        action: action(if on { ACTION_REFUSE } else { ACTION_TRUST }, &[]),
    }
}

/// Sets what a table of a switch does on a miss. A guard that is off is left out, as in a switch that never had one.
pub fn set_default(state: &mut SwitchState, default: TableDefault) {
    let TableDefault { table, action } = default;
    if table == TABLE_GUARD && action.name == ACTION_TRUST {
        state.defaults.remove(&table);
    } else {
        state.defaults.insert(table, action);
    }
}

/// Whether the guard of a switch is on.
pub(crate) fn is_on(state: &SwitchState) -> bool {
    state.defaults.contains_key(TABLE_GUARD)
}

/// Ports by the switch that they lead to, of each switch.
fn neighbours(known: &Topology) -> BTreeMap<SwitchId, BTreeMap<SwitchId, Vec<PortId>>> {
    let mut found: BTreeMap<SwitchId, BTreeMap<SwitchId, Vec<PortId>>> = BTreeMap::new();
    for link in known.links() {
        for (at, port, to) in [(link.a, link.a_port, link.b), (link.b, link.b_port, link.a)] {
            found
                .entry(at)
                .or_default()
                .entry(to)
                .or_default()
                .push(port);
        }
    }
    found
}

/// A port to a switch, to which all of `back` lead.
fn link(port: PortId, back: &[PortId]) -> TableEntry {
    let bits = |half: u8| {
        let of_half = back
            .iter()
            .map(|port| port.get())
            .filter(|port| port / 128 == half);
        of_half.fold(0u128, |bits, port| bits | 1 << (port % 128))
    };
    let parameters = [("high", bits(1)), ("low", bits(0))];
    exact(
        TABLE_GUARD,
        INGRESS,
        port.get().into(),
        ACTION_LINK,
        &parameters,
    )
}

fn admit(host: &Host, kinds: u8, transit: bool, (route_max, tree_max): (u16, u8)) -> TableEntry {
    let may_tree = kinds & 1 << Kind::Tree as u8 != 0;
    let parameters = [
        ("host", host.id.0.into()),
        ("kinds", kinds.into()),
        ("route_max", if kinds == 0 { 0 } else { route_max.into() }),
        ("transit", transit.into()),
        ("tree_max", if may_tree { tree_max.into() } else { 0 }),
    ];
    exact(
        TABLE_GUARD,
        INGRESS,
        host.port.get().into(),
        ACTION_ADMIT,
        &parameters,
    )
}

/// Kinds of worms that agents send, bit k for kind k.
fn kinds(needs: &Needs<'_>) -> BTreeMap<HostId, u8> {
    let bit = |kind: Kind| 1 << kind as u8;
    // Every agent acknowledges.
    let every = needs.agents.iter().map(|&host| (host, bit(Kind::Unicast)));
    let mut kinds: BTreeMap<HostId, u8> = every.collect();
    for group in needs.groups.values() {
        // TREE in place of the others too: while the tree of switches changes, and where switches have
        // no room for a number.
        let more = match group.scheme {
            GroupScheme::Auto => bit(Kind::Tree),
            GroupScheme::One(Scheme::Switch(parameters)) => match parameters.mode {
                SwitchMode::Tree => bit(Kind::Tree),
                SwitchMode::Table => bit(Kind::Tree) | bit(Kind::Group),
                SwitchMode::Broadcast => bit(Kind::Tree) | bit(Kind::Broadcast),
            },
            GroupScheme::One(_) => 0,
        };
        let more = if group.gather && more != 0 {
            more | bit(Kind::Gather)
        } else {
            more
        };
        for member in &group.members {
            if let Some(kinds) = kinds.get_mut(member) {
                *kinds |= more;
            }
        }
    }
    kinds
}

/// Whose worms may be in transit: the agents that are somewhere.
fn source_entries(agents: &BTreeSet<HostId>, known: &Topology) -> impl Iterator<Item = TableEntry> {
    let located: BTreeSet<u16> = (known.hosts().iter())
        .filter(|host| agents.contains(&host.id))
        .map(|host| host.id.0)
        .collect();
    let mut blocks = blocks(&located);
    if blocks.len() > SOURCES_SIZE {
        blocks = vec![(0, 0)];
    }
    blocks.into_iter().map(|(value, mask)| TableEntry {
        key: Arc::new(KeyFields {
            table: TABLE_SOURCES.into(),
            matches: vec![(
                "source".into(),
                MatchValue::Ternary(value.into(), mask.into()),
            )],
            priority: 1,
        }),
        action: action("ingress.source_known", &[]),
    })
}

/// The fewest aligned blocks that hold these numbers and no other: value and mask of each, ascending.
fn blocks(numbers: &BTreeSet<u16>) -> Vec<(u16, u16)> {
    let mut blocks: Vec<(u16, u32)> = Vec::new();
    for &number in numbers {
        let mut block = (number, 1u32);
        // Two halves of a larger block are that block.
        while let Some(&(before, size)) = blocks.last()
            && size == block.1
            && u32::from(before) % (2 * size) == 0
            && u32::from(before) + size == u32::from(block.0)
        {
            blocks.pop();
            block = (before, 2 * size);
        }
        blocks.push(block);
    }
    let masked = |(value, size): (u16, u32)| (value, (0x1_0000 - size) as u16);
    blocks.into_iter().map(masked).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_hold_the_numbers_and_no_other() {
        let holds = |blocks: &[(u16, u16)]| -> BTreeSet<u16> {
            (0..=u16::MAX)
                .filter(|number| blocks.iter().any(|(value, mask)| number & mask == *value))
                .collect()
        };
        for (numbers, count) in [
            (vec![], 0),
            (vec![0], 1),
            (vec![1, 2], 2),
            ((0..8).collect(), 1),
            ((0..1000).collect(), 6),
            ((0..=u16::MAX).collect(), 1),
            (vec![3, 4, 5, 6, 7, 9, 65_534, 65_535], 4),
        ] {
            let numbers: BTreeSet<u16> = numbers.into_iter().collect();
            let found = blocks(&numbers);
            assert_eq!(holds(&found), numbers);
            assert_eq!(found.len(), count, "{found:?}");
        }
    }
}
