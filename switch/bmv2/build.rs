//! Generates the messages and the service of BMv2's interface for frames.

use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=proto");
    let descriptors = protox::compile(["p4/bm/dataplane_interface.proto"], ["proto"])?;
    tonic_prost_build::configure()
        .btree_map(".")
        .disable_comments(["."])
        .compile_fds(descriptors)?;
    Ok(())
}
