//! Generates the messages and the service of gNMI from their published `.proto` files, which
//! are those of the Python package finsy.

use std::error::Error;

#[path = "../protos.rs"]
mod protos;

const SERVICE: &str = "gnmi1/gnmi.proto";

fn main() -> Result<(), Box<dyn Error>> {
    let directory = protos::find_protos(SERVICE, &["gnmi1/gnmi_ext.proto"])?;
    let descriptors = protox::compile([SERVICE], [&directory])?;
    tonic_prost_build::configure()
        .compile_well_known_types(true)
        .btree_map(".")
        .disable_comments(["."])
        .include_file("messages.rs")
        .compile_fds(descriptors)?;
    Ok(())
}
