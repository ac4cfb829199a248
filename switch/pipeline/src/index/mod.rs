//! Lookup structures of tables. They map keys, which are words, to entry numbers.

mod hash;
mod prefix;
mod rank;
mod ranked;
#[cfg(test)]
mod tests;
mod tuples;
mod vectors;

use wormcast_switch_program::{KeyField, MatchKind};

pub(super) use hash::HashIndex;
pub(super) use prefix::PrefixIndex;
pub(super) use ranked::RankedIndex;

const NONE: u32 = u32::MAX;
/// Keys up to this many bits are looked up in an array.
const DENSE_BITS_MAX: u32 = 12;

/// One value, mask pair or range of a stored key, as words: for a mask field the value and
/// the mask, for a range its bounds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pattern {
    pub(super) first: Vec<u64>,
    pub(super) second: Vec<u64>,
    /// Length of the prefix of the lpm field, if there is one.
    pub(super) prefix_len: u32,
}

#[inline]
fn masked_equal(key: &[u64], values: &[u64], masks: &[u64]) -> bool {
    key.iter()
        .zip(values)
        .zip(masks)
        .all(|((key, value), mask)| key & mask == *value)
}

/// The lookup structure of one table.
#[derive(Debug)]
pub(super) enum Index {
    /// A table without a key always misses.
    Keyless,
    /// Entry numbers by key, for short exact keys.
    Dense(Vec<u32>),
    Exact(HashIndex),
    Prefix(PrefixIndex),
    Ranked(RankedIndex),
}

impl Index {
    pub(super) fn new(key: &[KeyField], has_priority: bool) -> Self {
        let words_of = |field: &KeyField| field.width_bits.div_ceil(64).max(1) as usize;
        let words: usize = key.iter().map(words_of).sum();
        let lpm = key.iter().position(|field| field.kind == MatchKind::Lpm);
        if key.is_empty() {
            Index::Keyless
        } else if has_priority {
            Index::Ranked(RankedIndex::new(key))
        } else if let Some(lpm) = lpm {
            let first = key[..lpm].iter().map(words_of).sum();
            Index::Prefix(PrefixIndex::new(words, first, key[lpm].width_bits))
        } else if words == 1 && key[0].width_bits <= DENSE_BITS_MAX {
            Index::Dense(vec![NONE; 1 << key[0].width_bits])
        } else {
            Index::Exact(HashIndex::new(words))
        }
    }

    #[inline]
    pub(super) fn get(&self, key: &[u64]) -> Option<u32> {
        match self {
            Index::Keyless => None,
            Index::Dense(entries) => {
                let entry = *entries.get(key[0] as usize)?;
                (entry != NONE).then_some(entry)
            }
            Index::Exact(index) => index.get(key),
            Index::Prefix(index) => index.get(key),
            Index::Ranked(index) => index.get(key),
        }
    }

    /// Adds a pattern that is not there.
    pub(super) fn insert(&mut self, pattern: &Pattern, priority: i32, entry: u32) {
        match self {
            Index::Keyless => {}
            Index::Dense(entries) => entries[pattern.first[0] as usize] = entry,
            Index::Exact(index) => index.insert(&pattern.first, entry),
            Index::Prefix(index) => index.insert(pattern, entry),
            Index::Ranked(index) => index.insert(pattern, priority, entry),
        }
    }

    pub(super) fn remove(&mut self, pattern: &Pattern, entry: u32) {
        match self {
            Index::Keyless => {}
            Index::Dense(entries) => entries[pattern.first[0] as usize] = NONE,
            Index::Exact(index) => index.remove(&pattern.first),
            Index::Prefix(index) => index.remove(pattern),
            Index::Ranked(index) => index.remove(pattern, entry),
        }
    }
}
