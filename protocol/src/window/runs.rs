//! Runs of positions, apart from each other and ascending: what a host holds between
//! its gaps, and what a child has.

use std::collections::VecDeque;

/// Disjoint runs `start..end` in ascending order; runs that touch are one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Runs {
    runs: VecDeque<(u64, u64)>,
}

impl Runs {
    /// The index of the first run that ends after `position`.
    fn index_after(&self, position: u64) -> usize {
        // Most questions are about the last run: packets come in order.
        match self.runs.back() {
            Some((_, end)) if *end <= position => self.runs.len(),
            _ => self.runs.partition_point(|(_, end)| *end <= position),
        }
    }

    pub fn add(&mut self, start: u64, end: u64) {
        if start >= end {
            return;
        }
        // Those that touch the new run become one with it.
        let from = match self.runs.back() {
            Some((_, last)) if *last < start => self.runs.len(),
            _ => self.runs.partition_point(|(_, end)| *end < start),
        };
        let mut to = from;
        let (mut low, mut high) = (start, end);
        while let Some((other_start, other_end)) = self.runs.get(to)
            && *other_start <= end
        {
            low = low.min(*other_start);
            high = high.max(*other_end);
            to += 1;
        }
        match to - from {
            0 => self.runs.insert(from, (low, high)),
            1 => self.runs[from] = (low, high),
            _ => {
                self.runs[from] = (low, high);
                self.runs.drain(from + 1..to);
            }
        }
    }

    pub fn forget_before(&mut self, position: u64) {
        while let Some((start, end)) = self.runs.front_mut() {
            if *end > position {
                *start = (*start).max(position);
                return;
            }
            self.runs.pop_front();
        }
    }

    /// Forgets everything from `position` on.
    pub fn forget_from(&mut self, position: u64) {
        while let Some((start, end)) = self.runs.back_mut() {
            if *start < position {
                *end = (*end).min(position);
                return;
            }
            self.runs.pop_back();
        }
    }

    pub fn containing(&self, position: u64) -> Option<(u64, u64)> {
        let run = self.runs.get(self.index_after(position))?;
        (run.0 <= position).then_some(*run)
    }

    /// The runs at or after `from`; the first may be the rest of one.
    pub fn after(&self, from: u64) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.runs
            .range(self.index_after(from)..)
            .map(move |(start, end)| ((*start).max(from), *end))
    }

    /// What of `start..end` is in no run.
    pub fn gaps(&self, start: u64, end: u64) -> impl Iterator<Item = (u64, u64)> + '_ {
        let mut at = start;
        let mut runs = self.after(start);
        core::iter::from_fn(move || {
            while at < end {
                let (run_start, run_end) = runs.next().unwrap_or((end, end));
                let gap = (at, run_start.min(end));
                at = run_end;
                if gap.0 < gap.1 {
                    return Some(gap);
                }
            }
            None
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    #[derive(Clone, Debug)]
    enum Change {
        Add(u64, u64),
        ForgetBefore(u64),
        ForgetFrom(u64),
    }

    fn any_change() -> impl Strategy<Value = Change> {
        prop_oneof![
            6 => (0u64..80, 0u64..12).prop_map(|(start, length)| Change::Add(start, start + length)),
            1 => (0u64..90).prop_map(Change::ForgetBefore),
            1 => (0u64..90).prop_map(Change::ForgetFrom),
        ]
    }

    proptest! {
        #[test]
        fn runs_are_a_set_of_positions(changes in proptest::collection::vec(any_change(), 0..40)) {
            let mut runs = Runs::default();
            let mut set = BTreeSet::new();
            for change in changes {
                match change {
                    Change::Add(start, end) => {
                        runs.add(start, end);
                        set.extend(start..end);
                    }
                    Change::ForgetBefore(position) => {
                        runs.forget_before(position);
                        set.retain(|at| *at >= position);
                    }
                    Change::ForgetFrom(position) => {
                        runs.forget_from(position);
                        set.retain(|at| *at < position);
                    }
                }
                let all: Vec<(u64, u64)> = runs.after(0).collect();
                prop_assert!(all.windows(2).all(|pair| pair[0].1 < pair[1].0), "{all:?}");
                let held: BTreeSet<u64> = all.iter().flat_map(|(start, end)| *start..*end).collect();
                prop_assert_eq!(&held, &set);
                for from in [0, 7, 30, 95] {
                    let missing: Vec<u64> = runs.gaps(from, 99).flat_map(|(start, end)| start..end).collect();
                    let expected: Vec<u64> = (from..99).filter(|at| !set.contains(at)).collect();
                    prop_assert_eq!(missing, expected);
                    prop_assert_eq!(runs.containing(from).is_some(), set.contains(&from));
                }
            }
        }
    }
}
