//! The fuzzed bodies are those of the tests of the switch, and look for programs where those
//! do.

use std::path::Path;

fn main() {
    let fuzz = std::env::var("CARGO_MANIFEST_DIR").expect("cargo says where the crate is");
    let switch = Path::new(&fuzz)
        .parent()
        .expect("it lies in the switch's folder");
    println!("cargo:rustc-env=CARGO_MANIFEST_DIR={}", switch.display());
    println!("cargo:rerun-if-changed=build.rs");
    // The folder may be another one although the build directory is the same.
    println!("cargo:rerun-if-env-changed=CARGO_MANIFEST_DIR");
}
