//! The host agent: does for a host what the programmable adapter card did in the papers.
//! It forwards worms down a structure, acknowledges, spills and re-injects them, and lets
//! local programs send and receive messages.
//!
//! A thin shell: everything about the protocol is in `wormcast-protocol`, everything about
//! structures in `wormcast-routing`; here are sockets, threads and clocks.
//!
//! - [`agent`]: puts the parts together
//! - [`dataplane`]: the thread that owns the protocol engine and the packet socket
//! - [`applications`]: what local programs have open; pure
//! - [`local`]: the local API on a Unix socket (API.md); [`client`]: its Rust client
//! - [`directory`]: the stream to the controller; [`plan`]: what comes down it
//! - [`link`]: the network interface

pub mod agent;
pub mod applications;
pub mod client;
pub mod dataplane;
pub mod directory;
pub mod link;
pub mod local;
pub mod log;
pub mod options;
pub mod plan;
pub mod rpc;
