//! What both kinds of receive rings say of a frame, and the frame repaired.

use super::{checksum, vlan};

/// `struct virtio_net_hdr`, which precedes a frame with `PACKET_VNET_HDR` (linux/virtio_net.h).
pub(super) const VNET_HEADER_BYTES: usize = 10;
const VNET_NEEDS_CHECKSUM: u8 = 1;

/// Where a frame is in its piece of a ring, and what the kernel keeps beside it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Received {
    /// `TP_STATUS_…`
    pub(super) status: u32,
    pub(super) length: usize,
    /// Bytes of it that are in the ring.
    pub(super) captured: usize,
    /// Where it starts; the virtio header is before it.
    pub(super) start: usize,
    /// VLAN tag that the kernel took out of it, if the status says so.
    pub(super) tci: u16,
    /// Its TPID, if the status says so.
    pub(super) tpid: u16,
}

impl Received {
    /// The whole frame, with its VLAN tag and its checksum; `None` if the ring has only
    /// part of it.
    #[inline]
    pub(super) fn repair(self, bytes: &mut [u8]) -> Option<&[u8]> {
        let start = self.start;
        let end = start.checked_add(self.captured)?;
        if self.captured < self.length || end > bytes.len() || start < VNET_HEADER_BYTES {
            return None;
        }
        let virtio = start - VNET_HEADER_BYTES;
        if bytes[virtio] & VNET_NEEDS_CHECKSUM != 0 {
            // Native byte order: PACKET_VNET_HDR without further flags.
            let half = |at: usize| usize::from(u16::from_ne_bytes([bytes[at], bytes[at + 1]]));
            let (sum_start, sum_offset) = (half(virtio + 6), half(virtio + 8));
            checksum::complete(&mut bytes[start..end], sum_start, sum_offset);
        }
        if self.status & libc::TP_STATUS_VLAN_VALID != 0 {
            let tpid = if self.status & libc::TP_STATUS_VLAN_TPID_VALID != 0 {
                self.tpid
            } else {
                vlan::TPID_CUSTOMER
            };
            // The virtio header has been read; its end is the room for the tag.
            let tagged = start - vlan::TAG_BYTES;
            if vlan::insert_tag(&mut bytes[tagged..end], tpid, self.tci) {
                return Some(&bytes[tagged..end]);
            }
        }
        Some(&bytes[start..end])
    }
}

/// Four bytes at `offset`, in the machine's order.
#[inline]
pub(super) fn word(bytes: &[u8], offset: usize) -> u32 {
    let bytes = &bytes[offset..offset + 4];
    u32::from_ne_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
}

/// Two bytes at `offset`, in the machine's order.
#[inline]
pub(super) fn half(bytes: &[u8], offset: usize) -> u16 {
    u16::from_ne_bytes([bytes[offset], bytes[offset + 1]])
}
