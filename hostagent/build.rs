//! Generates the controller-facing gRPC types from `proto/agent.proto`, without `protoc`.

use std::path::Path;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo::rerun-if-changed=proto/agent.proto");
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("proto");
    let descriptors = protox::compile(["agent.proto"], [&root])?;
    tonic_prost_build::configure()
        .build_server(true)
        .compile_fds(descriptors)?;
    Ok(())
}
