//! The switch as a controller and as its neighbours see it: a P4Runtime server over a real
//! gRPC channel, and ports in network namespaces of their own.

mod config;
mod entities;
mod entities_program;
mod errors;
mod exposition;
mod fuzz;
mod links;
mod matrix;
mod messages;
mod metrics;
mod network;
mod profiles;
mod replication;
mod resources;
mod rig;
mod stream;
mod symmetry;
mod tables;
mod translation;
mod value_sets;

#[path = "../wire/mod.rs"]
mod wire;
