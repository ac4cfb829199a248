//! The whole fabric in one process on virtual time: every host runs the engine the
//! agent ships, links have rate, delay, finite queues and every kind of damage,
//! switches forward as SPEC §3 says. Same seed, same run.

pub mod application;
pub mod fabric;
pub mod host;
pub mod link;
pub mod planner;
pub mod program_switch;
pub mod random;
pub mod scenario;
