//! The bytes on the wire, as SPEC.md has them.

pub mod ack;
pub mod pdu;
pub mod reject;
pub mod tree_route;
pub mod worm;

/// Bytes of an Ethernet header.
pub const ETHERNET_LENGTH: usize = 14;
/// EtherType of worms (SPEC §1).
pub const ETHERTYPE_WORM: u16 = 0x88B5;
/// EtherType of host PDUs, the payload of worms (SPEC §5).
pub const ETHERTYPE_HOST_PDU: u16 = 0x88B6;
/// Destination MAC of every worm (SPEC §1).
pub const WORM_MAC: [u8; 6] = [0x03, 0x57, 0x4f, 0x52, 0x4d, 0x00];

pub(crate) fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

pub(crate) fn put_u16(bytes: &mut [u8], at: usize, value: u16) {
    bytes[at..at + 2].copy_from_slice(&value.to_be_bytes());
}

pub(crate) fn put_u32(bytes: &mut [u8], at: usize, value: u32) {
    bytes[at..at + 4].copy_from_slice(&value.to_be_bytes());
}
