//! Worm frames, and a data plane of this repository that forwards them.

mod frames;
mod sink;
mod tables;

pub use frames::worm;
pub use sink::Sink;
pub use tables::{insert, set_up};
