//! See `switch/tests/fuzzed/packets.rs`.

#![no_main]

use libfuzzer_sys::fuzz_target;
use wormcast_switch_fuzz::fuzzed::packets;

fuzz_target!(|data: &[u8]| packets::run(data));
