//! See `switch/tests/fuzzed/arguments.rs`.

#![no_main]

use libfuzzer_sys::fuzz_target;
use wormcast_switch_fuzz::fuzzed::arguments;

fuzz_target!(|data: &[u8]| arguments::run(data));
