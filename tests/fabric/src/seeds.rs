//! Runs of many seeds on all processors, and the replay of one.

use crate::trace::Trace;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// A run of more seeds than usual tells how far it is, each time so many are done.
const PROGRESS: u64 = 1_000;

/// Failures after which no more seeds are tried, unless FAILURES says otherwise.
const FAILURES_MAX: u64 = 10;

/// A number in the environment.
///
/// # Panics
/// If something else is there.
pub fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(
        text.parse()
            .unwrap_or_else(|_| panic!("{name} is {text:?}; it must be a number")),
    )
}

/// The first seed of a run that nobody has asked for another: FRESH_FROM, which no commit had before, or 0.
///
/// # Panics
/// If something else than a number is there.
pub fn fresh() -> u64 {
    number("FRESH_FROM").unwrap_or(0)
}

/// Runs SEED alone and prints its trace; without that, SEEDS (or `usual`) many, the first of which is FROM
/// (or `from`). `test` is the file of the test, for the command that replays a failure.
///
/// # Panics
/// If one fails.
pub fn run_seeds(test: &str, (from, usual): (u64, u64), run: impl Fn(u64, &Trace) + Sync) {
    if let Some(seed) = number("SEED") {
        let trace = Trace::default();
        let result = catch_unwind(AssertUnwindSafe(|| run(seed, &trace)));
        println!("{}", trace.text());
        assert!(result.is_ok(), "seed {seed}");
        return;
    }
    let seeds = number("SEEDS").unwrap_or(usual);
    let next = AtomicU64::new(number("FROM").unwrap_or(from));
    let end = next.load(Ordering::Relaxed) + seeds;
    let failures = number("FAILURES").unwrap_or(FAILURES_MAX) as usize;
    let failed = Mutex::new(Vec::new());
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= end || failed.lock().expect("no panic").len() >= failures {
                        return;
                    }
                    if seeds > usual && seed.is_multiple_of(PROGRESS) {
                        eprintln!("seed {seed} of {end}");
                    }
                    let trace = Trace::default();
                    if catch_unwind(AssertUnwindSafe(|| run(seed, &trace))).is_err() {
                        failed.lock().expect("no panic").push(seed);
                        println!(
                            "seed {seed} fails; replay it: SEED={seed} cargo test --release \
                             -p wormcast-fabric-tests --test all {test}:: -- --nocapture\n{}",
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
