//! A P4 software switch: BMv2 JSON in, P4Runtime, AF_PACKET ports.

pub mod dataplane;
pub mod event_log;
pub mod fabric;
mod jit;
pub mod log;
pub mod lossless;
pub mod message_ports;
pub mod metrics;
pub mod nanomsg;
pub mod notifications;
pub mod p4rt;
pub mod patience;
pub mod pipeline;
pub mod ports;
pub mod program;
pub mod socket_file;
pub mod stf;
pub mod thrift;
pub mod trace;
pub mod whole_number;
