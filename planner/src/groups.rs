//! Groups as an operator asks for them.

use std::net::Ipv4Addr;

use wormcast_wire::{GroupId, HostId, Scheme};

/// Shape of a group's structure; 0 lets the planner or the agents choose.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Parameters {
    /// k-binomial: most children of a host (PACKET §4).
    pub k: u64,
    /// tree: most children of a host (WORM §6).
    pub fan_out: u64,
    /// k-binomial: packets in a typical message, from which the best k follows.
    pub packets: u64,
}

impl Default for Parameters {
    fn default() -> Parameters {
        Parameters {
            k: 0,
            fan_out: 3,
            packets: 0,
        }
    }
}

/// A group as configured; its members may be out of reach at the moment.
///
/// Whoever makes one has checked it: its number is not [`GroupId::BROADCAST`], it has members, and they
/// are in ascending order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// Its number.
    pub id: GroupId,
    /// Its name.
    pub name: String,
    /// Its scheme.
    pub scheme: Scheme,
    /// Ascending.
    pub members: Vec<HostId>,
    /// Shape of its structure.
    pub parameters: Parameters,
    /// IP multicast address whose packets it carries (WORM §8.1).
    pub class_d: Option<Ipv4Addr>,
}
