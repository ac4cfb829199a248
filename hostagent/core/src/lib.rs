//! The agent without its machine: frames, requests and the time in; frames, answers and reports
//! out. No sockets, no threads, no clock, so that it runs on virtual time as it runs on a host.
//!
//! - [`agent`]: the engine and the applications over it, and in which order they are served
//! - [`applications`]: what local programs have open; [`clients`]: their connections
//! - [`order`]: one order of the messages of all origins, in groups that want it
//! - [`plan`]: the controller's plan, checked
//! - [`api`]: messages and frames of the local API (API.md)
//! - [`figures`]: counters and failures, for the controller and for status
//! - [`transfers`]: files that this host sends, as the controller is told of them
//! - [`pacing`]: how fast this host may send what is its own
//! - [`transit`]: worms of others, which this host re-injects
//! - [`wormhole`]: own worms of several frames, those that arrive, and whether the first switch takes any
//! - gathered ACKs, MTU and traces: what the agent does for each is in the file of its name
//! - [`clock`]: time without the pauses of the process

pub mod agent;
pub mod api;
pub mod applications;
pub mod clients;
pub mod clock;
pub mod figures;
mod gather;
mod mtu;
pub mod order;
pub mod pacing;
pub mod plan;
mod trace;
pub mod transfers;
pub mod transit;
pub mod wormhole;
