//! Ways from a source to the members, as each guard allows them.

use std::collections::BTreeMap;

use super::legal_tree::{Direction, Growth, LegalTree};
use super::switch_tree::Paths;
use super::{GroupError, Least};
use crate::routes::Routes;
use crate::structure::StructureError;
use crate::topology::Topology;
use crate::updown::UpDown;
use wormcast_wire::{HostId, SWITCHES_CROSSED_MAX};

/// Refuses hosts that are not all under one root.
pub(super) fn check_one_tree(
    topology: &Topology,
    updown: &UpDown,
    source: HostId,
    targets: &[HostId],
) -> Result<(), GroupError> {
    let root = |host| -> Result<u32, GroupError> {
        let switch = switch_of(topology, host)?;
        let last = ancestry(topology, updown, switch).last();
        Ok(last.map_or(switch, |arc| topology.arcs()[arc as usize].to))
    };
    let here = root(source)?;
    for &target in targets {
        if root(target)? != here {
            let (a, b) = (source, target);
            return Err(StructureError::Apart { a, b }.into());
        }
    }
    Ok(())
}

/// Along the spanning tree (guard A): up to the lowest switch above both, then down.
pub(super) fn tree_paths(
    topology: &Topology,
    updown: &UpDown,
    source: HostId,
    targets: &[HostId],
) -> Result<Paths, GroupError> {
    let start = switch_of(topology, source)?;
    let up: Vec<u32> = ancestry(topology, updown, start).collect();
    targets
        .iter()
        .map(|&target| {
            let below: Vec<u32> =
                ancestry(topology, updown, switch_of(topology, target)?).collect();
            let shared = up.iter().rev().zip(below.iter().rev());
            let shared = shared.take_while(|(a, b)| a == b).count();
            let climb = up[..up.len() - shared].iter();
            let mut path: Vec<u8> = climb.map(|&arc| port(topology, arc)).collect();
            let descend = below[..below.len() - shared].iter().rev();
            path.extend(descend.map(|&arc| port_back(topology, arc)));
            path.push(topology.host(target)?.port.get());
            Ok((target, path))
        })
        .collect()
}

/// Up to the root and down the spanning tree (guard B).
pub(super) fn rooted_paths(
    topology: &Topology,
    updown: &UpDown,
    source: HostId,
    targets: &[HostId],
) -> Result<Paths, GroupError> {
    let up = up_to_root(topology, updown, switch_of(topology, source)?);
    targets
        .iter()
        .map(|&target| {
            let mut path = up.clone();
            path.extend(down_from_root(
                topology,
                updown,
                switch_of(topology, target)?,
            ));
            path.push(topology.host(target)?.port.get());
            Ok((target, path))
        })
        .collect()
}

/// The BROADCAST worm's route, and the ways it reaches hosts by: up to the root, then to
/// every host of this part of the fabric, the source too.
pub(super) fn broadcast_paths(
    topology: &Topology,
    updown: &UpDown,
    source: HostId,
) -> Result<(Vec<u8>, Paths), GroupError> {
    let start = switch_of(topology, source)?;
    let part = topology.component_of(start);
    let mut everyone = Vec::new();
    for host in topology.hosts() {
        if topology.component_of(switch_of(topology, host.id)?) == part {
            everyone.push(host.id);
        }
    }
    let paths = rooted_paths(topology, updown, source, &everyone)?;
    Ok((up_to_root(topology, updown, start), paths))
}

/// Links that a BROADCAST worm from this host crosses: its own, those to the root, those
/// to hosts, and all tree links, also those with no host below.
pub(super) fn broadcast_links(
    topology: &Topology,
    updown: &UpDown,
    source: HostId,
) -> Result<u64, GroupError> {
    let start = switch_of(topology, source)?;
    let part = topology.component_of(start);
    let climbed = ancestry(topology, updown, start).count();
    let mut links = 1 + climbed as u64;
    for &at in updown.breadth_first() {
        if topology.component_of(at) != part {
            continue;
        }
        // A worm that has crossed as many switches as it may is dropped.
        let level = updown.level(topology, topology.switch_id(at))? as usize;
        links += u64::from(level > 0 && climbed + level <= SWITCHES_CROSSED_MAX);
        if climbed + level < SWITCHES_CROSSED_MAX {
            links += topology.hosts_at(at).len() as u64;
        }
    }
    Ok(links)
}

