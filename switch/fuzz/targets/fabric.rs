//! See `switch/tests/fuzzed/fabric.rs`.

#![no_main]

use libfuzzer_sys::fuzz_target;
use wormcast_switch_fuzz::fuzzed::fabric;

fuzz_target!(|data: &[u8]| fabric::run(data));
