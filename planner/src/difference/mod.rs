//! From what a switch has to what it must have.

pub(crate) mod read_back;
pub(crate) mod stages;
pub(crate) mod update;
