//! What a fabric makes of a TREE route, to check encodings against.

use std::fmt;

use wormcast_routing::topology::{Attachment, Topology, TopologyError};
use wormcast_wire::tree_route::{TreeDecodeError, branches};
use wormcast_wire::{HostId, PortId, SWITCHES_CROSSED_MAX, SwitchId};

/// A copy that reached a host.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Delivery {
    pub host: HostId,
    /// Switches the copy has crossed.
    pub hops: usize,
    /// Route left over; empty when all is well.
    pub route: Vec<u8>,
}

/// A copy that a switch dropped, or that left by a port with nothing on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loss {
    pub switch: SwitchId,
    pub reason: LossReason,
}

/// Why a copy is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossReason {
    /// The route does not parse.
    Route(TreeDecodeError),
    /// Nothing hangs on that port.
    NothingThere(PortId),
    /// It has crossed too many switches.
    TooManyHops,
}

impl fmt::Display for LossReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LossReason::Route(error) => error.fmt(f),
            LossReason::NothingThere(port) => write!(f, "nothing hangs on port {port}"),
            LossReason::TooManyHops => {
                write!(
                    f,
                    "it has crossed {SWITCHES_CROSSED_MAX} switches, which is the most"
                )
            }
        }
    }
}

/// All copies of one worm.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TreeWalk {
    pub deliveries: Vec<Delivery>,
    pub losses: Vec<Loss>,
    /// Ports that copies left by, one entry a copy.
    pub channels: Vec<(SwitchId, PortId)>,
}

/// Sends a worm with this route from a host, and follows all its copies.
///
/// # Errors
/// [`TopologyError::UnknownHost`] if the source is not in the topology.
pub fn walk_tree(
    topology: &Topology,
    src: HostId,
    route: &[u8],
) -> Result<TreeWalk, TopologyError> {
    let mut walk = TreeWalk::default();
    // Copies on their way: the switch they arrive at, switches crossed, route.
    let mut arriving = vec![(topology.host(src)?.switch, 0, route.to_vec())];
    while let Some((switch, hops, route)) = arriving.pop() {
        let mut lose = |reason| walk.losses.push(Loss { switch, reason });
        if hops >= SWITCHES_CROSSED_MAX {
            lose(LossReason::TooManyHops);
            continue;
        }
        let branches = match branches(&route) {
            Ok(branches) => branches,
            Err(error) => {
                lose(LossReason::Route(error));
                continue;
            }
        };
        for branch in branches {
            walk.channels.push((switch, branch.port));
            let copy = branch.copy_route();
            match topology.attachment(switch, branch.port) {
                None => {
                    let reason = LossReason::NothingThere(branch.port);
                    walk.losses.push(Loss { switch, reason });
                }
                Some(Attachment::Switch(next, _)) => arriving.push((next, hops + 1, copy)),
                Some(Attachment::Host(host)) => {
                    walk.deliveries.push(Delivery {
                        host,
                        hops: hops + 1,
                        route: copy,
                    });
                }
            }
        }
    }
    Ok(walk)
}
