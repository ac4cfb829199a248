//! A ring of slots for frames to be sent (`PACKET_TX_RING` with TPACKET_V2).
//!
//! Frames are written where the kernel finds them, and one system call that names none of
//! them has it send all. A virtio header says of each that its header is as long as the
//! whole frame, which the kernel therefore copies at once. Else the packet would refer to
//! the slot until somebody is about to keep it (`skb_orphan_frags`, at the other end of a
//! veth as at a socket of this machine), and be copied then, which takes longer.

use std::io;
use std::mem::offset_of;
use std::os::fd::{AsRawFd, OwnedFd};

use super::layout::{Layout, slot_bytes_for};
use super::map::Map;
use super::received::VNET_HEADER_BYTES;
use super::socket;

/// Slots of a ring at least, if [`BYTES_MAX`] allows it: two batches. More than a core keeps in its cache cost more than
/// they bring. A socket's buffer (`net.core.wmem_default`, 212,992 bytes) is full with 92
/// frames of 1500 bytes on their way, and tells when there is room again; where many short
/// frames wait below, the ring is full before it, and is looked at again after a while.
const SLOTS_MIN: usize = 128;
/// Most memory of a ring, bytes; larger slots mean fewer of them.
const BYTES_MAX: usize = 2 << 20;

/// Where the virtio header is in a slot: behind the ring's header.
const VIRTIO: usize = size_of::<libc::tpacket2_hdr>();
/// `hdr_len` in the virtio header.
const VIRTIO_HEADER_LENGTH: usize = VIRTIO + 2;
const FRAME: usize = VIRTIO + VNET_HEADER_BYTES;
/// Where the length of what follows the ring's header is.
const LENGTH: usize = offset_of!(libc::tpacket2_hdr, tp_len);

/// Bits of a status that say the kernel has not looked at the slot yet, or refused it.
const WAITS: u32 = libc::TP_STATUS_SEND_REQUEST | libc::TP_STATUS_WRONG_FORMAT;
/// Bits of the status of a slot that is not free. Others may be set: of timestamps.
const IN_USE: u32 = WAITS | libc::TP_STATUS_SENDING;

/// The ring of a socket.
#[derive(Debug)]
pub(super) struct SendSlots {
    map: Map,
    layout: Layout,
    /// The slot the kernel looks at next.
    first: usize,
    /// Frames from there on that it has not taken.
    waiting: usize,
    /// Of the frames, by slot: the kernel may still hold a slot that is to be counted.
    lengths: Box<[usize]>,
}

/// Has the kernel send what waits in the ring of a socket, without waiting itself. Gives
/// the error it ended with; [`SendSlots::taken`] says how far it came.
pub(super) fn send_waiting(socket: &OwnedFd) -> Option<io::Error> {
    // SAFETY: no bytes are passed; what is sent is in the ring.
    let result = unsafe { libc::send(socket.as_raw_fd(), std::ptr::null(), 0, libc::MSG_DONTWAIT) };
    (result < 0).then(io::Error::last_os_error)
}

/// What the kernel took at once.
#[derive(Debug, Default)]
pub(super) struct Taken {
    pub(super) frames: usize,
    pub(super) bytes: u64,
    /// Of the longest frame.
    pub(super) longest_bytes: usize,
}

impl SendSlots {
    /// A ring for frames of at most `frame_bytes`, for a socket that is not bound.
    pub(super) fn open(socket: &OwnedFd, frame_bytes: usize) -> io::Result<Self> {
        let slot_bytes = slot_bytes_for(FRAME + frame_bytes);
        let layout = Layout::new(SLOTS_MIN, slot_bytes, BYTES_MAX);
        let version = libc::tpacket_versions::TPACKET_V2;
        socket::set_up_ring(socket, libc::PACKET_TX_RING, version, &layout.request())?;
        Ok(Self {
            map: Map::new(socket, layout.bytes())?,
            lengths: vec![0; layout.slots].into_boxed_slice(),
            layout,
            first: 0,
            waiting: 0,
        })
    }

    /// Frames that the kernel has not taken.
    #[inline]
    pub(super) fn waiting(&self) -> usize {
        self.waiting
    }

    /// Whether the next slot is free: the packet it had last is sent.
    #[inline]
    pub(super) fn has_room(&self) -> bool {
        self.waiting < self.layout.slots && self.map.status(self.offset(self.waiting)) & IN_USE == 0
    }

