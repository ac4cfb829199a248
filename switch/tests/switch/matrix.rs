//! `docs/p4runtime.md` names a test for each requirement; each of them must exist.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// Every function in the files of a directory and those below, as `file::function`.
fn functions(directory: &Path, found: &mut BTreeSet<String>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            functions(&path, found);
            continue;
        }
        if path.extension().is_none_or(|extension| extension != "rs") {
            continue;
        }
        let file = path.file_stem().unwrap().to_string_lossy().into_owned();
        let text = fs::read_to_string(&path).unwrap();
        let mut is_test = false;
        for line in text.lines().map(str::trim) {
            is_test |= line == "#[test]" || line == "#[tokio::test]";
            let name = line
                .strip_prefix("async fn ")
                .or_else(|| line.strip_prefix("fn "));
            if let Some(name) = name.filter(|_| is_test) {
                let end = name.find('(').unwrap();
                found.insert(format!("{file}::{}", &name[..end]));
                is_test = false;
            }
        }
    }
}

#[test]
fn every_test_that_the_matrix_names_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = BTreeSet::new();
    for directory in ["p4runtime/src", "pipeline/src", "tests"] {
        functions(&root.join(directory), &mut found);
    }
    let text = fs::read_to_string(root.join("docs/p4runtime.md")).unwrap();
    let (mut rows, mut names_tests) = (0, false);
    for line in text.lines() {
        let last = line.trim_end_matches('|').rsplit('|').next().unwrap();
        // The last column of a table that has it; what is under its head.
        names_tests = line.starts_with('|') && (names_tests || last.trim() == "test");
        if !names_tests || last.trim() == "test" || last.contains("---") {
            continue;
        }
        let tests = last;
        let names: Vec<&str> = tests.split('`').skip(1).step_by(2).collect();
        assert!(!names.is_empty(), "no test: {line}");
        for name in names {
            assert!(found.contains(name), "there is no test {name}: {line}");
        }
        rows += 1;
    }
    assert!(rows >= 25, "only {rows} rows");
}
