//! `seeds TARGET DIRECTORY`: writes the seeds of a target into a directory.

use std::path::PathBuf;
use std::process::ExitCode;

use wormcast_switch_fuzz::fuzzed::{TARGETS, corpus};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [name, directory] = arguments.as_slice() else {
        eprintln!("usage: seeds TARGET DIRECTORY");
        return ExitCode::from(2);
    };
    let Some(target) = TARGETS.iter().find(|target| target.name == name) else {
        let names: Vec<&str> = TARGETS.iter().map(|target| target.name).collect();
        eprintln!(
            "there is no target `{name}`; there are {}",
            names.join(", ")
        );
        return ExitCode::from(2);
    };
    let seeds = (target.seeds)().into_iter().enumerate();
    let seeds = seeds.map(|(number, seed)| (format!("seed-{number:03}"), seed));
    for (file, bytes) in seeds.chain(corpus(target.name)) {
        let path = PathBuf::from(directory).join(file);
        if let Err(error) = std::fs::write(&path, bytes) {
            eprintln!("{}: {error}", path.display());
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}
