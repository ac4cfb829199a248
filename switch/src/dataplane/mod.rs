//! The data plane: one thread that owns the pipeline and the ports.
//!
//! Frames go from the receive rings through ingress into the egress queues, and from there
//! through egress to the wire, all on this thread and without a lock. Control operations
//! come over a bounded channel and run between two batches, so a packet sees all of an
//! operation or nothing of it.

mod clock;
mod control;
mod engine;
mod port;
mod snapshot;
mod traffic;

pub use clock::Clock;
pub use control::{COMMANDS_MAX, DataplaneHandle, Stopped};
pub use engine::{Dataplane, DataplaneSettings, Engine, PortSettings};
pub use snapshot::{Counts, PortDrops, PortSnapshot, QueueSnapshot, Snapshot, TableSnapshot};
pub use traffic::{DigestMessage, ToController};
