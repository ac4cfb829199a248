//! Stopping and starting, both directions of one port: what the neighbour has stopped
//! here, and what this port has stopped there.

use super::frame::{PauseFrame, QUANTUM_BITS};
use super::priority::{PRIORITIES, PrioritySet};
use super::units::BitRate;

/// Time of so many pause quanta at a rate, microseconds, rounded up: who pauses a little
/// longer loses nothing.
pub fn quanta_us(quanta: u16, rate: BitRate) -> u64 {
    let bits = u64::from(quanta) * QUANTUM_BITS;
    (u128::from(bits) * 1_000_000).div_ceil(u128::from(rate.bits_per_s())) as u64
}

/// Which queues of a port the neighbour has paused: the receiving half of PFC (IEEE 802.1Q
/// clause 36.2; 802.3 Annex 31B.3.3 for PAUSE).
#[derive(Clone, Debug)]
pub struct PausedQueues {
    rate: BitRate,
    /// Priorities for which PFC is on; PFC frames for others are ignored.
    enabled: PrioritySet,
    until_us: [u64; PRIORITIES],
    since_us: [u64; PRIORITIES],
    pauses: u64,
    resumes: u64,
}

impl PausedQueues {
    /// Nothing is paused. PFC counts for the priorities of `enabled`, PAUSE for all; pause
    /// times are quanta at `rate`.
    pub fn new(rate: BitRate, enabled: PrioritySet) -> Self {
        Self {
            rate,
            enabled,
            until_us: [0; PRIORITIES],
            since_us: [0; PRIORITIES],
            pauses: 0,
            resumes: 0,
        }
    }

    /// Takes a frame of the neighbour. A pause that comes while another is in force takes
    /// its place: times do not add up.
    pub fn receive(&mut self, frame: &PauseFrame, now_us: u64) {
        let concerned = match frame {
            PauseFrame::Pause { .. } => PrioritySet::ALL,
            PauseFrame::Pfc { .. } => self.enabled,
        };
        let (mut pauses, mut resumes) = (false, false);
        for priority in concerned.iter() {
            let Some(quanta) = frame.quanta(priority) else {
                continue;
            };
            let at = usize::from(priority);
            if quanta == 0 {
                resumes |= self.until_us[at] > now_us;
                self.until_us[at] = self.until_us[at].min(now_us);
                continue;
            }
            pauses = true;
            if self.until_us[at] <= now_us {
                self.since_us[at] = now_us;
            }
            self.until_us[at] = now_us + quanta_us(quanta, self.rate);
        }
        self.pauses += u64::from(pauses);
        self.resumes += u64::from(resumes);
    }

    /// Forgets every pause: the neighbour is another one.
    pub fn clear(&mut self, now_us: u64) {
        for until_us in &mut self.until_us {
            *until_us = (*until_us).min(now_us);
        }
    }

    /// Priorities that may not send now.
    #[inline]
    pub fn paused(&self, now_us: u64) -> PrioritySet {
        let mut bits = 0;
        for (priority, until_us) in self.until_us.iter().enumerate() {
            bits |= u8::from(*until_us > now_us) << priority;
        }
        PrioritySet(bits)
    }

    /// Since when a priority has been paused without a gap; `None` if it may send.
    pub fn paused_since_us(&self, priority: u8, now_us: u64) -> Option<u64> {
        let at = usize::from(priority);
        (self.until_us[at] > now_us).then_some(self.since_us[at])
    }

    /// When the last pause of a priority ended or will end by itself; 0 if there was none.
    pub fn paused_until_us(&self, priority: u8) -> u64 {
        self.until_us[usize::from(priority)]
    }

    /// When the next of the priorities asked for may send again without a word of the neighbour.
    pub fn next_expiry_us(&self, of: PrioritySet, now_us: u64) -> Option<u64> {
        of.iter()
            .map(|priority| self.until_us[usize::from(priority)])
            .filter(|until_us| *until_us > now_us)
            .min()
    }

    /// Frames that paused something.
    pub fn pauses(&self) -> u64 {
        self.pauses
    }

    /// Frames that ended a pause before its time.
    pub fn resumes(&self) -> u64 {
        self.resumes
    }
}

/// How a port stops its neighbour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PauseMode {
    /// PFC: each priority by itself.
    #[default]
    Pfc,
    /// PAUSE of IEEE 802.3x: everything, for neighbours that know no PFC.
    Pause,
}

