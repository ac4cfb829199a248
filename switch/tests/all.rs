//! The tests of this crate in one program: each file beside this one is a module.
#![allow(
    clippy::duplicate_mod,
    reason = "the fuzz crate has what `fuzzed` takes from the others without these"
)]

mod changing;
mod control;
mod executions;
mod fuzz_replay;
#[allow(dead_code, reason = "the fuzz crate uses the rest")]
mod fuzzed;
mod hexadecimal;
mod json_mutation;
mod lossless;
mod lossless_lab;
mod program_errors;
mod robustness;
mod rollback;
mod stf_live;
mod switch;
mod wire;
mod worm_state;
mod worm_trace;
mod worm_vectors;
#[path = "worms/frames.rs"]
mod worms;
