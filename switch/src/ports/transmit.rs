//! Sending: frames collected in a ring shared with the kernel (`PACKET_TX_RING`) and sent
//! many at a time.
//!
//! Frames go through the interface's queueing discipline, so a rate set with `tc` holds
//! for the switch as it does for BMv2.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use super::interface::{Interface, InterfaceError};
use super::sending::SendSlots;
use super::{socket, vlan};
use crate::pipeline::limits::PACKET_BYTES_MAX;

/// Bytes of an Ethernet header, the shortest frame.
const ETHERNET_BYTES: usize = 14;

/// Frames collected for one system call.
pub const BATCH_FRAMES_MAX: usize = 64;

/// What left by a port and what did not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TransmitCounts {
    /// Frames sent.
    pub frames: u64,
    /// Bytes of those frames.
    pub bytes: u64,
    /// Frames longer than the MTU allows, or shorter than a header.
    pub bad_length: u64,
    /// Frames for an interface that is down or gone.
    pub interface_down: u64,
    /// Frames refused for any other reason.
    pub failed: u64,
    /// Times the kernel had no room; the frame stays and is tried again.
    pub retried: u64,
}

/// How a flush ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flushed {
    /// Nothing is left.
    Empty,
    /// The socket's buffer is full; it becomes writable again.
    WaitWritable,
    /// The queue below is full; nothing tells when it has room.
    WaitTime,
}

/// Frames that leave by one interface.
#[derive(Debug)]
pub struct TransmitQueue {
    socket: OwnedFd,
    slots: SendSlots,
    /// Longest frame without a VLAN tag.
    frame_bytes_max: usize,
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
        let mtu = socket::mtu(&socket, interface).map_err(failed("asking for the MTU"))?;
        let frame_bytes_max = mtu.saturating_add(ETHERNET_BYTES).min(PACKET_BYTES_MAX);
        let slots = SendSlots::open(&socket, frame_bytes_max + vlan::TAG_BYTES)
            .map_err(failed("setting up the transmit ring"))?;
        socket::bind(&socket, interface, socket::NO_PROTOCOL)
            .map_err(failed("binding the sending socket"))?;
        Ok(Self {
            socket,
            slots,
            frame_bytes_max,
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
        self.slots.waiting() >= BATCH_FRAMES_MAX || !self.slots.has_room()
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
        if !self.slots.has_room() {
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
        let fits = (ETHERNET_BYTES..=self.frame_bytes_max + tag_bytes).contains(&frame.len());
        if !fits {
            self.counts.bad_length += 1;
        }
        fits
    }

    /// Sends what has been collected, as far as the kernel takes it. A frame that it
    /// refuses for good is dropped and counted.
    pub fn flush(&mut self) -> Flushed {
        while !self.is_empty() {
            let (taken, error) = self.slots.send(&self.socket);
            self.counts.frames += taken.frames as u64;
            self.counts.bytes += taken.bytes;
            match error.and_then(|error| error.raw_os_error()) {
                Some(libc::EINTR) => {}
                Some(libc::EAGAIN) => {
                    self.counts.retried += 1;
                    return Flushed::WaitWritable;
                }
                Some(libc::ENOBUFS | libc::ENOMEM) => {
                    self.counts.retried += 1;
                    return Flushed::WaitTime;
                }
                Some(libc::ENETDOWN | libc::ENXIO | libc::ENODEV) => {
                    self.counts.interface_down += self.slots.waiting() as u64;
                    self.slots.clear();
                }
                None if taken.frames > 0 => {}
                _ if self.is_empty() => {}
                _ => {
                    self.counts.failed += 1;
                    self.slots.drop_first();
                }
            }
        }
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

    /// Counts so far.
    pub fn counts(&self) -> TransmitCounts {
        self.counts
    }
}

impl AsFd for TransmitQueue {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
