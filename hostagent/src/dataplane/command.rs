//! What other threads ask of the data plane.

use super::outbound::OutboundSender;
use crate::link::{Prover, WakeHandle};
use bytes::Bytes;
use tokio::sync::{mpsc, oneshot};
use wormcast_agent_core::agent::LagReport;
use wormcast_agent_core::api::NumberedRequest;
use wormcast_agent_core::applications::answers::Answer;
use wormcast_agent_core::clients::ConnectionId;
use wormcast_agent_core::figures::Figures;
use wormcast_agent_core::plan::{AgentPlan, RefusedGroup};
use wormcast_agent_proto::PlanChange;
use wormcast_protocol::{BranchQuestion, TraceRequest, Way};
use wormcast_wire::HostId;

/// Commands that wait at most; senders of more wait themselves.
pub const COMMANDS_MAX: usize = 512;

/// What a host is to follow.
#[derive(Debug)]
pub enum NewPlan {
    Whole(Box<AgentPlan>),
    /// What is other than in the plan in force.
    Change(Box<PlanChange>),
}

#[derive(Debug)]
pub enum Command {
    /// The controller has registered this host.
    SetHost {
        host: HostId,
        /// For its announcements, if it keeps a secret.
        prover: Option<Prover>,
    },
    /// A plan; the answer is what to tell the controller.
    ApplyPlan {
        /// It, or the way to it.
        plan: NewPlan,
        /// Answered when it is in force, with the groups that were left out.
        done: oneshot::Sender<Result<Vec<RefusedGroup>, String>>,
    },
    /// Probes are to be sent; the answer is for the controller.
    Trace {
        request: TraceRequest,
        /// Answered with these ways, or why there are none.
        done: oneshot::Sender<Result<Vec<Way>, String>>,
    },
    /// Who lags? The answer is for the controller.
    Lag {
        origin: HostId,
        /// Which switches are asked too, if any.
        question: BranchQuestion,
        /// Answered with what this host knows, and why switches are not asked.
        done: oneshot::Sender<(LagReport, Result<(), String>)>,
    },
    /// Another host answers a message of this one.
    Answer(Answer),
    /// A local client has connected.
    Connect {
        id: ConnectionId,
        outbound: OutboundSender,
        process: String,
    },
    Disconnect(ConnectionId),
    Request {
        connection: ConnectionId,
        request: NumberedRequest,
    },
    Data {
        connection: ConnectionId,
        /// By which sender.
        handle: u32,
        /// At most a data frame's.
        bytes: Bytes,
    },
    /// More bytes may be handed over.
    Window {
        connection: ConnectionId,
        /// Of which message.
        handle: u32,
        bytes: u32,
    },
    /// Figures for the controller and for status.
    Figures {
        /// Whether groups are wanted too.
        with_groups: bool,
        answer: oneshot::Sender<Figures>,
    },
    Stop,
}

/// The way to the data plane.
#[derive(Clone)]
pub struct DataPlaneHandle {
    queue: mpsc::Sender<Command>,
    wake: WakeHandle,
}

/// The data plane has ended.
#[derive(Clone, Copy, Debug)]
pub struct DataPlaneGone;

impl DataPlaneHandle {
    pub(super) fn new(wake: WakeHandle) -> (Self, mpsc::Receiver<Command>) {
        let (queue, commands) = mpsc::channel(COMMANDS_MAX);
        (Self { queue, wake }, commands)
    }

    /// Gives a command, waiting for room.
    ///
    /// # Errors
    /// If the data plane has ended.
    pub async fn send(&self, command: Command) -> Result<(), DataPlaneGone> {
        self.queue.send(command).await.map_err(|_| DataPlaneGone)?;
        self.wake.wake();
        Ok(())
    }

    /// As [`DataPlaneHandle::send`], for threads that may wait.
    ///
    /// # Errors
    /// If the data plane has ended.
    pub fn send_blocking(&self, command: Command) -> Result<(), DataPlaneGone> {
        self.queue
            .blocking_send(command)
            .map_err(|_| DataPlaneGone)?;
        self.wake.wake();
        Ok(())
    }

    /// Asks for the figures, without groups.
    ///
    /// # Errors
    /// If the data plane has ended.
    pub async fn figures(&self) -> Result<Figures, DataPlaneGone> {
        self.ask_figures(false).await
    }

    /// Asks for the figures with the groups, for a status.
    ///
    /// # Errors
    /// If the data plane has ended.
    pub async fn figures_with_groups(&self) -> Result<Figures, DataPlaneGone> {
        self.ask_figures(true).await
    }

    async fn ask_figures(&self, with_groups: bool) -> Result<Figures, DataPlaneGone> {
        let (answer, figures) = oneshot::channel();
        let command = Command::Figures {
            with_groups,
            answer,
        };
        self.send(command).await?;
        figures.await.map_err(|_| DataPlaneGone)
    }
}
