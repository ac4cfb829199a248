//! Memory that a packet socket shares with the kernel.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

/// The mapped memory of a ring.
///
/// It is cut into pieces, each with a status word that says whose it is. What the words
/// mean depends on the direction: of a piece that receives, the kernel does not touch the
/// bytes while `TP_STATUS_USER` is set; of one that sends, while `TP_STATUS_SENDING` is not,
/// except in a call of `send` on the socket.
#[derive(Debug)]
pub(super) struct Map {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: the memory belongs to this value alone (and the kernel, which the status words
// keep out of what is ours), so it may move to another thread.
unsafe impl Send for Map {}

impl Map {
    pub(super) fn new(socket: &OwnedFd, bytes: usize) -> io::Result<Self> {
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

    /// What the status word at `offset`, a multiple of 4, says.
    #[inline]
    pub(super) fn status(&self, offset: usize) -> u32 {
        self.word(offset).load(Ordering::Acquire)
    }

    fn word(&self, offset: usize) -> &AtomicU32 {
        assert!(offset.is_multiple_of(4) && offset + 4 <= self.bytes);
        // SAFETY: inside the mapping and aligned (asserted; a mapping starts at a page);
        // both sides access it atomically only.
        unsafe { &*self.start.as_ptr().add(offset).cast::<AtomicU32>() }
    }

    /// The `length` bytes at `offset` of a piece whose status word is at `status_offset`,
    /// and that word; `None` if by the word the piece is not ours.
    #[inline]
    pub(super) fn piece(
        &mut self,
        status_offset: usize,
        offset: usize,
        length: usize,
        is_ours: impl FnOnce(u32) -> bool,
    ) -> Option<(u32, &mut [u8])> {
        assert!(offset <= self.bytes && length <= self.bytes - offset);
        let status = self.status(status_offset);
        if !is_ours(status) {
            return None;
        }
        // SAFETY: inside the mapping (asserted) and by its status ours, until the kernel is
        // given it, for which `give` needs the borrow to end.
        // Callers ask for bytes of the piece that the word speaks of.
        let bytes =
            unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr().add(offset), length) };
        Some((status, bytes))
    }

    /// Gives a piece to the kernel, with what it is to do with it.
    #[inline]
    pub(super) fn give(&mut self, status_offset: usize, status: u32) {
        self.word(status_offset).store(status, Ordering::Release);
    }
}

/// Whether the kernel has filled a piece that receives.
#[inline]
pub(super) fn is_filled(status: u32) -> bool {
    status & libc::TP_STATUS_USER != 0
}

impl Drop for Map {
    fn drop(&mut self) {
        // SAFETY: exactly the mapping that `new` made; no borrow of it is left.
        unsafe {
            libc::munmap(self.start.as_ptr().cast(), self.bytes);
        }
    }
}
