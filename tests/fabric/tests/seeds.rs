//! The whole fabric under scenarios drawn from seeds.
//!
//! 10,000 of them unless told, on all processors: some minutes on two. A million by hand:
//!
//!     SEEDS=1000000 FROM=10000 cargo test --release -p wormcast-fabric-tests --test seeds
//!     SEED=17 cargo test --release -p wormcast-fabric-tests --test seeds -- --nocapture
//!
//! The second replays one, and tells what happened in it; a run that finds a failure prints that command.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use wormcast_fabric_tests::drawn::{Trace, run};

/// Seeds unless told.
const SEEDS: u64 = 10_000;

/// A run of more seeds than [`SEEDS`] tells how far it is, each time so many are done.
const PROGRESS: u64 = 1_000;

/// Failures after which no more seeds are tried.
const FAILURES_MAX: usize = 10;

fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(
        text.parse()
            .unwrap_or_else(|_| panic!("{name} is {text:?}; it must be a number")),
    )
}

#[test]
fn whatever_befalls_nobody_loses_a_message() {
    if let Some(seed) = number("SEED") {
        let trace = Trace::default();
        let result = catch_unwind(AssertUnwindSafe(|| run(seed, &trace)));
        println!("{}", trace.text());
        assert!(result.is_ok(), "seed {seed}");
        return;
    }
    let seeds = number("SEEDS").unwrap_or(SEEDS);
    let next = AtomicU64::new(number("FROM").unwrap_or(0));
    let end = next.load(Ordering::Relaxed) + seeds;
    let failed = Mutex::new(Vec::new());
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= end || failed.lock().expect("no panic").len() >= FAILURES_MAX {
                        return;
                    }
                    if seeds > SEEDS && seed.is_multiple_of(PROGRESS) {
                        eprintln!("seed {seed} of {end}");
                    }
                    let trace = Trace::default();
                    if catch_unwind(AssertUnwindSafe(|| run(seed, &trace))).is_err() {
                        failed.lock().expect("no panic").push(seed);
                        println!(
                            "seed {seed} fails; replay it: SEED={seed} cargo test --release \
                             -p wormcast-fabric-tests --test seeds -- --nocapture\n{}",
                            trace.text()
                        );
                    }
                }
            });
        }
    });
    let failed = failed.into_inner().expect("no panic");
    assert!(failed.is_empty(), "seeds {failed:?} fail");
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
