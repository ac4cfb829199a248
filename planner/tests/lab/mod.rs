//! Random networks and groups; ids have holes, as after failures.
#![allow(dead_code)] // each test uses some of it

pub mod gather;
pub mod guard;
pub mod model;

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;
use std::sync::Arc;

use rand_chacha::ChaCha8Rng;
use rand_core::{RngCore, SeedableRng};
use wormcast_planner::{ClassDNumbers, FabricState, Group, GroupScheme, Hosts, Planner};
use wormcast_routing::group::{Guard, Least, Scheme, SwitchMode, SwitchParameters};
use wormcast_routing::routes::{Algorithm, Route, Setting};
use wormcast_routing::structure::CircuitVariant;
use wormcast_routing::topology::{Attachment, Host, Link, Parts, Switch, Topology};
use wormcast_wire::{GroupId, HostId, PortId, SwitchId};

pub struct Random(ChaCha8Rng);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(ChaCha8Rng::seed_from_u64(seed))
    }

    /// From `low` to `high`, both possible.
    pub fn between(&mut self, low: usize, high: usize) -> usize {
        low + (self.0.next_u64() % (high - low + 1) as u64) as usize
    }

    pub fn chance(&mut self, percent: usize) -> bool {
        self.between(0, 99) < percent
    }

    pub fn choose<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.between(0, all.len() - 1)]
    }

    pub fn shuffle<T>(&mut self, all: &mut [T]) {
        for at in (1..all.len()).rev() {
            all.swap(at, self.between(0, at));
        }
    }

    /// As many of them, in any order.
    pub fn sample<T: Clone>(&mut self, all: &[T], count: usize) -> Vec<T> {
        let mut all = all.to_vec();
        self.shuffle(&mut all);
        all.truncate(count);
        all
    }
}

pub fn port(number: usize) -> PortId {
    PortId::new(number as u8).expect("a port")
}

pub fn topology(parts: Parts) -> Topology {
    if parts.switches.is_empty() {
        Topology::empty()
    } else {
        Topology::new_split(parts).expect("a topology")
    }
}

/// Up to 12 switches of 3 to 12 ports, some hosts on each, a random tree of links and some more.
pub fn random_topology(random: &mut Random) -> Topology {
    let count = random.between(1, 12);
    let ids = random.sample(&(0..40).collect::<Vec<u16>>(), count);
    let mut free: BTreeMap<u16, Vec<PortId>> = BTreeMap::new();
    let mut parts = Parts::default();
    for &id in &ids {
        let ports = random.between(3, 12);
        parts.switches.push(Switch {
            id: SwitchId(id),
            ports: ports as u16,
        });
        let all: Vec<PortId> = (0..ports).map(port).collect();
        free.insert(id, random.sample(&all, ports));
    }
    let mut join = |free: &mut BTreeMap<u16, Vec<PortId>>, a: u16, b: u16| {
        if a != b && !free[&a].is_empty() && !free[&b].is_empty() {
            let mut end = |id| free.get_mut(&id).and_then(Vec::pop).expect("there is one");
            let (a_port, b_port) = (end(a), end(b));
            parts.links.push(Link {
                a: SwitchId(a),
                a_port,
                b: SwitchId(b),
                b_port,
            });
        }
    };
    for at in 1..ids.len() {
        let open: Vec<u16> = ids[..at]
            .iter()
            .copied()
            .filter(|id| !free[id].is_empty())
            .collect();
        if !open.is_empty() {
            join(&mut free, ids[at], *random.choose(&open));
        }
    }
    for _ in 0..random.between(0, 2 * ids.len()) {
        let (a, b) = (*random.choose(&ids), *random.choose(&ids));
        join(&mut free, a, b);
    }
    let slots: Vec<(u16, PortId)> = free
        .iter()
        .flat_map(|(&id, ports)| ports.iter().map(move |&port| (id, port)))
        .filter(|_| random.chance(60))
        .collect();
    let names = random.sample(&(0..200).collect::<Vec<u16>>(), slots.len());
    for (name, (switch, port)) in names.into_iter().zip(slots) {
        parts.hosts.push(Host {
            id: HostId(name),
            switch: SwitchId(switch),
            port,
            transit: true,
        });
    }
    topology(parts)
}

/// Groups of all schemes, some with a class D address, some that share its low 8 bits.
pub fn random_groups(random: &mut Random, topology: &Topology, count: usize) -> Vec<Arc<Group>> {
    let hosts = host_ids(topology);
    let numbers: Vec<u16> = (0..600).filter(|&number| number != 255).collect();
    let count = if hosts.is_empty() { 0 } else { count };
    let chosen = random.sample(&numbers, count);
    let one = |number: u16| {
        let members = random_members(random, &hosts);
        let address = [random.between(0, 3) as u8, random.between(1, 3) as u8];
        let class_d = random
            .chance(50)
            .then(|| Ipv4Addr::new(239, 1, address[0], address[1]));
        let mut schemes = Scheme::all();
        schemes.retain(|scheme| !scheme.goes_by_coordinates());
        let mut scheme = *random.choose(&schemes);
        if let Scheme::Switch(parameters) = &mut scheme
            && parameters.mode != SwitchMode::Broadcast
            && random.chance(50)
        {
            parameters.guard = Guard::C;
            parameters.least = *random.choose(&Least::ALL);
            parameters.trees = random.between(1, 4) as u32;
        }
        Arc::new(Group {
            class_d,
            ..group(number, scheme, &members)
        })
    };
    chosen.into_iter().map(one).collect()
}

pub fn random_members(random: &mut Random, hosts: &[HostId]) -> Vec<HostId> {
    let count = random.between(1, hosts.len());
    let mut members = random.sample(hosts, count);
    members.sort_unstable();
    members
}

