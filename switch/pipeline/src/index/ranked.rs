//! Keys under masks and in ranges, by priority.

use super::Pattern;
use super::rank::{Ranges, Rank, Ranked};
use super::tuples::Tuples;
use super::vectors;
use super::vectors::Vectors;
use wormcast_switch_program::KeyField;

/// Up to so many patterns are tried one after the other.
const TRIED_MAX: usize = 6;
/// Bit vectors take patterns back from the tuples when so few are left.
const PATTERNS_BACK: usize = vectors::PATTERNS_MAX / 2;

/// Patterns by priority, in the structure that suits their number.
#[derive(Debug)]
pub(crate) struct RankedIndex {
    widths: Vec<u32>,
    ranges: Ranges,
    form: Form,
    count: usize,
    sequence: u64,
}

#[derive(Debug)]
enum Form {
    /// Best first.
    Tried(Vec<Ranked>),
    Vectors(Box<Vectors>),
    Tuples(Tuples),
}

impl RankedIndex {
    pub(super) fn new(key: &[KeyField]) -> Self {
        Self {
            widths: key.iter().map(|field| field.width_bits).collect(),
            ranges: Ranges::new(key),
            form: Form::Tried(Vec::new()),
            count: 0,
            sequence: 0,
        }
    }

    #[inline]
    pub(crate) fn get(&self, key: &[u64]) -> Option<u32> {
        match &self.form {
            Form::Tried(patterns) => patterns
                .iter()
                .find(|pattern| self.ranges.fits(key, pattern))
                .map(|pattern| pattern.entry),
            Form::Vectors(vectors) => vectors.get(key, &self.ranges),
            Form::Tuples(tuples) => tuples.get(key, &self.ranges),
        }
    }

    pub(super) fn insert(&mut self, pattern: &Pattern, priority: i32, entry: u32) {
        let ranked = Ranked {
            rank: Rank {
                priority: std::cmp::Reverse(priority),
                sequence: self.sequence,
            },
            entry,
            first: pattern.first.as_slice().into(),
            second: pattern.second.as_slice().into(),
        };
        self.sequence += 1;
        self.count += 1;
        match &self.form {
            Form::Tried(_) if self.count > TRIED_MAX => self.reshape(),
            Form::Vectors(_) if self.count > vectors::PATTERNS_MAX => self.reshape(),
            _ => {}
        }
        self.put(ranked);
    }

    fn put(&mut self, ranked: Ranked) {
        match &mut self.form {
            Form::Tried(patterns) => {
                let place = patterns.partition_point(|other| other.rank < ranked.rank);
                patterns.insert(place, ranked);
            }
            Form::Vectors(vectors) => vectors.insert(ranked),
            Form::Tuples(tuples) => tuples.insert(ranked, &self.ranges),
        }
    }

    pub(super) fn remove(&mut self, pattern: &Pattern, entry: u32) {
        let gone = match &mut self.form {
            Form::Tried(patterns) => patterns
                .iter()
                .position(|ranked| ranked.entry == entry)
                .map(|place| patterns.remove(place)),
            Form::Vectors(vectors) => vectors.remove(entry),
            Form::Tuples(tuples) => {
                tuples.remove(&pattern.first, &pattern.second, entry, &self.ranges)
            }
        };
        debug_assert!(gone.is_some(), "the entry is there");
        if gone.is_none() {
            return;
        }
        self.count -= 1;
        match &self.form {
            Form::Vectors(vectors) if vectors.len() <= TRIED_MAX / 2 => self.reshape(),
            Form::Tuples(_) if self.count < PATTERNS_BACK => self.reshape(),
            _ => {}
        }
    }

    /// Takes the form that suits `count` patterns; the one that is being added is not in yet.
    fn reshape(&mut self) {
        let few = self.count <= TRIED_MAX;
        let vectors = vectors::are_few(&self.widths) && self.count <= vectors::PATTERNS_MAX;
        let form = if few {
            Form::Tried(Vec::new())
        } else if vectors {
            Form::Vectors(Box::new(Vectors::new(&self.widths, &self.ranges)))
        } else {
            if matches!(self.form, Form::Tuples(_)) {
                return;
            }
            let words = self.widths.iter().map(|width| width.div_ceil(64).max(1));
            Form::Tuples(Tuples::new(words.sum::<u32>() as usize))
        };
        let patterns: Vec<Ranked> = match std::mem::replace(&mut self.form, form) {
            Form::Tried(patterns) => patterns,
            Form::Vectors(mut vectors) => vectors.drain().collect(),
            Form::Tuples(mut tuples) => tuples.drain().collect(),
        };
        for ranked in patterns {
            self.put(ranked);
        }
    }
}
