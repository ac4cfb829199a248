//! The bodies of the fuzz targets: those that the tests of the switch replay.

#[path = "../../tests/fuzzed/mod.rs"]
pub mod fuzzed;

use rand_chacha::ChaCha8Rng;
use rand_core::{RngCore, SeedableRng};

/// Bytes that one change of a message is drawn from.
const CHOICES: usize = 64;

/// Changes an input that is a message of protocol buffers behind `plain` other bytes: mostly
/// as a message, else as any bytes. Gives the new size.
pub fn change_message(
    data: &mut [u8],
    size: usize,
    max_size: usize,
    seed: u32,
    plain: usize,
) -> usize {
    let mut generator = ChaCha8Rng::seed_from_u64(u64::from(seed));
    if size > plain && generator.next_u32() % 8 != 0 {
        let mut choices = [0; CHOICES];
        generator.fill_bytes(&mut choices);
        let mut draws = fuzzed::draws::Draws::new(&choices);
        let changed = fuzzed::protobuf::mutate(&data[plain..size], &mut draws);
        if plain + changed.len() <= max_size.min(data.len()) {
            data[plain..plain + changed.len()].copy_from_slice(&changed);
            return plain + changed.len();
        }
    }
    libfuzzer_sys::fuzzer_mutate(data, size, max_size)
}
