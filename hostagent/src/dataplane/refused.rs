//! Frames that the kernel refuses for good in the words of a queue that is full: a veth whose other end has a smaller MTU
//! does. One that was kept for ever would block all behind it.

/// Times in a row that the kernel may refuse a frame before it is dropped: 20 s, as pauses between tries come to 4 ms.
const REFUSALS_MAX: u32 = 5_000;
/// The same for a frame as long as one that was dropped for this, where the kernel has taken shorter ones since.
const REFUSALS_AGAIN_MAX: u32 = 20;

/// What the kernel refuses.
pub(super) struct Refused {
    /// How often in a row the first frame that waits.
    refusals: u32,
    /// Frames of so many bytes, for good, as far as is known.
    bytes: usize,
    /// Shorter ones have been taken since.
    takes_shorter: bool,
}

impl Default for Refused {
    fn default() -> Self {
        Self {
            refusals: 0,
            bytes: usize::MAX,
            takes_shorter: false,
        }
    }
}

impl Refused {
    /// The frames that waited are gone.
    pub(super) fn forget_first(&mut self) {
        self.refusals = 0;
    }

    /// It has taken frames, the longest of so many bytes.
    pub(super) fn note_taken(&mut self, longest_bytes: usize) {
        self.refusals = 0;
        self.takes_shorter = true;
        if longest_bytes >= self.bytes {
            self.bytes = usize::MAX;
        }
    }

    /// It has said once more that it has no room for a frame. Whether it is to be believed no longer.
    pub(super) fn is_for_good(&mut self, bytes: usize) -> bool {
        let is_known = bytes >= self.bytes && self.takes_shorter;
        let most = if is_known {
            REFUSALS_AGAIN_MAX
        } else {
            REFUSALS_MAX
        };
        self.refusals += 1;
        if self.refusals <= most {
            return false;
        }
        if self.bytes == usize::MAX {
            crate::log::warning!(
                "the interface refuses a frame of {bytes} bytes for good: the MTU of its other end may be smaller than this \
                 agent's, which keeps to the one it started with; others like it are only counted"
            );
        }
        self.refusals = 0;
        self.bytes = self.bytes.min(bytes);
        self.takes_shorter = is_known;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::{REFUSALS_AGAIN_MAX, REFUSALS_MAX, Refused};

    fn is_dropped_after(refused: &mut Refused, bytes: usize, tries: u32) {
        for _ in 0..tries {
            assert!(!refused.is_for_good(bytes));
        }
        assert!(refused.is_for_good(bytes));
    }

    #[test]
    fn a_frame_has_its_time_and_the_next_of_its_length_some_tries() {
        let mut refused = Refused::default();
        is_dropped_after(&mut refused, 1_500, REFUSALS_MAX);
        // Nothing says that it is the length.
        is_dropped_after(&mut refused, 1_500, REFUSALS_MAX);
        refused.note_taken(100);
        is_dropped_after(&mut refused, 1_600, REFUSALS_AGAIN_MAX);
        is_dropped_after(&mut refused, 1_500, REFUSALS_AGAIN_MAX);
        // A shorter one has its time.
        is_dropped_after(&mut refused, 1_400, REFUSALS_MAX);
    }

    #[test]
    fn what_is_taken_begins_anew() {
        let mut refused = Refused::default();
        is_dropped_after(&mut refused, 1_500, REFUSALS_MAX);
        refused.note_taken(1_500);
        is_dropped_after(&mut refused, 1_500, REFUSALS_MAX);
        refused.note_taken(100);
        for _ in 0..REFUSALS_AGAIN_MAX {
            assert!(!refused.is_for_good(1_500));
        }
        refused.forget_first();
        is_dropped_after(&mut refused, 1_500, REFUSALS_AGAIN_MAX);
    }
}
