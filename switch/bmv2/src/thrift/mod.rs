//! BMv2's Thrift interface, so that `simple_switch_CLI` and what builds on it work with
//! this switch as they are.
//!
//! A server takes calls in Thrift's binary protocol, multiplexed over the services
//! `standard`, `simple_pre`, `simple_pre_lag` and `simple_switch`. Each call runs on the
//! thread of the data plane and works on the same tables as P4Runtime does; only what
//! P4Runtime has no word for is kept here: nodes of multicast groups, a program that waits
//! for its swap, members that are defaults.

mod arguments;
mod arrays;
mod client;
mod config;
mod context;
mod device;
mod failure;
mod interface;
mod keys;
mod multicast;
mod multicast_nodes;
mod profiles;
mod saved_state;
mod server;
mod state_entries;
mod tables;
mod target;
mod value_sets;
mod wire;

pub use client::{CallError, Client};
pub use context::{Context, Identity, State, Target};
pub use interface::{METHODS, Method, answer};
pub use keys::write_key;
pub use saved_state::{restore, save};
pub use server::{CONNECTIONS_MAX, ThriftServer};
pub use wire::{Message, MessageKind, Type, Value, WireError};
