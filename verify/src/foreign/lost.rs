//! Packets that do not arrive.

use super::packet::Packet;

/// Why a packet does not arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LostKind {
    /// The switch has no table, or no entry for the destination.
    NoEntry,
    /// The entry names a port with nothing on it.
    NoLink,
    /// The entry says that the packet is for the switch itself, and it is not.
    KeptBySwitch,
    /// The port leads to another host.
    WrongHost,
    /// The packet goes round for ever.
    Loop,
}

/// A place where packets to a destination are lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lost {
    pub kind: LostKind,
    pub switch: String,
    pub port: Option<u16>,
    pub packet: Packet,
    /// Of a loop: each switch and the port by which it is left.
    pub path: Vec<(String, u16)>,
}
