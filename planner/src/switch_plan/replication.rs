//! Replication groups of every switch: broadcast, tree sets, groups along the spanning tree.

use std::collections::{BTreeMap, BTreeSet};

use wormcast_routing::topology::{Link, Topology};
use wormcast_routing::updown::UpDown;
use wormcast_wire::{GroupId, HostId, PortId, SwitchId};

use crate::model::copies::{Copies, Neighbours};
use crate::model::ids::{
    MGID_BROADCAST, MGID_GROUP_FIRST, MGID_GROUPS_MAX, MGID_PORT, MGID_TREE_ALL, MGID_TREE_SET,
    Mgid, PortSet,
};
use crate::switch_plan::entries::tree_sets;

/// More groups than a switch has replication groups for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{count} groups; a switch has room for {MGID_GROUPS_MAX}")]
pub struct CapacityError {
    /// How many there are, with broadcast.
    pub count: usize,
}

/// One replication group for each group number, in [`MGID_GROUP_FIRST`] to
/// [`crate::MGID_GROUP_LAST`].
///
/// A number keeps its place while numbers of a different residue come and go; equal residues probe
/// upwards in ascending order of number.
///
/// # Errors
/// [`CapacityError`].
pub fn allocate_mgids(
    numbers: impl IntoIterator<Item = GroupId>,
) -> Result<BTreeMap<GroupId, Mgid>, CapacityError> {
    let ordered: BTreeSet<GroupId> = numbers.into_iter().collect();
    if ordered.len() > usize::from(MGID_GROUPS_MAX) {
        return Err(CapacityError {
            count: ordered.len(),
        });
    }
    let mut taken = vec![false; usize::from(MGID_GROUPS_MAX)];
    let place = |number: GroupId| {
        let mut slot = number.0 % MGID_GROUPS_MAX;
        while taken[usize::from(slot)] {
            slot = (slot + 1) % MGID_GROUPS_MAX;
        }
        taken[usize::from(slot)] = true;
        (number, Mgid(MGID_GROUP_FIRST + slot))
    };
    Ok(ordered.into_iter().map(place).collect())
}

/// One replication group for each non-empty set of ports, where the switch has few enough.
pub(crate) fn tree_set_groups(
    ports: u16,
    links: &Neighbours,
) -> impl Iterator<Item = (Mgid, Copies)> {
    tree_sets(ports).map(|set| {
        let ports = (0..8)
            .filter(|port| set >> port & 1 == 1)
            .filter_map(PortId::new);
        (Mgid(MGID_TREE_SET + set), links.branches(&ports.collect()))
    })
}

/// One replication group for each port with parallel links beside its own.
pub(crate) fn port_groups(links: &Neighbours) -> impl Iterator<Item = (Mgid, Copies)> {
    let ports: Vec<PortId> = links.backed().iter().collect();
    ports.into_iter().map(|port| {
        let mgid = Mgid(MGID_PORT + u16::from(port.get()));
        (mgid, links.branches(&PortSet::from_iter([port])))
    })
}

/// The spanning tree of one connected part, made ready to plan many groups on it.
#[derive(Clone, Debug)]
pub(crate) struct GroupTree {
    switches: Vec<SwitchId>,
    /// By host: the place of its switch, and its port.
    hosts: BTreeMap<HostId, (usize, PortId)>,
    /// The parent's side as `a`.
    leaves_first: Vec<Link>,
    part: Vec<PartPorts>,
}

/// What the ports of a switch lead to.
#[derive(Clone, Debug, Default)]
pub(crate) struct PartPorts {
    pub(crate) links: Neighbours,
    to_switches: PortSet,
    pub(crate) to_hosts: PortSet,
    /// Tree links that lead away from the root.
    down: PortSet,
}

impl PartPorts {
    /// BROADCAST (down tree links and hosts) and TREE_ALL (every port in use).
    pub(crate) fn fixed_groups(&self) -> impl Iterator<Item = (Mgid, Copies)> + use<> {
        let and_hosts = |ports: PortSet| ports.iter().chain(self.to_hosts.iter()).collect();
        let groups = [
            (MGID_BROADCAST, self.links.copies(&and_hosts(self.down))),
            (
                MGID_TREE_ALL,
                self.links.branches(&and_hosts(self.to_switches)),
            ),
        ];
        groups.into_iter().filter(|(_, copies)| !copies.is_empty())
    }
}

