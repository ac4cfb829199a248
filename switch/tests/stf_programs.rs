//! Runs every program of `tests/programs` that has an STF script, and those of another
//! directory when `STF_PROGRAMS` names one: pairs `name.json`, `name.stf`.

use std::path::{Path, PathBuf};

use wormcast_switch::pipeline::PipelineConfig;
use wormcast_switch::stf::{Compiler, Outcome, discover, run_cases};

fn run_directory(directory: PathBuf) -> usize {
    let cases = discover(&[directory], &[]).unwrap_or_else(|problem| panic!("{problem}"));
    let config = PipelineConfig::default();
    let outcomes = run_cases(&cases, 2, config, &Compiler::default(), |_| {});
    let problems: Vec<String> = outcomes.iter().filter_map(Outcome::problem).collect();
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    outcomes.len()
}

#[test]
fn committed_programs() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs");
    run_directory(directory);
}

#[test]
fn programs_of_another_directory() {
    let Some(directory) = std::env::var_os("STF_PROGRAMS") else {
        println!("skipped: STF_PROGRAMS names no directory");
        return;
    };
    println!("{} passed", run_directory(directory.into()));
}