    /// Collects a frame that is not too long; `false` if there is no room.
    #[inline]
    pub(super) fn push(&mut self, frame: &[u8]) -> bool {
        if !self.has_room() {
            return false;
        }
        self.waiting += 1;
        self.write(self.waiting - 1, frame);
        true
    }

    /// Puts a frame in front of all that wait; `false` if there is no room.
    pub(super) fn push_first(&mut self, frame: &[u8]) -> bool {
        if !self.push(frame) {
            return false;
        }
        // Each frame that waited moves one slot on. Frames wait only after the kernel has
        // refused them, so there is time.
        let mut moved = frame.to_vec();
        for position in 0..self.waiting {
            let next = self.read(position);
            self.write(position, &moved);
            moved = next;
        }
        true
    }

    /// Bytes of the first frame that waits; 0 if none does.
    pub(super) fn first_bytes(&self) -> usize {
        if self.waiting == 0 {
            0
        } else {
            self.lengths[self.first]
        }
    }

    /// Forgets the first frame that waits.
    pub(super) fn drop_first(&mut self) {
        // The kernel goes on from here only, so what waits moves one slot back.
        for position in 1..self.waiting {
            let next = self.read(position);
            self.write(position - 1, &next);
        }
        self.drop_last();
    }

    /// Forgets all frames that wait.
    pub(super) fn clear(&mut self) {
        while self.waiting > 0 {
            self.drop_last();
        }
    }

    /// Frees the slots of what the kernel has taken since it was last asked, and gives what
    /// that was.
    pub(super) fn taken(&mut self) -> Taken {
        let mut taken = Taken::default();
        while self.waiting > 0 {
            if self.map.status(self.offset(0)) & WAITS != 0 {
                break;
            }
            taken.frames += 1;
            let bytes = self.lengths[self.first];
            taken.bytes += bytes as u64;
            taken.longest_bytes = taken.longest_bytes.max(bytes);
            self.first = self.layout.after(self.first, 1);
            self.waiting -= 1;
        }
        taken
    }

    /// Where the slot of a waiting frame is; also of the one after the last.
    #[inline]
    fn offset(&self, position: usize) -> usize {
        self.layout.offset(self.layout.after(self.first, position))
    }

    /// The bytes of a slot that the kernel does not hold, which is so of those with frames
    /// that wait, except during [`send_waiting`], and of free ones.
    #[inline]
    fn slot(&mut self, offset: usize) -> Option<&mut [u8]> {
        let is_ours = |status| status & libc::TP_STATUS_SENDING == 0;
        let piece = (self.map).piece(offset, offset, self.layout.slot_bytes, is_ours);
        piece.map(|(_, bytes)| bytes)
    }

    /// Writes the frame of a position and asks for it to be sent.
    #[inline]
    fn write(&mut self, position: usize, frame: &[u8]) {
        let offset = self.offset(position);
        let Some(slot) = self.slot(offset) else {
            return;
        };
        let length = (VNET_HEADER_BYTES + frame.len()) as u32;
        slot[LENGTH..LENGTH + 4].copy_from_slice(&length.to_ne_bytes());
        slot[VIRTIO..FRAME].fill(0);
        // Native byte order: PACKET_VNET_HDR without further flags. Of the longest frames the
        // field leaves out some bytes.
        let copied = u16::try_from(frame.len()).unwrap_or(u16::MAX).to_ne_bytes();
        slot[VIRTIO_HEADER_LENGTH..VIRTIO_HEADER_LENGTH + 2].copy_from_slice(&copied);
        slot[FRAME..FRAME + frame.len()].copy_from_slice(frame);
        self.lengths[self.layout.after(self.first, position)] = frame.len();
        self.map.give(offset, libc::TP_STATUS_SEND_REQUEST);
    }

    /// The frame of a position.
    fn read(&mut self, position: usize) -> Vec<u8> {
        let length = self.lengths[self.layout.after(self.first, position)];
        let frame = self.slot(self.offset(position));
        frame.map_or_else(Vec::new, |slot| slot[FRAME..FRAME + length].to_vec())
    }

    /// Forgets the last frame that waits.
    fn drop_last(&mut self) {
        self.waiting -= 1;
        let offset = self.offset(self.waiting);
        self.map.give(offset, libc::TP_STATUS_AVAILABLE);
    }
}
