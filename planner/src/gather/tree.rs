//! The tree of switches by which ACKs of a group's members come together (wire/SPEC.md §3.2).

use std::collections::BTreeMap;

use wormcast_routing::topology::{Attachment, Topology};
use wormcast_wire::{HostId, PortId, SwitchId};

use crate::model::ids::PortSet;
use crate::order::parts::Part;
use crate::switch_plan::replication::GroupTree;

/// What is behind a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Host(HostId),
    /// The next switch of the tree.
    Switch(SwitchId),
}

/// A way from a switch to members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Branch {
    /// The port of the tree.
    pub(crate) port: PortId,
    /// All ports that lead there: several if links are parallel.
    pub(crate) ports: PortSet,
    pub(crate) to: End,
}

/// A tree with all members on it. Between any two of its places the way along it is legal, so it serves
/// whichever member is the origin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct GatherTree {
    /// Switches on ways between members, with their ways on.
    switches: BTreeMap<SwitchId, Vec<Branch>>,
    places: BTreeMap<HostId, (SwitchId, PortId)>,
}

/// What one switch gathers for an origin.
pub(crate) struct Gatherer<'t> {
    pub(crate) switch: SwitchId,
    /// Towards the origin.
    pub(crate) up: PortId,
    /// Ascending by port; at least one.
    pub(crate) branches: Vec<&'t Branch>,
}

impl GatherTree {
    /// The tree of members of a part, of which `ports` says by which ports of each switch they are reached.
    pub(crate) fn new(
        (part, along): (&Part, &GroupTree),
        members: &[HostId],
        ports: &BTreeMap<SwitchId, PortSet>,
    ) -> GatherTree {
        let topology = &part.topology;
        let place = |host: &HostId| {
            let host = topology.host(*host).expect("a member of the part");
            (host.id, (host.switch, host.port))
        };
        let places: BTreeMap<_, _> = members.iter().map(place).collect();
        // Switches that lie beyond all members know the way to them too; ACKs never come there.
        let mut switches = BTreeMap::new();
        let mut open: Vec<SwitchId> = places.values().take(1).map(|place| place.0).collect();
        while let Some(at) = open.pop() {
            let branches = branches_of(topology, along, at, &ports[&at]);
            let next = branches.iter().filter_map(|branch| match branch.to {
                End::Switch(next) => Some(next),
                End::Host(_) => None,
            });
            let next: Vec<SwitchId> = next.collect();
            switches.insert(at, branches);
            open.extend(next.into_iter().filter(|next| !switches.contains_key(next)));
        }
        GatherTree { switches, places }
    }

    /// The switches by which ACKs come to an origin, with what each gathers.
    pub(crate) fn towards(&self, origin: HostId) -> Vec<Gatherer<'_>> {
        let mut found = Vec::new();
        let mut open = vec![self.places[&origin]];
        while let Some((switch, up)) = open.pop() {
            let branches = self.switches[&switch].iter();
            let branches: Vec<&Branch> = branches.filter(|branch| branch.port != up).collect();
            for branch in &branches {
                if let End::Switch(next) = branch.to {
                    open.push((next, self.back(next, switch)));
                }
            }
            if !branches.is_empty() {
                found.push(Gatherer {
                    switch,
                    up,
                    branches,
                });
            }
        }
        found
    }

    pub(crate) fn switch_of(&self, member: HostId) -> SwitchId {
        self.places[&member].0
    }

    /// The port from a switch to its neighbour in the tree.
    fn back(&self, switch: SwitchId, to: SwitchId) -> PortId {
        let mut branches = self.switches[&switch].iter();
        let back = branches.find(|branch| branch.to == End::Switch(to));
        back.expect("links of a tree lead both ways").port
    }
}

fn branches_of(
    topology: &Topology,
    along: &GroupTree,
    switch: SwitchId,
    ports: &PortSet,
) -> Vec<Branch> {
    let links = along.links_at(switch);
    let branch = |port| {
        let (ports, to) = match topology.attachment(switch, port)? {
            Attachment::Switch(next, _) => (links.beside(port), End::Switch(next)),
            Attachment::Host(host) => ([port].into_iter().collect(), End::Host(host)),
        };
        Some(Branch { port, ports, to })
    };
    ports.iter().filter_map(branch).collect()
}
