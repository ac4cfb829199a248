//! Memory for a batch of received frames.

use std::mem::zeroed;

/// Frames moved by one system call at most.
pub const BATCH_FRAMES_MAX: usize = 64;
/// Fewest frames of a batch, however long they are.
const BATCH_FRAMES_MIN: usize = 8;
/// Bytes of a batch of more frames than that.
const BATCH_BYTES_MAX: usize = 576 << 10;

/// Frames of a batch whose slots have so many bytes each.
pub fn batch_frames(slot_bytes: usize) -> usize {
    (BATCH_BYTES_MAX / slot_bytes).clamp(BATCH_FRAMES_MIN, BATCH_FRAMES_MAX)
}

/// Room for one batch. The kernel's structures point into each other, so all of them are
/// boxed once and never move.
pub(super) struct ReceiveBatch {
    slots: Box<[u8]>,
    slot_bytes: usize,
    pub(super) headers: Box<[libc::mmsghdr]>,
    /// Held for the pointers in `headers`.
    _vectors: Box<[libc::iovec]>,
    pub(super) count: usize,
}

// SAFETY: the raw pointers point into the boxes of the same value, which move with it.
unsafe impl Send for ReceiveBatch {}

impl ReceiveBatch {
    pub(super) fn new(frame_bytes_max: usize) -> Self {
        let slot_bytes = frame_bytes_max.next_multiple_of(64);
        let mut slots = vec![0; slot_bytes * batch_frames(slot_bytes)].into_boxed_slice();
        let mut vectors: Box<[libc::iovec]> = slots
            .chunks_exact_mut(slot_bytes)
            .map(|slot| libc::iovec {
                iov_base: slot.as_mut_ptr().cast(),
                iov_len: slot_bytes,
            })
            .collect();
        let headers = vectors
            .iter_mut()
            .map(|vector| {
                // SAFETY: mmsghdr is plain data for which all zeros is a valid value.
                let mut header: libc::mmsghdr = unsafe { zeroed() };
                header.msg_hdr.msg_iov = vector;
                header.msg_hdr.msg_iovlen = 1;
                header
            })
            .collect();
        Self {
            slots,
            slot_bytes,
            headers,
            _vectors: vectors,
            count: 0,
        }
    }

    pub(super) fn frame(&self, index: usize) -> Option<&[u8]> {
        assert!(
            index < self.count,
            "frame {index} of a batch of {}",
            self.count
        );
        let header = &self.headers[index];
        if header.msg_hdr.msg_flags & libc::MSG_TRUNC != 0 {
            return None;
        }
        let start = index * self.slot_bytes;
        Some(&self.slots[start..start + (header.msg_len as usize).min(self.slot_bytes)])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_are_bounded_in_bytes() {
        for slot_bytes in [576, 1_536, 9_280, 65_600] {
            let frames = batch_frames(slot_bytes);
            assert!((BATCH_FRAMES_MIN..=BATCH_FRAMES_MAX).contains(&frames));
            let bytes = ReceiveBatch::new(slot_bytes).slots.len();
            assert!(bytes <= BATCH_BYTES_MAX.max(BATCH_FRAMES_MIN * slot_bytes));
        }
        assert_eq!(batch_frames(9_216), BATCH_FRAMES_MAX);
    }
}
