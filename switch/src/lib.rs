//! What the program `wormcast-switch` is put together from, besides the crates below it: the
//! file of `--fabric`, the options of queues, counts for Prometheus.

pub mod fabric;
pub mod lossless_arguments;
pub mod metrics;
