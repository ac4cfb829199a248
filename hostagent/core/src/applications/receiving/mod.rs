//! Receivers: whose the arriving messages are, and what becomes of those nobody takes.
//!
//! At most one receiver takes the messages of one origin in one group. A message that
//! nobody takes for a while, or whose receiver stalls, is given up for this member alone
//! ("application gave up"), so that the group does not wait for it; the agent goes on
//! forwarding it to others.

mod delivery;
mod lag;
mod ordered;
mod slow;

use crate::api::{AbortReason, ApiError, ErrorCode, Notice};
use crate::clients::limits::{MESSAGE_WINDOW_BYTES, READ_BYTES_MAX};
use crate::clients::{
    ConnectionId, Connections, Key, Outbound, Patience, gone, refusal, send, unknown_handle,
};
use crate::order::{MessageId, Order};
use crate::transfers::file_start::Beginning;
use lag::Lag;
use std::collections::{BTreeMap, BTreeSet};
use wormcast_protocol::{Engine, Instant, LossReason};
use wormcast_wire::{FailReason, GroupId, HostId};

type StreamKey = (GroupId, HostId);

/// The receivers that are open: groups, and whose messages alone they take.
pub type OpenReceivers = BTreeSet<(GroupId, Option<HostId>)>;

/// All receivers of this agent, and the streams they read.
pub(crate) struct Receiving {
    patience: Patience,
    receivers: BTreeMap<Key, Receiver>,
    /// Others are open than were told last.
    receivers_changed: bool,
    streams: BTreeMap<StreamKey, Stream>,
    /// Arriving messages that have a handle.
    messages: BTreeMap<Key, StreamKey>,
    scratch: Box<[u8]>,
    /// Groups whose messages come in one order.
    orders: BTreeMap<GroupId, Order>,
    /// Messages whose places members ask for, and which member asks.
    wanted: Vec<(GroupId, HostId, MessageId)>,
    /// Something has been read, or more is known of the order: it may be the turn of another message.
    turn_moved: bool,
    /// Messages given up because nobody took them.
    pub(crate) unclaimed_messages: u64,
    /// Messages given up because their receiver stalled.
    pub(crate) stalled_messages: u64,
    /// Messages given up because their receiver was slower than their sender lets others wait.
    pub(crate) slow_messages: u64,
    /// Messages that were taken and dropped, in groups that are sinks.
    pub(crate) sunk_messages: u64,
}

struct Receiver {
    group: GroupId,
    origin: Option<HostId>,
    /// Its client has the agent write files.
    files: bool,
}

#[derive(Default)]
struct Stream {
    readable: bool,
    /// Not before this, so that applications get runs of packets.
    read_at: Instant,
    unclaimed_since: Option<Instant>,
    /// When the origin is sent, first or again, that nobody receives here.
    unclaimed_due: Option<Instant>,
    message: Option<Arriving>,
    /// In an ordered group: what the message is that is read now or next.
    opened: Option<Opened>,
    /// When the sequencer is asked for its place.
    ask_at: Option<Instant>,
    /// When the origin of the message that comes first is sent, first or again, that this one waits.
    remind_at: Option<Instant>,
}

/// The message at the front of a stream, its first byte having been read.
struct Opened {
    id: MessageId,
    kind: u8,
    /// The first byte was the last.
    ended: bool,
    /// Of an order message: what has been read.
    bytes: Vec<u8>,
}

struct Arriving {
    key: Key,
    receiver: Key,
    window_bytes: u32,
    length: u64,
    ended: bool,
    /// Its origin has been told something of it.
    answered: bool,
    progressed_at: Instant,
    lag: Lag,
    /// What it begins with, until it is known whether it is a file.
    beginning: Beginning,
}

impl Receiving {
    pub(crate) fn new(patience: Patience) -> Self {
        Self {
            patience,
            receivers: BTreeMap::new(),
            receivers_changed: false,
            streams: BTreeMap::new(),
            messages: BTreeMap::new(),
            scratch: vec![0; READ_BYTES_MAX].into_boxed_slice(),
            orders: BTreeMap::new(),
            wanted: Vec::new(),
            turn_moved: false,
            unclaimed_messages: 0,
            stalled_messages: 0,
            slow_messages: 0,
            sunk_messages: 0,
        }
    }

