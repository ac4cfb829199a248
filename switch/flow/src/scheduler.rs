//! Which of a port's queues sends next.

use std::str::FromStr;

use super::priority::{PRIORITIES, PrioritySet};

/// Bytes a queue of weight 1 may send in a round.
pub const QUANTUM_BYTES: u32 = 2_048;

/// Largest weight of a queue.
pub const WEIGHT_MAX: u32 = 100;

/// How queues share their port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SchedulerKind {
    /// The highest priority that has a frame goes first, always.
    #[default]
    Strict,
    /// Shares in proportion to weights, in bytes: deficit round robin (Shreedhar and
    /// Varghese, SIGCOMM '95).
    Weighted([u32; PRIORITIES]),
}

impl SchedulerKind {
    /// Equal shares.
    pub const FAIR: Self = Self::Weighted([1; PRIORITIES]);
}

/// Text that names no scheduler.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not a scheduler: it must be strict, weighted, or weighted: with weights of 1 to \
     {WEIGHT_MAX} for priorities (like weighted:3=4,4=2; those not named have 1)"
)]
pub struct SchedulerError(String);

impl FromStr for SchedulerKind {
    type Err = SchedulerError;

    fn from_str(text: &str) -> Result<Self, SchedulerError> {
        let error = || SchedulerError(text.to_owned());
        let weights = match text {
            "strict" => return Ok(Self::Strict),
            "weighted" => return Ok(Self::FAIR),
            _ => text.strip_prefix("weighted:").ok_or_else(error)?,
        };
        let mut all = [1; PRIORITIES];
        for pair in weights.split(',') {
            let (priority, weight) = pair.split_once('=').ok_or_else(error)?;
            let priority: usize = priority.trim().parse().map_err(|_| error())?;
            let weight: u32 = weight.trim().parse().map_err(|_| error())?;
            if !(1..=WEIGHT_MAX).contains(&weight) {
                return Err(error());
            }
            *all.get_mut(priority).ok_or_else(error)? = weight;
        }
        Ok(Self::Weighted(all))
    }
}

/// The scheduler of one port.
#[derive(Clone, Debug)]
pub struct Scheduler {
    kind: SchedulerKind,
    /// Bytes each queue may still send in this round.
    deficits: [u64; PRIORITIES],
    turn: usize,
}

impl Scheduler {
    /// At the beginning of a round.
    pub fn new(kind: SchedulerKind) -> Self {
        Self {
            kind,
            deficits: [0; PRIORITIES],
            turn: PRIORITIES - 1,
        }
    }

    /// The queue that sends its first frame now: one of `ready`, those that have a frame
    /// and may send it. `head_bytes` gives the length of a queue's first frame, which
    /// counts as sent. `None` if no queue is ready.
    ///
    /// A queue that is not ready when its turn comes loses what it had saved.
    pub fn choose(&mut self, ready: PrioritySet, head_bytes: impl Fn(u8) -> u32) -> Option<u8> {
        if ready.is_empty() {
            return None;
        }
        let SchedulerKind::Weighted(weights) = &self.kind else {
            return Some(7 - ready.0.leading_zeros() as u8);
        };
        loop {
            let turn = self.turn as u8;
            if ready.contains(turn) {
                let bytes = u64::from(head_bytes(turn));
                if self.deficits[self.turn] >= bytes {
                    self.deficits[self.turn] -= bytes;
                    return Some(turn);
                }
            } else {
                self.deficits[self.turn] = 0;
            }
            self.turn = (self.turn + 1) % PRIORITIES;
            if ready.contains(self.turn as u8) {
                self.deficits[self.turn] += u64::from(weights[self.turn] * QUANTUM_BYTES);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Bytes sent by each priority, all of `ready` always having frames of their length.
    fn shares(
        kind: SchedulerKind,
        ready: PrioritySet,
        lengths: [u32; 8],
        frames: usize,
    ) -> [u64; 8] {
        let mut scheduler = Scheduler::new(kind);
        let mut sent = [0; 8];
        for _ in 0..frames {
            let priority = scheduler
                .choose(ready, |priority| lengths[usize::from(priority)])
                .unwrap();
            assert!(ready.contains(priority));
            sent[usize::from(priority)] += u64::from(lengths[usize::from(priority)]);
        }
        sent
    }

    #[test]
    fn strict_is_strict() {
        let ready = [0, 3, 4].into_iter().collect();
        assert_eq!(shares(SchedulerKind::Strict, ready, [100; 8], 10)[4], 1_000);
        let mut scheduler = Scheduler::new(SchedulerKind::Strict);
        assert_eq!(scheduler.choose(PrioritySet::of(0), |_| 1), Some(0));
        assert_eq!(scheduler.choose(PrioritySet::NONE, |_| 1), None);
    }

    #[test]
    fn a_queue_comes_back_without_what_it_missed() {
        let mut scheduler = Scheduler::new(SchedulerKind::FAIR);
        for _ in 0..1_000 {
            scheduler.choose(PrioritySet::of(3), |_| 1_000);
        }
        let both = [3, 4].into_iter().collect();
        let in_a_row = (0..10)
            .map(|_| scheduler.choose(both, |_| 1_000).unwrap())
            .take_while(|priority| *priority == 4)
            .count();
        assert!(in_a_row <= 2, "{in_a_row}");
    }

    #[test]
    fn schedulers_are_read() {
        let mut weights = [1; 8];
        (weights[3], weights[4]) = (4, 2);
        assert_eq!(
            "weighted:3=4,4=2".parse(),
            Ok(SchedulerKind::Weighted(weights))
        );
        assert_eq!("weighted".parse(), Ok(SchedulerKind::FAIR));
        assert_eq!("strict".parse(), Ok(SchedulerKind::Strict));
        for bad in [
            "",
            "fair",
            "weighted:",
            "weighted:3",
            "weighted:8=1",
            "weighted:3=0",
            "weighted:3=101",
        ] {
            let error = bad.parse::<SchedulerKind>().unwrap_err().to_string();
            assert!(
                error.starts_with(&format!("`{bad}` is not a scheduler")),
                "{error}"
            );
        }
    }

    proptest! {
        /// Shares are those of the weights, whatever the lengths, but for a quantum and a
        /// frame; so nobody starves.
        #[test]
        fn weights_hold(
            weights in proptest::array::uniform8(1u32..20),
            lengths in proptest::array::uniform8(60u32..16_384),
            set in 1u8..,
        ) {
            let ready = PrioritySet(set);
            let sent = shares(SchedulerKind::Weighted(weights), ready, lengths, 4_000);
            for one in ready.iter().map(usize::from) {
                for other in ready.iter().map(usize::from) {
                    let rounds = |at: usize| sent[at] as f64 / f64::from(weights[at] * QUANTUM_BYTES);
                    let slack = |at: usize| 1.0 + f64::from(lengths[at]) / f64::from(weights[at] * QUANTUM_BYTES);
                    let apart = (rounds(one) - rounds(other)).abs();
                    prop_assert!(apart <= slack(one) + slack(other), "{} {}", one, other);
                }
            }
        }
    }
}
