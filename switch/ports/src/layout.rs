//! How a ring is cut into slots, for receiving and for sending.

use super::FRAME_BYTES_MAX;

/// Least memory that the kernel allocates at once; no slot reaches from one such block into the next.
const BLOCK_BYTES_LEAST: usize = 65_536;

/// Slots of a block at least: what their block has left over is less than a slot.
const SLOTS_A_BLOCK_LEAST: usize = 7;

/// What processors cache at once.
const CACHE_LINE_BYTES: usize = 64;

/// What a slot has room for beside a frame: the ring's header and VLAN tags.
const SLOT_EXTRA_BYTES: usize = 256;

/// Largest slot: an odd number of cache lines.
const SLOT_BYTES_MAX: usize =
    ((FRAME_BYTES_MAX + SLOT_EXTRA_BYTES).div_ceil(CACHE_LINE_BYTES) | 1) * CACHE_LINE_BYTES;

/// Slots of one size in blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    pub(super) slot_bytes: usize,
    pub(super) slots: usize,
    slots_a_block: usize,
    block_bytes: usize,
}

/// Bytes of a block of slots: a power of two, as the kernel allocates them.
pub(super) fn block_bytes_for(slot_bytes: usize) -> usize {
    (SLOTS_A_BLOCK_LEAST * slot_bytes)
        .next_power_of_two()
        .max(BLOCK_BYTES_LEAST)
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
        let block_bytes = block_bytes_for(slot_bytes);
        let slots_a_block = block_bytes / slot_bytes;
        let blocks_max = (bytes_max / block_bytes).max(1);
        let blocks = slots.div_ceil(slots_a_block).clamp(1, blocks_max);
        Self {
            slot_bytes,
            slots: blocks * slots_a_block,
            slots_a_block,
            block_bytes,
        }
    }

    pub(super) fn bytes(&self) -> usize {
        self.slots / self.slots_a_block * self.block_bytes
    }

    /// What the kernel is asked for.
    pub(super) fn request(&self) -> libc::tpacket_req {
        libc::tpacket_req {
            tp_block_size: self.block_bytes as u32,
            tp_block_nr: (self.slots / self.slots_a_block) as u32,
            tp_frame_size: self.slot_bytes as u32,
            tp_frame_nr: self.slots as u32,
        }
    }

    #[inline]
    pub(super) fn offset(&self, slot: usize) -> usize {
        slot / self.slots_a_block * self.block_bytes + slot % self.slots_a_block * self.slot_bytes
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
        for bytes in [
            1,
            64,
            65,
            1_800,
            3_656,
            9_256,
            16_384,
            33_024,
            FRAME_BYTES_MAX,
        ] {
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
                let block = layout.block_bytes;
                assert_eq!(offset / block, (end - 1) / block);
            }
            assert!(end <= layout.bytes());
            assert!(
                layout.bytes() <= 5 * layout.slots * layout.slot_bytes / 4,
                "{bytes}"
            );
        }
        assert_eq!(slot_bytes_for(1 << 20), SLOT_BYTES_MAX);
    }

    #[test]
    fn memory_is_bounded() {
        let layout = Layout::new(1 << 16, slot_bytes_for(9_000), 1 << 20);
        assert_eq!(layout.bytes(), 1 << 20);
        assert_eq!(
            Layout::new(1, slot_bytes_for(64), 0).bytes(),
            BLOCK_BYTES_LEAST
        );
    }

    #[test]
    fn after_the_last_slot_comes_the_first() {
        let layout = Layout::new(3, slot_bytes_for(16_384), 0);
        assert_eq!(layout.slots, 7);
        assert_eq!(layout.after(6, 1), 0);
        assert_eq!(layout.after(1, 7), 1);
    }
}
