//! Generates the gRPC client of `proto/agent.proto`, without `protoc`; its messages are in the crate beside that.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo::rerun-if-changed=proto/agent.proto");
    // Relative to the package, where cargo runs this: a script compiled for another checkout may be used again.
    let descriptors = protox::compile(["agent.proto"], ["proto"])?;
    tonic_prost_build::configure()
        .build_server(true)
        .extern_path(".wormcast.agent.v1", "::wormcast_agent_proto")
        .compile_fds(descriptors)?;
    Ok(())
}
