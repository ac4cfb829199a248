//! `wormcast-stf` as a user and a CI run it.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

fn run(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_wormcast-stf"))
        .args(arguments)
        .output()
        .expect("it runs")
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn programs() -> String {
    let programs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/programs");
    programs.display().to_string()
}

#[test]
fn all_pass() {
    let programs = programs();
    all_pass_on("compiled", &programs);
    all_pass_on("interpreted", &programs);
}

fn all_pass_on(engine: &str, programs: &str) {
    let output = run(&["-q", "--jobs", "2", "--engine", engine, programs]);
    let said = said(&output);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(
        said.ends_with(" passed\n") && said.lines().count() == 1,
        "{said}"
    );
}

#[test]
fn one_that_fails_is_named_with_its_line_and_traced() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    for name in ["good", "wrong", "odd"] {
        let json = Path::new(&programs()).join("multicast.json");
        fs::copy(json, at(&format!("{name}.json"))).unwrap();
    }
    let packet = "packet 0 0000 0000 00 00\n";
    fs::write(
        at("good.stf"),
        format!("{packet}expect 1 0000 0000 01 00 $\n"),
    )
    .unwrap();
    fs::write(
        at("wrong.stf"),
        format!("{packet}expect 1 0000 0000 01 01 $\n"),
    )
    .unwrap();
    fs::write(at("odd.stf"), format!("{packet}\nfly\n")).unwrap();
    let path = folder.path().display().to_string();
    let junit = at("report.xml").display().to_string();
    let output = run(&["--trace", "--junit", &junit, &path]);
    let text = said(&output);
    assert_eq!(output.status.code(), Some(1), "{text}");
    let wrong = at("wrong.stf").display().to_string();
    let expected = format!("{wrong}:2: port 1: 000000000100 instead of 000000000101$");
    assert!(text.contains(&expected), "{text}");
    assert!(
        text.contains("[1.1] Transmitting packet of size 6 out of port 1"),
        "{text}"
    );
    let odd = at("odd.stf").display().to_string();
    assert!(
        text.contains(&format!("{odd}:3: there is no command `fly`")),
        "{text}"
    );
    assert!(text.ends_with("1 of 3 passed\n"), "{text}");
    let xml = fs::read_to_string(&junit).unwrap();
    assert!(
        xml.contains("tests=\"3\" failures=\"2\" errors=\"0\""),
        "{xml}"
    );

    let output = run(&["--json", "--only", "wrong", &path]);
    assert_eq!(output.status.code(), Some(1));
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json["cases"][0]["line"], 2);
    assert_eq!(json["cases"][0]["verdict"], "failed");
}

#[test]
fn nothing_to_run_is_an_error_of_its_own() {
    for (arguments, expected) in [
        (vec!["/no/such/place"], "is no folder and no .stf"),
        (vec!["-k", "no such name", "tests"], "no script is chosen"),
    ] {
        let mut arguments = arguments;
        let programs = programs();
        if arguments.last() == Some(&"tests") {
            arguments.pop();
            arguments.push(&programs);
        }
        let output = run(&arguments);
        assert_eq!(output.status.code(), Some(2));
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(said.contains(expected), "{said}");
    }
}

#[test]
fn a_switch_that_does_not_start_is_no_failure_of_a_script() {
    for (command, expected) in [
        ("/no/such/switch", "/no/such/switch: No such file"),
        ("false", "false: it has ended (exit status: 1)"),
    ] {
        let output = run(&["--json", "-k", "tables", "--switch", command, &programs()]);
        assert_eq!(output.status.code(), Some(1));
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        let case = &report["cases"][0];
        assert_eq!(case["verdict"], "broken");
        let problem = case["problem"].as_str().unwrap();
        assert!(problem.starts_with(expected), "{problem}");
    }
    let output = run(&["--jobs", "0", &programs()]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        said.contains("it must be a whole number from 1 to 1024"),
        "{said}"
    );
}

/// The verdicts that are not `passed`: names of scripts, and what they say.
fn failures(report: &Value) -> Vec<(String, String)> {
    let cases = report["cases"].as_array().unwrap().iter();
    let failed = cases.filter(|case| case["verdict"] != "passed");
    let failed = failed.map(|case| {
        let name = case["name"].as_str().unwrap().rsplit('/').next().unwrap();
        (
            name.to_owned(),
            case["problem"].as_str().unwrap().to_owned(),
        )
    });
    failed.collect()
}

/// Where a BMv2 that was built without its assertions ends, or goes on: an index past the end of a register or meter
/// array is undefined there.
const UNDEFINED: [(&str, &str); 2] = [
    ("externs", "the switch has ended (signal"),
    ("meters", "the switch has ended (signal"),
];

fn are_as_known(failed: &[(String, String)], known: &[(&str, &str)]) -> bool {
    let is = |(name, problem): &(String, String), (as_known, why): &(&str, &str)| {
        name == as_known && problem.contains(why)
    };
    let defined = failed
        .iter()
        .filter(|failure| !UNDEFINED.iter().any(|undefined| is(failure, undefined)));
    let defined: Vec<_> = defined.collect();
    let mut pairs = defined.iter().zip(known);
    defined.len() == known.len() && pairs.all(|(failure, known)| is(failure, known))
}

/// What the scripts expect is what BMv2 does, where it is installed, but for what
/// `docs/drop-in.md` says.
#[test]
fn scripts_hold_on_bmv2() {
    if Command::new("simple_switch")
        .arg("--version")
        .output()
        .is_err()
    {
        eprintln!("SKIPPED scripts_hold_on_bmv2: simple_switch is not installed");
        return;
    }
    let output = run(&["--json", "--switch", "simple_switch", &programs()]);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let failed = failures(&report);
    let known = [
        // `assert` and `assume` that do not hold.
        ("ends", "the switch has ended (signal"),
        // Loops of an action, and states of a parser, that go on for ever.
        ("loops", "the switch is busy for"),
        // A packet that is resubmitted for ever.
        ("passes", "the switch is busy for"),
        // Packets take time through a queue.
        ("queues", "instead of 00aa"),
        // What `push_front` and `pop_front` free in a stack of header unions stays valid.
        ("union_stacks", "instead of 0203"),
    ];
    assert!(are_as_known(&failed, &known), "{failed:#?}");
    assert!(report["passed"].as_u64().unwrap() >= 18, "{report}");
}
