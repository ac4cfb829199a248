//! The gNMI server: the ports of a switch as interfaces of OpenConfig, for any gNMI client.
//!
//! It reads and never writes: Capabilities, Get and Subscribe. What there is to read is in
//! `schema`, what a path means in `path`, what a subscription sends and when in `schedule`:
//! these are pure. `device`, `service` and `stream` do the IO.
//!
//! Sections named § in this module are those of the gNMI specification 0.10.

mod device;
mod encoding;
mod get;
mod limits;
mod notify;
mod path;
mod path_text;
mod reading;
mod refusal;
mod schedule;
mod schema;
mod service;
mod stream;
mod subscription;
mod subtree;
mod wanted;

pub use device::{Device, Targets};
pub use limits::{
    LEAVES_MAX, PATH_ELEMENTS_MAX, PATHS_MAX, SAMPLE_INTERVAL_DEFAULT, SAMPLE_INTERVAL_MAX,
    SAMPLE_INTERVAL_MIN, SCHEDULES_MAX, STREAMS_MAX,
};
pub use service::Gnmi;

/// Messages and the service, generated from the published protocol files.
#[allow(rustdoc::all, clippy::all)]
pub mod proto {
    include!(concat!(env!("OUT_DIR"), "/messages.rs"));
}
