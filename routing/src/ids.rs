//! Typed identifiers. Bounds are those of the wire (protocol/SPEC.md §2, §3).

use std::fmt;

/// Largest host id: the worm header has 16 bits for it, and 0xFFFF marks a sender
/// without an agent.
pub const HOST_ID_MAX: u16 = 0xFFFE;
/// Largest switch id.
pub const SWITCH_ID_MAX: u16 = 0xFFFE;
/// Largest port: 254 and 255 have a meaning of their own in a route.
pub const PORT_ID_MAX: u8 = 253;
/// Most ports of one switch: 0 to [`PORT_ID_MAX`].
pub const SWITCH_PORTS_MAX: u16 = PORT_ID_MAX as u16 + 1;
/// Most switches a worm crosses: a switch drops a worm that arrives with as many hops.
pub const SWITCHES_CROSSED_MAX: usize = 64;
/// Most bytes of a route: its length is one byte of the header.
pub const ROUTE_BYTES_MAX: usize = 255;

/// A switch. Ids need not be dense: a damaged fabric has gaps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SwitchId(pub u16);

/// A host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostId(pub u16);

/// A switch port, 0 to 253.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PortId(u8);

impl PortId {
    /// The port with this number; `None` for 254 and 255, which are not ports.
    pub const fn new(port: u8) -> Option<PortId> {
        if port <= PORT_ID_MAX {
            Some(PortId(port))
        } else {
            None
        }
    }

    /// Its number, which is its byte in a route.
    pub const fn get(self) -> u8 {
        self.0
    }
}

impl fmt::Display for SwitchId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for HostId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for PortId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
