//! A local connection as the data plane sees it: an outbound queue and its handle numbers.

use super::limits::{HANDLES_MAX, OUTBOUND_BUSY};
use crate::local::{ApiError, ErrorCode, Notice};
use bytes::Bytes;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::mpsc;
use wormcast_protocol::UseError;

/// Tells connections apart for the life of the agent.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct ConnectionId(pub u64);

/// A handle: the connection it belongs to and its number there. No other connection can
/// name it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Key {
    /// Whose.
    pub connection: ConnectionId,
    /// Number on that connection.
    pub number: u32,
}

/// What goes to a client.
#[derive(Debug)]
pub enum Outbound {
    /// An answer.
    Reply {
        /// Of the request.
        id: u64,
        /// What it asked for, or why not.
        result: Result<Value, ApiError>,
    },
    /// Something it did not ask for.
    Notice(Notice),
    /// Bytes of a message.
    Data {
        /// The message.
        handle: u32,
        /// At most [`super::limits::READ_BYTES_MAX`].
        bytes: Bytes,
    },
    /// It may write so many bytes more.
    Window {
        /// The sender.
        handle: u32,
        /// Bytes.
        bytes: u32,
    },
    /// The connection is to be closed after this.
    Close {
        /// Why.
        reason: String,
    },
}

/// The sending end of a connection's outbound queue. What is in the queue is bounded by
/// what the client may have open: answers by its unanswered requests, data by windows.
#[derive(Clone, Debug)]
pub struct OutboundSender {
    queue: mpsc::UnboundedSender<Outbound>,
    waiting: Arc<AtomicUsize>,
}

/// The receiving end.
#[derive(Debug)]
pub struct OutboundReceiver {
    queue: mpsc::UnboundedReceiver<Outbound>,
    waiting: Arc<AtomicUsize>,
}

/// Makes an outbound queue.
pub fn outbound_queue() -> (OutboundSender, OutboundReceiver) {
    let (sender, receiver) = mpsc::unbounded_channel();
    let waiting = Arc::new(AtomicUsize::new(0));
    let sender = OutboundSender {
        queue: sender,
        waiting: Arc::clone(&waiting),
    };
    (
        sender,
        OutboundReceiver {
            queue: receiver,
            waiting,
        },
    )
}

impl OutboundSender {
    /// Queues; if the client is gone, nothing happens (its disconnection is on its way).
    pub fn send(&self, outbound: Outbound) {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        let _ = self.queue.send(outbound);
    }

    /// True while the client is behind with reading: what may be left out should be.
    pub fn is_busy(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) > OUTBOUND_BUSY
    }
}

impl OutboundReceiver {
    /// The next to be written; `None` when the data plane has let go of the connection.
    pub async fn receive(&mut self) -> Option<Outbound> {
        let outbound = self.queue.recv().await;
        self.note(outbound)
    }

    /// The next, if there is one already.
    pub fn try_receive(&mut self) -> Option<Outbound> {
        let outbound = self.queue.try_recv().ok();
        self.note(outbound)
    }

    fn note(&self, outbound: Option<Outbound>) -> Option<Outbound> {
        if outbound.is_some() {
            self.waiting.fetch_sub(1, Ordering::Relaxed);
        }
        outbound
    }
}

/// A connection's state.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) outbound: OutboundSender,
    /// Process at the other end, for error texts.
    pub(super) process: String,
    next_number: u32,
    pub(super) handles: usize,
}

impl Connection {
    pub(super) fn new(outbound: OutboundSender, process: String) -> Self {
        Self {
            outbound,
            process,
            next_number: 1,
            handles: 0,
        }
    }

    pub(super) fn has_room(&self) -> bool {
        self.handles < HANDLES_MAX
    }

    /// True if a handle of this number has ever been open.
    pub(super) fn has_used(&self, number: u32) -> bool {
        (1..self.next_number).contains(&number)
    }

    /// A number never used before on this connection.
    pub(super) fn open_handle(&mut self) -> Result<u32, ApiError> {
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

/// All connections.
pub(super) type Connections = BTreeMap<ConnectionId, Connection>;

pub(super) fn send(connections: &Connections, connection: ConnectionId, outbound: Outbound) {
    if let Some(connection) = connections.get(&connection) {
        connection.outbound.send(outbound);
    }
}

pub(super) fn reply(connections: &Connections, key: Key, id: u64, result: Result<Value, ApiError>) {
    send(connections, key.connection, Outbound::Reply { id, result });
}

pub(super) fn grant(connections: &Connections, key: Key, bytes: u32) {
    send(
        connections,
        key.connection,
        Outbound::Window {
            handle: key.number,
            bytes,
        },
    );
}

pub(super) fn unknown_handle(key: Key) -> ApiError {
    let text = format!("this connection has no open handle {}", key.number);
    ApiError::new(ErrorCode::UnknownHandle, text)
}

pub(super) fn refusal(error: &UseError) -> ApiError {
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

pub(super) fn gone() -> ApiError {
    ApiError::new(ErrorCode::Closed, "the connection is closed")
}
