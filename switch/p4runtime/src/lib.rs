//! The P4Runtime server: a thin adapter between controllers and the data plane.
//!
//! It holds no P4 state. Tables, groups, counters and registers are the pipeline's; here
//! is only who is primary, the config as it was set, and the cookies of entries.
//!
//! Sections named § in this module are those of the P4Runtime specification 1.5.

mod absent;
mod actions;
mod arbitration;
mod batch;
mod binding;
mod bytestring;
mod calls;
mod cells;
mod configs;
mod cookies;
mod device_config;
mod devices;
mod digest_data;
mod digests;
mod entry;
mod fit;
mod forwarding;
mod ids;
mod kind;
mod meters;
mod notifications;
mod objects;
mod packet_io;
mod profiles;
mod read;
mod refusals;
mod rejection;
mod replication;
mod requests;
mod roles;
mod schema;
mod serve;
mod server;
mod service;
mod shared;
mod source;
mod streams;
mod tables;
mod target;
mod tls;
mod translation;
mod types;
mod value_sets;
mod values;
mod wanted;
mod write;

pub use configs::Configs;
pub use devices::Devices;
pub use digests::DigestCounts;
pub use fit::SchemaError;
pub use requests::{RequestCount, RequestCountLayer, RequestCounts};
pub use serve::{MESSAGE_BYTES_MAX, serve, serve_beside};

pub use rejection::Rejection;
pub use roles::{P4RoleConfig, PacketFilter, ROLE_CONFIG_TYPE};
pub use schema::Schema;
pub use server::{Server, ServerSettings};
pub use tls::{TlsArguments, TlsError, TlsSettings};
pub use translation::{TranslationArguments, TranslationError, TranslationTables};

/// Messages and services generated from the P4Runtime protocol files.
#[allow(rustdoc::all, clippy::all)]
pub mod proto {
    include!(concat!(env!("OUT_DIR"), "/p4runtime.rs"));
}
