//! Ranked patterns as bit vectors: for each byte of the key a table that tells, for each value
//! of the byte, which patterns it fits. What is left of all patterns after one table for each
//! byte matches.
//!
//! Lakshman and Stiliadis, High-speed policy-based packet forwarding using efficient
//! multi-dimensional range matching, SIGCOMM 1998, with the bytes for dimensions. The time
//! depends on the number of patterns, and hardly on their masks.

use super::rank::{Ranges, Rank, Ranked};

/// Bytes of the key that some pattern may look at; keys with more are not for this.
pub(super) const BYTES_MAX: usize = 96;
/// Most patterns: rows of as many bits for each value of each byte.
pub(super) const PATTERNS_MAX: usize = 2_048;

/// Values of a byte.
const VALUES: usize = 256;

/// Some thousand patterns at most, with any masks and ranges.
#[derive(Debug)]
pub(super) struct Vectors {
    /// Words of a row; 64 patterns each.
    row_words: usize,
    places: Vec<Option<Ranked>>,
    /// Ranks of the places, for those that hold a pattern.
    ranks: Vec<Rank>,
    /// Bits of the places in use.
    used: Vec<u64>,
    bytes: Vec<Byte>,
    /// 256 rows for each byte of the key; of bytes nobody looks at, of no meaning.
    rows: Vec<u64>,
    count: usize,
}

/// One byte of the key.
#[derive(Debug)]
struct Byte {
    word: usize,
    shift: u32,
    /// Whether the byte is the first of a range field: rows tell which ranges it can be in.
    range: Option<(usize, usize)>,
    /// Patterns that look at it; without any the byte is passed over.
    lookers: usize,
}

impl Byte {
    /// Least and greatest value, or value and mask.
    fn part(&self, words: &[u64]) -> u64 {
        words[self.word] >> self.shift & 0xff
    }

    fn is_seen_by(&self, ranked: &Ranked) -> bool {
        match self.range {
            None => self.part(&ranked.second) != 0,
            Some(_) => self.part(&ranked.first) != 0 || self.part(&ranked.second) != 0xff,
        }
    }

    fn fits(&self, ranked: &Ranked, value: u64) -> bool {
        let (first, second) = (self.part(&ranked.first), self.part(&ranked.second));
        match self.range {
            None => value & second == first,
            Some(_) => (first..=second).contains(&value),
        }
    }
}

/// Bytes of a key that patterns can look at: of a range field only the topmost one, which
/// leaves few that have to be compared.
fn bytes(widths: &[u32], ranges: &Ranges) -> Vec<Byte> {
    let mut bytes = Vec::new();
    let mut first = 0;
    for &width in widths {
        let words = width.div_ceil(64).max(1) as usize;
        let range = ranges.field(first);
        let parts = width.div_ceil(8).max(1);
        let start = if range.is_some() { parts - 1 } else { 0 };
        bytes.extend((start..parts).map(|part| Byte {
            word: first + (part / 8) as usize,
            shift: part % 8 * 8,
            range,
            lookers: 0,
        }));
        first += words;
    }
    bytes
}

/// Whether keys of these fields are for bit vectors.
pub(super) fn are_few(widths: &[u32]) -> bool {
    let bytes: u32 = widths.iter().map(|width| width.div_ceil(8).max(1)).sum();
    bytes as usize <= BYTES_MAX
}