pub const CIRCUIT: Scheme = Scheme::Circuit(CircuitVariant::OmitLast);
pub const K_BINOMIAL: Scheme = Scheme::KBinomial { k: None };
pub const SWITCH: Scheme = Scheme::Switch(SwitchParameters::new(SwitchMode::Tree, Guard::A));

pub fn group(number: u16, scheme: impl Into<GroupScheme>, members: &[HostId]) -> Group {
    Group {
        id: GroupId(number),
        name: format!("g{number}"),
        scheme: scheme.into(),
        members: members.to_vec(),
        packets: 0,
        ordered: false,
        class_d: None,
        sink: false,
        rate_bits: None,
        gather: false,
    }
}

/// Some groups go, some come, some have other members.
pub fn change_groups(
    random: &mut Random,
    topology: &Topology,
    groups: &[Arc<Group>],
) -> Vec<Arc<Group>> {
    let hosts = host_ids(topology);
    let mut changed = BTreeMap::new();
    let more = random.between(0, 2);
    for new in random_groups(random, topology, more) {
        changed.insert(new.id, new);
    }
    for group in groups
        .iter()
        .filter(|_| random.chance(70))
        .collect::<Vec<_>>()
    {
        let mut group = group.clone();
        if random.chance(30) {
            Arc::make_mut(&mut group).members = random_members(random, &hosts);
        }
        changed.insert(group.id, group);
    }
    changed.into_values().collect()
}

/// The topology after some links and switches have failed.
pub fn damage(random: &mut Random, whole: &Topology) -> Topology {
    let mut parts = Parts::default();
    parts
        .switches
        .extend(whole.switches().iter().filter(|_| random.chance(90)));
    let alive: BTreeSet<SwitchId> = parts.switches.iter().map(|switch| switch.id).collect();
    parts.hosts.extend(
        whole
            .hosts()
            .iter()
            .filter(|host| alive.contains(&host.switch)),
    );
    let mut stays =
        |link: &&Link| random.chance(80) && alive.contains(&link.a) && alive.contains(&link.b);
    parts
        .links
        .extend(whole.links().iter().filter(|link| stays(link)));
    topology(parts)
}

pub fn host_ids(topology: &Topology) -> Vec<HostId> {
    topology.hosts().iter().map(|host| host.id).collect()
}

/// All hosts have agents that take part.
pub fn all_live(topology: &Topology) -> Hosts {
    let everyone: BTreeSet<HostId> = host_ids(topology).into_iter().collect();
    Hosts {
        agents: everyone.clone(),
        live: everyone,
        ..Hosts::default()
    }
}

/// The plan of a new planner, all agents live.
pub fn plan_all(topology: &Topology, groups: &[Arc<Group>]) -> FabricState {
    plan(topology, topology, groups, &all_live(topology))
}

/// The plan of a new planner.
pub fn plan(up: &Topology, known: &Topology, groups: &[Arc<Group>], hosts: &Hosts) -> FabricState {
    let mut planner = Planner::new(Setting::plain(Algorithm::Osud));
    planner.plan(up, known, groups, hosts, &ClassDNumbers::default())
}

/// What copies of a group's messages go along, if it is of scheme `table`: the spanning tree, or one of
/// its own that has little of something.
pub fn table(group: &Group) -> Option<Option<Least>> {
    match group.scheme {
        GroupScheme::One(Scheme::Switch(parameters)) if parameters.mode == SwitchMode::Table => {
            Some((parameters.guard == Guard::C).then_some(parameters.least))
        }
        _ => None,
    }
}

/// The number of a group of scheme `table`: the lowest id of those that are alike.
pub fn table_number(groups: &[Arc<Group>], group: &Group) -> Option<GroupId> {
    let alike =
        |other: &&Arc<Group>| table(other) == table(group) && other.members == group.members;
    table(group)?;
    groups.iter().filter(alike).map(|other| other.id).min()
}

/// Members of every group number the switches know. A group with a class D address has the address's,
/// one of scheme `table` that of the lowest like it. Groups that share a number share the union of
/// their members. Broadcast is left out.
pub fn fabric_members(
    groups: &[Arc<Group>],
    numbers: &ClassDNumbers,
) -> BTreeMap<GroupId, BTreeSet<HostId>> {
    let mut members: BTreeMap<GroupId, BTreeSet<HostId>> = BTreeMap::new();
    for group in groups {
        let of_address = group.class_d.map(|address| numbers.number(address));
        for number in table_number(groups, group)
            .into_iter()
            .chain(of_address)
            .filter(|n| n.0 != 255)
        {
            members.entry(number).or_default().extend(&group.members);
        }
    }
    members
}

/// Every group number that some switch knows.
pub fn numbers_in(states: &[&FabricState]) -> BTreeSet<GroupId> {
    let switches = states.iter().flat_map(|state| state.switches.values());
    let keys = switches.flat_map(|switch| switch.entries.keys());
    keys.filter_map(|key| model::group_number(key)).collect()
}

/// Where a source route leads, over what is there; `None`: nowhere.
pub fn follow(topology: &Topology, from: HostId, to: HostId, ports: &[u8]) -> Option<Route> {
    let mut route = Route {
        src: from,
        dst: to,
        switches: Vec::new(),
        ports: ports.to_vec(),
        in_transit: Vec::new(),
    };
    let mut at = topology.host(from).ok()?.switch;
    for (place, &port) in ports.iter().enumerate() {
        route.switches.push(at);
        match topology.attachment(at, PortId::new(port)?)? {
            Attachment::Switch(next, _) => at = next,
            Attachment::Host(host) if place + 1 == ports.len() => {
                assert_eq!(host, to, "it leads to another host");
                return Some(route);
            }
            Attachment::Host(host) => route.in_transit.push(host),
        }
    }
    None
}
