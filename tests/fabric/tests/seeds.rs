//! The whole fabric under scenarios drawn from seeds.
//!
//! 10,000 of them unless told, on all processors: some minutes on two. A million by hand:
//!
//!     SEEDS=1000000 FROM=10000 cargo test --release -p wormcast-fabric-tests --test seeds
//!     SEED=17 cargo test --release -p wormcast-fabric-tests --test seeds -- --nocapture
//!
//! The second replays one, and tells what happened in it; a run that finds a failure prints that command.

use wormcast_fabric_tests::drawn::run;
use wormcast_fabric_tests::seeds::run_seeds;
use wormcast_fabric_tests::trace::Trace;

/// Seeds unless told.
const SEEDS: u64 = 10_000;

#[test]
fn whatever_befalls_nobody_loses_a_message() {
    run_seeds("seeds", (0, SEEDS), run);
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