    pub(crate) fn open(
        &mut self,
        connections: &mut Connections,
        connection: ConnectionId,
        group: GroupId,
        origin: Option<HostId>,
        files: bool,
    ) -> Result<u32, ApiError> {
        let overlapping = self.receivers.iter().find(|(_, other)| {
            other.group == group
                && (other.origin.is_none() || origin.is_none() || other.origin == origin)
        });
        if let Some((key, other)) = overlapping {
            let whose = connections
                .open
                .get(&key.connection)
                .map_or("?", |owner| owner.process.as_str());
            let text = format!(
                "group {group} already has a receiver for {}, opened by {whose}; a message has one receiver",
                other.origin.map_or_else(
                    || "all origins".to_owned(),
                    |origin| format!("host {origin}")
                )
            );
            return Err(ApiError::new(ErrorCode::Busy, text));
        }
        let owner = connections.open.get_mut(&connection).ok_or_else(gone)?;
        let number = owner.open_handle()?;
        self.receivers.insert(
            Key { connection, number },
            Receiver {
                group,
                origin,
                files,
            },
        );
        self.receivers_changed = true;
        for (key, stream) in &mut self.streams {
            if key.0 == group {
                stream.unclaimed_since = None;
                stream.unclaimed_due = None;
            }
        }
        Ok(number)
    }

    pub(crate) fn contains_receiver(&self, key: Key) -> bool {
        self.receivers.contains_key(&key)
    }

    /// All that are open, if others are than when this was asked last.
    pub(crate) fn changed_receivers(&mut self) -> Option<OpenReceivers> {
        let open = || {
            let receivers = self.receivers.values();
            receivers.map(|one| (one.group, one.origin)).collect()
        };
        std::mem::take(&mut self.receivers_changed).then(open)
    }

    pub(crate) fn contains_message(&self, key: Key) -> bool {
        self.messages.contains_key(&key)
    }

    pub(crate) fn counts(&self) -> BTreeMap<GroupId, usize> {
        let mut counts = BTreeMap::new();
        for receiver in self.receivers.values() {
            *counts.entry(receiver.group).or_default() += 1;
        }
        counts
    }

    /// The engine has bytes or an end for this stream.
    pub(crate) fn on_readable(&mut self, group: GroupId, origin: HostId) {
        self.streams.entry((group, origin)).or_default().readable = true;
    }

    /// The client takes so many bytes more of a message.
    pub(crate) fn extend_window(
        &mut self,
        key: Key,
        bytes: u32,
        now: Instant,
    ) -> Result<(), ApiError> {
        // A message may end or be lost while the update is on its way: that is no error.
        let Some(&stream_key) = self.messages.get(&key) else {
            return Ok(());
        };
        let Some(arriving) = self
            .streams
            .get_mut(&stream_key)
            .and_then(|stream| stream.message.as_mut())
        else {
            return Ok(());
        };
        let room = MESSAGE_WINDOW_BYTES - arriving.window_bytes;
        if bytes > room {
            let text = format!(
                "a window update of {bytes} bytes for message {}, of which only {room} were outstanding",
                key.number
            );
            return Err(ApiError::new(ErrorCode::WindowExceeded, text));
        }
        let was_closed = arriving.window_bytes == 0;
        arriving.window_bytes += bytes;
        arriving.progressed_at = now;
        if was_closed && let Some(stream) = self.streams.get_mut(&stream_key) {
            // Runs of packets are for those who do not wait for them.
            stream.read_at = now;
        }
        Ok(())
    }

    /// The application is still at work on the message.
    pub(crate) fn extend(&mut self, key: Key, now: Instant) -> Result<(), ApiError> {
        let stream_key = self.message_stream(key)?;
        let stream = self.streams.get_mut(&stream_key);
        if let Some(arriving) = stream.and_then(|stream| stream.message.as_mut()) {
            arriving.progressed_at = now;
        }
        Ok(())
    }

    /// The application has something to say of the message: in which group, and to whom.
    pub(crate) fn note_answer(&mut self, key: Key) -> Result<StreamKey, ApiError> {
        let stream_key = self.message_stream(key)?;
        let stream = self.streams.get_mut(&stream_key);
        if let Some(arriving) = stream.and_then(|stream| stream.message.as_mut())
            && std::mem::replace(&mut arriving.answered, true)
        {
            let text = format!("message {} was answered before", key.number);
            return Err(ApiError::new(ErrorCode::WrongState, text));
        }
        Ok(stream_key)
    }

    /// The application has the message.
    pub(crate) fn confirm(
        &mut self,
        engine: &mut Engine,
        connections: &mut Connections,
        key: Key,
        now: Instant,
    ) -> Result<(), ApiError> {
        let (group, origin) = self.message_stream(key)?;
        let ended = self
            .streams
            .get(&(group, origin))
            .and_then(|stream| stream.message.as_ref())
            .is_some_and(|arriving| arriving.ended);
        if !ended {
            let text = format!(
                "message {} has not ended yet; read it to its end first",
                key.number
            );
            return Err(ApiError::new(ErrorCode::WrongState, text));
        }
        engine
            .confirm(group, origin, now)
            .map_err(|error| refusal(&error))?;
        self.drop_message(connections, key);
        Ok(())
    }

