//! Trees that all members of a group share: a worm spreads along one wherever it enters,
//! because a switch sends no copy back where it came from.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::GroupError;
use super::least::Least;
use super::legal_tree::{Direction, Growth, LegalTree};
use super::switch_delivery::GroupEntry;
use super::switch_tree::Paths;
use super::switch_trees::{ancestry, check_one_tree};
use crate::structure::StructureError;
use crate::topology::{Attachment, Link, Topology};
use crate::updown::UpDown;
use wormcast_wire::{HostId, PortId, SWITCHES_CROSSED_MAX, SwitchId};

/// Most switches that are tried as the top of a tree.
const TOPS_MAX: usize = 8;
/// Most trees that a group may spread its messages over.
pub const SHARED_TREES_MAX: u32 = 8;

/// A tree of switches with members on it; between any two of its places the way along it is legal.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SharedTree {
    /// Ports of each switch, by its index.
    ports: BTreeMap<u32, BTreeSet<PortId>>,
}

/// Trees of these members, all links of which lead down from one switch: at most `count` different
/// ones, and at least one.
///
/// The switches nearest to all members are tried as that one, and the spanning tree. Of all trees
/// that have at most a quarter more than the least, groups of different `turn` take different ones:
/// so the load of many groups, or of one with several trees, spreads.
///
/// # Errors
/// If a member is not in the topology, or not all are joined.
pub fn shared_trees(
    topology: &Topology,
    updown: &UpDown,
    members: &[HostId],
    least: Least,
    turn: u32,
    count: u32,
) -> Result<Vec<SharedTree>, GroupError> {
    let first = *members.first().ok_or(StructureError::NoMembers)?;
    check_one_tree(topology, updown, first, members)?;
    let terminals = switches_of(topology, members)?;
    let start = topology.switch_of(topology.host_index(first)?);
    let mut found = vec![SharedTree::along(topology, updown, first, members)?];
    for top in tops(topology, updown, &terminals) {
        for wanted in Least::ALL {
            let growth = Growth {
                turn,
                least: wanted,
            };
            let grown = LegalTree::grow(topology, updown, top, Direction::Down, growth, &terminals);
            let Some(grown) = grown else { continue };
            let mut tree = SharedTree::at(top);
            for path in grown.paths() {
                let mut at = top;
                for arc in path {
                    tree.join(topology, at, arc);
                    at = topology.arcs()[arc as usize].to;
                }
            }
            tree.hang(topology, members)?;
            found.push(tree);
        }
    }
    for tree in &mut found {
        tree.prune(topology, start);
    }
    let mut ranked: Vec<((u32, u32), SharedTree)> = found
        .into_iter()
        .map(|tree| {
            let (links, depth) = (tree.links(topology), tree.depth(topology, updown));
            let rank = match least {
                Least::Links => (links, depth),
                Least::Depth => (depth, links),
            };
            (rank, tree)
        })
        .collect();
    ranked.sort();
    ranked.dedup();
    let best = ranked[0].0.0;
    ranked.retain(|(rank, _)| 4 * rank.0 <= 5 * best);
    let good = ranked.len();
    ranked.rotate_left(turn as usize % good);
    ranked.truncate(count.clamp(1, SHARED_TREES_MAX) as usize);
    Ok(ranked.into_iter().map(|(_, tree)| tree).collect())
}

