//! How a ring is cut into slots, for receiving and for sending.

/// Memory the kernel allocates at once; no slot reaches from one such block into the next.
const BLOCK_BYTES: usize = 65_536;

/// What processors cache at once.
const CACHE_LINE_BYTES: usize = 64;

/// Largest slot: the pipeline takes no longer packets than 16 KiB.
const SLOT_BYTES_MAX: usize = 257 * CACHE_LINE_BYTES;

/// Slots of one size in blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    pub(super) slot_bytes: usize,
    pub(super) slots: usize,
    slots_a_block: usize,
}

/// Bytes of a slot that has room for `bytes`, or for as many as a slot may have: an odd
/// number of cache lines, so that the starts of slots, all that short frames touch, spread
/// over the whole cache.
pub(super) fn slot_bytes_for(bytes: usize) -> usize {
    let lines = bytes.div_ceil(CACHE_LINE_BYTES) | 1;
    (lines * CACHE_LINE_BYTES).min(SLOT_BYTES_MAX)
}

impl Layout {
    /// At least `slots` slots of `slot_bytes`, in whole blocks; but not more memory than
    /// `bytes_max`, if that is a block at least.
    pub(super) fn new(slots: usize, slot_bytes: usize, bytes_max: usize) -> Self {
        let slots_a_block = BLOCK_BYTES / slot_bytes;
        let blocks_max = (bytes_max / BLOCK_BYTES).max(1);
        let blocks = slots.div_ceil(slots_a_block).clamp(1, blocks_max);
        Self {
            slot_bytes,
            slots: blocks * slots_a_block,
            slots_a_block,
        }
    }

    pub(super) fn bytes(&self) -> usize {
        self.slots / self.slots_a_block * BLOCK_BYTES
    }

    /// What the kernel is asked for.
    pub(super) fn request(&self) -> libc::tpacket_req {
        libc::tpacket_req {
            tp_block_size: BLOCK_BYTES as u32,
            tp_block_nr: (self.slots / self.slots_a_block) as u32,
            tp_frame_size: self.slot_bytes as u32,
            tp_frame_nr: self.slots as u32,
        }
    }

    #[inline]
    pub(super) fn offset(&self, slot: usize) -> usize {
        slot / self.slots_a_block * BLOCK_BYTES + slot % self.slots_a_block * self.slot_bytes
    }

    /// The slot `distance` (at most a whole ring) after another one.
    #[inline]
    pub(super) fn after(&self, slot: usize, distance: usize) -> usize {
        let sum = slot + distance;
        if sum >= self.slots {
            sum - self.slots
        } else {
            sum
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_hold_what_they_must_and_stay_within_blocks() {
        for bytes in [1, 64, 65, 1_800, 3_656, 9_256, 16_384] {
            let layout = Layout::new(100, slot_bytes_for(bytes), usize::MAX);
            assert!(layout.slot_bytes >= bytes && layout.slot_bytes < bytes + 3 * 64);
            assert_eq!(layout.slot_bytes / 64 % 2, 1);
            assert!(layout.slots >= 100);
            assert_eq!(layout.request().tp_frame_nr as usize, layout.slots);
            let mut end = 0;
            for slot in 0..layout.slots {
                let offset = layout.offset(slot);
                assert!(offset >= end);
                end = offset + layout.slot_bytes;
                assert_eq!(offset / BLOCK_BYTES, (end - 1) / BLOCK_BYTES);
            }
            assert!(end <= layout.bytes());
        }
        assert_eq!(slot_bytes_for(1 << 20), SLOT_BYTES_MAX);
    }

    #[test]
    fn memory_is_bounded() {
        let layout = Layout::new(1 << 16, slot_bytes_for(9_000), 1 << 20);
        assert_eq!(layout.bytes(), 1 << 20);
        assert_eq!(Layout::new(1, slot_bytes_for(64), 0).bytes(), BLOCK_BYTES);
    }

    #[test]
    fn after_the_last_slot_comes_the_first() {
        let layout = Layout::new(3, slot_bytes_for(16_384), 0);
        assert_eq!(layout.slots, 3);
        assert_eq!(layout.after(2, 1), 0);
        assert_eq!(layout.after(1, 3), 1);
    }
}
