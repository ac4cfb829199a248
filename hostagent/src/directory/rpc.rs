//! The controller's protocol: its messages, and its client, generated from `proto/agent.proto`.
#![allow(clippy::all)]

pub use wormcast_agent_proto::*;

tonic::include_proto!("wormcast.agent.v1");
