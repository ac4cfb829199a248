//! Local programs as the agent sees them: connections, their handle numbers, what goes to them,
//! and what they are served with.

pub mod limits;

use crate::api::{ApiError, ErrorCode, Notice};
use crate::plan::PlannedGroup;
use bytes::Bytes;
use limits::HANDLES_MAX;
use serde_json::Value;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use wormcast_protocol::{Engine, Instant, UseError};
use wormcast_wire::{GroupId, HostId};

/// How long applications may let the group wait.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// For a receiver to be opened when a message has begun to arrive, µs.
    pub receiver_wait_us: u64,
    /// For a receiver to take bytes or to confirm, µs.
    pub receiver_stall_us: u64,
}

/// Groups as applications know them.
pub type GroupTable = BTreeMap<GroupId, Arc<PlannedGroup>>;

/// What the data plane has at hand while it serves applications.
pub struct Serving<'a> {
    /// The engine; none before this host has an id.
    pub engine: Option<&'a mut Engine>,
    /// The host it runs on.
    pub host: Option<HostId>,
    /// Groups of the plan in force; none before the first plan.
    pub groups: Option<&'a GroupTable>,
    pub now: Instant,
}

/// Tells connections apart for the life of the agent.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct ConnectionId(pub u64);

/// A handle: the connection it belongs to and its number there. No other connection can
/// name it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Key {
    pub connection: ConnectionId,
    /// Number on that connection.
    pub number: u32,
}

/// What goes to a client.
#[derive(Debug)]
pub enum Outbound {
    Reply {
        id: u64,
        /// What it asked for, or why not.
        result: Result<Value, ApiError>,
    },
    /// Something it did not ask for.
    Notice(Notice),
    Data {
        handle: u32,
        /// At most [`limits::READ_BYTES_MAX`].
        bytes: Bytes,
    },
    /// It may write so many bytes more.
    Window { handle: u32, bytes: u32 },
    /// The connection is to be closed after this.
    Close { reason: String },
}

/// Whether a client wants to know that the groups of this host change.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Watch {
    #[default]
    No,
    /// It is told of the next change.
    Asked,
    /// It has been told, and has not asked again.
    Told,
}

#[derive(Debug)]
pub(crate) struct Connection {
    /// Process at the other end, for error texts.
    pub(crate) process: String,
    next_number: u32,
    pub(crate) handles: usize,
    pub(crate) watch: Watch,
}

impl Connection {
    pub(crate) fn new(process: String) -> Self {
        Self {
            process,
            next_number: 1,
            handles: 0,
            watch: Watch::No,
        }
    }

    pub(crate) fn has_room(&self) -> bool {
        self.handles < HANDLES_MAX
    }

    /// True if a handle of this number has ever been open.
    pub(crate) fn has_used(&self, number: u32) -> bool {
        (1..self.next_number).contains(&number)
    }

    /// A number never used before on this connection.
    pub(crate) fn open_handle(&mut self) -> Result<u32, ApiError> {
        if !self.has_room() {
            let text =
                format!("this connection has {HANDLES_MAX} handles open, the most there may be");
            return Err(ApiError::new(ErrorCode::LimitReached, text));
        }
        let number = self.next_number;
        let Some(next) = number.checked_add(1) else {
            let text = "this connection has used up its handle numbers; connect again";
            return Err(ApiError::new(ErrorCode::LimitReached, text));
        };
        self.next_number = next;
        self.handles += 1;
        Ok(number)
    }
}

/// All connections, and what is on its way to their clients. What waits for one client is
/// bounded by what it may have open: answers by its unanswered requests, data by windows.
#[derive(Debug, Default)]
pub(crate) struct Connections {
    pub(crate) open: BTreeMap<ConnectionId, Connection>,
    pub(crate) outbound: VecDeque<(ConnectionId, Outbound)>,
}

impl Connections {
    /// Tells whoever watches the groups that they are not as they were.
    pub(crate) fn tell_watchers(&mut self) {
        for (&id, connection) in &mut self.open {
            if connection.watch == Watch::Asked {
                connection.watch = Watch::Told;
                let notice = Outbound::Notice(Notice::GroupsChanged {});
                self.outbound.push_back((id, notice));
            }
        }
    }

    /// Somebody has been told of groups, and may be about to receive from them.
    pub(crate) fn any_told(&self) -> bool {
        let mut open = self.open.values();
        open.any(|connection| connection.watch == Watch::Told)
    }
}

pub(crate) fn send(connections: &mut Connections, connection: ConnectionId, outbound: Outbound) {
    if connections.open.contains_key(&connection) {
        connections.outbound.push_back((connection, outbound));
    }
}

pub(crate) fn reply(
    connections: &mut Connections,
    key: Key,
    id: u64,
    result: Result<Value, ApiError>,
) {
    send(connections, key.connection, Outbound::Reply { id, result });
}

pub(crate) fn grant(connections: &mut Connections, key: Key, bytes: u32) {
    send(
        connections,
        key.connection,
        Outbound::Window {
            handle: key.number,
            bytes,
        },
    );
}

pub(crate) fn unknown_handle(key: Key) -> ApiError {
    let text = format!("this connection has no open handle {}", key.number);
    ApiError::new(ErrorCode::UnknownHandle, text)
}

pub(crate) fn refusal(error: &UseError) -> ApiError {
    let code = match error {
        UseError::UnknownGroup { .. } => ErrorCode::UnknownGroup,
        UseError::SessionsFull { .. } => ErrorCode::LimitReached,
        UseError::UnknownOrigin { .. }
        | UseError::EndWaits { .. }
        | UseError::NotConfirmed
        | UseError::NothingToConfirm => ErrorCode::WrongState,
        UseError::NoStructure { .. } => ErrorCode::NoPlan,
    };
    ApiError::new(code, error.to_string())
}

pub(crate) fn gone() -> ApiError {
    ApiError::new(ErrorCode::Closed, "the connection is closed")
}
