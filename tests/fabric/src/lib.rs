//! The whole fabric in one process on virtual time: the planner, the agent with its applications and
//! engine, and the P4 program in the switch's pipeline, all as they ship. Here are only links,
//! programs that send and receive, and what must hold.

pub mod absorbing;
pub mod controller;
pub mod crowd;
pub mod drawn;
pub mod fabric;
pub mod figure_3;
pub mod gather;
pub mod gathered;
pub mod host;
pub mod link;
pub mod model;
pub mod program;
pub mod random;
pub mod scenario;
pub mod seeds;
pub mod switch;
pub mod trace;
pub mod trains;
