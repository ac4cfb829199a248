// Where the `.proto` files of others are: build scripts of crates that speak their protocols
// include this file.
//
// They come with the Python package finsy, which the controller needs anyway; `make build`
// installs it before it calls cargo. `WORMCAST_PROTO_DIR` names another directory.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

/// The first directory, in the order of the search, that holds a file. The build is done anew
/// when the variable or one of these files changes: `service` and `others`, by their paths in it.
pub fn find_protos(service: &str, others: &[&str]) -> Result<PathBuf, String> {
    println!("cargo:rerun-if-env-changed=WORMCAST_PROTO_DIR");
    let directory = search(service)?;
    for file in others.iter().copied().chain([service]) {
        println!("cargo:rerun-if-changed={}", directory.join(file).display());
    }
    Ok(directory)
}

fn search(service: &str) -> Result<PathBuf, String> {
    let mut searched = Vec::new();
    if let Some(directory) = env::var_os("WORMCAST_PROTO_DIR") {
        let directory = PathBuf::from(directory);
        if directory.join(service).is_file() {
            return Ok(directory);
        }
        searched.push(format!("{} (WORMCAST_PROTO_DIR)", directory.display()));
    }
    let manifest = env::var_os("CARGO_MANIFEST_DIR").ok_or("CARGO_MANIFEST_DIR is not set")?;
    let virtual_env = Path::new(&manifest).join("../../.venv");
    for directory in site_packages(&virtual_env) {
        let directory = directory.join("finsy/proto");
        if directory.join(service).is_file() {
            return Ok(directory);
        }
    }
    searched.push(format!(
        "{}/lib/python3*/site-packages/finsy/proto",
        virtual_env.display()
    ));
    Err(format!(
        "{service} not found in: {}. Run `make build`, which installs the Python package finsy \
         (it holds the protocol files) into .venv, or set WORMCAST_PROTO_DIR to a directory that \
         holds them",
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
