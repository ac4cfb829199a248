//! Patterns with their ranks, and the ranges of a key.

use super::masked_equal;
use wormcast_switch_program::KeyField;
use wormcast_switch_program::MatchKind;

/// Order of patterns: the smaller one goes first. Higher priorities first, of equal ones the
/// one that has been there longer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Rank {
    pub(super) priority: std::cmp::Reverse<i32>,
    pub(super) sequence: u64,
}

impl Rank {
    /// No pattern's.
    pub(super) const WORST: Self = Self {
        priority: std::cmp::Reverse(i32::MIN),
        sequence: u64::MAX,
    };
}

/// A pattern with its rank. Words as in [`Pattern`].
#[derive(Clone, Debug)]
pub(super) struct Ranked {
    pub(super) rank: Rank,
    pub(super) entry: u32,
    pub(super) first: Box<[u64]>,
    pub(super) second: Box<[u64]>,
}

/// The range fields of a key: first word and end.
#[derive(Debug)]
pub(super) struct Ranges(Vec<(usize, usize)>);

impl Ranges {
    pub(super) fn new(key: &[KeyField]) -> Self {
        let mut offset = 0;
        let mut ranges = Vec::new();
        for field in key {
            let end = offset + field.width_bits.div_ceil(64).max(1) as usize;
            if field.kind == MatchKind::Range {
                ranges.push((offset, end));
            }
            offset = end;
        }
        Self(ranges)
    }

    /// The range field that starts at a word.
    pub(super) fn field(&self, first: usize) -> Option<(usize, usize)> {
        self.0.iter().copied().find(|(start, _)| *start == first)
    }

    /// Whether the key is in all ranges of the pattern.
    #[inline]
    pub(super) fn hold(&self, key: &[u64], pattern: &Ranked) -> bool {
        self.0.iter().all(|&(start, end)| {
            let value = || key[start..end].iter().rev();
            value().ge(pattern.first[start..end].iter().rev())
                && value().le(pattern.second[start..end].iter().rev())
        })
    }

    /// Values and masks of a pattern, those of its ranges 0.
    pub(super) fn without(&self, pattern: &Ranked) -> (Vec<u64>, Vec<u64>) {
        self.without_words(&pattern.first, &pattern.second)
    }

    /// The same of its words.
    pub(super) fn without_words(&self, first: &[u64], second: &[u64]) -> (Vec<u64>, Vec<u64>) {
        let (mut values, mut masks) = (first.to_vec(), second.to_vec());
        for &(start, end) in &self.0 {
            values[start..end].fill(0);
            masks[start..end].fill(0);
        }
        (values, masks)
    }

    /// Whether the key fits the pattern.
    #[inline]
    pub(super) fn fits(&self, key: &[u64], pattern: &Ranked) -> bool {
        if self.0.is_empty() {
            return masked_equal(key, &pattern.first, &pattern.second);
        }
        let mut at = 0;
        for &(start, end) in &self.0 {
            let exact = at..start;
            if !masked_equal(
                &key[exact.clone()],
                &pattern.first[exact.clone()],
                &pattern.second[exact],
            ) {
                return false;
            }
            at = end;
        }
        masked_equal(&key[at..], &pattern.first[at..], &pattern.second[at..])
            && self.hold(key, pattern)
    }
}
