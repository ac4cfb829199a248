//! Lookup structures of tables. They map keys, which are words, to entry numbers.

use crate::program::{KeyField, MatchKind};

/// No entry.
const NONE: u32 = u32::MAX;
/// Keys up to this many bits are looked up in an array.
const DENSE_BITS_MAX: u32 = 12;
/// Slots a hash index starts with; a power of two.
const SLOTS_MIN: usize = 16;

/// Keys equal to stored ones, by hash with open addressing.
#[derive(Debug)]
pub(super) struct HashIndex {
    key_words: usize,
    /// Entry numbers; [`NONE`] where free.
    slots: Vec<u32>,
    /// The key of each slot.
    keys: Vec<u64>,
    count: usize,
}

impl HashIndex {
    pub(super) fn new(key_words: usize) -> Self {
        Self {
            key_words,
            slots: vec![NONE; SLOTS_MIN],
            keys: vec![0; SLOTS_MIN * key_words],
            count: 0,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.count == 0
    }

    #[inline]
    fn home(&self, key: &[u64]) -> usize {
        // Multiply and fold, a word at a time; the same in every run.
        let mut hash = 0x9e37_79b9_7f4a_7c15u64;
        for &word in key {
            let product = u128::from(hash ^ word) * 0xd6e8_feb8_6659_fd93u128;
            hash = (product >> 64) as u64 ^ product as u64;
        }
        hash as usize & (self.slots.len() - 1)
    }

    #[inline]
    fn key(&self, slot: usize) -> &[u64] {
        &self.keys[slot * self.key_words..(slot + 1) * self.key_words]
    }

    #[inline]
    pub(super) fn get(&self, key: &[u64]) -> Option<u32> {
        let mask = self.slots.len() - 1;
        let mut slot = self.home(key);
        loop {
            let entry = self.slots[slot];
            if entry == NONE {
                return None;
            }
            if self.key(slot) == key {
                return Some(entry);
            }
            slot = (slot + 1) & mask;
        }
    }

    /// Adds a key that is not there.
    pub(super) fn insert(&mut self, key: &[u64], entry: u32) {
        if (self.count + 1) * 2 > self.slots.len() {
            self.grow();
        }
        self.place(key, entry);
        self.count += 1;
    }

    fn place(&mut self, key: &[u64], entry: u32) {
        let mask = self.slots.len() - 1;
        let mut slot = self.home(key);
        while self.slots[slot] != NONE {
            slot = (slot + 1) & mask;
        }
        self.slots[slot] = entry;
        self.keys[slot * self.key_words..(slot + 1) * self.key_words].copy_from_slice(key);
    }

    fn grow(&mut self) {
        let size = self.slots.len() * 2;
        let slots = std::mem::replace(&mut self.slots, vec![NONE; size]);
        let keys = std::mem::replace(&mut self.keys, vec![0; size * self.key_words]);
        for (slot, entry) in slots.into_iter().enumerate() {
            if entry != NONE {
                self.place(
                    &keys[slot * self.key_words..(slot + 1) * self.key_words],
                    entry,
                );
            }
        }
    }

    /// Removes a key that is there.
    pub(super) fn remove(&mut self, key: &[u64]) {
        let mask = self.slots.len() - 1;
        let mut hole = self.home(key);
        while self.key(hole) != key || self.slots[hole] == NONE {
            hole = (hole + 1) & mask;
        }
        // Entries behind the hole move up as far as their home allows.
        let mut slot = hole;
        loop {
            slot = (slot + 1) & mask;
            if self.slots[slot] == NONE {
                break;
            }
            let home = self.home(self.key(slot));
            if slot.wrapping_sub(home) & mask >= slot.wrapping_sub(hole) & mask {
                self.slots[hole] = self.slots[slot];
                let from = slot * self.key_words;
                self.keys
                    .copy_within(from..from + self.key_words, hole * self.key_words);
                hole = slot;
            }
        }
        self.slots[hole] = NONE;
        self.count -= 1;
    }
}

/// One value, mask pair or range of a stored key, as words: for a mask field the value and
/// the mask, for a range its bounds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pattern {
    pub(super) first: Vec<u64>,
    pub(super) second: Vec<u64>,
    /// Length of the prefix of the lpm field, if there is one.
    pub(super) prefix_len: u32,
}

/// Keys under masks and in ranges, by priority.
#[derive(Debug)]
pub(super) struct RankedIndex {
    key_words: usize,
    /// First word and words of each range field.
    ranges: Vec<(usize, usize)>,
    /// Priority and entry number, highest priority first; equal ones in order of insertion.
    order: Vec<(i32, u32)>,
    /// Patterns in the same order: values and bounds, then masks and bounds.
    first: Vec<u64>,
    second: Vec<u64>,
}