/// The sending half of PFC: which priorities of its neighbour a port has stopped.
#[derive(Clone, Debug)]
pub struct PauseSender {
    mode: PauseMode,
    quanta: u16,
    refresh_us: u64,
    /// Priorities that shall be stopped.
    stopped: PrioritySet,
    /// Priorities that the last frame stopped.
    sent: PrioritySet,
    sent_at_us: u64,
    frames: u64,
    refreshes: u64,
}

impl PauseSender {
    /// Nothing is stopped. A stop is for `quanta` at `rate` and is sent again in half that
    /// time, so that it does not end by itself.
    pub fn new(mode: PauseMode, quanta: u16, rate: BitRate) -> Self {
        Self {
            mode,
            quanta: quanta.max(1),
            refresh_us: quanta_us(quanta, rate) / 2,
            stopped: PrioritySet::NONE,
            sent: PrioritySet::NONE,
            sent_at_us: 0,
            frames: 0,
            refreshes: 0,
        }
    }

    /// XOFF: a priority shall stop.
    #[inline]
    pub fn stop(&mut self, priority: u8) {
        self.stopped.insert(priority);
    }

    /// XON: a priority may go on.
    #[inline]
    pub fn start(&mut self, priority: u8) {
        self.stopped.remove(priority);
    }

    /// The neighbour is another one, to which no frame was sent.
    pub fn clear(&mut self) {
        self.sent = PrioritySet::NONE;
    }

    pub fn stopped(&self) -> PrioritySet {
        self.stopped
    }

    /// Whether [`poll`](Self::poll) has a frame now.
    #[inline]
    pub fn is_due(&self, now_us: u64) -> bool {
        self.stopped != self.sent || (!self.sent.is_empty() && now_us >= self.refresh_at_us())
    }

    fn refresh_at_us(&self) -> u64 {
        self.sent_at_us + self.refresh_us
    }

    /// When the frame has to be sent again; `None` while nothing is stopped.
    pub fn next_us(&self) -> Option<u64> {
        if self.stopped != self.sent {
            return Some(0);
        }
        (!self.sent.is_empty()).then(|| self.refresh_at_us())
    }

    /// The frame that is to be sent now, if one is; it counts as sent.
    pub fn poll(&mut self, now_us: u64) -> Option<PauseFrame> {
        if !self.is_due(now_us) {
            return None;
        }
        let was_sent = self.sent;
        self.refreshes += u64::from(self.stopped == self.sent);
        self.sent = self.stopped;
        self.sent_at_us = now_us;
        let frame = match self.mode {
            PauseMode::Pause if self.stopped.is_empty() => PauseFrame::Pause { quanta: 0 },
            PauseMode::Pause => PauseFrame::Pause {
                quanta: self.quanta,
            },
            PauseMode::Pfc => {
                let mut quanta = [0; PRIORITIES];
                for priority in self.stopped.iter() {
                    quanta[usize::from(priority)] = self.quanta;
                }
                PauseFrame::Pfc {
                    priorities: self.stopped.with(was_sent),
                    quanta,
                }
            }
        };
        self.frames += 1;
        Some(frame)
    }

    pub fn frames(&self) -> u64 {
        self.frames
    }

