//! The data plane: threads that own pipelines and ports.
//!
//! A process runs one switch or many. Each has an [`Switch`]: frames go from its inputs
//! through ingress into the egress queues, and from there through egress to the links. A
//! worker thread has one or more switches and gives those that have something to do a
//! bounded turn each; several threads may share one switch, a turn at a time, and send
//! side by side (`worker_thread.rs`). No lock is taken for a single packet. Switches on links in
//! memory tell one another of frames and of room by events. Control operations come over a bounded
//! channel and run between two turns, so a packet sees all of an operation or nothing of
//! it.
//!
//! A link in memory that is full holds its sender back: packets stay in the egress queue
//! of the port, which drops the tail and counts it when it is full too.

mod changes;
mod clock;
mod control;
mod deadlock;
mod detached;
mod flow_control;
mod input;
mod interfaces;
mod layout;
mod link_watch;
mod load;
pub mod log;
mod lossless;
mod mailbox;
mod message_ports;
mod messages;
mod names;
mod observer;
mod open;
mod port;
mod port_set;
mod published;
mod replay;
mod settings;
mod snapshot;
mod spread;
mod start;
mod start_error;
mod switch;
mod thread_work;
pub mod trace;
mod traffic;
mod virtual_fabric;
mod worker;
mod worker_thread;

pub use changes::{PortStatus, Queues};
pub use clock::Clock;
pub use control::{COMMANDS_MAX, DataplaneHandle, Stopped};
pub use deadlock::DeadlockWatch;
pub use detached::{DetachedSwitch, FarEnd};
pub use flow_control::{LosslessSnapshot, PauseReport, QueueReport, StormReport};
pub use interfaces::InterfaceReport;
pub use link_watch::LinkWatch;
pub use message_ports::{MESSAGE_PORT_MAX, PortChange};
pub use messages::{MessagePorts, SENT_FRAMES_MAX, SentFrame};
pub use names::list;
pub use observer::Observer;
pub use published::{EventLogCounts, LearnCounts, NotificationCounts, PublishedCounts};
pub use replay::{Replay, ReplayError};
pub use settings::{
    Attachment, DataplaneSettings, LinkEnd, LinkSettings, PortSettings, SWITCHES_MAX,
    SwitchSettings, WORKERS_MAX,
};
pub use snapshot::{Counts, PortDrops, PortSnapshot, QueueSnapshot, Snapshot, TableSnapshot};
pub use start::{Dataplane, FromDataplane};
pub use start_error::StartError;
pub use switch::Switch;
pub use traffic::{DigestMessage, Installed, ToController};
pub use virtual_fabric::VirtualFabric;
