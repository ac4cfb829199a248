//! Receiving: a ring shared with the kernel (`PACKET_RX_RING`).

use std::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::str::FromStr;
use std::sync::Arc;

use super::blocks::Blocks;
use super::interface::{Interface, InterfaceError};
use super::layout::{Layout, slot_bytes_for};
use super::slots::Slots;
use super::socket;

/// Fewest and most slots of a ring.
pub const RING_FRAMES_MIN: usize = 16;
/// See [`RING_FRAMES_MIN`].
pub const RING_FRAMES_MAX: usize = 65_536;

/// What a slot has room for beside the payload of a frame: the ring's header, the Ethernet
/// header and VLAN tags.
const SLOT_EXTRA_BYTES: usize = 256;
/// Most memory of one ring; larger slots mean fewer of them.
pub const RING_BYTES_MAX: usize = 1 << 24;
/// The same of a ring that must not lose what comes.
pub const RING_BYTES_MAX_LOSSLESS: usize = 1 << 27;

/// What came in by a port and what did not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReceiveCounts {
    /// Frames handed to the switch.
    pub frames: u64,
    pub bytes: u64,
    /// Frames that found the ring full.
    pub ring_full: u64,
    /// Frames longer than a slot (segmentation offload, jumbo frames).
    pub too_long: u64,
}

/// How the kernel hands frames over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReceiveMode {
    /// Each at once (TPACKET_V2).
    #[default]
    Slots,
    /// Many at once, up to a millisecond late (TPACKET_V3): less work at high rates.
    Blocks,
}

impl FromStr for ReceiveMode {
    type Err = String;

    /// `v2` or `v3`, as the versions of the kernel's rings are called.
    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "v2" => Ok(Self::Slots),
            "v3" => Ok(Self::Blocks),
            _ => Err(format!(
                "`{text}` is not a way to receive: v2 (each frame at once) or v3 (many at \
                 once, up to 1 ms late)"
            )),
        }
    }
}

impl fmt::Display for ReceiveMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Slots => "v2",
            Self::Blocks => "v3",
        })
    }
}

/// Frames that arrive on one interface.
#[derive(Debug)]
pub struct ReceiveRing {
    socket: Arc<OwnedFd>,
    ring: Ring,
    mtu: usize,
    slot_bytes: usize,
    counts: ReceiveCounts,
}

#[derive(Debug)]
enum Ring {
    Slots(Slots),
    Blocks(Blocks),
}

/// Slot for frames with a payload of `mtu` bytes.
fn slot_bytes_of(mtu: usize) -> usize {
    slot_bytes_for(mtu.saturating_add(SLOT_EXTRA_BYTES))
}

impl ReceiveRing {
    /// Opens the interface in promiscuous mode, with room for at least `frames` frames
    /// that wait ([`RING_FRAMES_MIN`] to [`RING_FRAMES_MAX`]), fewer if they would take more than
    /// [`RING_BYTES_MAX`]. Frames that this machine
    /// sends on the interface are not seen.
    pub fn open(interface: &Interface, frames: usize) -> Result<Self, InterfaceError> {
        Self::open_as(interface, frames, ReceiveMode::default())
    }

    /// The same, in a given mode. With [`ReceiveMode::Blocks`] there is room for at least
    /// as many bytes.
    pub fn open_as(
        interface: &Interface,
        frames: usize,
        mode: ReceiveMode,
    ) -> Result<Self, InterfaceError> {
        Self::open_with(interface, (frames, RING_BYTES_MAX), mode)
    }

