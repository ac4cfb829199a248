//! `wormcast-stf`: runs STF scripts on the pipeline of the switch.

use std::fs;
use std::num::NonZero;
use std::path::PathBuf;
use std::process::ExitCode;
use std::thread;

use clap::Parser;

use wormcast_switch_flow::whole_number;
use wormcast_switch_pipeline::{Execution, PipelineConfig, PortId};
use wormcast_switch_stf::{
    Compiler, Outcome, RunOptions, discover, junit, run_cases, summary_json,
};

const AFTER_HELP: &str = "\
Exit status: 0 if every script passed, 1 if one did not, 2 if there is nothing to run.

Example:
  wormcast-stf --junit report.xml tests/ other/program.stf";

/// Runs STF scripts, the packet tests of p4c, on the pipeline of wormcast-switch.
#[derive(Debug, Parser)]
#[command(name = "wormcast-stf", version, after_help = AFTER_HELP)]
struct Arguments {
    /// Folders, or .stf, .json or .p4 files; a script and its program have one name
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,

    /// Only scripts with this in their path; may be repeated
    #[arg(short = 'k', long, value_name = "TEXT")]
    only: Vec<String>,

    /// Scripts that run at a time; as many as there are processors unless given
    #[arg(short, long, value_name = "N", value_parser = whole_number(1..=1_024usize))]
    jobs: Option<usize>,

    /// Compiler for .p4 files
    #[arg(long, value_name = "COMMAND", default_value = "p4c-bm2-ss")]
    p4c: PathBuf,

    /// Option for the compiler; may be repeated
    #[arg(long, value_name = "OPTION", allow_hyphen_values = true)]
    p4c_option: Vec<String>,

    /// How packets are run: `compiled` to machine code or `interpreted`, with the same outcome
    #[arg(long = "engine", value_name = "HOW", default_value = "compiled")]
    execution: Execution,

    /// Port that drops
    #[arg(long, value_name = "N", default_value_t = 511, value_parser = whole_number(0..=511u16))]
    drop_port: u16,

    /// Seed of `random`
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = whole_number(0..=u64::MAX))]
    seed: u64,

    /// Switch to run the scripts on instead of that pipeline: one with the options of BMv2's
    /// `simple_switch`, started anew for each script
    #[arg(long, value_name = "COMMAND", conflicts_with_all = ["execution", "drop_port", "seed", "trace"])]
    switch: Option<PathBuf>,

    /// Write the outcomes to this file as JUnit XML
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,

    /// Print the outcomes as JSON, and nothing else
    #[arg(long)]
    json: bool,

    /// Print what happened to the packets of scripts that did not pass
    #[arg(long)]
    trace: bool,

    /// Print only scripts that did not pass, and the summary
    #[arg(short, long)]
    quiet: bool,

    /// Print what would run, and exit
    #[arg(long)]
    list: bool,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match run(&arguments) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(problem) => {
            eprintln!("wormcast-stf: {problem}");
            ExitCode::from(2)
        }
    }
}

/// Whether every script passed.
fn run(arguments: &Arguments) -> Result<bool, String> {
    let cases = discover(&arguments.paths, &arguments.only)?;
    if arguments.list {
        for case in &cases {
            println!("{} {}", case.script.display(), case.program.display());
        }
        return Ok(true);
    }
    let processors = thread::available_parallelism().map_or(1, NonZero::get);
    let jobs = arguments.jobs.unwrap_or(processors);
    let config = PipelineConfig {
        drop_port: PortId(arguments.drop_port),
        seed: arguments.seed,
        compiler: wormcast_switch_jit::compiler_of(arguments.execution),
        ..PipelineConfig::default()
    };
    let compiler = Compiler {
        command: arguments.p4c.clone(),
        options: arguments.p4c_option.clone(),
    };
    let mut ended = 0;
    let options = RunOptions {
        jobs,
        config,
        compiler,
        trace: arguments.trace,
        switch: arguments.switch.clone(),
    };
    let outcomes = run_cases(&cases, &options, |outcome| {
        ended += 1;
        if !arguments.json {
            show(outcome, ended, cases.len(), arguments.quiet);
        }
    });
    if let Some(path) = &arguments.junit {
        fs::write(path, junit(&outcomes))
            .map_err(|error| format!("{}: {error}", path.display()))?;
    }
    let passed = outcomes.iter().filter(|outcome| outcome.passed()).count();
    if arguments.json {
        println!("{}", summary_json(&outcomes));
    } else {
        println!("{passed} of {} passed", outcomes.len());
    }
    Ok(passed == outcomes.len())
}

fn show(outcome: &Outcome, ended: usize, all: usize, quiet: bool) {
    match outcome.problem() {
        None if quiet => {}
        None => println!("[{ended}/{all}] ok   {}", outcome.case.name),
        Some(problem) => println!("[{ended}/{all}] FAIL {}\n  {problem}", outcome.case.name),
    }
    if !outcome.passed() {
        print!("{}", outcome.trace);
    }
}
