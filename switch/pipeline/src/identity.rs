//! What tells one entry of a table from another: its priority and key, as a hash.

use std::hash::{Hash, Hasher};

use wormcast_switch_program::FieldMatch;

/// Multiplies and folds, a word at a time; the same in every run. The keys come from the
/// controller, which may fill the table anyway, so nothing is gained by a secret.
struct Fold(u64);

impl Fold {
    #[inline]
    fn add(&mut self, word: u64) {
        let product = u128::from(self.0 ^ word) * 0x9fb2_1c65_1e98_df25_u128;
        self.0 = (product >> 64) as u64 ^ product as u64 ^ word.rotate_left(29);
    }
}

impl Hasher for Fold {
    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.add(u64::from_le_bytes(word));
        }
    }

    #[inline]
    fn write_u32(&mut self, value: u32) {
        self.add(u64::from(value));
    }

    #[inline]
    fn write_usize(&mut self, value: usize) {
        self.add(value as u64);
    }

    #[inline]
    fn write_isize(&mut self, value: isize) {
        self.add(value as u64);
    }

    #[inline]
    fn finish(&self) -> u64 {
        self.0
    }
}

/// The hash of a priority and a canonical key.
pub(super) fn hash_identity(priority: i32, key: &[FieldMatch]) -> u64 {
    let mut fold = Fold(0x9e37_79b9_7f4a_7c15);
    fold.add(priority as u64);
    for matched in key {
        matched.hash(&mut fold);
    }
    fold.finish()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use wormcast_switch_program::Bits;

    /// Consecutive values, as addresses are, fall into different buckets of a small table.
    #[test]
    fn consecutive_keys_spread() {
        let buckets: BTreeSet<u64> = (0..4_096u64)
            .map(|value| hash_identity(0, &[FieldMatch::Exact(Bits::from_u64(value))]) & 0xffff)
            .collect();
        assert!(buckets.len() > 3_500, "{}", buckets.len());
        let tags: BTreeSet<u64> = (0..4_096u64)
            .map(|value| hash_identity(0, &[FieldMatch::Exact(Bits::from_u64(value))]) >> 57)
            .collect();
        assert_eq!(tags.len(), 128);
    }
}
