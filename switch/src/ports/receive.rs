//! Receiving: a ring shared with the kernel (`PACKET_RX_RING`, TPACKET_V2).
//!
//! Version 2 of the ring hands over every frame at once; version 3 fills blocks and lets
//! go of a half-filled one only after a millisecond, which a hop-by-hop protocol pays at
//! every switch.

use std::io;
use std::mem;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

use super::checksum;
use super::interface::{Interface, InterfaceError};
use super::socket;
use super::vlan;

/// Fewest and most slots of a ring.
pub const RING_FRAMES_MIN: usize = 16;
/// See [`RING_FRAMES_MIN`].
pub const RING_FRAMES_MAX: usize = 65_536;

/// Slot that holds any frame of an Ethernet with the usual MTU of 1500 bytes.
const SLOT_BYTES_SMALL: usize = 2_048;
/// Slot for larger MTUs: the pipeline takes no longer packets.
const SLOT_BYTES_LARGE: usize = 16_384;
/// Most memory of one ring; larger slots mean fewer of them.
const RING_BYTES_MAX: usize = 1 << 27;
/// Memory the kernel allocates at once.
const BLOCK_BYTES: usize = 65_536;

/// `struct virtio_net_hdr`, which precedes a frame with `PACKET_VNET_HDR` (linux/virtio_net.h).
const VNET_HEADER_BYTES: usize = 10;
const VNET_NEEDS_CHECKSUM: u8 = 1;

/// What came in by a port and what did not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReceiveCounts {
    /// Frames handed to the switch.
    pub frames: u64,
    /// Bytes of those frames.
    pub bytes: u64,
    /// Frames that found the ring full.
    pub ring_full: u64,
    /// Frames longer than a slot (segmentation offload, jumbo frames).
    pub too_long: u64,
}

/// Frames that arrive on one interface.
#[derive(Debug)]
pub struct ReceiveRing {
    socket: OwnedFd,
    map: Map,
    slot_bytes: usize,
    slots: usize,
    next: usize,
    counts: ReceiveCounts,
    too_long_seen: u64,
}

/// Slot with room for the ring's header, the Ethernet header and a VLAN tag.
fn slot_bytes_for(mtu: usize) -> usize {
    if mtu <= SLOT_BYTES_SMALL - 256 {
        SLOT_BYTES_SMALL
    } else {
        SLOT_BYTES_LARGE
    }
}

impl ReceiveRing {
    /// Opens the interface in promiscuous mode, with room for at least `frames` frames
    /// that wait ([`RING_FRAMES_MIN`] to [`RING_FRAMES_MAX`]). Frames that this machine
    /// sends on the interface are not seen.
    pub fn open(interface: &Interface, frames: usize) -> Result<Self, InterfaceError> {
        let failed = |step| {
            move |error| InterfaceError::Open {
                name: interface.name().to_owned(),
                step,
                error,
            }
        };
        let socket = socket::open().map_err(failed("opening a packet socket"))?;
        let mtu = socket::mtu(&socket, interface).map_err(failed("asking for the MTU"))?;
        let slot_bytes = slot_bytes_for(mtu);
        let bytes = frames.clamp(RING_FRAMES_MIN, RING_FRAMES_MAX) * slot_bytes;
        let blocks = bytes.min(RING_BYTES_MAX).div_ceil(BLOCK_BYTES);
        let slots = blocks * (BLOCK_BYTES / slot_bytes);

        let packet_option =
            |name, value: i32| socket::set_option(&socket, libc::SOL_PACKET, name, &value);
        packet_option(
            libc::PACKET_VERSION,
            libc::tpacket_versions::TPACKET_V2 as i32,
        )
        .map_err(failed("choosing TPACKET_V2"))?;
        packet_option(libc::PACKET_VNET_HDR, 1).map_err(failed("asking for PACKET_VNET_HDR"))?;
        packet_option(libc::PACKET_IGNORE_OUTGOING, 1)
            .map_err(failed("asking for PACKET_IGNORE_OUTGOING"))?;
        let request = libc::tpacket_req {
            tp_block_size: BLOCK_BYTES as u32,
            tp_block_nr: blocks as u32,
            tp_frame_size: slot_bytes as u32,
            tp_frame_nr: slots as u32,
        };
        socket::set_option(&socket, libc::SOL_PACKET, libc::PACKET_RX_RING, &request)
            .map_err(failed("setting up the receive ring"))?;
        let map =
            Map::new(&socket, blocks * BLOCK_BYTES).map_err(failed("mapping the receive ring"))?;
        socket::bind(&socket, interface, socket::ALL_PROTOCOLS)
            .map_err(failed("binding the receiving socket"))?;
        socket::set_promiscuous(&socket, interface).map_err(failed("going promiscuous"))?;
        Ok(Self {
            socket,
            map,
            slot_bytes,
            slots,
            next: 0,
            counts: ReceiveCounts::default(),
            too_long_seen: 0,
        })
    }

