//! What may be in flight to a child, and what is kept until it is acknowledged.

pub(crate) mod congestion;
pub(crate) mod path;
pub(crate) mod runs;
pub(crate) mod store;
pub(crate) mod unproven;
