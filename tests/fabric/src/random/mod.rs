//! The one source of chance in a run.

use rand_chacha::ChaCha8Rng;
use rand_core::{RngCore, SeedableRng};

#[derive(Debug)]
pub struct Random(ChaCha8Rng);

impl Random {
    /// The same seed gives the same run.
    pub fn new(seed: u64) -> Random {
        Random(ChaCha8Rng::seed_from_u64(seed))
    }

    /// True with the given probability.
    pub fn chance(&mut self, probability: f64) -> bool {
        probability > 0.0 && (self.0.next_u32() as f64) < probability * 4_294_967_296.0
    }

    /// A number below `bound`; 0 if `bound` is 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        if bound == 0 {
            0
        } else {
            self.0.next_u64() % bound
        }
    }

    /// One of them. There is at least one.
    pub fn pick<'t, T>(&mut self, of: &'t [T]) -> &'t T {
        &of[self.below(of.len() as u64) as usize]
    }
}