impl RankedIndex {
    fn new(key: &[KeyField]) -> Self {
        let mut offset = 0;
        let mut ranges = Vec::new();
        for field in key {
            let limbs = field.width_bits.div_ceil(64).max(1) as usize;
            if field.kind == MatchKind::Range {
                ranges.push((offset, limbs));
            }
            offset += limbs;
        }
        Self {
            key_words: offset,
            ranges,
            order: Vec::new(),
            first: Vec::new(),
            second: Vec::new(),
        }
    }

    #[inline]
    fn get(&self, key: &[u64]) -> Option<u32> {
        let words = self.key_words;
        for (position, &(_, entry)) in self.order.iter().enumerate() {
            let first = &self.first[position * words..(position + 1) * words];
            let second = &self.second[position * words..(position + 1) * words];
            let matches = if self.ranges.is_empty() {
                masked_equal(key, first, second)
            } else {
                self.matches(key, first, second)
            };
            if matches {
                return Some(entry);
            }
        }
        None
    }

    fn matches(&self, key: &[u64], first: &[u64], second: &[u64]) -> bool {
        let mut at = 0;
        for &(start, limbs) in &self.ranges {
            if !masked_equal(&key[at..start], &first[at..start], &second[at..start]) {
                return false;
            }
            at = start + limbs;
            let value = key[start..at].iter().rev();
            if value.clone().lt(first[start..at].iter().rev())
                || value.gt(second[start..at].iter().rev())
            {
                return false;
            }
        }
        masked_equal(&key[at..], &first[at..], &second[at..])
    }

    fn insert(&mut self, pattern: &Pattern, priority: i32, entry: u32) {
        let position = self.order.partition_point(|&(other, _)| other >= priority);
        self.order.insert(position, (priority, entry));
        let at = position * self.key_words;
        self.first.splice(at..at, pattern.first.iter().copied());
        self.second.splice(at..at, pattern.second.iter().copied());
    }

    fn remove(&mut self, entry: u32) {
        let Some(position) = self.order.iter().position(|&(_, other)| other == entry) else {
            return;
        };
        self.order.remove(position);
        let at = position * self.key_words;
        self.first.drain(at..at + self.key_words);
        self.second.drain(at..at + self.key_words);
    }
}

#[inline]
fn masked_equal(key: &[u64], values: &[u64], masks: &[u64]) -> bool {
    key.iter()
        .zip(values)
        .zip(masks)
        .all(|((key, value), mask)| key & mask == *value)
}

/// Longest prefixes: one hash index for each length in use, longest first.
#[derive(Debug)]
pub(super) struct PrefixIndex {
    key_words: usize,
    lengths: Vec<(u32, Vec<u64>, HashIndex)>,
    masked: Vec<u64>,
}

impl PrefixIndex {
    #[inline]
    fn get(&mut self, key: &[u64]) -> Option<u32> {
        for (_, masks, index) in &self.lengths {
            self.masked.clear();
            self.masked
                .extend(key.iter().zip(masks).map(|(key, mask)| key & mask));
            if let Some(entry) = index.get(&self.masked) {
                return Some(entry);
            }
        }
        None
    }

    fn insert(&mut self, pattern: &Pattern, entry: u32) {
        let length = pattern.prefix_len;
        let position = self
            .lengths
            .partition_point(|(other, _, _)| *other > length);
        if self
            .lengths
            .get(position)
            .is_none_or(|(other, _, _)| *other != length)
        {
            let index = HashIndex::new(self.key_words);
            self.lengths
                .insert(position, (length, pattern.second.clone(), index));
        }
        self.lengths[position].2.insert(&pattern.first, entry);
    }

    fn remove(&mut self, pattern: &Pattern) {
        let length = pattern.prefix_len;
        let position = self
            .lengths
            .partition_point(|(other, _, _)| *other > length);
        self.lengths[position].2.remove(&pattern.first);
        if self.lengths[position].2.is_empty() {
            self.lengths.remove(position);
        }
    }
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
        let words: u32 = key
            .iter()
            .map(|field| field.width_bits.div_ceil(64).max(1))
            .sum();
        if key.is_empty() {
            Index::Keyless
        } else if has_priority {
            Index::Ranked(RankedIndex::new(key))
        } else if key.iter().any(|field| field.kind == MatchKind::Lpm) {
            Index::Prefix(PrefixIndex {
                key_words: words as usize,
                lengths: Vec::new(),
                masked: Vec::with_capacity(words as usize),
            })
        } else if words == 1 && key[0].width_bits <= DENSE_BITS_MAX {
            Index::Dense(vec![NONE; 1 << key[0].width_bits])
        } else {
            Index::Exact(HashIndex::new(words as usize))
        }
    }

    #[inline]
    pub(super) fn get(&mut self, key: &[u64]) -> Option<u32> {
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

    /// Removes a pattern that is there.
    pub(super) fn remove(&mut self, pattern: &Pattern, entry: u32) {
        match self {
            Index::Keyless => {}
            Index::Dense(entries) => entries[pattern.first[0] as usize] = NONE,
            Index::Exact(index) => index.remove(&pattern.first),
            Index::Prefix(index) => index.remove(pattern),
            Index::Ranked(index) => index.remove(entry),
        }
    }
}
