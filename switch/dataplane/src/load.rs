//! Whether frames come so fast that it is better not to sleep.

/// From this rate on a thread looks for more frames for a while before it sleeps: falling
/// asleep and being woken would cost more than the frames themselves.
const BUSY_FRAMES_A_MS: u64 = 64;

/// How long it looks then.
const SPIN_US: u64 = 20;

/// Over how long the rate is taken.
const LOAD_WINDOW_US: u64 = 1_000;

/// The rate of frames of late.
#[derive(Debug)]
pub(super) struct Load {
    /// How long a thread looks for frames, however few there are.
    spin_us: u64,
    window_us: u64,
    frames: u64,
    busy: bool,
    last_frame_us: u64,
}

impl Load {
    /// `spin_us`: how long a thread looks for more frames in any case.
    pub(super) fn new(spin_us: u64) -> Self {
        Self {
            spin_us,
            window_us: 0,
            frames: 0,
            busy: false,
            last_frame_us: 0,
        }
    }

    /// Takes the frames of one turn.
    pub(super) fn count(&mut self, frames: u64, now_us: u64) {
        if frames > 0 {
            self.last_frame_us = now_us;
        }
        let elapsed_us = now_us - self.window_us;
        if elapsed_us >= LOAD_WINDOW_US {
            self.busy = self.frames * 1_000 / elapsed_us >= BUSY_FRAMES_A_MS;
            self.window_us = now_us;
            self.frames = 0;
        }
        self.frames += frames;
    }

    /// Whether a thread without anything to do had better sleep.
    pub(super) fn may_sleep(&self, now_us: u64) -> bool {
        let quiet_us = now_us - self.last_frame_us;
        let looks_us = if self.busy { SPIN_US } else { 1 };
        quiet_us >= looks_us.max(self.spin_us)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Frames at a steady interval; whether it may sleep between the last two.
    fn sleeps_at(interval_us: u64) -> bool {
        let mut load = Load::new(0);
        for number in 0..5_000 {
            load.count(1, number * interval_us);
        }
        load.may_sleep(5_000 * interval_us - 1)
    }

    #[test]
    fn only_a_high_rate_keeps_it_awake_and_not_for_long() {
        assert!(sleeps_at(100));
        assert!(!sleeps_at(10));
        let mut load = Load::new(0);
        (0..5_000).for_each(|number| load.count(1, number * 5));
        assert!(!load.may_sleep(4_999 * 5 + SPIN_US - 1));
        assert!(load.may_sleep(4_999 * 5 + SPIN_US));
    }

    #[test]
    fn a_thread_that_is_told_to_looks_for_frames_at_any_rate() {
        let mut load = Load::new(300);
        load.count(1, 1_000_000);
        assert!(!load.may_sleep(1_000_299));
        assert!(load.may_sleep(1_000_300));
    }
}
