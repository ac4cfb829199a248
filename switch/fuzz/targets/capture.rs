//! See `switch/tests/fuzzed/capture.rs`.

#![no_main]

use libfuzzer_sys::fuzz_target;
use wormcast_switch_fuzz::fuzzed::capture;

fuzz_target!(|data: &[u8]| capture::run(data));
