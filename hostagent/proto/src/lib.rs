//! The messages between controller and agents, generated from `agent.proto`: the planner writes plans in them, agents
//! read them.
#![allow(clippy::all)]

pub use prost::{Message, encoding};

include!(concat!(env!("OUT_DIR"), "/wormcast.agent.v1.rs"));
