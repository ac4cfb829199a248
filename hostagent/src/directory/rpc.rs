//! The controller's protocol, generated from `proto/agent.proto`.
#![allow(missing_docs, clippy::all)]

tonic::include_proto!("wormcast.agent.v1");
