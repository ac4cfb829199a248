//! The compiled programs that are checked in are what their sources compile to.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

/// p4c writes where each expression came from; that depends on comments and directories.
fn without_sources(value: Value) -> Value {
    match value {
        Value::Object(map) => map
            .into_iter()
            .filter(|(key, _)| key != "source_info" && key != "program")
            .map(|(key, value)| (key, without_sources(value)))
            .collect(),
        Value::Array(values) => values.into_iter().map(without_sources).collect(),
        other => other,
    }
}

fn read_json(path: &Path) -> Value {
    let text = std::fs::read_to_string(path).unwrap();
    without_sources(serde_json::from_str(&text).unwrap())
}

#[test]
fn compiled_programs_are_current() {
    if Command::new("p4c-bm2-ss")
        .arg("--version")
        .output()
        .is_err()
    {
        eprintln!("SKIPPED compiled_programs_are_current: p4c-bm2-ss is not installed");
        return;
    }
    let crate_directory = Path::new(env!("CARGO_MANIFEST_DIR"));
    let out = tempfile::tempdir().unwrap();
    for program in ["tests/programs/objects", "../bench/switch/l2"] {
        let base = crate_directory.join(program);
        let (json, info) = (out.path().join("p.json"), out.path().join("p.p4info.txtpb"));
        let output = Command::new("p4c-bm2-ss")
            .arg(base.with_extension("p4"))
            .arg("-o")
            .arg(&json)
            .arg("--p4runtime-files")
            .arg(&info)
            .output()
            .unwrap();
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        assert_eq!(
            read_json(&json),
            read_json(&base.with_extension("json")),
            "{program}"
        );
        let checked_in = base.with_extension("p4info.txtpb");
        assert_eq!(
            std::fs::read_to_string(&info).unwrap(),
            std::fs::read_to_string(&checked_in).unwrap(),
            "{program}"
        );
    }
}
