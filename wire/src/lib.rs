//! What is on a link, as SPEC.md has it: identifiers and their bounds, worms, TREE routes and
//! host PDUs as bytes, what the sequencer of an ordered group says, and the schemes that plans name.
//!
//! Pure: bytes in, values out, and back.

pub mod ack;
mod error;
mod fail_reason;
pub mod forward;
pub mod gather;
mod header;
mod ids;
pub mod order;
pub mod pdu;
mod pdu_flags;
mod scheme;
pub mod trace;
mod tree_decode;
mod tree_error;
pub mod tree_route;
mod tree_split;
pub mod worm;
pub mod wormhole;

pub use error::DecodeError;
pub use fail_reason::FailReason;
pub use ids::{
    ALTERNATIVES_MAX, BufferClass, GroupId, HOST_ID_MAX, HostId, PORT_ID_MAX, PortId,
    ROUTE_LENGTH_MAX, SHARES_WHOLE, SWITCH_ID_MAX, SWITCH_PORTS_MAX, SWITCHES_CROSSED_MAX, Seq,
    SwitchId,
};
pub use scheme::{Replication, SchemeName};

/// Bytes of an Ethernet header.
pub const ETHERNET_LENGTH: usize = 14;
/// Smallest MTU of a host, bytes of a frame after its Ethernet header (SPEC §4).
pub const MTU_MIN: usize = 576;
/// Largest MTU of a host, bytes of a frame after its Ethernet header: what veth carries at most (SPEC §4).
pub const MTU_MAX: usize = 65_535;
/// EtherType of worms (SPEC §1).
pub const ETHERTYPE_WORM: u16 = 0x88B5;
/// EtherType of host PDUs, the payload of worms (SPEC §5).
pub const ETHERTYPE_HOST_PDU: u16 = 0x88B6;
/// Destination MAC of every worm (SPEC §1).
pub const WORM_MAC: [u8; 6] = [0x03, 0x57, 0x4f, 0x52, 0x4d, 0x00];

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

fn put_u16(bytes: &mut [u8], at: usize, value: u16) {
    bytes[at..at + 2].copy_from_slice(&value.to_be_bytes());
}

fn put_u32(bytes: &mut [u8], at: usize, value: u32) {
    bytes[at..at + 4].copy_from_slice(&value.to_be_bytes());
}
