//! The whole fabric under scenarios drawn from seeds.
//!
//! 2,000 of them unless told, from FRESH_FROM on, which `setup/test` draws from the commit. 10,000 by `make seeds`, on all
//! processors some minutes on two; a million:
//!
//!     make seeds SEEDS=1000000
//!     SEED=17 cargo test --release -p wormcast-fabric-tests --test all seeds:: -- --nocapture
//!
//! The second replays one, and tells what happened in it; a run that finds a failure prints that command.

use wormcast_fabric_tests::drawn::run;
use wormcast_fabric_tests::seeds::{fresh, run_seeds};
use wormcast_fabric_tests::trace::Trace;

/// Seeds by default.
const SEEDS: u64 = 2_000;

#[test]
fn whatever_befalls_nobody_loses_a_message() {
    run_seeds("seeds", (fresh(), SEEDS), run);
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
