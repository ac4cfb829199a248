//! Runs many scripts at a time.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use super::discover::{Case, Compiler};
use super::failure::Failure;
use super::live::{Process, run_live_script};
use super::runner::{Passed, run_script};
use wormcast_switch_dataplane::trace::{trace_channel, write_record};
use wormcast_switch_pipeline::LoadedProgram;
use wormcast_switch_pipeline::PipelineConfig;
use wormcast_switch_pipeline::trace::Format;

/// Records of a trace that are kept for one script; the rest is lost, and said to be.
const TRACE_RECORDS_MAX: usize = 4_096;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    Passed(Passed),
    /// Something was not; the line is one of the script.
    Failed(Failure),
    /// There was nothing to run: a file cannot be read, compiled or loaded.
    Broken(String),
}

/// A case that has ended.
#[derive(Clone, Debug)]
pub struct Outcome {
    pub case: Case,
    pub verdict: Verdict,
    /// How long it took, with reading and compiling.
    pub time: Duration,
    /// What happened to its packets, if it was asked for.
    pub trace: String,
}

#[derive(Clone, Debug, Default)]
pub struct RunOptions {
    /// Scripts that run at a time, at least 1.
    pub jobs: usize,
    /// Settings of the pipeline of each.
    pub config: PipelineConfig,
    pub compiler: Compiler,
    pub trace: bool,
    /// A switch to run the scripts on instead, which takes the options of BMv2's
    /// `simple_switch`; then `config` and `trace` have no effect.
    pub switch: Option<PathBuf>,
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

/// Runs cases, several at a time, and shows each that has ended to `progress`. The outcomes
/// have the order of the cases.
pub fn run_cases(
    cases: &[Case],
    options: &RunOptions,
    mut progress: impl FnMut(&Outcome),
) -> Vec<Outcome> {
    let next = AtomicUsize::new(0);
    let outcomes: Mutex<Vec<Option<Outcome>>> = Mutex::new(vec![None; cases.len()]);
    let (ended, ends) = mpsc::channel();
    thread::scope(|scope| {
        for _ in 0..options.jobs.clamp(1, cases.len().max(1)) {
            let ended = ended.clone();
            let next = &next;
            scope.spawn(move || {
                while let Some((index, case)) = {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    cases.get(index).map(|case| (index, case))
                } {
                    // Whoever waits for the ends outlives this thread.
                    let _ = ended.send((index, run_case(case, options)));
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

fn run_case(case: &Case, options: &RunOptions) -> Outcome {
    let start = Instant::now();
    let mut trace = String::new();
    // A panic is a bug of the switch; the other cases run all the same.
    let verdict = catch_unwind(AssertUnwindSafe(|| verdict(case, options, &mut trace)));
    Outcome {
        case: case.clone(),
        verdict: verdict.unwrap_or_else(|_| Verdict::Broken("the switch panicked".to_owned())),
        time: start.elapsed(),
        trace,
    }
}

fn verdict(case: &Case, options: &RunOptions, trace: &mut String) -> Verdict {
    let json = match options.compiler.json(&case.program) {
        Ok(json) => json,
        Err(problem) => return Verdict::Broken(problem),
    };
    let script = match fs::read_to_string(&case.script) {
        Ok(script) => script,
        Err(error) => return Verdict::Broken(format!("{}: {error}", case.script.display())),
    };
    let program = match LoadedProgram::from_json(&json) {
        Ok(program) => Arc::new(program),
        Err(error) => return Verdict::Broken(format!("{}: {error}", case.program.display())),
    };
    if let Some(switch) = &options.switch {
        let process = match Process::start(switch, &json) {
            Ok(process) => process,
            Err(problem) => return Verdict::Broken(problem),
        };
        return match run_live_script(process, program, &script) {
            Ok(passed) => Verdict::Passed(passed),
            Err(failure) => Verdict::Failed(failure),
        };
    }
    let (sink, mut reader) = trace_channel(TRACE_RECORDS_MAX);
    let sink = options.trace.then_some(sink);
    let ended = run_script(program, options.config, &script, sink);
    while let Some((record, lost)) = reader.blocking_read() {
        trace.push_str(&write_record(&record, lost, Format::Text));
    }
    match ended {
        Ok(passed) => Verdict::Passed(passed),
        Err(failure) => Verdict::Failed(failure),
    }
}
