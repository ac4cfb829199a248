//! See `switch/tests/fuzzed/lossless/mod.rs`.

#![no_main]

use libfuzzer_sys::fuzz_target;
use wormcast_switch_fuzz::fuzzed::lossless;

fuzz_target!(|data: &[u8]| lossless::run(data));