impl SharedTree {
    /// Along the spanning tree, so that every member and the sender are joined.
    pub(super) fn along(
        topology: &Topology,
        updown: &UpDown,
        sender: HostId,
        members: &[HostId],
    ) -> Result<SharedTree, GroupError> {
        let start = topology.switch_of(topology.host_index(sender)?);
        let mut table = SharedTree::at(start);
        table.climb(topology, updown, start);
        for switch in switches_of(topology, members)? {
            table.climb(topology, updown, switch);
        }
        table.hang(topology, members)?;
        table.prune(topology, start);
        Ok(table)
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

    fn at(switch: u32) -> SharedTree {
        let ports = BTreeMap::from([(switch, BTreeSet::new())]);
        SharedTree { ports }
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

    pub fn links(&self, topology: &Topology) -> u32 {
        let lead = |switch, port| topology.attachment(topology.switch_id(switch), port);
        let ends = self.ports.iter().flat_map(|(&switch, ports)| {
            ports
                .iter()
                .filter(move |port| matches!(lead(switch, **port), Some(Attachment::Switch(..))))
        });
        ends.count() as u32 / 2
    }

    /// Links from its top, below which all of it lies, to the switch farthest down.
    pub fn depth(&self, topology: &Topology, updown: &UpDown) -> u32 {
        let down = |&switch: &u32| {
            let arcs = topology.arcs_of(switch).iter();
            let numbered = arcs.zip(topology.arc_first(switch)..);
            let own = &self.ports[&switch];
            let below = numbered.filter(|(arc, at)| !updown.is_up(*at) && own.contains(&arc.port));
            below.map(|(arc, _)| arc.to).collect::<Vec<_>>()
        };
        let mut level: Vec<u32> = self.ports.keys().copied().collect();
        let lower: BTreeSet<u32> = level.iter().flat_map(&down).collect();
        level.retain(|switch| !lower.contains(switch));
        let mut depth = 0;
        loop {
            level = level.iter().flat_map(&down).collect();
            if level.is_empty() {
                return depth;
            }
            depth += 1;
        }
    }

    /// Switches and the ports by which copies leave them, in ascending order.
    pub fn ports<'s>(
        &'s self,
        topology: &'s Topology,
    ) -> impl Iterator<Item = (SwitchId, &'s BTreeSet<PortId>)> {
        let used = self.ports.iter().filter(|(_, ports)| !ports.is_empty());
        used.map(|(&switch, ports)| (topology.switch_id(switch), ports))
    }

    /// Port path to each member but this host, which need not be one, along the tree.
    ///
    /// # Errors
    /// If the host is not in the topology.
    pub fn paths_from(&self, topology: &Topology, sender: HostId) -> Result<Paths, GroupError> {
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
        self.ports(topology)
            .map(|(switch, ports)| GroupEntry {
                switch,
                group,
                ports: ports.iter().copied().collect(),
            })
            .collect()
    }
}

/// Along the spanning tree, up to its root too though nothing hangs there: for worms that all go
/// through the root (guard B).
///
/// # Errors
/// If a member is not in the topology, or not all are joined.
pub fn rooted_tree(
    topology: &Topology,
    updown: &UpDown,
    members: &[HostId],
) -> Result<SharedTree, GroupError> {
    let first = *members.first().ok_or(StructureError::NoMembers)?;
    check_one_tree(topology, updown, first, members)?;
    let root = topology.switch_index(updown.root(topology))?;
    let mut tree = SharedTree::at(root);
    for switch in switches_of(topology, members)? {
        tree.climb(topology, updown, switch);
    }
    tree.hang(topology, members)?;
    Ok(tree)
}

/// Port path from one of the leaves to each other along a tree of these links; to a leaf that they do
/// not lead to, or that is farther than a worm goes, there is none. With roots the path goes up to that
/// of them to which the links lead, and down from there.
///
/// # Errors
/// A switch through which links close a loop.
pub fn paths_along(
    links: &[Link],
    roots: &[SwitchId],
    leaves: &BTreeMap<HostId, (SwitchId, PortId)>,
    from: HostId,
) -> Result<BTreeMap<HostId, Vec<u8>>, SwitchId> {
    let mut paths = BTreeMap::new();
    let Some(&(start, _)) = leaves.get(&from) else {
        return Ok(paths);
    };
    let mut reached = walk(links, start)?;
    if !roots.is_empty() {
        let Some((root, up)) = reached.into_iter().find(|(at, _)| roots.contains(at)) else {
            return Ok(paths);
        };
        reached = walk(links, root)?;
        for (_, down) in &mut reached {
            down.splice(0..0, up.iter().copied());
        }
    }
    let mut ways: BTreeMap<SwitchId, Vec<u8>> = reached.into_iter().collect();
    ways.retain(|_, way| way.len() < SWITCHES_CROSSED_MAX);
    for (&host, (switch, port)) in leaves.iter().filter(|(host, _)| **host != from) {
        if let Some(way) = ways.get(switch) {
            paths.insert(host, way.iter().copied().chain([port.get()]).collect());
        }
    }
    Ok(paths)
}

/// The switches that a tree of links leads to, each with the ports on the way.
fn walk(links: &[Link], start: SwitchId) -> Result<Vec<(SwitchId, Vec<u8>)>, SwitchId> {
    let mut ends: BTreeMap<SwitchId, Vec<(PortId, SwitchId)>> = BTreeMap::new();
    for link in links {
        ends.entry(link.a).or_default().push((link.a_port, link.b));
        ends.entry(link.b).or_default().push((link.b_port, link.a));
    }
    let mut seen = BTreeSet::from([start]);
    let mut reached = Vec::new();
    let mut open: Vec<(SwitchId, Option<SwitchId>, Vec<u8>)> = vec![(start, None, Vec::new())];
    while let Some((switch, mut came, path)) = open.pop() {
        for &(port, next) in ends.get(&switch).into_iter().flatten() {
            // Back by the one link that led here; a second one would be a loop.
            if came == Some(next) {
                came = None;
                continue;
            }
            if !seen.insert(next) {
                return Err(next);
            }
            let beyond = path.iter().copied().chain([port.get()]).collect();
            open.push((next, Some(switch), beyond));
        }
        reached.push((switch, path));
    }
    Ok(reached)
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
