//! Sending: frames collected in a ring shared with the kernel (`PACKET_TX_RING`) and sent
//! many at a time.
//!
//! Frames go through the interface's queueing discipline, so a rate set with `tc` holds
//! for the switch as it does for BMv2.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use super::interface::{Interface, InterfaceError};
use super::sending::{SendSlots, send_waiting};
use super::{ETHERNET_BYTES, FRAME_BYTES_MAX};
use super::{socket, vlan};

/// Frames collected for one system call.
pub const BATCH_FRAMES_MAX: usize = 64;

/// Times in a row that the kernel may refuse a frame as if it had no room, before it is dropped: 20 s, at one try each
/// 50 µs. A veth whose other end has a smaller MTU refuses long frames like this for ever.
const REFUSALS_MAX: u32 = 400_000;
/// The same for a frame as long as one that was dropped for this, where the kernel has taken shorter ones since.
const REFUSALS_AGAIN_MAX: u32 = 20;
/// Of frames of such a length one in so many is still tried.
const TRIED_ONE_IN: u32 = 1_000;

/// What left by a port and what did not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TransmitCounts {
    pub frames: u64,
    pub bytes: u64,
    /// Frames longer than the MTU allows, shorter than the header of the link layer, or empty.
    pub bad_length: u64,
    /// Frames for an interface that is down or gone.
    pub interface_down: u64,
    /// Frames refused for any other reason.
    pub failed: u64,
    /// Times the kernel had no room; the frame stays and is tried again.
    pub retried: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flushed {
    Empty,
    /// The socket's buffer is full; it becomes writable again.
    WaitWritable,
    /// The queue below is full; nothing tells when it has room.
    WaitTime,
    /// A [`Departure`] is under way: nothing was tried.
    WaitReturn,
}

/// What a call to the kernel has come to.
enum Settled {
    /// Further frames may be sent.
    GoesOn,
    /// They have to wait.
    Ends(Flushed),
    /// The interface is down, or was when the socket was last used: it keeps that as an
    /// error for the next call.
    Down,
}

/// Frames of a queue that are being sent without the queue: another thread can fill it
/// meanwhile. [`TransmitQueue::depart`] makes one, [`TransmitQueue::complete`] ends it.
#[derive(Debug)]
pub struct Departure {
    socket: Arc<OwnedFd>,
    error: Option<io::Error>,
}

impl Departure {
    /// Has the kernel send what waits. This is the slow part.
    pub fn send(&mut self) {
        self.error = send_waiting(&self.socket);
    }
}

/// Frames that leave by one interface.
#[derive(Debug)]
pub struct TransmitQueue {
    socket: Arc<OwnedFd>,
    slots: SendSlots,
    /// Frames of the departure that is under way; 0: there is none.
    departed: usize,
    /// Shortest frame that the interface takes.
    frame_bytes_min: usize,
    /// Longest frame without a VLAN tag.
    frame_bytes_max: usize,
    /// Times in a row that the kernel had no room for the first frame.
    refusals: u32,
    /// Frames of so many bytes are refused for good, as far as is known.
    refused_bytes: usize,
    /// Shorter ones have been taken since.
    takes_shorter: bool,
    /// Frames of such a length that were not tried since the last that was.
    untried: u32,
    counts: TransmitCounts,
}

