//! The host agent: does for a host what the programmable adapter card did in the papers.
//! It forwards worms down a structure, acknowledges, spills and re-injects them, and lets
//! local programs send and receive messages.
//!
//! A thin shell: everything about the protocol is in `wormcast-protocol`, what an agent does is in
//! `wormcast-agent-core`; here are sockets, threads and clocks.
//!
//! - [`agent`]: puts the parts together
//! - [`fabric_file`]: the agents of a process that has many
//! - [`dataplane`]: the thread that owns the agent's core and the packet socket
//! - [`local`]: the local API's socket (API.md); [`client`]: its Rust client
//! - [`directory`]: the stream to the controller
//! - [`link`]: the network interface

pub mod agent;
pub mod client;
pub mod dataplane;
pub mod directory;
pub mod fabric_file;
pub mod link;
pub mod local;
pub mod log;
pub mod options;
