//! Longest prefixes: one hash index for each length in use, and a table over the first bits
//! of an address that tells which lengths are worth a probe.
//!
//! The idea of hashing by length is that of Waldvogel et al., Scalable high speed IP routing
//! lookups, SIGCOMM 1997; where they search the lengths by halves, a word of 64 bits for each
//! head says which lengths any prefix with that head has: in tables of routes two or three.

use super::Pattern;
use super::hash::HashIndex;

/// Most bits of an address that choose its word.
const HEAD_BITS_MAX: u32 = 16;
/// With so few lengths each is tried.
const LENGTHS_TRIED_MAX: usize = 2;
/// The last bit of a word stands for all lengths from here on.
const LAST_BIT: usize = 63;

/// Prefixes of one field, beside exact fields.
#[derive(Debug)]
pub(crate) struct PrefixIndex {
    key_words: usize,
    /// Where the first bits of the prefix field are: word of the key, shift.
    head_word: usize,
    head_shift: u32,
    /// The head reaches into the next word.
    head_crosses: bool,
    head_bits: u32,
    /// Longest first.
    lengths: Vec<Length>,
    /// For each head: bit n set if prefixes of `lengths[n]` may match. Bits stay when an entry
    /// goes; that costs a probe and no more. Empty while all lengths are tried.
    heads: Vec<u64>,
}

#[derive(Debug)]
struct Length {
    bits: u32,
    masks: Vec<u64>,
    index: HashIndex,
}

impl PrefixIndex {
    /// `first_word`: the word of the key with the low bits of the prefix field, of
    /// `width_bits` bits.
    pub(super) fn new(key_words: usize, first_word: usize, width_bits: u32) -> Self {
        let head_bits = width_bits.min(HEAD_BITS_MAX);
        let low_bit = width_bits - head_bits;
        let head_word = first_word + (low_bit / 64) as usize;
        let head_shift = low_bit % 64;
        Self {
            key_words,
            head_word,
            head_shift,
            head_crosses: head_shift + head_bits > 64,
            head_bits,
            lengths: Vec::new(),
            heads: Vec::new(),
        }
    }

    #[inline]
    fn head(&self, key: &[u64]) -> usize {
        let mut head = key[self.head_word] >> self.head_shift;
        if self.head_crosses {
            head |= key[self.head_word + 1] << (64 - self.head_shift);
        }
        head as usize & ((1 << self.head_bits) - 1)
    }

    #[inline]
    pub(crate) fn get(&self, key: &[u64]) -> Option<u32> {
        let probe = |length: &Length| length.index.get_masked(key, &length.masks);
        if self.heads.is_empty() {
            return self.lengths.iter().find_map(probe);
        }
        let mut bits = self.heads[self.head(key)];
        while bits != 0 {
            let position = bits.trailing_zeros() as usize;
            bits &= bits - 1;
            let end = if position == LAST_BIT {
                self.lengths.len()
            } else {
                position + 1
            };
            if let Some(entry) = self.lengths[position..end].iter().find_map(probe) {
                return Some(entry);
            }
        }
        None
    }

    pub(super) fn insert(&mut self, pattern: &Pattern, entry: u32) {
        let position = match self.position(pattern.prefix_len) {
            Ok(position) => position,
            Err(position) => {
                let length = Length {
                    bits: pattern.prefix_len,
                    masks: pattern.second.clone(),
                    index: HashIndex::new(self.key_words),
                };
                self.lengths.insert(position, length);
                self.renumber(position, true);
                position
            }
        };
        self.lengths[position].index.insert(&pattern.first, entry);
        if self.heads.is_empty() && self.lengths.len() > LENGTHS_TRIED_MAX {
            // The lengths that were there before may match anywhere.
            let before = ((1u64 << self.lengths.len()) - 1) & !(1 << position);
            self.heads = vec![before; 1 << self.head_bits];
        }
        self.mark(position, pattern);
    }

    /// Says of each head under the prefix that this length may match.
    fn mark(&mut self, position: usize, pattern: &Pattern) {
        if self.heads.is_empty() {
            return;
        }
        let head = self.head(&pattern.first);
        let free = self.head_bits - pattern.prefix_len.min(self.head_bits);
        for word in &mut self.heads[head..head + (1 << free)] {
            *word |= 1 << position.min(LAST_BIT);
        }
    }

    pub(super) fn remove(&mut self, pattern: &Pattern) {
        let Ok(position) = self.position(pattern.prefix_len) else {
            debug_assert!(false, "the entry is there");
            return;
        };
        self.lengths[position].index.remove(&pattern.first);
        if self.lengths[position].index.is_empty() {
            self.lengths.remove(position);
            self.renumber(position, false);
        }
    }

    fn position(&self, bits: u32) -> Result<usize, usize> {
        self.lengths
            .binary_search_by(|length| bits.cmp(&length.bits))
    }

    /// Keeps the bits of the heads with their lengths when one comes or has gone.
    fn renumber(&mut self, position: usize, comes: bool) {
        let position = position.min(LAST_BIT);
        let below = (1u64 << position) - 1;
        let valid = match self.lengths.len() {
            count @ 0..=LAST_BIT => (1 << count) - 1,
            _ => u64::MAX,
        };
        for word in &mut self.heads {
            let kept = *word & below;
            let moved = *word & !below;
            *word = if comes {
                // What is pushed out of the word joins the last bit.
                kept | moved << 1 | moved & 1 << LAST_BIT
            } else {
                // The last bit may still stand for others.
                (kept | (moved >> 1) & !below | moved & 1 << LAST_BIT) & valid
            };
        }
    }
}