impl Vectors {
    pub(super) fn new(widths: &[u32], ranges: &Ranges) -> Self {
        let bytes = bytes(widths, ranges);
        Self {
            row_words: 1,
            places: vec![None; 64],
            ranks: vec![Rank::WORST; 64],
            used: vec![0],
            rows: vec![0; bytes.len() * VALUES],
            bytes,
            count: 0,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.count
    }

    #[inline]
    pub(super) fn get(&self, key: &[u64], ranges: &Ranges) -> Option<u32> {
        // Where the row of each byte starts.
        let mut starts = [0u32; BYTES_MAX];
        let mut looked = 0;
        for (number, byte) in self.bytes.iter().enumerate() {
            if byte.lookers > 0 {
                let value = (key[byte.word] >> byte.shift & 0xff) as usize;
                starts[looked] = ((number * VALUES + value) * self.row_words) as u32;
                looked += 1;
            }
        }
        let starts = &starts[..looked];
        let mut found: Option<(Rank, u32)> = None;
        for (word, used) in self.used.iter().enumerate() {
            let mut left = *used;
            for start in starts {
                left &= self.rows[*start as usize + word];
                if left == 0 {
                    break;
                }
            }
            while left != 0 {
                let place = word * 64 + left.trailing_zeros() as usize;
                left &= left - 1;
                let rank = self.ranks[place];
                if found.is_none_or(|(best, _)| rank < best)
                    && let Some(ranked) = &self.places[place]
                    && ranges.hold(key, ranked)
                {
                    found = Some((rank, ranked.entry));
                }
            }
        }
        found.map(|(_, entry)| entry)
    }

    pub(super) fn insert(&mut self, ranked: Ranked) {
        let free = self.used.iter().position(|word| *word != u64::MAX);
        let word = free.unwrap_or_else(|| {
            self.widen();
            self.row_words / 2
        });
        let place = word * 64 + (!self.used[word]).trailing_zeros() as usize;
        let bit = 1u64 << (place % 64);
        let rows = self.rows.chunks_mut(VALUES * self.row_words);
        for (byte, rows) in self.bytes.iter_mut().zip(rows) {
            let rows = rows.chunks_mut(self.row_words);
            if byte.is_seen_by(&ranked) {
                byte.lookers += 1;
                if byte.lookers == 1 {
                    // All others fit every value.
                    for row in rows {
                        row.copy_from_slice(&self.used);
                    }
                }
            }
        }
        for (number, byte) in self.bytes.iter().enumerate() {
            if byte.lookers == 0 {
                continue;
            }
            for value in 0..VALUES {
                let cell = (number * VALUES + value) * self.row_words + word;
                let cell = &mut self.rows[cell];
                let fits = byte.fits(&ranked, value as u64);
                *cell = if fits { *cell | bit } else { *cell & !bit };
            }
        }
        self.used[word] |= bit;
        self.ranks[place] = ranked.rank;
        self.places[place] = Some(ranked);
        self.count += 1;
    }

    /// Removes a pattern and gives it back.
    pub(super) fn remove(&mut self, entry: u32) -> Option<Ranked> {
        let holds = |place: &Option<Ranked>| place.as_ref().is_some_and(|it| it.entry == entry);
        let place = self.places.iter().position(holds)?;
        let ranked = self.places[place].take()?;
        self.used[place / 64] &= !(1 << (place % 64));
        self.ranks[place] = Rank::WORST;
        self.count -= 1;
        for byte in &mut self.bytes {
            if byte.is_seen_by(&ranked) {
                byte.lookers -= 1;
            }
        }
        Some(ranked)
    }

    /// All patterns, in no order.
    pub(super) fn drain(&mut self) -> impl Iterator<Item = Ranked> {
        self.count = 0;
        self.used.fill(0);
        for byte in &mut self.bytes {
            byte.lookers = 0;
        }
        std::mem::take(&mut self.places).into_iter().flatten()
    }

    /// Twice as many places.
    fn widen(&mut self) {
        let (old, new) = (self.row_words, self.row_words * 2);
        self.places.resize(new * 64, None);
        self.ranks.resize(new * 64, Rank::WORST);
        self.used.resize(new, 0);
        let rows = std::mem::replace(&mut self.rows, vec![0; self.bytes.len() * VALUES * new]);
        for (to, from) in self.rows.chunks_mut(new).zip(rows.chunks(old)) {
            to[..old].copy_from_slice(from);
        }
        self.row_words = new;
    }
}
