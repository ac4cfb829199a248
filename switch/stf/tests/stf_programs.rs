//! Runs every program of `tests/programs` that has an STF script, and those of another
//! directory when `STF_PROGRAMS` names one: pairs `name.json`, `name.stf`.

use std::path::{Path, PathBuf};

use wormcast_switch_jit::COMPILER;
use wormcast_switch_pipeline::PipelineConfig;
use wormcast_switch_stf::{Outcome, RunOptions, discover, run_cases};

fn run_directory(directory: PathBuf, trace: bool) -> Vec<Outcome> {
    let cases = discover(&[directory], &[]).unwrap_or_else(|problem| panic!("{problem}"));
    let options = RunOptions {
        jobs: 2,
        trace,
        config: PipelineConfig {
            compiler: Some(COMPILER),
            ..PipelineConfig::default()
        },
        ..RunOptions::default()
    };
    let outcomes = run_cases(&cases, &options, |_| {});
    let problems: Vec<String> = outcomes.iter().filter_map(Outcome::problem).collect();
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    outcomes
}

#[test]
fn committed_programs() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/programs");
    let outcomes = run_directory(directory, false);
    assert!(outcomes.len() > 20, "{}", outcomes.len());
    assert!(outcomes.iter().all(|outcome| outcome.trace.is_empty()));
}

/// A trace changes nothing, and says what the program says.
#[test]
fn committed_programs_traced() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/programs");
    let outcomes = run_directory(directory, true);
    let of = |name: &str| {
        let outcome = outcomes.iter().find(|one| one.case.name.ends_with(name));
        outcome.map_or("", |outcome| outcome.trace.as_str())
    };
    for (name, line) in [
        ("/ends", "[5.0] op 5 and b 7"),
        ("/ends", "Dropping packet: assertion_failed"),
        ("/ends", "Packet is marked for exit, interrupting pipeline"),
        ("/ends", "Parser 'parser': error NotOne"),
        (
            "/multicast",
            "Group 1: port 1 instance 100, port 2 instance 100, port 3 instance 100, port 3 instance 200",
        ),
        ("/clones", "Session 5: port 4 instance 0"),
        ("/clones", "Event clone_session_unknown"),
        ("/passes", "Resubmitting packet"),
        ("/passes", "Recirculating packet of 7 bytes"),
        ("/passes", "Truncating to 8 bytes"),
        ("/digests", "Digest 'note_t': 0x2222"),
        ("/meters", "Executing meter ingress.packets[1]: colour 2"),
        (
            "/meters",
            "Wrote register 'ingress.words' at index 3: 0x1234",
        ),
        ("/selectors", "Choosing member 2 from group 7"),
        ("/checksums", "Verified checksum 'cksum_1': failed"),
        ("/varbits", "* first.data: 0x0102030405060708"),
        ("/entries", "Entry is 0x10 &&& 0xf0, 0x5..0x9 with priority"),
    ] {
        let trace = of(name);
        let said = trace.lines().any(|found| found.contains(line));
        assert!(said, "{name}: no `{line}` in\n{trace}");
    }
}

#[test]
fn programs_of_another_directory() {
    let Some(directory) = std::env::var_os("STF_PROGRAMS") else {
        println!("skipped: STF_PROGRAMS names no directory");
        return;
    };
    println!("{} passed", run_directory(directory.into(), true).len());
}
