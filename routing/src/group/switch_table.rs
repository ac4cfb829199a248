//! Table entries of a group: a tree of switches along which a worm spreads wherever it
//! enters, because a switch sends no copy back where it came from.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::GroupError;
use super::legal_tree::{Direction, LegalTree};
use super::switch_delivery::GroupEntry;
use super::switch_tree::Paths;
use super::switch_trees::ancestry;
use crate::topology::{Attachment, Topology};
use crate::updown::UpDown;
use wormcast_wire::{HostId, PortId};

/// Most switches that are tried as the top of a tree.
const TOPS_MAX: usize = 8;

/// Ports of each switch, by its index.
pub(super) struct Table {
    ports: BTreeMap<u32, BTreeSet<PortId>>,
}

impl Table {
    /// Along the spanning tree, so that every member and the sender are joined.
    pub(super) fn along(
        topology: &Topology,
        updown: &UpDown,
        sender: HostId,
        members: &[HostId],
    ) -> Result<Table, GroupError> {
        let start = topology.switch_of(topology.host_index(sender)?);
        let mut table = Table::at(start);
        table.climb(topology, updown, start);
        for switch in switches_of(topology, members)? {
            table.climb(topology, updown, switch);
        }
        table.hang(topology, members)?;
        table.prune(topology, start);
        Ok(table)
    }

    /// Along a tree of few links of which every way is legal: all its links lead down
    /// from one switch. The switches nearest to all members are tried as that one, and
    /// the spanning tree; the fewest links win.
    pub(super) fn legal(
        topology: &Topology,
        updown: &UpDown,
        members: &[HostId],
    ) -> Result<Table, GroupError> {
        let terminals = switches_of(topology, members)?;
        let mut best = Table::along(topology, updown, members[0], members)?;
        let mut least = best.links(topology);
        for top in tops(topology, updown, &terminals) {
            let grown = LegalTree::grow(topology, updown, top, Direction::Down, &terminals);
            let Some(tree) = grown.filter(|tree| tree.links() < least) else {
                continue;
            };
            least = tree.links();
            best = Table::at(top);
            for path in tree.paths() {
                let mut at = top;
                for arc in path {
                    best.join(topology, at, arc);
                    at = topology.arcs()[arc as usize].to;
                }
            }
            best.hang(topology, members)?;
        }
        let sender = topology.switch_of(topology.host_index(members[0])?);
        best.prune(topology, sender);
        Ok(best)
    }

    /// Joins a switch to the root, or to a switch on the way that is joined already.
    fn climb(&mut self, topology: &Topology, updown: &UpDown, from: u32) {
        for arc in ancestry(topology, updown, from) {
            let at = topology.arcs()[topology.arcs()[arc as usize].reverse as usize].to;
            let port = topology.arcs()[arc as usize].port;
            if self
                .ports
                .get(&at)
                .is_some_and(|ports| ports.contains(&port))
            {
                break;
            }
            self.join(topology, at, arc);
        }
    }

    fn at(switch: u32) -> Table {
        let ports = BTreeMap::from([(switch, BTreeSet::new())]);
        Table { ports }
    }

    fn join(&mut self, topology: &Topology, at: u32, arc: u32) {
        let arc = topology.arcs()[arc as usize];
        let back = topology.arcs()[arc.reverse as usize].port;
        self.ports.entry(at).or_default().insert(arc.port);
        self.ports.entry(arc.to).or_default().insert(back);
    }

    fn hang(&mut self, topology: &Topology, members: &[HostId]) -> Result<(), GroupError> {
        for &member in members {
            let switch = topology.switch_of(topology.host_index(member)?);
            let port = topology.host(member)?.port;
            self.ports.entry(switch).or_default().insert(port);
        }
        Ok(())
    }