    /// The same with at most so much memory, bytes.
    pub fn open_with(
        interface: &Interface,
        (frames, bytes_max): (usize, usize),
        mode: ReceiveMode,
    ) -> Result<Self, InterfaceError> {
        let failed = |step| {
            move |error| InterfaceError::Open {
                name: interface.name().to_owned(),
                step,
                error,
            }
        };
        let socket = socket::open().map_err(failed("opening a packet socket"))?;
        let mtu = socket::mtu(&socket, interface.name()).map_err(failed("asking for the MTU"))?;
        let slot_bytes = slot_bytes_of(mtu);
        let frames = frames.clamp(RING_FRAMES_MIN, RING_FRAMES_MAX);
        let layout = Layout::new(frames, slot_bytes, bytes_max);
        let ring = match mode {
            ReceiveMode::Slots => Slots::open(&socket, layout).map(Ring::Slots),
            ReceiveMode::Blocks => {
                Blocks::open(&socket, layout.bytes(), slot_bytes).map(Ring::Blocks)
            }
        };
        let ring = ring.map_err(failed("setting up the receive ring"))?;
        let ignore = libc::PACKET_IGNORE_OUTGOING;
        socket::set_option(&socket, libc::SOL_PACKET, ignore, &1i32)
            .map_err(failed("asking for PACKET_IGNORE_OUTGOING"))?;
        socket::bind(&socket, interface, socket::ALL_PROTOCOLS)
            .map_err(failed("binding the receiving socket"))?;
        socket::set_promiscuous(&socket, interface).map_err(failed("going promiscuous"))?;
        Ok(Self {
            socket: Arc::new(socket),
            ring,
            mtu,
            slot_bytes,
            counts: ReceiveCounts::default(),
        })
    }

    /// Hands over at most `limit` frames that have arrived, oldest first, and gives their
    /// number. Does not wait and makes no system call. VLAN tags that the kernel took out
    /// are back in, and checksums that a local sender left out are complete.
    pub fn receive(&mut self, limit: usize, mut take: impl FnMut(&[u8])) -> usize {
        let counts = &mut self.counts;
        let mut take = |frame: Option<&[u8]>| match frame {
            Some(frame) => {
                counts.frames += 1;
                counts.bytes += frame.len() as u64;
                take(frame);
            }
            None => counts.too_long += 1,
        };
        let mut taken = 0;
        let (mut taken_ahead, mut taken_bytes) = (0, 0);
        match &mut self.ring {
            Ring::Slots(slots) => {
                while taken < limit {
                    let received = if slots.next_is_taken() {
                        slots.receive(|frame| {
                            taken_bytes += frame.map_or(0, |frame| frame.len() as u64);
                            taken_ahead += 1;
                        })
                    } else {
                        slots.receive(&mut take)
                    };
                    if !received {
                        break;
                    }
                    taken += 1;
                }
            }
            Ring::Blocks(blocks) => {
                while taken < limit && blocks.receive(&mut take) {
                    taken += 1;
                }
            }
        }
        self.counts.frames += taken_ahead;
        self.counts.bytes += taken_bytes;
        taken
    }

    /// Shows every frame that waits, once, oldest first, as it came from the kernel. What
    /// `take` takes is not handed over by [`receive`](Self::receive); all frames stay in
    /// the ring until then. With [`ReceiveMode::Blocks`] it shows nothing.
    pub fn look_ahead(&mut self, take: impl FnMut(&[u8]) -> bool) {
        if let Ring::Slots(slots) = &mut self.ring {
            slots.look_ahead(take);
        }
    }

    /// MTU of the interface when it was opened: longest payload of a frame, bytes.
    pub fn mtu(&self) -> usize {
        self.mtu
    }

    /// Frames that may wait at a time, if each is as long as it can be.
    pub fn slots(&self) -> usize {
        match &self.ring {
            Ring::Slots(slots) => slots.len(),
            Ring::Blocks(blocks) => blocks.bytes() / self.slot_bytes,
        }
    }

    /// Whether the MTU has been raised since this was opened: longer frames may come, and
    /// may be sent, than there is room for.
    pub fn is_outgrown(&self, mtu: Option<usize>) -> bool {
        mtu.is_some_and(|mtu| mtu > self.mtu)
    }

    /// Whether a frame waits.
    #[inline]
    pub fn is_ready(&self) -> bool {
        match &self.ring {
            Ring::Slots(slots) => slots.is_ready(),
            Ring::Blocks(blocks) => blocks.is_ready(),
        }
    }

    /// Takes the error the kernel has kept: `ENETDOWN` after the interface went down or
    /// away. After a mere down and up the ring goes on by itself.
    pub fn take_error(&self) -> Option<io::Error> {
        socket::take_error(&self.socket)
    }

    /// Frames handed over so far; asks nobody.
    pub fn received_frames(&self) -> u64 {
        self.counts.frames
    }

    /// The socket, to wait for without the ring.
    pub fn socket(&self) -> &Arc<OwnedFd> {
        &self.socket
    }

    /// Goes on counting where another ring of the same port ended.
    pub fn carry_counts(&mut self, counts: ReceiveCounts) {
        self.counts = counts;
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
