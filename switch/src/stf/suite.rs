//! Runs many scripts at a time.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use super::discover::{Case, Compiler};
use super::runner::{Failure, Passed, run_script};
use crate::pipeline::PipelineConfig;
use crate::program::Program;

/// How a case ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Everything was as expected.
    Passed(Passed),
    /// Something was not; the line is one of the script.
    Failed(Failure),
    /// There was nothing to run: a file cannot be read, compiled or loaded.
    Broken(String),
}

/// A case that has ended.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The case.
    pub case: Case,
    /// How it ended.
    pub verdict: Verdict,
    /// How long it took, with reading and compiling.
    pub time: Duration,
}

impl Outcome {
    /// Whether everything was as expected.
    pub fn passed(&self) -> bool {
        matches!(self.verdict, Verdict::Passed(_))
    }

    /// What is wrong, with file and line; `None` if nothing is.
    pub fn problem(&self) -> Option<String> {
        match &self.verdict {
            Verdict::Passed(_) => None,
            Verdict::Failed(failure) => {
                let script = self.case.script.display();
                Some(match failure.line {
                    Some(line) => format!("{script}:{line}: {}", failure.message),
                    None => format!("{script}: {}", failure.message),
                })
            }
            Verdict::Broken(problem) => Some(problem.clone()),
        }
    }
}

/// Runs cases, `jobs` at a time, and shows each that has ended to `progress`. The outcomes
/// have the order of the cases.
pub fn run_cases(
    cases: &[Case],
    jobs: usize,
    config: PipelineConfig,
    compiler: &Compiler,
    mut progress: impl FnMut(&Outcome),
) -> Vec<Outcome> {
    let next = AtomicUsize::new(0);
    let outcomes: Mutex<Vec<Option<Outcome>>> = Mutex::new(vec![None; cases.len()]);
    let (ended, ends) = mpsc::channel();
    thread::scope(|scope| {
        for _ in 0..jobs.clamp(1, cases.len().max(1)) {
            let ended = ended.clone();
            let next = &next;
            scope.spawn(move || {
                while let Some((index, case)) = {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    cases.get(index).map(|case| (index, case))
                } {
                    // Whoever waits for the ends outlives this thread.
                    let _ = ended.send((index, run_case(case, config, compiler)));
                }
            });
        }
        drop(ended);
        for (index, outcome) in ends {
            progress(&outcome);
            let mut outcomes = outcomes.lock().unwrap_or_else(PoisonError::into_inner);
            outcomes[index] = Some(outcome);
        }
    });
    let outcomes = outcomes
        .into_inner()
        .unwrap_or_else(PoisonError::into_inner);
    outcomes.into_iter().flatten().collect()
}

fn run_case(case: &Case, config: PipelineConfig, compiler: &Compiler) -> Outcome {
    let start = Instant::now();
    // A panic is a bug of the switch; the other cases run all the same.
    let verdict = catch_unwind(AssertUnwindSafe(|| verdict(case, config, compiler)));
    Outcome {
        case: case.clone(),
        verdict: verdict.unwrap_or_else(|_| Verdict::Broken("the switch panicked".to_owned())),
        time: start.elapsed(),
    }
}

fn verdict(case: &Case, config: PipelineConfig, compiler: &Compiler) -> Verdict {
    let json = match compiler.json(&case.program) {
        Ok(json) => json,
        Err(problem) => return Verdict::Broken(problem),
    };
    let script = match fs::read_to_string(&case.script) {
        Ok(script) => script,
        Err(error) => return Verdict::Broken(format!("{}: {error}", case.script.display())),
    };
    let program = match Program::from_json(&json) {
        Ok(program) => Arc::new(program),
        Err(error) => return Verdict::Broken(format!("{}: {error}", case.program.display())),
    };
    match run_script(program, config, &script) {
        Ok(passed) => Verdict::Passed(passed),
        Err(failure) => Verdict::Failed(failure),
    }
}