impl TransmitQueue {
    /// Opens the interface for sending frames of the MTU it has now.
    pub fn open(interface: &Interface) -> Result<Self, InterfaceError> {
        let failed = |step| {
            move |error| InterfaceError::Open {
                name: interface.name().to_owned(),
                step,
                error,
            }
        };
        let socket = socket::open().map_err(failed("opening a packet socket"))?;
        let mtu = socket::mtu(&socket, interface.name()).map_err(failed("asking for the MTU"))?;
        let has_ethernet = socket::has_ethernet(&socket, interface.name())
            .map_err(failed("asking for the kind of link layer"))?;
        let frame_bytes_max = mtu.saturating_add(ETHERNET_BYTES).min(FRAME_BYTES_MAX);
        let slots = SendSlots::open(&socket, frame_bytes_max + vlan::TAG_BYTES)
            .map_err(failed("setting up the transmit ring"))?;
        socket::bind(&socket, interface, socket::NO_PROTOCOL)
            .map_err(failed("binding the sending socket"))?;
        Ok(Self {
            socket: Arc::new(socket),
            slots,
            departed: 0,
            frame_bytes_min: if has_ethernet { ETHERNET_BYTES } else { 1 },
            frame_bytes_max,
            refusals: 0,
            refused_bytes: usize::MAX,
            takes_shorter: false,
            untried: 0,
            counts: TransmitCounts::default(),
        })
    }

    /// Sends past the queueing discipline of the interface (`PACKET_QDISC_BYPASS`): less
    /// work a frame, but `tc` and captures on the interface do not see it.
    pub fn bypass_discipline(&self) -> io::Result<()> {
        let bypass = libc::PACKET_QDISC_BYPASS;
        socket::set_option(&self.socket, libc::SOL_PACKET, bypass, &1i32)
    }

