//! Generates the controller-facing gRPC types from `proto/agent.proto`, without `protoc`.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo::rerun-if-changed=proto/agent.proto");
    // Relative to the package, where cargo runs this: a script compiled for another checkout may be used again.
    let descriptors = protox::compile(["agent.proto"], ["proto"])?;
    tonic_prost_build::configure()
        .build_server(true)
        .compile_fds(descriptors)?;
    Ok(())
}
