//! A model of the switches, from p4src/CONTRACT.md alone: tables in, deliveries out; and a switch
//! that executes updates.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::Ipv4Addr;
use std::sync::Arc;

use wormcast_planner::{
    Action, Entity, KeyFields, MatchValue, Mgid, Operation, Replica, SwitchState, Update, execute,
    mgid_of,
};
use wormcast_routing::topology::{Attachment, Host, Topology};
use wormcast_wire::worm::Kind;
use wormcast_wire::{GroupId, HostId, PortId, SWITCHES_CROSSED_MAX, SwitchId};

use super::guard::{Enters, refuse};

/// Who got how many copies.
pub type Got = BTreeMap<HostId, usize>;

/// Follows worms through switches that hold the given states.
pub struct Walker<'t> {
    pub topology: &'t Topology,
    pub states: BTreeMap<SwitchId, Arc<SwitchState>>,
    /// Switch ports that worms left by towards another switch; the caller clears it.
    pub crossed: BTreeSet<(SwitchId, PortId)>,
    /// Ports that their switch knows to be down. Nothing leaves by them.
    pub down: BTreeSet<(SwitchId, PortId)>,
}

impl<'t> Walker<'t> {
    pub fn new(
        topology: &'t Topology,
        states: impl IntoIterator<Item = (SwitchId, Arc<SwitchState>)>,
    ) -> Walker<'t> {
        Walker {
            topology,
            states: states.into_iter().collect(),
            crossed: BTreeSet::new(),
            down: BTreeSet::new(),
        }
    }

    /// Who gets a GROUP worm, how often.
    pub fn send_group(&mut self, sender: &Host, number: GroupId) -> Got {
        self.send_number(sender, Some(sender.id), number)
    }

    /// Of a worm, or with no source of a class D packet.
    fn send_number(&mut self, sender: &Host, source: Option<HostId>, number: GroupId) -> Got {
        let mut got = Got::new();
        let worm = Enters {
            at: (sender.switch, sender.port),
            source,
            kind: Kind::Group,
            route: 2,
            next: Vec::new(),
            number: Some(number),
        };
        if self.is_refused(&worm) {
            return got;
        }
        let mut waiting = VecDeque::from([(sender.switch, Some(sender.port), 0)]);
        while let Some((switch, from, hops)) = waiting.pop_front() {
            let field = "group";
            let action = self.lookup(switch, "ingress.groups", field, number.0.into());
            let Some(mgid) = action.and_then(|action| mgid_of(&action)) else {
                continue;
            };
            self.copy((switch, from), mgid, hops, true, &mut got, &mut waiting);
        }
        got
    }

    /// Who gets a class D packet of a plain host.
    pub fn send_class_d(&mut self, sender: &Host, address: Ipv4Addr) -> Got {
        let ingress = "standard_metadata.ingress_port";
        let port = sender.port.get().into();
        let role = self.lookup(sender.switch, "ingress.port_roles", ingress, port);
        if role.is_none_or(|role| parameter(&role, "role") != 2) {
            return Got::new();
        }
        let address = u128::from(address.to_bits());
        let hit = |(key, _): &(&Arc<KeyFields>, &Arc<Action>)| match key.matches[..] {
            [(ref field, MatchValue::Ternary(value, mask))] if key.table == "ingress.class_d" => {
                assert_eq!(field, "hdr.ipv4.dst");
                address & mask == value
            }
            _ => false,
        };
        let hits = self.states[&sender.switch].entries.iter().filter(hit);
        match hits.max_by_key(|(key, _)| key.priority) {
            None => Got::new(),
            Some((_, action)) => {
                let number = GroupId(parameter(action, "group") as u16);
                self.send_number(sender, None, number)
            }
        }
    }

    /// Who gets a BROADCAST worm that has reached this switch from nowhere.
    pub fn send_broadcast(&mut self, root: SwitchId) -> Got {
        let mut got = Got::new();
        let mut waiting = VecDeque::from([(root, None, 0)]);
        while let Some((switch, _, hops)) = waiting.pop_front() {
            self.copy((switch, None), Mgid(1), hops, false, &mut got, &mut waiting);
        }
        got
    }

    /// Where a UNICAST worm ends.
    pub fn send_unicast(&mut self, sender: &Host, route: &[u8]) -> Option<HostId> {
        let mut at = sender.switch;
        let worm = |at, route| Enters {
            at,
            source: Some(sender.id),
            kind: Kind::Unicast,
            route,
            next: Vec::new(),
            number: None,
        };
        if self.is_refused(&worm((at, sender.port), route.len())) {
            return None;
        }
        for (n, &byte) in route.iter().enumerate() {
            let action = self.lookup(at, "ingress.ports", "port", byte.into())?;
            let port = match mgid_of(&action) {
                None => PortId::new(byte).expect("a port"),
                Some(mgid) => {
                    let copies = &self.states[&at].multicast[&mgid];
                    let only: Vec<&Replica> = copies.iter().collect();
                    assert_eq!((only.len(), only[0].port.get()), (1, byte));
                    self.leaves_by(at, only[0])
                }
            };
            if self.down.contains(&(at, port)) {
                return None;
            }
            match self.topology.attachment(at, port)? {
                Attachment::Host(host) => {
                    assert_eq!(n + 1, route.len(), "the route goes on after a host");
                    return Some(host);
                }
                Attachment::Switch(next, _) => {
                    self.crossed.insert((at, port));
                    at = next;
                }
            }
        }
        None
    }

    fn copy(
        &mut self,
        (switch, from): (SwitchId, Option<PortId>),
        mgid: Mgid,
        hops: usize,
        not_back: bool,
        got: &mut Got,
        waiting: &mut VecDeque<(SwitchId, Option<PortId>, usize)>,
    ) {
        let copies = self
            .states
            .get(&switch)
            .and_then(|state| state.multicast.get(&mgid));
        let copies = copies.cloned().unwrap_or_default();
        let ingress = "standard_metadata.ingress_port";
        let role = from
            .and_then(|port| self.lookup(switch, "ingress.port_roles", ingress, port.get().into()));
        let neighbour = role.map_or(0, |role| parameter(&role, "neighbour"));
        for replica in copies.iter() {
            let out = self.leaves_by(switch, replica);
            let is_back =
                Some(out) == from || neighbour != 0 && neighbour == u128::from(replica.instance);
            if not_back && is_back || self.down.contains(&(switch, out)) {
                continue;
            }
            match self.topology.attachment(switch, out) {
                None => {}
                Some(Attachment::Host(host)) => *got.entry(host).or_default() += 1,
                Some(Attachment::Switch(next, port)) => {
                    assert!(
                        hops + 1 < SWITCHES_CROSSED_MAX,
                        "a worm loops at switch {switch}"
                    );
                    self.crossed.insert((switch, out));
                    if self.states.contains_key(&next) {
                        waiting.push_back((next, Some(port), hops + 1));
                    }
                }
            }
        }
    }

    /// Whether the guard keeps a worm out.
    fn is_refused(&self, worm: &Enters) -> bool {
        let state = self.states.get(&worm.at.0);
        state.is_some_and(|state| refuse(state, worm).is_some())
    }

    /// The first of its own port and its backups' that is up.
    fn leaves_by(&self, switch: SwitchId, replica: &Replica) -> PortId {
        let is_up = |port: &PortId| !self.down.contains(&(switch, *port));
        let mut ports = std::iter::once(replica.port).chain(replica.backups.iter());
        ports.find(is_up).unwrap_or(replica.port)
    }

    fn lookup(
        &self,
        switch: SwitchId,
        table: &'static str,
        field: &'static str,
        value: u128,
    ) -> Option<Arc<Action>> {
        let matches = vec![(field.into(), MatchValue::Exact(value))];
        let key = KeyFields {
            table: table.into(),
            matches,
            priority: 0,
        };
        self.states.get(&switch)?.entries.get(&key).cloned()
    }
}