    /// Hands over at most `limit` frames that have arrived, oldest first, and gives their
    /// number. Does not wait and makes no system call. VLAN tags that the kernel took out
    /// are back in, and checksums that a local sender left out are complete.
    pub fn receive(&mut self, limit: usize, mut take: impl FnMut(&[u8])) -> usize {
        let mut taken = 0;
        while taken < limit {
            let Some(slot) = self
                .map
                .filled_slot(self.next * self.slot_bytes, self.slot_bytes)
            else {
                break;
            };
            match slot.into_frame() {
                Some(frame) => {
                    self.counts.frames += 1;
                    self.counts.bytes += frame.bytes.len() as u64;
                    take(frame.bytes);
                }
                None => self.counts.too_long += 1,
            }
            self.map.release(self.next * self.slot_bytes);
            self.next = if self.next + 1 == self.slots {
                0
            } else {
                self.next + 1
            };
            taken += 1;
        }
        taken
    }

    /// Frames that may wait at a time.
    pub fn slots(&self) -> usize {
        self.slots
    }

    /// Whether frames have been too long for the ring since this was last asked, and a
    /// ring opened anew would have room for them: the MTU has been raised.
    pub fn is_outgrown(&mut self, interface: &Interface) -> bool {
        if self.counts.too_long == self.too_long_seen {
            return false;
        }
        self.too_long_seen = self.counts.too_long;
        socket::mtu(&self.socket, interface).is_ok_and(|mtu| slot_bytes_for(mtu) > self.slot_bytes)
    }

    /// Whether a frame waits.
    pub fn is_ready(&self) -> bool {
        self.map.is_filled(self.next * self.slot_bytes)
    }

    /// Takes the error the kernel has kept: `ENETDOWN` after the interface went down or
    /// away. After a mere down and up the ring goes on by itself.
    pub fn take_error(&self) -> Option<io::Error> {
        socket::take_error(&self.socket)
    }

    /// Goes on counting where another ring of the same port ended.
    pub fn carry_counts(&mut self, counts: ReceiveCounts) {
        self.counts = counts;
        self.too_long_seen = counts.too_long;
    }

    /// Counts so far; asks the kernel for the frames that found no room.
    pub fn counts(&mut self) -> ReceiveCounts {
        if let Ok(statistics) = socket::take_statistics(&self.socket) {
            self.counts.ring_full += u64::from(statistics.tp_drops);
        }
        self.counts
    }
}

impl AsFd for ReceiveRing {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// The mapped memory of a ring.
#[derive(Debug)]
struct Map {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: the memory belongs to this value alone (and the kernel, which slots' status
// words keep out of what is ours), so it may move to another thread.
unsafe impl Send for Map {}

impl Map {
    fn new(socket: &OwnedFd, bytes: usize) -> io::Result<Self> {
        // SAFETY: a new mapping at an address of the kernel's choice; checked below.
        let address = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED | libc::MAP_POPULATE,
                socket.as_raw_fd(),
                0,
            )
        };
        if address == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(address.cast()).ok_or(io::ErrorKind::InvalidData)?;
        Ok(Self { start, bytes })
    }

