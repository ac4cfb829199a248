//! The local API's socket: how programs on this host send and receive (API.md).

mod connection;
mod facts;
mod files;
mod server;

pub use facts::AgentFacts;
pub use server::{LocalServer, ServerError, SocketMode};
