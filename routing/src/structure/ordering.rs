//! Orders of the members of a group.

use rand_chacha::ChaCha8Rng;
use rand_core::{RngCore, SeedableRng};

use super::error::StructureError;
use super::members::check_members;
use crate::topology::{Grid, Topology, TopologyError};
use crate::updown::UpDown;
use wormcast_wire::{HostId, SwitchId};

/// Ascending by id.
pub fn by_id(members: &[HostId]) -> Vec<HostId> {
    let mut order = members.to_vec();
    order.sort_unstable();
    order
}

/// CCO, for irregular networks (PACKET §4.3.2): hosts in depth-first order of their
/// switches over the up\*/down\* spanning tree, children in order of id, hosts of a
/// switch together and in order of id.
///
/// # Errors
/// [`TopologyError::UnknownHost`].
pub fn cco(
    topology: &Topology,
    updown: &UpDown,
    members: &[HostId],
) -> Result<Vec<HostId>, TopologyError> {
    let rank = depth_first_ranks(topology, updown);
    let mut order = members
        .iter()
        .map(|&host| {
            Ok((
                rank[topology.switch_of(topology.host_index(host)?) as usize],
                host,
            ))
        })
        .collect::<Result<Vec<_>, TopologyError>>()?;
    order.sort_unstable();
    Ok(order.into_iter().map(|(_, host)| host).collect())
}

/// Dimension order, for tori and meshes: by the coordinate of the dimension routed
/// first, then the next, hosts of a switch in order of id.
///
/// # Errors
/// [`StructureError::NoGrid`] on other topologies, and a member that is no host.
pub fn by_dimension(
    topology: &Topology,
    members: &[HostId],
) -> Result<Vec<HostId>, StructureError> {
    by_key(topology, members, Grid::coordinates)
}

/// The order of a Hamiltonian path over the switches of a torus or mesh that uses links
/// in the increasing direction only where they wrap (TORUS §3); hosts of a switch in
/// order of id. On a torus, line after line of the first dimension, each line begun one
/// place earlier than the line before, so that the step to the next line is one hop; on
/// a mesh, every second line backwards. With the same number of switches in every
/// dimension the path of a torus closes.
///
/// # Errors
/// [`StructureError::NoGrid`] on other topologies, and a member that is no host.
pub fn hamiltonian(topology: &Topology, members: &[HostId]) -> Result<Vec<HostId>, StructureError> {
    by_key(topology, members, |grid, switch| {
        let mut rank = 0u32;
        for (&radix, place) in grid.radix.iter().zip(grid.coordinates(switch)).rev() {
            let (radix, place) = (u32::from(radix), u32::from(place));
            let along = if grid.wraps {
                (place + rank) % radix
            } else if rank.is_multiple_of(2) {
                place
            } else {
                radix - 1 - place
            };
            rank = rank * radix + along;
        }
        rank
    })
}

/// How many members each ring of the last dimension holds, in the order of
/// [`by_dimension`]; rings without members are left out.
///
/// # Errors
/// [`StructureError::NoGrid`] without coordinates, and a member that is no host.
pub fn rings(topology: &Topology, ordered: &[HostId]) -> Result<Vec<usize>, StructureError> {
    let grid = topology.grid().ok_or(StructureError::NoGrid)?;
    let ring = |member: HostId| {
        let mut coordinates = grid.coordinates(switch_of(topology, member)?);
        coordinates.pop();
        Ok(coordinates)
    };
    let rings = ordered
        .iter()
        .map(|&member| ring(member))
        .collect::<Result<Vec<_>, StructureError>>()?;
    Ok(rings
        .chunk_by(|ring, next| ring == next)
        .map(<[_]>::len)
        .collect())
}

/// At random, from a seed; the same members and seed give the same order.
pub fn random(members: &[HostId], seed: u64) -> Vec<HostId> {
    let mut order = by_id(members);
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    for last in (1..order.len()).rev() {
        // The remainder's bias is below 2^-47 for at most 2^16 members.
        let other = random.next_u64() % (last as u64 + 1);
        order.swap(last, other as usize);
    }
    order
}

fn by_key<K: Ord>(
    topology: &Topology,
    members: &[HostId],
    key: impl Fn(&Grid, SwitchId) -> K,
) -> Result<Vec<HostId>, StructureError> {
    check_members(members)?;
    let grid = topology.grid().ok_or(StructureError::NoGrid)?;
    let mut order = members
        .iter()
        .map(|&member| Ok((key(grid, switch_of(topology, member)?), member)))
        .collect::<Result<Vec<_>, StructureError>>()?;
    order.sort_unstable();
    Ok(order.into_iter().map(|(_, host)| host).collect())
}

fn switch_of(topology: &Topology, member: HostId) -> Result<SwitchId, StructureError> {
    match topology.host(member) {
        Ok(host) => Ok(host.switch),
        Err(_) => Err(StructureError::NotMember {
            host: member,
            members: topology.hosts().iter().map(|host| host.id).collect(),
        }),
    }
}

fn depth_first_ranks(topology: &Topology, updown: &UpDown) -> Vec<u32> {
    let switches = topology.switch_count();
    let mut children = vec![Vec::new(); switches];
    let mut stack = Vec::new();
    // Descending, so that the stack hands out the lowest id first.
    for switch in (0..switches as u32).rev() {
        match updown.parent_of(topology, switch) {
            Some(parent) => children[parent as usize].push(switch),
            None => stack.push(switch),
        }
    }
    let mut rank = vec![0; switches];
    let mut next = 0;
    while let Some(switch) = stack.pop() {
        rank[switch as usize] = next;
        next += 1;
        stack.extend(&children[switch as usize]);
    }
    rank
}
