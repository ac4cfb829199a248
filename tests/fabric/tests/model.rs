//! What is said to have a message has it: see `model`.
//!
//! 2,000 seeds unless told, from FRESH_FROM on, which `setup/test` draws from the commit. 10^5 by hand, and one with
//! its trace:
//!
//!     SEEDS=100000 cargo test --release -p wormcast-fabric-tests --test model
//!     SEED=17 cargo test --release -p wormcast-fabric-tests --test model -- --nocapture

use wormcast_fabric_tests::model::run;
use wormcast_fabric_tests::seeds::{number, run_seeds};
use wormcast_fabric_tests::trace::Trace;

/// Seeds unless told.
const SEEDS: u64 = 2_000;

#[test]
fn whoever_is_said_to_have_a_message_has_it() {
    let from = number("FRESH_FROM").unwrap_or(0);
    run_seeds("model", (from, SEEDS), run);
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let run = || {
        let trace = Trace::default();
        run(3, &trace);
        trace.text()
    };
    assert_eq!(run(), run());
}
