//! Generates the messages of `agent.proto`, without `protoc`.
#![allow(
    clippy::disallowed_macros,
    reason = "it talks to cargo while the crate is built"
)]

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo::rerun-if-changed=agent.proto");
    // Relative to the package, where cargo runs this: a script compiled for another checkout may be used again.
    let descriptors = protox::compile(["agent.proto"], ["."])?;
    prost_build::Config::new().compile_fds(descriptors)?;
    Ok(())
}
