//! The switch as a controller and as its neighbours see it: a P4Runtime server over a real
//! gRPC channel, and ports in network namespaces of their own.

mod batches;
mod config;
mod digests;
mod drop_in;
mod entities;
mod entities_program;
mod errors;
mod event_log;
mod exposition;
mod fabric;
mod fuzz;
mod gnmi;
mod gnmi_client;
mod idle;
mod leftovers;
mod links;
mod logging;
mod matrix;
mod message_ports;
mod messages;
mod metrics;
pub mod network;
mod notifications;
mod patience;
mod profiles;
mod publishing;
mod replication;
mod resources;
mod rig;
mod roles;
mod shared;
mod stream;
mod symmetry;
mod tables;
mod translation;
mod transmit;
mod tun;
mod value_sets;

mod thrift;
mod thrift_api;
mod thrift_calls;
mod thrift_client;
mod tls;
mod trace;

use crate::wire;
