//! Fabrics that lose nothing: on virtual time, and on real interfaces.

mod copies;
mod deadlock;
mod incast;
mod live;
#[path = "../lossless_lab/mod.rs"]
mod lossless_lab;
#[path = "../switch/network.rs"]
mod namespace;
mod network;
mod storm;
