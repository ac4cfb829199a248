//! Exact keys, by hash with open addressing.

/// What marks a free cell; entry numbers are smaller.
const FREE: u64 = u64::MAX;
/// Cells an index starts with; a power of two.
const CELLS_MIN: usize = 16;

/// Entry numbers by keys of a fixed number of words.
///
/// A cell is an entry number and its key side by side, so that a hit costs one miss of the
/// cache. At most half of the cells are taken.
#[derive(Debug)]
pub(crate) struct HashIndex {
    key_words: usize,
    cells: Vec<u64>,
    /// Number of cells less one; their number is a power of two.
    mask: usize,
    count: usize,
}

/// Multiplies and folds a word at a time; the same in every run.
#[inline]
fn hash(key: impl Iterator<Item = u64>) -> usize {
    let mut hash = 0x9e37_79b9_7f4a_7c15u64;
    for word in key {
        let product = u128::from(hash ^ word) * 0xd6e8_feb8_6659_fd93u128;
        hash = (product >> 64) as u64 ^ product as u64;
    }
    hash as usize
}

impl HashIndex {
    pub(crate) fn new(key_words: usize) -> Self {
        let mut index = Self {
            key_words,
            cells: Vec::new(),
            mask: 0,
            count: 0,
        };
        index.clear_to(CELLS_MIN);
        index
    }

    fn clear_to(&mut self, cells: usize) {
        self.mask = cells - 1;
        self.cells = vec![0; cells * (self.key_words + 1)];
        for cell in self.cells.chunks_exact_mut(self.key_words + 1) {
            cell[0] = FREE;
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }

    #[inline]
    fn cell(&self, number: usize) -> &[u64] {
        let words = self.key_words + 1;
        &self.cells[number * words..(number + 1) * words]
    }

    /// The entry of a key.
    #[inline]
    pub(crate) fn get(&self, key: &[u64]) -> Option<u32> {
        self.find(
            || key.iter().copied(),
            |stored| {
                // Not the comparison of slices: that is a call, for one or two words.
                stored.iter().zip(key).all(|(stored, word)| stored == word)
            },
        )
        .map(|cell| self.cells[cell * (self.key_words + 1)] as u32)
    }

    /// The entry of a key under masks; both have the words of the index.
    #[inline]
    pub(crate) fn get_masked(&self, key: &[u64], masks: &[u64]) -> Option<u32> {
        let masked = || key.iter().zip(masks).map(|(word, mask)| word & mask);
        self.find(masked, |stored| {
            stored
                .iter()
                .zip(masked())
                .all(|(stored, word)| *stored == word)
        })
        .map(|cell| self.cells[cell * (self.key_words + 1)] as u32)
    }

    #[inline]
    fn find<I: Iterator<Item = u64>>(
        &self,
        key: impl Fn() -> I,
        equals: impl Fn(&[u64]) -> bool,
    ) -> Option<usize> {
        let mut number = hash(key()) & self.mask;
        loop {
            let cell = self.cell(number);
            if cell[0] == FREE {
                return None;
            }
            if equals(&cell[1..]) {
                return Some(number);
            }
            number = (number + 1) & self.mask;
        }
    }

    /// Adds a key that is not there.
    pub(crate) fn insert(&mut self, key: &[u64], entry: u32) {
        if (self.count + 1) * 2 > self.mask + 1 {
            self.grow();
        }
        self.place(key, entry);
        self.count += 1;
    }

    fn place(&mut self, key: &[u64], entry: u32) {
        let mut number = hash(key.iter().copied()) & self.mask;
        while self.cell(number)[0] != FREE {
            number = (number + 1) & self.mask;
        }
        let words = self.key_words + 1;
        let cell = &mut self.cells[number * words..(number + 1) * words];
        cell[0] = u64::from(entry);
        cell[1..].copy_from_slice(key);
    }

    fn grow(&mut self) {
        let old = std::mem::take(&mut self.cells);
        self.clear_to((self.mask + 1) * 2);
        for cell in old.chunks_exact(self.key_words + 1) {
            if cell[0] != FREE {
                self.place(&cell[1..], cell[0] as u32);
            }
        }
    }

    /// Removes a key that is there; one that is not changes nothing.
    pub(crate) fn remove(&mut self, key: &[u64]) {
        let words = self.key_words + 1;
        let Some(mut hole) = self.find(|| key.iter().copied(), |stored| stored == key) else {
            debug_assert!(false, "the key is there");
            return;
        };
        // Cells behind the hole move up as far as their home allows.
        let mut number = hole;
        loop {
            number = (number + 1) & self.mask;
            let cell = self.cell(number);
            if cell[0] == FREE {
                break;
            }
            let home = hash(cell[1..].iter().copied());
            if number.wrapping_sub(home) & self.mask >= number.wrapping_sub(hole) & self.mask {
                let from = number * words;
                self.cells.copy_within(from..from + words, hole * words);
                hole = number;
            }
        }
        self.cells[hole * words] = FREE;
        self.count -= 1;
    }
}
