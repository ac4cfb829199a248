//! What is said to have a message has it: see `model`.
//!
//! 2,000 seeds unless told, from FRESH_FROM on, which `setup/test` draws from the commit. 10,000 by
//! `make seeds`; 10^5, and one with its trace:
//!
//!     make seeds SEEDS=100000
//!     SEED=17 cargo test --release -p wormcast-fabric-tests --test model -- --nocapture

use wormcast_fabric_tests::model::run;
use wormcast_fabric_tests::seeds::{fresh, run_seeds};
use wormcast_fabric_tests::trace::Trace;

/// Seeds unless told.
const SEEDS: u64 = 2_000;

#[test]
fn whoever_is_said_to_have_a_message_has_it() {
    run_seeds("model", (fresh(), SEEDS), run);
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
