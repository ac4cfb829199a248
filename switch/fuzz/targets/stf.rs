//! See `switch/tests/fuzzed/stf.rs`.

#![no_main]

use libfuzzer_sys::fuzz_target;
use wormcast_switch_fuzz::fuzzed::stf;

fuzz_target!(|data: &[u8]| stf::run(data));
