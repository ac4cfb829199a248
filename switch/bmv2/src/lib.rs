//! BMv2's other interfaces, over the same data plane: for programs that know BMv2.

pub mod event_log;
pub mod message_ports;
pub mod nanomsg;
pub mod notifications;
pub mod thrift;

/// Messages and services generated from BMv2's protocol file.
#[allow(rustdoc::all, clippy::all)]
pub mod proto {
    include!(concat!(env!("OUT_DIR"), "/p4.bm.rs"));
}