/// Candidates under guard C: the spanning tree, shortest legal paths, and a tree grown for what is
/// wanted least.
pub(super) fn legal_paths(
    routes: &Routes<'_>,
    source: HostId,
    targets: &[HostId],
    least: Least,
) -> Result<Vec<Paths>, GroupError> {
    let (topology, updown) = (routes.topology(), routes.updown());
    let mut by_switch: BTreeMap<u32, Vec<HostId>> = BTreeMap::new();
    for &target in targets {
        let switch = switch_of(topology, target)?;
        by_switch.entry(switch).or_default().push(target);
    }
    let terminals: Vec<u32> = by_switch.keys().copied().collect();
    let start = switch_of(topology, source)?;
    let mut candidates = Vec::new();
    let shortest = targets.iter().map(|&target| routes.route(source, target));
    let shortest = shortest.collect::<Result<Vec<_>, _>>()?;
    // No copy of a TREE worm is taken in and sent on by a host on the way.
    if shortest.iter().all(|route| route.in_transit.is_empty()) {
        let paths = shortest.into_iter().map(|route| (route.dst, route.ports));
        candidates.push(paths.collect());
    }
    let growth = Growth { turn: 0, least };
    let way = Direction::Legal;
    if let Some(tree) = LegalTree::grow(topology, updown, start, way, growth, &terminals) {
        let mut paths = Vec::with_capacity(targets.len());
        for (arcs, hosts) in tree.paths().iter().zip(by_switch.values()) {
            for &host in hosts {
                let mut path: Vec<u8> = arcs.iter().map(|&arc| port(topology, arc)).collect();
                path.push(topology.host(host)?.port.get());
                paths.push((host, path));
            }
        }
        candidates.push(paths);
    }
    // Ways through the tree are longer, and may be too long.
    let along = tree_paths(topology, updown, source, targets)?;
    if fit(&along) || candidates.is_empty() {
        candidates.push(along);
    }
    Ok(candidates)
}

fn fit(paths: &Paths) -> bool {
    paths
        .iter()
        .all(|(_, path)| path.len() <= SWITCHES_CROSSED_MAX)
}

fn switch_of(topology: &Topology, host: HostId) -> Result<u32, GroupError> {
    Ok(topology.switch_of(topology.host_index(host)?))
}

fn port(topology: &Topology, arc: u32) -> u8 {
    topology.arcs()[arc as usize].port.get()
}

fn port_back(topology: &Topology, arc: u32) -> u8 {
    port(topology, topology.arcs()[arc as usize].reverse)
}

fn up_to_root(topology: &Topology, updown: &UpDown, from: u32) -> Vec<u8> {
    let ports = ancestry(topology, updown, from).map(|arc| port(topology, arc));
    ports.collect()
}

fn down_from_root(topology: &Topology, updown: &UpDown, to: u32) -> Vec<u8> {
    let mut ports: Vec<u8> = ancestry(topology, updown, to)
        .map(|arc| port_back(topology, arc))
        .collect();
    ports.reverse();
    ports
}

/// Arcs of the spanning tree from a switch up to its root.
pub(super) fn ancestry<'a>(
    topology: &'a Topology,
    updown: &'a UpDown,
    from: u32,
) -> impl Iterator<Item = u32> + 'a {
    let mut at = from;
    std::iter::from_fn(move || {
        let arc = updown.parent_arc(at)?;
        at = topology.arcs()[arc as usize].to;
        Some(arc)
    })
}
