//! Frames that the kernel refuses for good in the words of a queue that is full: a veth whose other end has a smaller MTU
//! does. One that was kept for ever would block all behind it.

use wormcast_protocol::Instant;

/// Time for which the kernel may refuse a frame before it is dropped, µs.
const REFUSED_US_MAX: u64 = 5_000_000;
/// Tries in this time at least. So many are enough for a frame as long as one that was dropped for this, as long as none
/// of this length is taken.
const REFUSALS_MIN: u32 = 20;

/// What the kernel refuses.
pub(super) struct Refused {
    /// Since when the first frame that waits, and how often.
    first: Option<(Instant, u32)>,
    /// Frames of so many bytes, for good, as far as is known.
    bytes: usize,
}

impl Default for Refused {
    fn default() -> Self {
        Self {
            first: None,
            bytes: usize::MAX,
        }
    }
}

impl Refused {
    /// It has taken frames, the longest of so many bytes.
    pub(super) fn note_taken(&mut self, longest_bytes: usize) {
        self.first = None;
        if longest_bytes >= self.bytes {
            self.bytes = usize::MAX;
        }
    }

    /// It has said once more that it has no room for a frame. Whether it is to be believed no longer.
    pub(super) fn is_for_good(&mut self, bytes: usize, now: Instant) -> bool {
        let (since, refusals) = self.first.get_or_insert((now, 0));
        *refusals += 1;
        let is_over = bytes >= self.bytes || since.plus_us(REFUSED_US_MAX) <= now;
        if *refusals < REFUSALS_MIN || !is_over {
            return false;
        }
        if self.bytes == usize::MAX {
            crate::log::warning!(
                "the interface refuses a frame of {bytes} bytes for good: the MTU of its other end is smaller than this \
                 agent's, which keeps to the one it started with; others like it are only counted"
            );
        }
        self.first = None;
        self.bytes = self.bytes.min(bytes);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::{REFUSALS_MIN, REFUSED_US_MAX, Refused};
    use wormcast_protocol::Instant;

    fn at(us: u64) -> Instant {
        Instant::from_micros(us)
    }

    #[test]
    fn a_frame_has_its_time_and_the_next_of_its_length_some_tries() {
        let mut refused = Refused::default();
        for turn in 0..1_000 {
            assert!(!refused.is_for_good(1_500, at(turn)));
        }
        assert!(refused.is_for_good(1_500, at(REFUSED_US_MAX)));
        for _ in 1..REFUSALS_MIN {
            assert!(!refused.is_for_good(1_600, at(REFUSED_US_MAX)));
        }
        assert!(refused.is_for_good(1_600, at(REFUSED_US_MAX)));
        // A shorter one has its time.
        for _ in 0..1_000 {
            assert!(!refused.is_for_good(1_400, at(REFUSED_US_MAX)));
        }
    }

    #[test]
    fn few_tries_are_no_proof_however_long_they_take() {
        let mut refused = Refused::default();
        for turn in 1..u64::from(REFUSALS_MIN) {
            assert!(!refused.is_for_good(1_500, at(turn * REFUSED_US_MAX)));
        }
        assert!(refused.is_for_good(1_500, at(100 * REFUSED_US_MAX)));
    }

    #[test]
    fn what_is_taken_begins_anew() {
        let mut refused = Refused::default();
        for turn in 0..u64::from(REFUSALS_MIN) {
            refused.is_for_good(1_500, at(turn * REFUSED_US_MAX));
        }
        refused.note_taken(100);
        assert_eq!(refused.bytes, 1_500, "a shorter one says nothing");
        refused.note_taken(1_500);
        for turn in 0..1_000 {
            assert!(!refused.is_for_good(1_500, at(turn)));
        }
    }
}