impl GroupTree {
    /// The spanning tree of these levels.
    pub(crate) fn new(part: &Topology, updown: &UpDown) -> GroupTree {
        let switches: Vec<SwitchId> = part.switches().iter().map(|switch| switch.id).collect();
        let index = |switch: SwitchId| switches.binary_search(&switch).expect("of the topology");
        let mut leaves_first = updown.tree_links(part);
        leaves_first.reverse();
        let neighbours = Neighbours::of_all(part).into_iter();
        let ports = neighbours.map(|links| PartPorts {
            links,
            ..PartPorts::default()
        });
        let mut ports: Vec<PartPorts> = ports.collect();
        for link in part.links() {
            ports[index(link.a)].to_switches.insert(link.a_port);
            ports[index(link.b)].to_switches.insert(link.b_port);
        }
        for link in &leaves_first {
            ports[index(link.a)].down.insert(link.a_port);
        }
        let mut hosts = BTreeMap::new();
        for host in part.hosts() {
            let at = index(host.switch);
            ports[at].to_hosts.insert(host.port);
            hosts.insert(host.id, (at, host.port));
        }
        GroupTree {
            switches,
            hosts,
            leaves_first,
            part: ports,
        }
    }

    /// What the ports of each switch lead to, in the order of the part's switches.
    pub(crate) fn part_ports(&self) -> &[PartPorts] {
        &self.part
    }

    /// Copies of a switch of the part to some of its ports.
    pub(crate) fn copies_at(&self, switch: SwitchId, ports: &PortSet) -> Copies {
        self.links_at(switch).copies(ports)
    }

    /// What the ports of a switch of the part lead to.
    pub(crate) fn links_at(&self, switch: SwitchId) -> &Neighbours {
        let at = self.switches.binary_search(&switch).expect("of the part");
        &self.part[at].links
    }

    /// All hosts of the part.
    pub(crate) fn hosts(&self) -> impl Iterator<Item = HostId> + '_ {
        self.hosts.keys().copied()
    }

    /// Copies that each switch makes of a group's worms, wherever they entered.
    ///
    /// A port belongs to the set if a member hangs on it, or if it is a tree link beyond which
    /// there is a member. As a switch never sends a copy back to the port it came from, a worm
    /// that enters anywhere reaches every member once. Members that are not in this part are left
    /// out.
    pub(crate) fn copies<'m>(
        &self,
        members: impl IntoIterator<Item = &'m HostId>,
    ) -> impl Iterator<Item = (SwitchId, Copies)> + '_ {
        let named = self.ports(members).into_iter().zip(&self.part);
        let named = named.filter(|((_, ports), _)| !ports.is_empty());
        named.map(|((switch, ports), part)| (switch, part.links.copies(&ports)))
    }

    /// The ports of each switch by which members are reached, in the order of the part's switches.
    pub(crate) fn ports<'m>(
        &self,
        members: impl IntoIterator<Item = &'m HostId>,
    ) -> Vec<(SwitchId, PortSet)> {
        let mut wanted = vec![PortSet::default(); self.switches.len()];
        let mut below = vec![0u32; self.switches.len()];
        let mut all = 0;
        for &(at, port) in members
            .into_iter()
            .filter_map(|member| self.hosts.get(member))
        {
            wanted[at].insert(port);
            below[at] += 1;
            all += 1;
        }
        let index = |switch| {
            self.switches
                .binary_search(&switch)
                .expect("of the topology")
        };
        for link in self.leaves_first.iter().filter(|_| all > 0) {
            let (parent, child) = (index(link.a), index(link.b));
            if below[child] > 0 {
                below[parent] += below[child];
                wanted[parent].insert(link.a_port);
            }
            if below[child] < all {
                wanted[child].insert(link.b_port);
            }
        }
        self.switches.iter().copied().zip(wanted).collect()
    }
}