    /// Takes away switches at the ends that no member hangs on, as the root and a top may
    /// be; the sender's stays.
    fn prune(&mut self, topology: &Topology, sender: u32) {
        let mut ends: Vec<u32> = self.ports.keys().copied().collect();
        while let Some(end) = ends.pop() {
            let Some(port) = self.only_port(end).filter(|_| end != sender) else {
                continue;
            };
            let lead = topology.attachment(topology.switch_id(end), port);
            if let Some(Attachment::Switch(next, back)) = lead
                && let Ok(next) = topology.switch_index(next)
                && let Some(ports) = self.ports.get_mut(&next)
            {
                ports.remove(&back);
                self.ports.remove(&end);
                ends.push(next);
            }
        }
    }

    fn only_port(&self, switch: u32) -> Option<PortId> {
        let ports = self.ports.get(&switch)?;
        ports.first().copied().filter(|_| ports.len() == 1)
    }

    fn links(&self, topology: &Topology) -> usize {
        let lead = |switch, port| topology.attachment(topology.switch_id(switch), port);
        let ends = self.ports.iter().flat_map(|(&switch, ports)| {
            ports
                .iter()
                .filter(move |port| matches!(lead(switch, **port), Some(Attachment::Switch(..))))
        });
        ends.count() / 2
    }

    /// Ways by which a worm of this host reaches others.
    pub(super) fn paths_from(
        &self,
        topology: &Topology,
        sender: HostId,
    ) -> Result<Paths, GroupError> {
        let host = topology.host(sender)?;
        let mut paths = Paths::new();
        let mut arriving = vec![(host.switch, host.port, Vec::new())];
        while let Some((switch, from, path)) = arriving.pop() {
            let Some(ports) = self.ports.get(&topology.switch_index(switch)?) else {
                continue;
            };
            for &port in ports.iter().filter(|port| **port != from) {
                let mut path: Vec<u8> = path.clone();
                path.push(port.get());
                match topology.attachment(switch, port) {
                    Some(Attachment::Switch(next, back)) => arriving.push((next, back, path)),
                    Some(Attachment::Host(host)) => paths.push((host, path)),
                    None => {}
                }
            }
        }
        paths.sort_unstable();
        Ok(paths)
    }

    pub(super) fn entries(&self, topology: &Topology, group: u16) -> Vec<GroupEntry> {
        let used = self.ports.iter().filter(|(_, ports)| !ports.is_empty());
        used.map(|(&switch, ports)| GroupEntry {
            switch: topology.switch_id(switch),
            group,
            ports: ports.iter().copied().collect(),
        })
        .collect()
    }
}

fn switches_of(topology: &Topology, members: &[HostId]) -> Result<Vec<u32>, GroupError> {
    let mut switches = BTreeSet::new();
    for &member in members {
        switches.insert(topology.switch_of(topology.host_index(member)?));
    }
    Ok(switches.into_iter().collect())
}

/// Switches from which only links down lead to all of these, the nearest first.
fn tops(topology: &Topology, updown: &UpDown, terminals: &[u32]) -> Vec<u32> {
    let switches = topology.switch_count();
    let mut far = vec![0u64; switches];
    let mut reach = vec![0usize; switches];
    let mut distance = vec![u32::MAX; switches];
    let mut queue = VecDeque::new();
    for &terminal in terminals {
        distance.fill(u32::MAX);
        distance[terminal as usize] = 0;
        queue.push_back(terminal);
        while let Some(at) = queue.pop_front() {
            far[at as usize] += u64::from(distance[at as usize]);
            reach[at as usize] += 1;
            let first = topology.arc_first(at);
            for (arc, index) in topology.arcs_of(at).iter().zip(first..) {
                if updown.is_up(index) && distance[arc.to as usize] == u32::MAX {
                    distance[arc.to as usize] = distance[at as usize] + 1;
                    queue.push_back(arc.to);
                }
            }
        }
    }
    let mut tops: Vec<u32> = (0..switches as u32)
        .filter(|&switch| reach[switch as usize] == terminals.len())
        .collect();
    tops.sort_unstable_by_key(|&switch| (far[switch as usize], switch));
    tops.truncate(TOPS_MAX);
    tops
}
