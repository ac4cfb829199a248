//! The STF programs on the binary, as a process that stands for simple_switch: frames, digests
//! and state from outside.

use std::path::Path;

use wormcast_switch_stf::{Outcome, RunOptions, discover, run_cases};

#[test]
fn scripts_hold_on_this_switch_as_a_process() {
    let folder = tempfile::tempdir().unwrap();
    let switch = folder.path().join("simple_switch");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_wormcast-switch"), &switch).unwrap();
    let programs = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs");
    let cases = discover(&[programs], &[]).unwrap();
    let options = RunOptions {
        jobs: 2,
        switch: Some(switch),
        ..RunOptions::default()
    };
    let outcomes = run_cases(&cases, &options, |_| {});
    let failed: Vec<(&str, String)> = outcomes
        .iter()
        .filter(|outcome| !outcome.passed())
        .map(|outcome| {
            let name = outcome.case.name.rsplit('/').next().unwrap();
            (name, outcome.problem().unwrap())
        })
        .collect();
    let known = [
        // Thrift has 64 bits for a register; BMv2 gives the largest number, this switch the
        // lowest bits.
        ("meters", "0, which is not == 9223372036854775807"),
        // As in BMv2, a priority that has no queue loses the packet.
        ("queues", "1 packets instead of 2"),
    ];
    let mut alike = failed.iter().zip(known);
    let alike =
        alike.all(|((name, problem), (known, why))| *name == known && problem.contains(why));
    assert!(alike && failed.len() == known.len(), "{failed:#?}");
    assert!(
        outcomes
            .iter()
            .filter(|outcome| Outcome::passed(outcome))
            .count()
            >= 21
    );
}
