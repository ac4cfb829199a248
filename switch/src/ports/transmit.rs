//! Sending: frames collected and handed to the kernel many at a time (`sendmmsg`).
//!
//! Frames go through the interface's queueing discipline, so a rate set with `tc` holds
//! for the switch as it does for BMv2.

use std::io;
use std::mem;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use super::interface::{Interface, InterfaceError};
use super::socket;

/// Frames collected for one system call.
pub const BATCH_FRAMES_MAX: usize = 64;

/// What left by a port and what did not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TransmitCounts {
    /// Frames sent.
    pub frames: u64,
    /// Bytes of those frames.
    pub bytes: u64,
    /// Frames the kernel refused: longer than the MTU allows, or shorter than a header.
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
    /// Frames `first..filled` are to be sent.
    frames: Vec<Vec<u8>>,
    first: usize,
    filled: usize,
    vectors: Vec<libc::iovec>,
    messages: Vec<libc::mmsghdr>,
    counts: TransmitCounts,
}

// SAFETY: the pointers in `vectors` and `messages` are written and used within one call
// of `send` only and mean nothing outside it.
unsafe impl Send for TransmitQueue {}

impl TransmitQueue {
    /// Opens the interface for sending.
    pub fn open(interface: &Interface) -> Result<Self, InterfaceError> {
        let failed = |step| {
            move |error| InterfaceError::Open {
                name: interface.name().to_owned(),
                step,
                error,
            }
        };
        let socket = socket::open().map_err(failed("opening a packet socket"))?;
        socket::bind(&socket, interface, socket::NO_PROTOCOL)
            .map_err(failed("binding the sending socket"))?;
        // SAFETY: all zeros is a valid value of these plain structures.
        let (vector, message) = unsafe { (mem::zeroed(), mem::zeroed()) };
        Ok(Self {
            socket,
            frames: vec![Vec::new(); BATCH_FRAMES_MAX],
            first: 0,
            filled: 0,
            vectors: vec![vector; BATCH_FRAMES_MAX],
            messages: vec![message; BATCH_FRAMES_MAX],
            counts: TransmitCounts::default(),
        })
    }

    /// Sends past the queueing discipline of the interface (`PACKET_QDISC_BYPASS`): less
    /// work a frame, but `tc` and captures on the interface do not see it.
    pub fn bypass_discipline(&self) -> io::Result<()> {
        let bypass = libc::PACKET_QDISC_BYPASS;
        socket::set_option(&self.socket, libc::SOL_PACKET, bypass, &1i32)
    }

    /// There is no room for another frame before a [`flush`](Self::flush).
    pub fn is_full(&self) -> bool {
        self.filled == BATCH_FRAMES_MAX
    }

    /// No frame waits to be sent.
    pub fn is_empty(&self) -> bool {
        self.first == self.filled
    }

    /// Frames that wait to be sent.
    pub fn waiting(&self) -> usize {
        self.filled - self.first
    }

    /// Collects a frame; `false` if there is no room.
    pub fn push(&mut self, frame: &[u8]) -> bool {
        if self.is_full() {
            return false;
        }
        let room = &mut self.frames[self.filled];
        room.clear();
        room.extend_from_slice(frame);
        self.filled += 1;
        true
    }

    /// Puts a frame in front of all that have been collected; `false` if there is no room.
    pub fn push_first(&mut self, frame: &[u8]) -> bool {
        if !self.push(frame) {
            return false;
        }
        self.frames[self.first..self.filled].rotate_right(1);
        true
    }

    /// Sends what has been collected, as far as the kernel takes it. A frame that it
    /// refuses for good is dropped and counted.
    pub fn flush(&mut self) -> Flushed {
        while self.first < self.filled {
            match self.send() {
                Ok(sent) => {
                    for frame in &self.frames[self.first..self.first + sent] {
                        self.counts.bytes += frame.len() as u64;
                    }
                    self.counts.frames += sent as u64;
                    self.first += sent;
                }
                Err(error) => match error.raw_os_error() {
                    Some(libc::EINTR) => {}
                    Some(libc::EAGAIN) => {
                        self.counts.retried += 1;
                        return self.keep_rest(Flushed::WaitWritable);
                    }
                    Some(libc::ENOBUFS | libc::ENOMEM) => {
                        self.counts.retried += 1;
                        return self.keep_rest(Flushed::WaitTime);
                    }
                    Some(libc::EMSGSIZE | libc::EINVAL) => {
                        self.counts.bad_length += 1;
                        self.first += 1;
                    }
                    Some(libc::ENETDOWN | libc::ENXIO | libc::ENODEV) => {
                        self.counts.interface_down += (self.filled - self.first) as u64;
                        self.first = self.filled;
                    }
                    _ => {
                        self.counts.failed += 1;
                        self.first += 1;
                    }
                },
            }
        }
        self.keep_rest(Flushed::Empty)
    }

    /// Takes the error the kernel has kept for the socket.
    pub fn take_error(&self) -> Option<io::Error> {
        socket::take_error(&self.socket)
    }

    /// Counts so far.
    pub fn counts(&self) -> TransmitCounts {
        self.counts
    }

    /// Moves what is left to the front, so that there is room behind it.
    fn keep_rest(&mut self, flushed: Flushed) -> Flushed {
        self.frames[..self.filled].rotate_left(self.first);
        self.filled -= self.first;
        self.first = 0;
        flushed
    }

    /// One system call; gives the number of frames taken, at least one.
    fn send(&mut self) -> io::Result<usize> {
        let waiting = &mut self.frames[self.first..self.filled];
        let count = waiting.len();
        for (index, frame) in waiting.iter_mut().enumerate() {
            self.vectors[index] = libc::iovec {
                iov_base: frame.as_mut_ptr().cast(),
                iov_len: frame.len(),
            };
            let header = &mut self.messages[index].msg_hdr;
            header.msg_iov = &raw mut self.vectors[index];
            header.msg_iovlen = 1;
        }
        // SAFETY: `count` messages are set up, each with one vector to a frame's bytes;
        // all of it outlives the call, and the kernel only reads what they point to.
        let sent = unsafe {
            libc::sendmmsg(
                self.socket.as_raw_fd(),
                self.messages.as_mut_ptr(),
                count as u32,
                libc::MSG_DONTWAIT,
            )
        };
        if sent <= 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(sent as usize)
    }
}

impl AsFd for TransmitQueue {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
