//! What the loader says about JSON it refuses: the place, the value, the valid choices.

use std::path::Path;

use serde_json::{Value, json};
use wormcast_switch_program::Program;

fn programs() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs")
}

fn document(name: &str) -> Value {
    let path = programs().join(name).with_extension("json");
    let text = std::fs::read_to_string(&path)
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_str(&text).expect("JSON")
}

/// The error after the value at a JSON pointer has been replaced.
fn error_with(name: &str, pointer: &str, value: Value) -> String {
    let mut document = document(name);
    *document
        .pointer_mut(pointer)
        .unwrap_or_else(|| panic!("no {pointer} in {name}")) = value;
    match Program::from_json(&document.to_string()) {
        Ok(_) => panic!("{name} loads with {pointer} changed"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn text_that_is_not_json() {
    let error = Program::from_json("{\n  \"a\" 1}").expect_err("an error");
    assert_eq!(
        error.to_string(),
        "not JSON at line 2, column 7: expected `:` at line 2 column 7"
    );
    let error = Program::from_json("[]").expect_err("an error");
    assert_eq!(
        error.to_string(),
        "an array of 0 is not valid here; expected an object"
    );
    let error = Program::from_json("{}").expect_err("an error");
    assert_eq!(error.to_string(), "member \"header_types\" is missing");
}

#[test]
fn references_to_nothing() {
    assert_eq!(
        error_with("stacks", "/headers/0/header_type", json!("absent")),
        "headers[0].header_type: there is no header type \"absent\"; there are: command_t, \
         item_t, scalars_0, standard_metadata"
    );
    assert_eq!(
        error_with("stacks", "/pipelines/0/init_table", json!("absent"))
            .split(';')
            .next(),
        Some("pipelines[0].init_table: there is no table or condition \"absent\"")
    );
    assert_eq!(
        error_with("stacks", "/deparsers/0/order/0", json!("other")),
        "deparsers[0].order[0]: there is no header \"other\"; there are: command, copies[0], \
         copies[1], copies[2], copies[3], items[0], items[1], items[2], items[3], scalars, \
         standard_metadata"
    );
}

#[test]
fn values_out_of_bounds() {
    assert_eq!(
        error_with("stacks", "/header_types/0/fields/0/1", json!(-1)),
        "header_types[0].fields[0][1]: -1 is not valid here; expected an integer from 0 to 16384"
    );
    assert_eq!(
        error_with("externs", "/counter_arrays/0/size", json!(1_i64 << 40)),
        "counter_arrays[0].size: 1099511627776 cells of counters are more than the limit of \
         8388608"
    );
    assert_eq!(
        error_with("stacks", "/__meta__/version/0", json!(3)),
        "__meta__.version[0]: format version 3 is not supported; supported: version 2"
    );
}

#[test]
fn constructs_that_are_not_supported() {
    let primitive = json!({"op": "teleport", "parameters": []});
    let error = error_with("stacks", "/actions/0/primitives/0", primitive);
    assert!(
        error.starts_with(
            "actions[0].primitives[0]: primitive \"teleport\" with 0 parameters is not \
             supported; supported: assign, modify_field, "
        ),
        "{error}"
    );
    assert_eq!(
        error_with("options", "/calculations/0/algo", json!("md5")),
        "calculations[0].algo: algorithm \"md5\" is not supported; supported: csum16, crc32, \
         crc32_custom, crc16, crc16_custom, crcCCITT, identity, xor16, xor32, xxh64, bmv2_hash, hash_ex"
    );
}

#[test]
fn a_cycle_of_controls() {
    let mut document = document("stacks");
    let name = document["pipelines"][0]["conditionals"][0]["name"].clone();
    for condition in document["pipelines"][0]["conditionals"]
        .as_array_mut()
        .expect("conditions")
    {
        condition["true_next"] = name.clone();
    }
    let error = Program::from_json(&document.to_string()).expect_err("an error");
    assert!(error.to_string().ends_with("is on a cycle"), "{error}");
    assert!(error.to_string().starts_with("pipelines[0]: "), "{error}");
}
