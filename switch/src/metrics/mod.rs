//! Counts of the switch for Prometheus, over HTTP.
//!
//! All numbers come from [`Snapshot`](wormcast_switch_dataplane::Snapshot), the same that
//! `--statistics` writes, and from [`RequestCounts`]; nothing is counted here a second time.

mod exposition;
mod families;
mod lossless;
mod process;
mod publishing;
mod server;
mod trace;

pub use exposition::{Exposition, Family, Kind, Sample};
pub use families::{device_families, request_families};
pub use process::process_families;
pub use server::{CONNECTIONS_MAX, Complete, Device, Devices, MetricsServer};