    /// Of these, frames that only repeated the one before.
    pub fn refreshes(&self) -> u64 {
        self.refreshes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn rate(text: &str) -> BitRate {
        text.parse().unwrap()
    }

    fn pfc(priority: u8, time: u16) -> PauseFrame {
        let mut quanta = [0; PRIORITIES];
        quanta[usize::from(priority)] = time;
        PauseFrame::Pfc {
            priorities: PrioritySet::of(priority),
            quanta,
        }
    }

    #[test]
    fn a_quantum_is_512_bit_times_at_the_rate() {
        assert_eq!(quanta_us(1, rate("512mbit")), 1);
        assert_eq!(quanta_us(u16::MAX, rate("1gbit")), 33_554);
        assert_eq!(quanta_us(u16::MAX, rate("10gbit")), 3_356);
        assert_eq!(quanta_us(1, rate("100gbit")), 1, "rounded up");
    }

    #[test]
    fn pauses_end_by_time_or_by_word() {
        let enabled = [3, 4].into_iter().collect();
        let mut queues = PausedQueues::new(rate("512mbit"), enabled);
        queues.receive(&pfc(3, 100), 1_000);
        assert_eq!(queues.paused(1_099), PrioritySet::of(3));
        assert_eq!(queues.paused(1_100), PrioritySet::NONE);
        assert_eq!(queues.next_expiry_us(PrioritySet::ALL, 1_050), Some(1_100));
        // Sent again before the end: one pause without a gap, not a longer one.
        queues.receive(&pfc(3, 100), 1_050);
        assert_eq!(queues.paused_since_us(3, 1_149), Some(1_000));
        assert_eq!(queues.paused_since_us(3, 1_150), None);
        queues.receive(&pfc(3, 100), 1_150);
        assert_eq!(queues.paused_since_us(3, 1_150), Some(1_150));
        queues.receive(&pfc(3, 0), 1_160);
        assert!(queues.paused(1_160).is_empty());
        queues.receive(&pfc(5, 100), 1_160);
        assert!(queues.paused(1_160).is_empty(), "PFC is not on for 5");
        queues.receive(&PauseFrame::Pause { quanta: 5 }, 1_160);
        assert_eq!(queues.paused(1_164), PrioritySet::ALL);
        assert_eq!((queues.pauses(), queues.resumes()), (4, 1));
    }

    #[test]
    fn stops_are_told_once_and_again_before_they_end() {
        let mut sender = PauseSender::new(PauseMode::Pfc, 100, rate("512mbit"));
        assert_eq!((sender.poll(0), sender.next_us()), (None, None));
        sender.stop(3);
        assert_eq!(sender.poll(10), Some(pfc(3, 100)));
        assert_eq!((sender.poll(59), sender.next_us()), (None, Some(60)));
        assert_eq!(sender.poll(60), Some(pfc(3, 100)));
        sender.stop(4);
        sender.start(3);
        let frame = sender.poll(61).unwrap();
        assert_eq!((frame.quanta(3), frame.quanta(4)), (Some(0), Some(100)));
        sender.start(4);
        assert_eq!(sender.poll(61), Some(pfc(4, 0)));
        assert_eq!(sender.poll(1_000), None);
        // Stopped and started before a frame was sent: none is due.
        sender.stop(3);
        sender.start(3);
        assert_eq!(sender.poll(1_000), None);
        assert_eq!((sender.frames(), sender.refreshes()), (4, 1));
    }

    #[test]
    fn by_choice_everything_is_stopped() {
        let mut sender = PauseSender::new(PauseMode::Pause, 7, rate("1gbit"));
        sender.stop(3);
        assert_eq!(sender.poll(0), Some(PauseFrame::Pause { quanta: 7 }));
        sender.start(3);
        assert_eq!(sender.poll(0), Some(PauseFrame::Pause { quanta: 0 }));
    }

    proptest! {
        /// Whatever a port stops stays stopped at the other end, without a gap, if frames
        /// take less than half the pause time; and what it starts is started.
        #[test]
        fn both_ends_agree(
            steps in proptest::collection::vec((0u64..400, 0u8..8, any::<bool>()), 1..60),
            delay_us in 0u64..400,
        ) {
            let rate = rate("512mbit");
            let mut sender = PauseSender::new(PauseMode::Pfc, 1_000, rate);
            let mut queues = PausedQueues::new(rate, PrioritySet::ALL);
            let mut wire: Vec<(u64, PauseFrame)> = Vec::new();
            let mut now_us = 0;
            let mut changed_us = [0u64; PRIORITIES];
            for (wait_us, priority, stop) in steps {
                for _ in 0..wait_us {
                    now_us += 1;
                    if let Some(frame) = sender.poll(now_us) {
                        wire.push((now_us + delay_us, frame));
                    }
                    while wire.first().is_some_and(|(at_us, _)| *at_us <= now_us) {
                        queues.receive(&wire.remove(0).1, now_us);
                    }
                    for priority in 0..8 {
                        if now_us > changed_us[usize::from(priority)] + delay_us + 1 {
                            let stopped = sender.stopped().contains(priority);
                            prop_assert_eq!(queues.paused(now_us).contains(priority), stopped);
                        }
                    }
                }
                if sender.stopped().contains(priority) != stop {
                    changed_us[usize::from(priority)] = now_us;
                }
                if stop { sender.stop(priority) } else { sender.start(priority) }
            }
        }
    }
}
