//! Generates the messages and services of P4Runtime from their `.proto` files, which are those
//! of the Python package finsy.

use std::error::Error;

#[path = "../protos.rs"]
mod protos;

const SERVICE: &str = "p4/v1/p4runtime.proto";

fn main() -> Result<(), Box<dyn Error>> {
    let others = [
        "p4/v1/p4data.proto",
        "p4/config/v1/p4info.proto",
        "p4/config/v1/p4types.proto",
        "google/rpc/status.proto",
        "google/rpc/code.proto",
    ];
    let directory = protos::find_protos(SERVICE, &others)?;
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
