//! Replays what fuzzing has found, the seeds it begins with, and random changes of both.
//! `switch/fuzz/README.md` says how findings get here.

use crate::changing;
use crate::fuzzed;

use std::panic::{AssertUnwindSafe, catch_unwind};

use changing::Changes;
use fuzzed::{TARGETS, Target};

/// Runs one input; a panic names it and shows its bytes.
fn replay(target: &Target, name: &str, bytes: &[u8]) {
    let ended = catch_unwind(AssertUnwindSafe(|| (target.run)(bytes)));
    if ended.is_err() {
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        panic!("target {}, {name}: {hex}", target.name);
    }
}

/// Seeds and findings, then changes of them: the same ones in every run.
fn check(name: &str) {
    let target = TARGETS
        .iter()
        .find(|target| target.name == name)
        .expect("a target");
    let mut inputs = (target.seeds)();
    assert!(!inputs.is_empty());
    for (number, seed) in inputs.iter().enumerate() {
        replay(target, &format!("seed {number}"), seed);
    }
    for (name, bytes) in fuzzed::corpus(name) {
        replay(target, &name, &bytes);
        inputs.push(bytes);
    }
    let mut changes = Changes::new(inputs, target.is_protobuf);
    for number in 0..target.changes {
        replay(target, &format!("change {number}"), &changes.next());
    }
}

macro_rules! replays {
    ($($name:ident),*) => {
        $(
            #[test]
            fn $name() {
                check(stringify!($name));
            }
        )*

        #[test]
        fn every_target_is_replayed() {
            let replayed = [$(stringify!($name)),*];
            assert_eq!(replayed.len(), TARGETS.len());
            assert!(TARGETS.iter().all(|target| replayed.contains(&target.name)));
        }
    };
}

replays!(
    arguments, capture, fabric, lossless, p4info, packets, program, requests, stf, thrift
);

/// A seed that is refused at once would reach nothing.
#[test]
fn seeds_are_taken() {
    fuzzed::requests::check_seeds();
    fuzzed::fabric::check_seeds();
}
