//! The switch as a controller and as its neighbours see it: a P4Runtime server over a real
//! gRPC channel, and ports in network namespaces of their own.

mod config;
mod entities;
mod errors;
mod exposition;
mod fuzz;
mod links;
mod messages;
mod metrics;
mod network;
mod rig;
mod stream;
mod trace;
