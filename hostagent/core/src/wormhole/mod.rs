//! Wormhole mode (wire/SPEC.md §3.1): own worms of several frames, those that arrive, and whether the first switch takes any.

pub mod flow_control;
pub mod trains;