pub fn parameter(action: &Action, name: &str) -> u128 {
    action
        .parameters
        .iter()
        .find(|(n, _)| n == name)
        .expect("the action has it")
        .1
}

/// The group number of an entry of the table of groups.
pub fn group_number(key: &KeyFields) -> Option<GroupId> {
    match key.matches[..] {
        [(_, MatchValue::Exact(number))] if key.table == "ingress.groups" => {
            Some(GroupId(number as u16))
        }
        _ => None,
    }
}

/// Executes one update as strictly as P4Runtime asks; panics where that would refuse it.
pub fn write(state: &mut SwitchState, update: &Update) {
    let operation = update.operation;
    match &update.entity {
        Entity::Default(_) | Entity::Rate(_) => assert_eq!(operation, Operation::Modify),
        Entity::Group(group) => {
            let is_there = state.multicast.contains_key(&group.mgid);
            assert_eq!(is_there, operation != Operation::Insert, "{update:?}");
            if operation == Operation::Delete {
                let mut actions = state.entries.values();
                let is_used = actions.any(|action| mgid_of(action) == Some(group.mgid));
                assert!(!is_used, "{update:?} pulls the group from under an entry");
            } else {
                assert!(!group.copies.is_empty(), "a group without ports");
            }
        }
        Entity::Entry(entry) => {
            let is_there = state.entries.contains_key(&entry.key);
            assert_eq!(is_there, operation != Operation::Insert, "{update:?}");
            if let (true, Some(mgid)) = (operation != Operation::Delete, mgid_of(&entry.action)) {
                assert!(
                    state.multicast.contains_key(&mgid),
                    "{update:?} names no group"
                );
            }
        }
    }
    execute(update, state);
}
