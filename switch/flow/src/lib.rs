//! Losing nothing: priority flow control (IEEE 802.1Q clause 36), and what belongs to it.
//!
//! All of it is pure: frames and time come in, decisions go out. [`FlowControl`] is the
//! part of a switch that puts the others together.

pub mod buffer;
pub mod classify;
pub mod cycle;
pub mod ecn;
pub mod flow;
pub mod frame;
pub mod headroom;
pub mod pause;
pub mod priority;
pub mod rate;
pub mod scheduler;
mod settings;
pub mod units;
pub mod watchdog;
mod whole_number;

pub use buffer::{FrameHold, SharedBuffer};
pub use classify::{ClassMap, ClassMapError};
pub use flow::{Arrival, FlowControl, FlowCounts, FlowEvent};
pub use frame::PauseFrame;
pub use headroom::{
    BufferPlan, GivenThresholds, LinkSettings, LosslessSettings, PlanError, Thresholds,
};
pub use pause::{PauseMode, PauseSender, PausedQueues};
pub use priority::{PRIORITIES, PrioritySet};
pub use rate::TokenBucket;
pub use scheduler::{Scheduler, SchedulerKind};
pub use settings::QueueSettings;
pub use units::{BitRate, Duration, Probability, UnitError};
pub use watchdog::{Watchdog, WatchdogAction, WatchdogSettings};
pub use whole_number::whole_number;
