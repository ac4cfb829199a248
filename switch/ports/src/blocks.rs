//! A receive ring of blocks (TPACKET_V3): the kernel fills a block with many frames and
//! hands it over when it is full, or a millisecond after its first frame.
//!
//! That costs the kernel less a frame than [`slots`](super::slots) do. But a frame that is
//! alone waits for the millisecond, which a protocol that goes hop by hop pays at every
//! switch; and nothing in a block that is still being filled says reliably that a frame in
//! it is complete (the count of packets goes up before the bytes are there), so it cannot
//! be read earlier.

use std::io;
use std::mem::offset_of;
use std::os::fd::OwnedFd;

use super::layout::block_bytes_for;
use super::map::{Map, is_filled};
use super::received::{Received, half, word};
use super::socket;

/// Bytes of a block for frames of the usual MTU: about a hundred short frames, which are
/// some 100 µs at a million a second. For larger MTUs it is that of slots.
const BLOCK_BYTES_SMALL: usize = 16_384;

/// Milliseconds after which a block that is not full is handed over; the least there is.
const RETIRE_MS: u32 = 1;

/// Where the status word of a block is: `struct tpacket_block_desc`, whose header follows
/// two words.
const STATUS: usize = 8;
const PACKETS: usize = STATUS + offset_of!(libc::tpacket_hdr_v1, num_pkts);
const FIRST_PACKET: usize = STATUS + offset_of!(libc::tpacket_hdr_v1, offset_to_first_pkt);

/// The ring of a socket.
#[derive(Debug)]
pub(super) struct Blocks {
    map: Map,
    block_bytes: usize,
    blocks: usize,
    /// The block whose turn it is.
    next: usize,
    /// Frames of it that have not been taken, if it has been opened.
    remaining: u32,
    /// Where in it the next frame's header is.
    offset: usize,
}

impl Blocks {
    /// A ring of about `bytes`, for frames of at most `slot_bytes` with their headers, for
    /// a socket that is not bound.
    pub(super) fn open(socket: &OwnedFd, bytes: usize, slot_bytes: usize) -> io::Result<Self> {
        let block_bytes = if slot_bytes <= BLOCK_BYTES_SMALL / 2 {
            BLOCK_BYTES_SMALL
        } else {
            block_bytes_for(slot_bytes)
        };
        // With one block the kernel would have nothing to fill while we read.
        let blocks = bytes.div_ceil(block_bytes).max(2);
        let request = libc::tpacket_req3 {
            tp_block_size: block_bytes as u32,
            tp_block_nr: blocks as u32,
            tp_frame_size: slot_bytes as u32,
            tp_frame_nr: (blocks * (block_bytes / slot_bytes)) as u32,
            tp_retire_blk_tov: RETIRE_MS,
            tp_sizeof_priv: 0,
            tp_feature_req_word: 0,
        };
        let version = libc::tpacket_versions::TPACKET_V3;
        socket::set_up_ring(socket, libc::PACKET_RX_RING, version, &request)?;
        Ok(Self {
            map: Map::new(socket, blocks * block_bytes)?,
            block_bytes,
            blocks,
            next: 0,
            remaining: 0,
            offset: 0,
        })
    }

    pub(super) fn bytes(&self) -> usize {
        self.blocks * self.block_bytes
    }

    #[inline]
    pub(super) fn is_ready(&self) -> bool {
        self.remaining > 0 || is_filled(self.map.status(self.next * self.block_bytes + STATUS))
    }

    /// Takes the oldest frame, `None` if it is too long; `false` if there is none.
    #[inline]
    pub(super) fn receive(&mut self, take: impl FnOnce(Option<&[u8]>)) -> bool {
        if self.remaining == 0 && !self.open_block() {
            return false;
        }
        let base = self.next * self.block_bytes;
        let (offset, limit) = (base + self.offset, self.block_bytes - self.offset);
        let Some((_, bytes)) = (self.map).piece(base + STATUS, offset, limit, is_filled) else {
            return false;
        };
        let variant = offset_of!(libc::tpacket3_hdr, hv1);
        let received = Received {
            status: word(bytes, offset_of!(libc::tpacket3_hdr, tp_status)),
            length: word(bytes, offset_of!(libc::tpacket3_hdr, tp_len)) as usize,
            captured: word(bytes, offset_of!(libc::tpacket3_hdr, tp_snaplen)) as usize,
            start: usize::from(half(bytes, offset_of!(libc::tpacket3_hdr, tp_mac))),
            tci: word(
                bytes,
                variant + offset_of!(libc::tpacket_hdr_variant1, tp_vlan_tci),
            ) as u16,
            tpid: half(
                bytes,
                variant + offset_of!(libc::tpacket_hdr_variant1, tp_vlan_tpid),
            ),
        };
        let onward = word(bytes, offset_of!(libc::tpacket3_hdr, tp_next_offset)) as usize;
        take(received.repair(bytes));
        self.remaining -= 1;
        self.offset += onward;
        if self.remaining == 0 {
            self.close_block();
        }
        true
    }

    /// Opens the block whose turn it is; `false` if the kernel still has it.
    fn open_block(&mut self) -> bool {
        let base = self.next * self.block_bytes;
        let Some((_, bytes)) = (self.map).piece(base + STATUS, base, self.block_bytes, is_filled)
        else {
            return false;
        };
        self.remaining = word(bytes, PACKETS);
        self.offset = word(bytes, FIRST_PACKET) as usize;
        if self.remaining == 0 {
            self.close_block();
            return false;
        }
        true
    }

    fn close_block(&mut self) {
        let status = self.next * self.block_bytes + STATUS;
        self.map.give(status, libc::TP_STATUS_KERNEL);
        self.next = if self.next + 1 == self.blocks {
            0
        } else {
            self.next + 1
        };
    }
}
