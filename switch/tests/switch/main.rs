//! The switch as a controller and as its neighbours see it: a P4Runtime server over a real
//! gRPC channel, and ports in network namespaces of their own.

mod batches;
mod config;
mod digests;
mod entities;
mod errors;
mod exposition;
mod fabric;
mod fuzz;
mod idle;
mod links;
mod messages;
mod metrics;
mod network;
mod rig;
mod roles;
mod stream;
mod tls;
mod trace;
