//! Worm frames, and a data plane of this repository that forwards them.

mod frames;
mod tables;

pub use frames::worm;
pub use tables::{insert, set_up};