    /// The application does not take the message.
    pub(crate) fn abort(
        &mut self,
        engine: &mut Engine,
        connections: &mut Connections,
        key: Key,
        reason: AbortReason,
        now: Instant,
    ) -> Result<(), ApiError> {
        let (group, origin) = self.message_stream(key)?;
        let reason = match reason {
            AbortReason::NoSpace => FailReason::NoSpace,
            AbortReason::Storage => FailReason::Storage,
            AbortReason::Cancelled => FailReason::Cancelled,
        };
        engine
            .abort(group, origin, reason, now)
            .map_err(|error| refusal(&error))?;
        self.drop_message(connections, key);
        Ok(())
    }

    fn message_stream(&self, key: Key) -> Result<StreamKey, ApiError> {
        self.messages
            .get(&key)
            .copied()
            .ok_or_else(|| unknown_handle(key))
    }

    /// Forgets the handle; what follows on the stream is another message.
    fn drop_message(&mut self, connections: &mut Connections, key: Key) {
        let Some(stream_key) = self.messages.remove(&key) else {
            return;
        };
        self.note_read(stream_key);
        if let Some(stream) = self.streams.get_mut(&stream_key) {
            stream.message = None;
            // The engine has reported once that there is something; there may be more.
            stream.readable = true;
        }
        if let Some(connection) = connections.open.get_mut(&key.connection) {
            connection.handles -= 1;
        }
    }

    /// The engine reports that the message being read breaks off.
    pub(crate) fn on_message_lost(
        &mut self,
        connections: &mut Connections,
        group: GroupId,
        origin: HostId,
        reason: LossReason,
    ) {
        let Some(stream) = self.streams.get_mut(&(group, origin)) else {
            return;
        };
        // What follows is another message, and the engine does not tell of it again.
        stream.readable = true;
        let Some(key) = stream.message.as_ref().map(|arriving| arriving.key) else {
            // If it comes again, its first byte comes too.
            stream.opened = None;
            return;
        };
        let reason = match reason {
            LossReason::Cancelled => "its origin cancelled it",
            LossReason::OriginRestarted => "its origin restarted",
            LossReason::LeftBehind => "the group went on without this host",
            LossReason::GroupChanged => "the group was removed, or the origin left it",
        };
        self.lose(connections, key, reason);
    }

    fn lose(&mut self, connections: &mut Connections, key: Key, reason: &str) {
        let notice = Notice::MessageLost {
            handle: key.number,
            reason: reason.to_owned(),
        };
        send(connections, key.connection, Outbound::Notice(notice));
        self.drop_message(connections, key);
    }

    /// Closes a receiver; a message it has not confirmed is given up.
    pub(crate) fn close(
        &mut self,
        engine: &mut Engine,
        connections: &mut Connections,
        key: Key,
        now: Instant,
    ) -> Result<(), ApiError> {
        self.receivers
            .remove(&key)
            .ok_or_else(|| unknown_handle(key))?;
        self.receivers_changed = true;
        if let Some(connection) = connections.open.get_mut(&key.connection) {
            connection.handles -= 1;
        }
        let open: Vec<Key> = self
            .streams
            .values()
            .filter_map(|stream| stream.message.as_ref())
            .filter(|arriving| arriving.receiver == key)
            .map(|arriving| arriving.key)
            .collect();
        for message in open {
            let (group, origin) = self.message_stream(message)?;
            // Refused only if the stream is gone, and with it the message.
            let _ = engine.abort(group, origin, FailReason::Cancelled, now);
            self.drop_message(connections, message);
        }
        // Another may receive there now.
        connections.tell_watchers();
        Ok(())
    }

    /// Closes every receiver of a connection.
    pub(crate) fn disconnect(
        &mut self,
        engine: Option<&mut Engine>,
        connections: &mut Connections,
        connection: ConnectionId,
        now: Instant,
    ) {
        let keys: Vec<Key> = self
            .receivers
            .keys()
            .copied()
            .filter(|key| key.connection == connection)
            .collect();
        let Some(engine) = engine else { return };
        for key in keys {
            // It exists; that is all close() could object to.
            let _ = self.close(engine, connections, key, now);
        }
    }

    /// The group is gone, its receivers and their messages with it.
    pub(crate) fn remove_group(
        &mut self,
        connections: &mut Connections,
        group: GroupId,
        reason: &str,
    ) {
        let lost: Vec<Key> = self
            .messages
            .iter()
            .filter(|(_, stream)| stream.0 == group)
            .map(|(&key, _)| key)
            .collect();
        for key in lost {
            self.lose(connections, key, reason);
        }
        self.streams.retain(|key, _| key.0 != group);
        self.orders.remove(&group);
        let closed: BTreeSet<Key> = self
            .receivers
            .iter()
            .filter(|(_, receiver)| receiver.group == group)
            .map(|(&key, _)| key)
            .collect();
        for key in closed {
            self.receivers.remove(&key);
            self.receivers_changed = true;
            if let Some(connection) = connections.open.get_mut(&key.connection) {
                connection.handles -= 1;
                let notice = Notice::HandleClosed {
                    handle: key.number,
                    reason: reason.to_owned(),
                };
                send(connections, key.connection, Outbound::Notice(notice));
            }
        }
    }
}
