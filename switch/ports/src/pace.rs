//! Packet rates of the queues of a port, as BMv2's `set_queue_rate` gives them.

use wormcast_switch_flow::{PRIORITIES, PrioritySet};

const NANOSECONDS_A_SECOND: u64 = 1_000_000_000;

/// Spaces out the packets of each queue: none follows another of its queue in less than
/// the inverse of the rate, and time that was not used is not made up for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pace {
    /// Between two packets of each queue; 0: it has no rate.
    intervals_ns: [u64; PRIORITIES],
    /// When the next packet of each queue may go.
    next_ns: [u64; PRIORITIES],
}

impl Pace {
    /// Sets the rate of one queue, or of all; 0 sets none.
    pub fn set(&mut self, priority: Option<u8>, frames_a_second: u64) {
        let interval_ns = match frames_a_second {
            0 => 0,
            rate => NANOSECONDS_A_SECOND.div_ceil(rate),
        };
        for (number, interval) in self.intervals_ns.iter_mut().enumerate() {
            if priority.is_none_or(|priority| usize::from(priority) == number) {
                *interval = interval_ns;
            }
        }
    }

    /// No queue has a rate.
    pub fn is_empty(&self) -> bool {
        self.intervals_ns.iter().all(|interval| *interval == 0)
    }

    /// Queues whose next packet has to wait.
    pub fn held(&self, now_us: u64) -> PrioritySet {
        let mut held = PrioritySet::NONE;
        let now_ns = now_us.saturating_mul(1_000);
        for (priority, next_ns) in self.next_ns.iter().enumerate() {
            if self.intervals_ns[priority] > 0 && *next_ns > now_ns {
                held.insert(priority as u8);
            }
        }
        held
    }

    /// A packet of a queue goes.
    pub fn sent(&mut self, priority: u8, now_us: u64) {
        let Some(interval_ns) = self.intervals_ns.get(usize::from(priority)) else {
            return;
        };
        let next_ns = &mut self.next_ns[usize::from(priority)];
        // Within the resolution of the clock the exact time counts, so that the rate is
        // kept; later, the present.
        let now_ns = now_us.saturating_mul(1_000);
        let from_ns = if now_ns.saturating_sub(*next_ns) < 1_000 {
            *next_ns
        } else {
            now_ns
        };
        *next_ns = from_ns.saturating_add(*interval_ns);
    }

    /// When a packet of one of these queues may go that has to wait now, microseconds.
    pub fn next_us(&self, filled: PrioritySet) -> Option<u64> {
        let queues = (0..PRIORITIES).filter(|priority| filled.contains(*priority as u8));
        let paced = queues.filter(|priority| self.intervals_ns[*priority] > 0);
        paced
            .map(|priority| self.next_ns[priority].div_ceil(1_000))
            .min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Packets of a queue that is never empty within a second, looked at every `step_us`.
    fn sent_in_a_second(rate: u64, step_us: u64) -> u64 {
        let mut pace = Pace::default();
        pace.set(Some(2), rate);
        let mut sent = 0;
        for now_us in (0..1_000_000).step_by(step_us as usize) {
            while !pace.held(now_us).contains(2) {
                pace.sent(2, now_us);
                sent += 1;
            }
        }
        sent
    }

    #[test]
    fn a_rate_is_kept() {
        for rate in [1, 10, 999, 30_000] {
            assert_eq!(sent_in_a_second(rate, 1), rate);
        }
        assert_eq!(sent_in_a_second(1_000, 7_000), 143, "not made up for");
    }

    #[test]
    fn each_queue_has_its_own() {
        let mut pace = Pace::default();
        assert!(pace.is_empty());
        pace.set(None, 1_000);
        pace.set(Some(3), 0);
        for priority in [3, 5] {
            pace.sent(priority, 0);
        }
        assert_eq!(pace.held(999), PrioritySet::of(5));
        assert_eq!(pace.held(1_000), PrioritySet::NONE);
        assert_eq!(pace.next_us(PrioritySet::of(5)), Some(1_000));
        assert_eq!(pace.next_us(PrioritySet::of(3)), None);
    }
}
