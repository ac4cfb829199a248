//! See `switch/tests/fuzzed/program.rs`.

#![no_main]

use libfuzzer_sys::fuzz_target;
use wormcast_switch_fuzz::fuzzed::program;

fuzz_target!(|data: &[u8]| program::run(data));
