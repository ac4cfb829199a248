//! What fuzzing runs: each target takes any bytes, and panics if the switch breaks a promise.
//! `switch/fuzz` searches for bytes that make one panic, guided by coverage; the tests replay
//! seeds, findings and random changes of them.

pub mod arguments;
pub mod capture;
pub mod draws;
pub mod fabric;
pub mod lossless;
pub mod p4info;
pub mod packets;
pub mod program;
pub mod protobuf;
pub mod requests;
pub mod stf;
pub mod thrift;

#[path = "../json_mutation/mod.rs"]
pub mod json_mutation;
#[path = "../lossless_lab/hosts.rs"]
pub mod lossless_lab;
#[path = "../switch/messages.rs"]
pub mod messages;
#[path = "../executions/modes.rs"]
pub mod modes;
#[path = "../lossless/network.rs"]
pub mod network;
#[path = "../executions/programs.rs"]
pub mod programs;
#[path = "../wire/mod.rs"]
pub mod wire;
#[path = "../worms/frames.rs"]
pub mod worms;

use std::path::{Path, PathBuf};

pub struct Target {
    /// Its name, and that of its folder of findings.
    pub name: &'static str,
    /// Panics if a promise is broken.
    pub run: fn(&[u8]),
    /// Inputs to begin with, made of the programs and scripts of the repository.
    pub seeds: fn() -> Vec<Vec<u8>>,
    /// Inputs are protocol buffers, and are changed as such.
    pub is_protobuf: bool,
    /// Random changes that the tests run.
    pub changes: usize,
}

macro_rules! target {
    ($name:ident, $is_protobuf:literal, $changes:literal) => {
        Target {
            name: stringify!($name),
            run: $name::run,
            seeds: $name::seeds,
            is_protobuf: $is_protobuf,
            changes: $changes,
        }
    };
}

pub const TARGETS: &[Target] = &[
    target!(arguments, false, 20_000),
    target!(capture, false, 20_000),
    target!(fabric, false, 20_000),
    target!(lossless, false, 600),
    target!(p4info, true, 2_000),
    target!(packets, false, 2_000),
    target!(program, false, 1_000),
    target!(requests, true, 2_000),
    target!(stf, false, 2_000),
    target!(thrift, false, 5_000),
];

/// Where programs, their P4Info and scripts are.
pub fn programs_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs")
}

/// Two lists of what was seen are the same; says where they begin to differ.
pub fn assert_same(expected: &[String], seen: &[String], what: &str) {
    for (expected, seen) in expected.iter().zip(seen) {
        assert_eq!(expected, seen, "{what}");
    }
    assert_eq!(expected.len(), seen.len(), "{what}");
}

/// Inputs of a target that are kept: its findings, and some that reach far. With their names,
/// in order.
pub fn corpus(target: &str) -> Vec<(String, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fuzzed/corpus")
        .join(target);
    let Ok(files) = std::fs::read_dir(&folder) else {
        return Vec::new();
    };
    let mut corpus: Vec<(String, Vec<u8>)> = files
        .map(|file| {
            let path = file.expect("a file of the corpus").path();
            let name = path
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            let bytes = std::fs::read(&path);
            (
                name,
                bytes.unwrap_or_else(|error| panic!("{}: {error}", path.display())),
            )
        })
        .collect();
    corpus.sort();
    corpus
}
