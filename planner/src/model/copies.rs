//! The copies that a replication group makes.

use std::collections::BTreeMap;
use std::sync::Arc;

use wormcast_routing::topology::Topology;
use wormcast_wire::{PortId, SwitchId};

use crate::model::ids::{
    INSTANCE_BRANCH, INSTANCE_NEIGHBOUR, INSTANCE_PLAIN, NEIGHBOUR_NONE, PortSet,
};

/// One copy of a replication group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Replica {
    pub port: PortId,
    /// What the program knows the copy by (p4src/CONTRACT.md).
    pub instance: u16,
    /// Where it leaves while that port is down: the first of these that is up. Their replicas have the
    /// same instance.
    pub backups: PortSet,
}

/// The copies of a replication group, ascending by port.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Copies(Arc<[Replica]>);

impl Copies {
    /// Puts them in order; two with one port and instance are one.
    pub fn new(replicas: impl IntoIterator<Item = Replica>) -> Copies {
        let key = |replica: &Replica| (replica.port, replica.instance);
        let mut all: Vec<Replica> = replicas.into_iter().collect();
        all.sort_by_key(key);
        all.dedup_by_key(|replica| key(replica));
        Copies(all.into())
    }

    /// Copies that the program knows by the port they leave by.
    pub fn plain(ports: &PortSet) -> Copies {
        let replica = |port| Replica {
            port,
            instance: INSTANCE_PLAIN,
            backups: PortSet::default(),
        };
        Copies(ports.iter().map(replica).collect())
    }

    pub fn iter(&self) -> impl Iterator<Item = &Replica> {
        self.0.iter()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The ports of the replicas, backups left out.
    pub fn ports(&self) -> PortSet {
        self.iter().map(|replica| replica.port).collect()
    }

    /// Those that lead where one of `after` leads: to the same host, or to the same switch, by whichever of
    /// parallel links.
    #[must_use]
    pub fn kept(&self, after: &Copies) -> Copies {
        let is_kept = |own: &&Replica| after.iter().any(|replica| own.leads_as(replica));
        if self.lead_within(after) {
            self.clone()
        } else {
            Copies(self.iter().filter(is_kept).copied().collect())
        }
    }

    /// Whether all of them lead where one of `other` leads.
    pub fn lead_within(&self, other: &Copies) -> bool {
        let there = |replica: &Replica| other.iter().any(|own| own.leads_as(replica));
        self.iter().all(there)
    }

    /// Whether they are the same but for backups that `before` has besides. A branch without backups is
    /// known by its port.
    pub fn lack_backups_of(&self, before: &Copies) -> bool {
        let lacks = |(own, before): (&Replica, &Replica)| {
            let by_port = INSTANCE_BRANCH + u16::from(own.port.get());
            let same = own.instance == before.instance
                || (own.instance, before.instance) == (INSTANCE_PLAIN, by_port);
            own.port == before.port && same && own.backups.is_subset(&before.backups)
        };
        self != before
            && self.0.len() == before.0.len()
            && self.iter().zip(before.iter()).all(lacks)
    }
}

impl Replica {
    fn leads_as(&self, other: &Replica) -> bool {
        self.instance == other.instance
            && (self.port == other.port || self.instance >= INSTANCE_NEIGHBOUR)
    }
}

/// Which ports of a switch lead to which neighbour.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Neighbours {
    /// By port: the number of the neighbour, and all ports that lead to it.
    links: BTreeMap<PortId, (u16, PortSet)>,
}

/// What the program knows a neighbour by; [`NEIGHBOUR_NONE`] for the last of all ids, for which no number
/// is left.
fn number_of(switch: SwitchId) -> u16 {
    INSTANCE_NEIGHBOUR
        .checked_add(switch.0)
        .unwrap_or(NEIGHBOUR_NONE)
}

impl Neighbours {
    /// Those of each switch, in the order of the topology's switches.
    pub(crate) fn of_all(topology: &Topology) -> Vec<Neighbours> {
        let switches = topology.switches();
        let index = |id| {
            switches
                .binary_search_by_key(&id, |switch| switch.id)
                .expect("of the topology")
        };
        let mut together: BTreeMap<(usize, SwitchId), PortSet> = BTreeMap::new();
        for link in topology.links() {
            for (at, port, to) in [(link.a, link.a_port, link.b), (link.b, link.b_port, link.a)] {
                together.entry((index(at), to)).or_default().insert(port);
            }
        }
        let mut all = vec![Neighbours::default(); switches.len()];
        for ((at, to), ports) in together {
            let links = ports.iter().map(|port| (port, (number_of(to), ports)));
            all[at].links.extend(links);
        }
        all
    }

    /// Ports that lead to switches, each with the number of its neighbour.
    pub(crate) fn numbers(&self) -> impl Iterator<Item = (PortId, u16)> + '_ {
        self.links
            .iter()
            .map(|(&port, &(number, _))| (port, number))
    }

    /// Ports with parallel links beside theirs.
    pub(crate) fn backed(&self) -> PortSet {
        let ports = self.links.keys().copied();
        ports
            .filter(|&port| !self.backups(port).is_empty())
            .collect()
    }

    fn backups(&self, port: PortId) -> PortSet {
        let numbered = self
            .links
            .get(&port)
            .filter(|link| link.0 != NEIGHBOUR_NONE);
        let links = numbered.map(|(_, ports)| ports.iter());
        links
            .into_iter()
            .flatten()
            .filter(|&other| other != port)
            .collect()
    }

    /// The port, and those that lead to the same neighbour.
    pub(crate) fn beside(&self, port: PortId) -> PortSet {
        let mut ports = self.backups(port);
        ports.insert(port);
        ports
    }

    /// Copies that go to neighbours and hosts: GROUP and BROADCAST worms.
    pub(crate) fn copies(&self, ports: &PortSet) -> Copies {
        let replica = |port| Replica {
            port,
            instance: self
                .links
                .get(&port)
                .map_or(INSTANCE_PLAIN, |link| link.0.max(INSTANCE_PLAIN)),
            backups: self.backups(port),
        };
        Copies::new(ports.iter().map(replica))
    }

    /// Copies that take the branch of their port: TREE worms, and UNICAST worms over parallel links.
    pub(crate) fn branches(&self, ports: &PortSet) -> Copies {
        let replica = |port: PortId| {
            let backups = self.backups(port);
            let instance = if backups.is_empty() {
                INSTANCE_PLAIN
            } else {
                INSTANCE_BRANCH + u16::from(port.get())
            };
            Replica {
                port,
                instance,
                backups,
            }
        };
        Copies::new(ports.iter().map(replica))
    }
}