    /// The status word of the slot at `offset`.
    fn status(&self, offset: usize) -> &AtomicU32 {
        assert!(offset + mem::size_of::<libc::tpacket2_hdr>() <= self.bytes);
        // SAFETY: inside the mapping (asserted); slots start at multiples of at least 16,
        // so the word is aligned; both sides access it atomically only.
        unsafe { &*self.start.as_ptr().add(offset).cast::<AtomicU32>() }
    }

    fn is_filled(&self, offset: usize) -> bool {
        self.status(offset).load(Ordering::Relaxed) & libc::TP_STATUS_USER != 0
    }

    /// The slot at `offset` if the kernel has filled it.
    fn filled_slot(&mut self, offset: usize, slot_bytes: usize) -> Option<Slot<'_>> {
        assert!(offset + slot_bytes <= self.bytes);
        let status = self.status(offset).load(Ordering::Acquire);
        if status & libc::TP_STATUS_USER == 0 {
            return None;
        }
        // SAFETY: inside the mapping (asserted) and, with TP_STATUS_USER set, ours until
        // the status goes back to the kernel, for which `release` needs the borrow to end.
        let bytes =
            unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr().add(offset), slot_bytes) };
        Some(Slot { status, bytes })
    }

    /// Gives a slot back to the kernel.
    fn release(&mut self, offset: usize) {
        self.status(offset)
            .store(libc::TP_STATUS_KERNEL, Ordering::Release);
    }
}

impl Drop for Map {
    fn drop(&mut self) {
        // SAFETY: exactly the mapping that `new` made; no borrow of it is left.
        unsafe {
            libc::munmap(self.start.as_ptr().cast(), self.bytes);
        }
    }
}

/// A slot the kernel has filled: `struct tpacket2_hdr`, then the virtio header, the frame.
struct Slot<'a> {
    status: u32,
    bytes: &'a mut [u8],
}

struct Frame<'a> {
    bytes: &'a [u8],
}

impl<'a> Slot<'a> {
    fn word(&self, offset: usize) -> u32 {
        let bytes = &self.bytes[offset..offset + 4];
        u32::from_ne_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
    }

    fn half(&self, offset: usize) -> u16 {
        u16::from_ne_bytes([self.bytes[offset], self.bytes[offset + 1]])
    }

    /// The whole frame, repaired; `None` if the slot has only part of it.
    fn into_frame(self) -> Option<Frame<'a>> {
        use mem::offset_of;
        let length = self.word(offset_of!(libc::tpacket2_hdr, tp_len)) as usize;
        let captured = self.word(offset_of!(libc::tpacket2_hdr, tp_snaplen)) as usize;
        let start = usize::from(self.half(offset_of!(libc::tpacket2_hdr, tp_mac)));
        let tci = self.half(offset_of!(libc::tpacket2_hdr, tp_vlan_tci));
        let tpid = self.half(offset_of!(libc::tpacket2_hdr, tp_vlan_tpid));
        let end = start.checked_add(captured)?;
        if captured < length || end > self.bytes.len() || start < VNET_HEADER_BYTES {
            return None;
        }
        let Self { status, bytes } = self;
        let virtio = start - VNET_HEADER_BYTES;
        if bytes[virtio] & VNET_NEEDS_CHECKSUM != 0 {
            // Native byte order: PACKET_VNET_HDR without further flags.
            let half = |at: usize| usize::from(u16::from_ne_bytes([bytes[at], bytes[at + 1]]));
            let (sum_start, sum_offset) = (half(virtio + 6), half(virtio + 8));
            checksum::complete(&mut bytes[start..end], sum_start, sum_offset);
        }
        if status & libc::TP_STATUS_VLAN_VALID != 0 {
            let tpid = if status & libc::TP_STATUS_VLAN_TPID_VALID != 0 {
                tpid
            } else {
                vlan::TPID_CUSTOMER
            };
            // The virtio header has been read; its end is the room for the tag.
            let tagged = start - vlan::TAG_BYTES;
            if vlan::insert_tag(&mut bytes[tagged..end], tpid, tci) {
                return Some(Frame {
                    bytes: &bytes[tagged..end],
                });
            }
        }
        Some(Frame {
            bytes: &bytes[start..end],
        })
    }
}
