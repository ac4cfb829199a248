//! Reading vectors and hexadecimal.

use serde_json::Value;
use std::path::PathBuf;

pub fn vectors(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("vectors")
        .join(name)
}

pub fn read(name: &str) -> Value {
    let text = std::fs::read_to_string(vectors(name)).expect("the vectors are checked in");
    serde_json::from_str(&text).expect("JSON")
}

pub fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
