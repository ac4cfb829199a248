//! Losing nothing: priority flow control (IEEE 802.1Q clause 36), and what belongs to it.
//!
//! All of it is pure: frames and time come in, decisions go out. [`FlowControl`] is the
//! part of a switch that puts the others together.

pub mod arguments;
pub mod buffer;
pub mod classify;
pub mod cycle;
pub mod ecn;
pub mod flow;
pub mod frame;
pub mod headroom;
pub mod pause;
pub mod priority;
pub mod scheduler;
pub mod watchdog;

pub use arguments::{LosslessArguments, LosslessError, QueueSettings};
pub use buffer::{FrameHold, SharedBuffer};
pub use classify::{ClassMap, ClassMapError};
pub use flow::{Arrival, FlowControl, FlowCounts, FlowEvent};
pub use frame::PauseFrame;
pub use headroom::{
    BufferPlan, GivenThresholds, LinkSettings, LosslessSettings, PlanError, Thresholds,
};
pub use pause::{PauseMode, PauseSender, PausedQueues};
pub use priority::{PRIORITIES, PrioritySet};
pub use scheduler::{Scheduler, SchedulerKind};
pub use watchdog::{Watchdog, WatchdogAction, WatchdogSettings};
