//! Generates the messages and services of P4Runtime from their `.proto` files.
//!
//! Those of P4Runtime are of the Python package finsy, which the controller needs
//! anyway; `make build` installs it before it calls cargo. `WORMCAST_PROTO_DIR`
//! names another directory that holds `p4/v1/p4runtime.proto` and what it imports.

use std::env;
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

const SERVICE: &str = "p4/v1/p4runtime.proto";

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-env-changed=WORMCAST_PROTO_DIR");
    let directory = find_protos()?;
    for file in [
        SERVICE,
        "p4/v1/p4data.proto",
        "p4/config/v1/p4info.proto",
        "p4/config/v1/p4types.proto",
        "google/rpc/status.proto",
        "google/rpc/code.proto",
    ] {
        println!("cargo:rerun-if-changed={}", directory.join(file).display());
    }
    let files = [SERVICE, "google/rpc/code.proto"];
    let descriptors = protox::compile(files, [&directory])?;
    tonic_prost_build::configure()
        .compile_well_known_types(true)
        .btree_map(".")
        .disable_comments(["."])
        .include_file("p4runtime.rs")
        .compile_fds(descriptors)?;
    Ok(())
}

/// The first directory, in the order of the search, that holds the service.
fn find_protos() -> Result<PathBuf, String> {
    let mut searched = Vec::new();
    if let Some(directory) = env::var_os("WORMCAST_PROTO_DIR") {
        let directory = PathBuf::from(directory);
        if directory.join(SERVICE).is_file() {
            return Ok(directory);
        }
        searched.push(format!("{} (WORMCAST_PROTO_DIR)", directory.display()));
    }
    let manifest = env::var_os("CARGO_MANIFEST_DIR").ok_or("CARGO_MANIFEST_DIR is not set")?;
    let virtual_env = Path::new(&manifest).join("../../.venv");
    for directory in site_packages(&virtual_env) {
        let directory = directory.join("finsy/proto");
        if directory.join(SERVICE).is_file() {
            return Ok(directory);
        }
    }
    searched.push(format!(
        "{}/lib/python3*/site-packages/finsy/proto",
        virtual_env.display()
    ));
    Err(format!(
        "{SERVICE} not found in: {}. Run `make build`, which installs the Python package finsy \
         (it holds the P4Runtime protocol files) into .venv, or set WORMCAST_PROTO_DIR to a \
         directory that holds them",
        searched.join(", ")
    ))
}

fn site_packages(virtual_env: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(virtual_env.join("lib")) else {
        return Vec::new();
    };
    let mut found: Vec<PathBuf> = entries
        .filter_map(Result::ok)
        .filter(|entry| entry.file_name().to_string_lossy().starts_with("python3"))
        .map(|entry| entry.path().join("site-packages"))
        .collect();
    found.sort();
    found
}
