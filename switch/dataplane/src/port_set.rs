//! Sets of positions, such as the ports of a switch that have something to do.

/// A set of small numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct PortSet {
    words: Vec<u64>,
}

impl PortSet {
    /// An empty set for numbers below `bound`.
    pub(super) fn new(bound: usize) -> Self {
        Self {
            words: vec![0; bound.div_ceil(64)],
        }
    }

    /// Adds a number below the bound.
    #[inline]
    pub(super) fn insert(&mut self, number: usize) {
        self.words[number / 64] |= 1 << (number % 64);
    }

    #[inline]
    pub(super) fn remove(&mut self, number: usize) {
        self.words[number / 64] &= !(1 << (number % 64));
    }

    /// The least number that is at least `from`.
    #[inline]
    pub(super) fn next(&self, from: usize) -> Option<usize> {
        let mut index = from / 64;
        let mut word = self.words.get(index)? & (u64::MAX << (from % 64));
        loop {
            if word != 0 {
                return Some(index * 64 + word.trailing_zeros() as usize);
            }
            index += 1;
            word = *self.words.get(index)?;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_out_in_order() {
        let mut set = PortSet::new(130);
        assert_eq!(set.next(0), None);
        for number in [129, 0, 63, 64, 65] {
            set.insert(number);
        }
        set.remove(64);
        let mut found = Vec::new();
        let mut from = 0;
        while let Some(number) = set.next(from) {
            found.push(number);
            from = number + 1;
        }
        assert_eq!(found, [0, 63, 65, 129]);
        assert_eq!(set.next(130), None);
        assert_eq!(set.next(500), None);
    }
}
