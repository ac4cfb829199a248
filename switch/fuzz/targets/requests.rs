//! See `switch/tests/fuzzed/requests/mod.rs`.

#![no_main]

use libfuzzer_sys::{fuzz_mutator, fuzz_target};
use wormcast_switch_fuzz::change_message;
use wormcast_switch_fuzz::fuzzed::requests;

fuzz_target!(|data: &[u8]| requests::run(data));

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    change_message(data, size, max_size, seed, 0)
});
