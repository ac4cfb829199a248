//! See `switch/tests/fuzzed/thrift.rs`.

#![no_main]

use libfuzzer_sys::fuzz_target;
use wormcast_switch_fuzz::fuzzed::thrift;

fuzz_target!(|data: &[u8]| thrift::run(data));
