//! A receive ring of slots (TPACKET_V2): each has a frame, which is handed over at once.

use std::collections::VecDeque;
use std::io;
use std::mem::offset_of;
use std::os::fd::OwnedFd;

use super::map::Map;
use super::received::{Received, half, word};
use super::socket;

/// Memory the kernel allocates at once.
const BLOCK_BYTES: usize = 65_536;

/// The ring of a socket.
#[derive(Debug)]
pub(super) struct Slots {
    map: Map,
    slot_bytes: usize,
    slots: usize,
    next: usize,
    /// Frames that wait and have been looked at, the oldest first: whether they were taken.
    looked: VecDeque<bool>,
}

impl Slots {
    /// A ring of about `bytes` in slots of `slot_bytes`, for a socket that is not bound.
    pub(super) fn open(socket: &OwnedFd, bytes: usize, slot_bytes: usize) -> io::Result<Self> {
        let blocks = bytes.div_ceil(BLOCK_BYTES);
        let slots = blocks * (BLOCK_BYTES / slot_bytes);
        let request = libc::tpacket_req {
            tp_block_size: BLOCK_BYTES as u32,
            tp_block_nr: blocks as u32,
            tp_frame_size: slot_bytes as u32,
            tp_frame_nr: slots as u32,
        };
        socket::set_up_ring(socket, libc::tpacket_versions::TPACKET_V2, &request)?;
        Ok(Self {
            map: Map::new(socket, blocks * BLOCK_BYTES)?,
            slot_bytes,
            slots,
            next: 0,
            looked: VecDeque::new(),
        })
    }

    /// Slots of the ring.
    pub(super) fn len(&self) -> usize {
        self.slots
    }

    #[inline]
    pub(super) fn is_ready(&self) -> bool {
        self.map.is_ours(self.next * self.slot_bytes)
    }

    /// Whether the oldest frame was taken when it was looked at.
    #[inline]
    pub(super) fn next_is_taken(&self) -> bool {
        self.looked.front() == Some(&true)
    }

    /// Shows each frame that waits, once, as it came.
    pub(super) fn look_ahead(&mut self, mut take: impl FnMut(&[u8]) -> bool) {
        while self.looked.len() < self.slots {
            let offset = (self.next + self.looked.len()) % self.slots * self.slot_bytes;
            let Some((_, bytes)) = self.map.piece(offset, offset, self.slot_bytes) else {
                return;
            };
            let length = word(bytes, offset_of!(libc::tpacket2_hdr, tp_len)) as usize;
            let captured = word(bytes, offset_of!(libc::tpacket2_hdr, tp_snaplen)) as usize;
            let start = usize::from(half(bytes, offset_of!(libc::tpacket2_hdr, tp_mac)));
            let frame = bytes.get(start..start.saturating_add(captured));
            let frame = frame.filter(|_| captured >= length);
            self.looked.push_back(frame.is_some_and(&mut take));
        }
    }

    /// Takes the oldest frame, `None` if it is too long for a slot; `false` if there is
    /// none.
    #[inline]
    pub(super) fn receive(&mut self, take: impl FnOnce(Option<&[u8]>)) -> bool {
        let offset = self.next * self.slot_bytes;
        // The status is the first word of the header.
        let Some((status, bytes)) = self.map.piece(offset, offset, self.slot_bytes) else {
            return false;
        };
        self.looked.pop_front();
        let received = Received {
            status,
            length: word(bytes, offset_of!(libc::tpacket2_hdr, tp_len)) as usize,
            captured: word(bytes, offset_of!(libc::tpacket2_hdr, tp_snaplen)) as usize,
            start: usize::from(half(bytes, offset_of!(libc::tpacket2_hdr, tp_mac))),
            tci: half(bytes, offset_of!(libc::tpacket2_hdr, tp_vlan_tci)),
            tpid: half(bytes, offset_of!(libc::tpacket2_hdr, tp_vlan_tpid)),
        };
        take(received.repair(bytes));
        self.map.release(offset);
        self.next = if self.next + 1 == self.slots {
            0
        } else {
            self.next + 1
        };
        true
    }
}
