//! The packet socket: whole Ethernet frames in and out, in batches.

use super::batch::{BATCH_FRAMES_MAX, ReceiveBatch};
use std::io;
use std::mem::{size_of, zeroed};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

/// Why frames cannot be received now.
#[derive(Debug)]
pub enum ReceiveError {
    /// The interface went down or away.
    Down,
    System(io::Error),
}

/// Why the first frame of a batch was not taken.
#[derive(Debug)]
pub enum SendBlocked {
    /// The socket's send buffer is full: wait until it is writable.
    Buffer,
    /// The queueing discipline dropped the frame (ENOBUFS): try again a little later.
    Queue,
    /// The interface is down or gone.
    Down,
    /// The frame does not fit the interface's MTU.
    TooLong,
    /// Anything else; the frame is lost.
    System(io::Error),
}

/// A packet socket bound to one interface and one EtherType.
pub struct PacketSocket {
    pub(super) fd: OwnedFd,
    pub(super) receive: ReceiveBatch,
    pub(super) kernel_drops: u64,
}

impl PacketSocket {
    /// Frames of a full batch.
    pub fn batch_frames(&self) -> usize {
        self.receive.headers.len()
    }

    /// Takes the frames that wait, at most [`batch_frames`](Self::batch_frames); returns how many. Read
    /// them with [`frame`](Self::frame) before the next call.
    ///
    /// # Errors
    /// [`ReceiveError::Down`] once after the interface went down.
    pub fn receive(&mut self) -> Result<usize, ReceiveError> {
        self.receive.count = 0;
        let headers = &mut self.receive.headers;
        // SAFETY: every header points at one iovec and that at one slot of `slots`; all three
        // boxed slices live as long as self and are touched by nobody during the call.
        let received = unsafe {
            libc::recvmmsg(
                self.fd.as_raw_fd(),
                headers.as_mut_ptr(),
                headers.len() as u32,
                libc::MSG_DONTWAIT,
                std::ptr::null_mut(),
            )
        };
        if received < 0 {
            let source = io::Error::last_os_error();
            return match source.raw_os_error() {
                Some(libc::EAGAIN | libc::EINTR) => Ok(0),
                Some(libc::ENETDOWN | libc::ENODEV | libc::ENXIO) => Err(ReceiveError::Down),
                _ => Err(ReceiveError::System(source)),
            };
        }
        self.receive.count = received.unsigned_abs() as usize;
        Ok(self.receive.count)
    }

    /// Frame `index` of the last batch; `None` for one longer than the interface's MTU.
    ///
    /// # Panics
    /// If `index` is not below what [`receive`](Self::receive) returned.
    pub fn frame(&self, index: usize) -> Option<&[u8]> {
        self.receive.frame(index)
    }

    /// Sends frames, each given as a head and a body, in order; returns how many were
    /// taken (at least one).
    ///
    /// # Errors
    /// [`SendBlocked`] says why the first one was not taken.
    pub fn send(&self, frames: &[[&[u8]; 2]]) -> Result<usize, SendBlocked> {
        let count = frames.len().min(BATCH_FRAMES_MAX);
        if count == 0 {
            return Ok(0);
        }
        // SAFETY: iovec and mmsghdr are plain data for which all zeros is a valid value.
        let mut parts: [[libc::iovec; 2]; BATCH_FRAMES_MAX] = unsafe { zeroed() };
        // SAFETY: as above.
        let mut headers: [libc::mmsghdr; BATCH_FRAMES_MAX] = unsafe { zeroed() };
        for ((frame, part), header) in frames.iter().zip(&mut parts).zip(&mut headers) {
            for (bytes, vector) in frame.iter().zip(part.iter_mut()) {
                vector.iov_base = bytes.as_ptr().cast_mut().cast();
                vector.iov_len = bytes.len();
            }
            header.msg_hdr.msg_iov = part.as_mut_ptr();
            header.msg_hdr.msg_iovlen = if frame[1].is_empty() { 1 } else { 2 };
        }
        // SAFETY: the first `count` headers point at iovecs of `parts`, those at bytes
        // borrowed in `frames`; the kernel only reads them.
        let sent = unsafe {
            libc::sendmmsg(
                self.fd.as_raw_fd(),
                headers.as_mut_ptr(),
                count as u32,
                libc::MSG_DONTWAIT,
            )
        };
        if sent >= 0 {
            return Ok(sent.unsigned_abs() as usize);
        }
        let source = io::Error::last_os_error();
        Err(match source.raw_os_error() {
            Some(libc::EAGAIN | libc::EINTR) => SendBlocked::Buffer,
            Some(libc::ENOBUFS) => SendBlocked::Queue,
            Some(libc::ENETDOWN | libc::ENODEV | libc::ENXIO) => SendBlocked::Down,
            Some(libc::EMSGSIZE) => SendBlocked::TooLong,
            _ => SendBlocked::System(source),
        })
    }

    /// Frames the kernel dropped because the receive buffer was full, since the socket was
    /// opened.
    pub fn kernel_drops(&mut self) -> u64 {
        // SAFETY: tpacket_stats is plain data for which all zeros is a valid value.
        let mut statistics: libc::tpacket_stats = unsafe { zeroed() };
        let mut length = size_of::<libc::tpacket_stats>() as libc::socklen_t;
        // SAFETY: the buffer is as long as `length` says and outlives the call.
        let result = unsafe {
            libc::getsockopt(
                self.fd.as_raw_fd(),
                libc::SOL_PACKET,
                libc::PACKET_STATISTICS,
                (&raw mut statistics).cast(),
                &raw mut length,
            )
        };
        if result == 0 {
            // The kernel starts again at zero after each reading.
            self.kernel_drops += u64::from(statistics.tp_drops);
        }
        self.kernel_drops
    }
}

impl AsFd for PacketSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}
