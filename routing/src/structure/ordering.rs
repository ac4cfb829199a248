//! Orders of the members of a group.

use super::{StructureError, check_members};
use crate::ids::HostId;
use crate::topology::{Topology, TopologyError};
use crate::updown::UpDown;

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
    check_members(members)?;
    let grid = topology.grid().ok_or(StructureError::NoGrid)?;
    let mut order = Vec::with_capacity(members.len());
    for &member in members {
        let host = topology
            .host(member)
            .map_err(|_| StructureError::NotMember {
                host: member,
                members: topology.hosts().iter().map(|host| host.id).collect(),
            })?;
        order.push((grid.coordinates(host.switch), member));
    }
    order.sort_unstable();
    Ok(order.into_iter().map(|(_, host)| host).collect())
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
