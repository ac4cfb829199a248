//! Settings of the data plane, and what it tells the controller.

use crate::link::{Interface, SocketError};
use std::io;
use std::time::SystemTime;
use tokio::sync::{mpsc, watch};
use wormcast_agent_core::agent::{MemberReport, Settings};
use wormcast_agent_core::applications::OpenReceivers;
use wormcast_agent_core::applications::answers::Answer;
use wormcast_agent_core::transfers::TransferReport;
use wormcast_protocol::{BranchAnswer, Observation};
use wormcast_wire::HostId;

/// What comes out for the controller.
pub struct Reports {
    pub events: mpsc::Receiver<Report>,
    /// The latest alone: one that is not read in time is no loss.
    pub receivers: watch::Receiver<OpenReceivers>,
}

/// An event for the controller.
#[derive(Debug)]
pub enum Report {
    Member(MemberReport),
    Probe(Observation),
    Branch(BranchAnswer),
    /// To the origin of a message.
    Answer(Answer),
    Transfer {
        ended: SystemTime,
        report: TransferReport,
    },
}

/// Settings of the data plane.
#[derive(Clone, Debug)]
pub struct DataPlaneSettings {
    pub interface: Interface,
    /// Unique name of this agent.
    pub name: String,
    pub agent: Settings,
    /// Shortest time between two turns while frames come, µs.
    pub coalesce_us: u64,
    /// This host, if asked for.
    pub host: Option<HostId>,
}

/// Why the data plane does not start.
#[derive(Debug, thiserror::Error)]
pub enum DataPlaneError {
    #[error("{0}")]
    Socket(SocketError),
    #[error("cannot make an event descriptor: {0}")]
    Waker(io::Error),
    /// The engine refuses its configuration.
    #[error("the protocol engine refuses to start: {0}")]
    Engine(String),
}
