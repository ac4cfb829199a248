//! The sans-IO reliable multicast state machines.
//!
//! [`Engine`] is what every host runs: frames,
//! plans and the time go in; frames, events and messages come out. It does no IO,
//! reads no clock and owns no thread, so the agent, the simulator and the tests on
//! virtual time drive the same code.

mod child;
mod config;
mod engine;
mod event;
mod failure;
mod gather;
mod mtu;
mod plan;
mod reject;
mod routes;
mod session;
mod statistics;
mod time;
mod trace;
mod window;
mod wormhole;

pub use config::{ConfigError, EngineConfig, Limits, Timing, WINDOW_PACKETS_MAX};
pub use engine::{Engine, UNREAD_MAX};
pub use event::{
    Arrived, Event, LossReason, MemberState, MessageArrival, Read, Transmit, Unbroken, Unread,
    UseError,
};
pub use gather::branches::{
    ANSWERS_MAX, AskError, AskedBranch, BRANCHES_ASKED_MAX, BranchAnswer, BranchQuestion,
};
pub use plan::{ChildRole, Choice, Copies, Edge, Gathered, GroupPlan, PlanError, Role, Structures};
pub use reject::Reject;
pub use routes::{Alternative, Alternatives};
pub use session::{Behind, ChildLag, Progress, StreamLag};
pub use statistics::{Counters, SessionStatistics};
pub use time::Instant;
pub use trace::{
    Choices, OBSERVATIONS_MAX, Observation, TraceError, TraceRequest, Traced, WAYS_MAX, Way,
};
pub use wormcast_wire::{MTU_MAX, MTU_MIN};
