//! Choices drawn from the bytes of an input.

use rand_core::RngCore;

/// Reads an input from its beginning. When it is used up the choices go on by themselves,
/// the same ones for inputs of one length.
pub struct Draws<'a> {
    rest: &'a [u8],
    after: u64,
}

impl<'a> Draws<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Self {
            rest: bytes,
            after: bytes.len() as u64,
        }
    }

    /// Whether the input is used up.
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    pub fn byte(&mut self) -> u8 {
        match self.rest.split_first() {
            Some((byte, rest)) => {
                self.rest = rest;
                *byte
            }
            None => self.beyond() as u8,
        }
    }

    pub fn half(&mut self) -> u16 {
        u16::from_le_bytes([self.byte(), self.byte()])
    }

    /// One of the numbers below `bound`, which is at least 1.
    pub fn below(&mut self, bound: usize) -> usize {
        match bound {
            0..=256 => usize::from(self.byte()) % bound,
            _ => usize::from(self.half()) % bound,
        }
    }

    pub fn one_in(&mut self, chances: usize) -> bool {
        self.below(chances) == 0
    }

    /// So many bytes, or what is left.
    pub fn take(&mut self, count: usize) -> &'a [u8] {
        let (taken, rest) = self.rest.split_at(count.min(self.rest.len()));
        self.rest = rest;
        taken
    }

    /// Bytes behind their length, at most `max`.
    pub fn block(&mut self, max: usize) -> &'a [u8] {
        let count = usize::from(self.half()) % (max + 1);
        self.take(count)
    }

    /// All that is left.
    pub fn rest(&mut self) -> &'a [u8] {
        self.take(usize::MAX)
    }

    /// splitmix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators).
    fn beyond(&mut self) -> u64 {
        self.after = self.after.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.after;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }
}

impl RngCore for Draws<'_> {
    /// Of the input only two bytes: what is drawn are mostly small choices.
    fn next_u32(&mut self) -> u32 {
        if self.is_empty() {
            return self.beyond() as u32;
        }
        u32::from(self.half())
    }

    fn next_u64(&mut self) -> u64 {
        let mut bytes = [0; 8];
        self.fill_bytes(&mut bytes);
        u64::from_le_bytes(bytes)
    }

    fn fill_bytes(&mut self, bytes: &mut [u8]) {
        bytes.iter_mut().for_each(|byte| *byte = self.byte());
    }
}