    /// There is no room for another frame before a [`flush`](Self::flush), or before the
    /// interface has sent what it was given.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.slots.waiting() - self.departed >= BATCH_FRAMES_MAX || !self.slots.has_room()
    }

    /// No frame waits to be sent.
    pub fn is_empty(&self) -> bool {
        self.slots.waiting() == 0
    }

    /// Frames that wait to be sent.
    pub fn waiting(&self) -> usize {
        self.slots.waiting()
    }

    /// There is something to wait for: frames that wait, or the interface has not sent
    /// enough of what it was given for another one.
    pub fn is_stuck(&self) -> bool {
        !self.is_empty() || self.is_full()
    }

    /// A [`Departure`] is under way.
    #[inline]
    pub fn is_away(&self) -> bool {
        self.departed > 0
    }

    /// Begins to send what waits without the queue, which takes further frames meanwhile;
    /// none if nothing waits or the last departure is not complete.
    pub fn depart(&mut self) -> Option<Departure> {
        if self.is_away() || self.is_empty() {
            return None;
        }
        self.departed = self.slots.waiting();
        Some(Departure {
            socket: Arc::clone(&self.socket),
            error: None,
        })
    }

    /// Ends a departure: what the kernel took leaves the queue. As [`flush`](Self::flush),
    /// but frames that were collected meanwhile may wait although it says `Empty`. One of
    /// another queue, which this one has replaced, ends nothing.
    pub fn complete(&mut self, departure: Departure) -> Flushed {
        if !Arc::ptr_eq(&departure.socket, &self.socket) {
            return self.rest();
        }
        self.departed = 0;
        match self.settle(departure.error) {
            Settled::GoesOn => self.rest(),
            Settled::Ends(flushed) => flushed,
            Settled::Down => self.flush(),
        }
    }

    /// Collects a frame; `false` if there is no room. One whose length the interface does
    /// not take is dropped and counted.
    #[inline]
    pub fn push(&mut self, frame: &[u8]) -> bool {
        if self.is_full() {
            return false;
        }
        !self.has_length_of_frame(frame) || self.slots.push(frame)
    }

    /// Puts a frame in front of all that have been collected, be they a whole batch; `false`
    /// if there is no room.
    pub fn push_first(&mut self, frame: &[u8]) -> bool {
        if self.is_away() || !self.slots.has_room() {
            return false;
        }
        !self.has_length_of_frame(frame) || self.slots.push_first(frame)
    }

    /// Whether the interface takes a frame of this length; counts it if not.
    #[inline]
    fn has_length_of_frame(&mut self, frame: &[u8]) -> bool {
        let tag_bytes = if vlan::is_tagged(frame) {
            vlan::TAG_BYTES
        } else {
            0
        };
        let fits = (self.frame_bytes_min..=self.frame_bytes_max + tag_bytes).contains(&frame.len());
        if !fits {
            self.counts.bad_length += 1;
        }
        fits && !self.is_known_to_be_refused(frame.len())
    }

    /// Whether a frame of this length need not be tried; counts it then.
    #[inline]
    fn is_known_to_be_refused(&mut self, bytes: usize) -> bool {
        if bytes < self.refused_bytes || !self.takes_shorter {
            return false;
        }
        self.untried = (self.untried + 1) % TRIED_ONE_IN;
        if self.untried > 0 {
            self.counts.failed += 1;
        }
        self.untried > 0
    }

    /// Sends what has been collected, as far as the kernel takes it. A frame that it
    /// refuses for good is dropped and counted.
    pub fn flush(&mut self) -> Flushed {
        if self.is_away() {
            return Flushed::WaitReturn;
        }
        let mut is_down = false;
        while !self.is_empty() {
            let error = send_waiting(&self.socket);
            match self.settle(error) {
                Settled::GoesOn => {}
                Settled::Ends(flushed) => return flushed,
                Settled::Down if !is_down => is_down = true,
                Settled::Down => {
                    self.counts.interface_down += self.slots.waiting() as u64;
                    self.slots.clear();
                }
            }
        }
        self.rest()
    }

    /// Counts what the kernel took, and drops what it will never take.
    fn settle(&mut self, error: Option<io::Error>) -> Settled {
        let taken = self.slots.taken();
        self.counts.frames += taken.frames as u64;
        self.counts.bytes += taken.bytes;
        if taken.frames > 0 {
            self.refusals = 0;
            self.takes_shorter = true;
        }
        if taken.longest_bytes >= self.refused_bytes {
            self.refused_bytes = usize::MAX;
        }
        match error.and_then(|error| error.raw_os_error()) {
            Some(libc::EINTR) => {}
            Some(libc::EAGAIN) => {
                self.counts.retried += 1;
                return Settled::Ends(Flushed::WaitWritable);
            }
            Some(libc::ENOBUFS | libc::ENOMEM) => {
                self.counts.retried += 1;
                if !self.is_refused_for_good() {
                    return Settled::Ends(Flushed::WaitTime);
                }
                self.counts.failed += 1;
                self.slots.drop_first();
            }
            Some(libc::ENETDOWN | libc::ENXIO | libc::ENODEV) => return Settled::Down,
            None if taken.frames > 0 => {}
            _ if self.is_empty() => {}
            _ => {
                self.counts.failed += 1;
                self.slots.drop_first();
            }
        }
        Settled::GoesOn
    }

    /// The kernel has said once more that it has no room. Whether it is to be believed no longer.
    fn is_refused_for_good(&mut self) -> bool {
        let bytes = self.slots.first_bytes();
        let is_known = bytes >= self.refused_bytes && self.takes_shorter;
        let most = if is_known {
            REFUSALS_AGAIN_MAX
        } else {
            REFUSALS_MAX
        };
        self.refusals += 1;
        if bytes == 0 || self.refusals <= most {
            return false;
        }
        self.refusals = 0;
        self.refused_bytes = self.refused_bytes.min(bytes);
        self.takes_shorter = is_known;
        true
    }

    /// How a flush ends that the kernel has not held up.
    fn rest(&self) -> Flushed {
        if self.slots.has_room() {
            Flushed::Empty
        } else {
            Flushed::WaitTime
        }
    }

    /// Takes the error the kernel has kept for the socket.
    pub fn take_error(&self) -> Option<io::Error> {
        socket::take_error(&self.socket)
    }

    /// Goes on counting where another queue of the same port ended.
    pub fn carry_counts(&mut self, counts: TransmitCounts) {
        self.counts = counts;
    }

    /// The socket, to wait for without the queue.
    pub fn socket(&self) -> Arc<OwnedFd> {
        Arc::clone(&self.socket)
    }

    pub fn counts(&self) -> TransmitCounts {
        self.counts
    }
}

impl AsFd for TransmitQueue {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
