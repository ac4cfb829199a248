//! Groups as an operator asks for them.

use std::net::Ipv4Addr;

use wormcast_routing::group::Scheme;
use wormcast_wire::{GroupId, HostId};

/// How messages of a group are to reach its members.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum GroupScheme {
    One(Scheme),
    /// Each by the scheme that takes least time for its length, by the costs of the fabric.
    Auto,
}

impl From<Scheme> for GroupScheme {
    fn from(scheme: Scheme) -> GroupScheme {
        GroupScheme::One(scheme)
    }
}

/// A group as configured; its members may be out of reach at the moment.
///
/// Whoever makes one has checked it: its number is not [`GroupId::BROADCAST`], it has members, and they
/// are in ascending order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    pub id: GroupId,
    pub name: String,
    /// Its scheme with its parameters, or the choice among them.
    pub scheme: GroupScheme,
    /// k-binomial without k: packets in a typical message, from which the best k follows; 0: k goes by the length of
    /// each message.
    pub packets: u32,
    /// Ascending.
    pub members: Vec<HostId>,
    /// All members get the messages of all origins in one order.
    pub ordered: bool,
    /// IP multicast address whose packets it carries (WORM §8.1).
    pub class_d: Option<Ipv4Addr>,
    /// Whether agents take its messages where no receiver is open, and drop them: to measure.
    pub sink: bool,
    /// Bits of messages that a host may send to it a second; none: any.
    pub rate_bits: Option<u64>,
    /// Whether switches gather its ACKs, where they copy its messages.
    pub gather: bool,
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// One for which nothing else is asked.
    pub(crate) fn group(id: u16, scheme: Scheme, members: &[u16]) -> Group {
        Group {
            id: GroupId(id),
            name: String::new(),
            scheme: scheme.into(),
            packets: 0,
            members: members.iter().copied().map(HostId).collect(),
            ordered: false,
            class_d: None,
            sink: false,
            rate_bits: None,
            gather: false,
        }
    }
}
