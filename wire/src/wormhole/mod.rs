//! Wormhole mode (SPEC §3.1): worms of several frames, and what switches say to the hosts that send them.

pub mod signal;
pub mod train;
