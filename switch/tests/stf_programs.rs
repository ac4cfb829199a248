//! Runs every program of `tests/programs` that has an STF script, and those of another
//! directory when `STF_PROGRAMS` names one: pairs `name.json`, `name.stf`.

mod hexadecimal;
mod stf;
mod wire;

use std::path::Path;

fn run_directory(directory: &Path) -> (usize, Vec<String>) {
    let mut scripts: Vec<_> = std::fs::read_dir(directory)
        .unwrap_or_else(|error| panic!("{}: {error}", directory.display()))
        .map(|entry| entry.expect("a directory entry").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "stf"))
        .collect();
    scripts.sort();
    let mut failures = Vec::new();
    for path in &scripts {
        let json = path.with_extension("json");
        let read = |path: &Path| {
            std::fs::read_to_string(path)
                .unwrap_or_else(|error| panic!("{}: {error}", path.display()))
        };
        if let Err(error) = stf::run(&read(&json), &read(path)) {
            failures.push(format!("{}: {error}", path.display()));
        }
    }
    (scripts.len(), failures)
}

#[test]
fn committed_programs() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs");
    let (count, failures) = run_directory(&directory);
    assert!(count > 0, "no scripts in {}", directory.display());
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn programs_of_another_directory() {
    let Some(directory) = std::env::var_os("STF_PROGRAMS") else {
        println!("skipped: STF_PROGRAMS names no directory");
        return;
    };
    let (count, failures) = run_directory(Path::new(&directory));
    println!("{} of {count} passed", count - failures.len());
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
