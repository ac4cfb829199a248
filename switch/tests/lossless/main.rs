//! Fabrics that lose nothing, on virtual time.

mod deadlock;
mod host;
mod incast;
mod network;
mod storm;
