//! Receivers: whose the arriving messages are, and what becomes of those nobody takes.
//!
//! At most one receiver takes the messages of one origin in one group. A message that
//! nobody takes for a while, or whose receiver stalls, is given up for this member alone
//! ("application gave up"), so that the group does not wait for it; the agent goes on
//! forwarding it to others.

use super::connection::{Connection, ConnectionId, Key, Outbound};
use super::limits::{MESSAGE_WINDOW_BYTES, READ_BYTES_MAX, READ_INTERVAL_US};
use super::sending::{refusal, send, unknown_handle};
use crate::local::{AbortReason, ApiError, ErrorCode, Notice};
use bytes::{Bytes, BytesMut};
use std::collections::{BTreeMap, BTreeSet};
use wormcast_protocol::{Engine, FailReason, GroupId, HostId, Instant, LossReason};

type Connections = BTreeMap<ConnectionId, Connection>;
type StreamKey = (GroupId, HostId);

/// How long applications may let the group wait.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// For a receiver to be opened when a message has begun to arrive, µs.
    pub receiver_wait_us: u64,
    /// For a receiver to take bytes or to confirm, µs.
    pub receiver_stall_us: u64,
}

/// All receivers of this agent, and the streams they read.
pub(super) struct Receiving {
    patience: Patience,
    receivers: BTreeMap<Key, Receiver>,
    streams: BTreeMap<StreamKey, Stream>,
    /// Arriving messages that have a handle.
    messages: BTreeMap<Key, StreamKey>,
    scratch: BytesMut,
    /// Messages given up because nobody took them.
    pub(super) unclaimed_messages: u64,
    /// Messages given up because their receiver stalled.
    pub(super) stalled_messages: u64,
}

struct Receiver {
    group: GroupId,
    origin: Option<HostId>,
}

#[derive(Default)]
struct Stream {
    readable: bool,
    /// Not before this, so that applications get runs of packets.
    read_at: Instant,
    unclaimed_since: Option<Instant>,
    message: Option<Arriving>,
}

struct Arriving {
    key: Key,
    receiver: Key,
    window_bytes: u32,
    length: u64,
    ended: bool,
    progressed_at: Instant,
}

impl Receiving {
    pub(super) fn new(patience: Patience) -> Self {
        Self {
            patience,
            receivers: BTreeMap::new(),
            streams: BTreeMap::new(),
            messages: BTreeMap::new(),
            scratch: BytesMut::new(),
            unclaimed_messages: 0,
            stalled_messages: 0,
        }
    }

    pub(super) fn open(
        &mut self,
        connections: &mut Connections,
        connection: ConnectionId,
        group: GroupId,
        origin: Option<HostId>,
    ) -> Result<u32, ApiError> {
        let overlapping = self.receivers.iter().find(|(_, other)| {
            other.group == group && (other.origin.is_none() || origin.is_none() || other.origin == origin)
        });
        if let Some((key, other)) = overlapping {
            let whose = connections.get(&key.connection).map_or("?", |owner| owner.process.as_str());
            let text = format!(
                "{group} already has a receiver for {}, opened by {whose}; a message has one receiver",
                other.origin.map_or_else(|| "all origins".to_owned(), |origin| origin.to_string())
            );
            return Err(ApiError::new(ErrorCode::Busy, text));
        }
        let owner = connections
            .get_mut(&connection)
            .ok_or_else(|| ApiError::new(ErrorCode::Closed, "the connection is closed"))?;
        let number = owner.open_handle()?;
        self.receivers.insert(Key { connection, number }, Receiver { group, origin });
        for (key, stream) in &mut self.streams {
            if key.0 == group {
                stream.unclaimed_since = None;
            }
        }
        Ok(number)
    }

    pub(super) fn contains_receiver(&self, key: Key) -> bool {
        self.receivers.contains_key(&key)
    }

    pub(super) fn contains_message(&self, key: Key) -> bool {
        self.messages.contains_key(&key)
    }

    pub(super) fn count(&self, group: GroupId) -> usize {
        self.receivers.values().filter(|receiver| receiver.group == group).count()
    }

    /// The engine has bytes or an end for this stream.
    pub(super) fn on_readable(&mut self, group: GroupId, origin: HostId) {
        self.streams.entry((group, origin)).or_default().readable = true;
    }

    /// The client takes so many bytes more of a message.
    pub(super) fn extend_window(&mut self, key: Key, bytes: u32, now: Instant) -> Result<(), ApiError> {
        // A message may end or be lost while the update is on its way: that is no error.
        let Some(stream_key) = self.messages.get(&key) else { return Ok(()) };
        let Some(arriving) = self.streams.get_mut(stream_key).and_then(|stream| stream.message.as_mut())
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
        arriving.window_bytes += bytes;
        arriving.progressed_at = now;
        Ok(())
    }

    /// The application has the message.
    pub(super) fn confirm(
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
            let text = format!("message {} has not ended yet; read it to its end first", key.number);
            return Err(ApiError::new(ErrorCode::WrongState, text));
        }
        engine.confirm(group, origin, now).map_err(|error| refusal(&error))?;
        self.drop_message(connections, key);
        Ok(())
    }

    /// The application does not take the message.
    pub(super) fn abort(
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
        engine.abort(group, origin, reason, now).map_err(|error| refusal(&error))?;
        self.drop_message(connections, key);
        Ok(())
    }

    fn message_stream(&self, key: Key) -> Result<StreamKey, ApiError> {
        self.messages.get(&key).copied().ok_or_else(|| unknown_handle(key))
    }

    /// Forgets the handle; what follows on the stream is another message.
    fn drop_message(&mut self, connections: &mut Connections, key: Key) {
        let Some(stream_key) = self.messages.remove(&key) else { return };
        if let Some(stream) = self.streams.get_mut(&stream_key) {
            stream.message = None;
            // The engine has told once that there is something; there may be more.
            stream.readable = true;
        }
        if let Some(connection) = connections.get_mut(&key.connection) {
            connection.handles -= 1;
        }
    }

    /// The engine reports that the message being read breaks off.
    pub(super) fn on_message_lost(
        &mut self,
        connections: &mut Connections,
        group: GroupId,
        origin: HostId,
        reason: LossReason,
    ) {
        let Some(stream) = self.streams.get_mut(&(group, origin)) else { return };
        // What follows is another message, and the engine does not tell of it again.
        stream.readable = true;
        let Some(key) = stream.message.as_ref().map(|arriving| arriving.key) else { return };
        let reason = match reason {
            LossReason::Cancelled => "its origin cancelled it",
            LossReason::OriginRestarted => "its origin restarted",
            LossReason::LeftBehind => "the group went on without this host",
            LossReason::GroupChanged => "the group was removed, or the origin left it",
        };
        self.lose(connections, key, reason);
    }

    fn lose(&mut self, connections: &mut Connections, key: Key, reason: &str) {
        let notice = Notice::MessageLost { handle: key.number, reason: reason.to_owned() };
        send(connections, key.connection, Outbound::Notice(notice));
        self.drop_message(connections, key);
    }

    /// Closes a receiver; a message it has not confirmed is given up.
    pub(super) fn close(
        &mut self,
        engine: &mut Engine,
        connections: &mut Connections,
        key: Key,
        now: Instant,
    ) -> Result<(), ApiError> {
        self.receivers.remove(&key).ok_or_else(|| unknown_handle(key))?;
        if let Some(connection) = connections.get_mut(&key.connection) {
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
        Ok(())
    }

    /// Closes every receiver of a connection.
    pub(super) fn disconnect(
        &mut self,
        engine: Option<&mut Engine>,
        connections: &mut Connections,
        connection: ConnectionId,
        now: Instant,
    ) {
        let keys: Vec<Key> =
            self.receivers.keys().copied().filter(|key| key.connection == connection).collect();
        let Some(engine) = engine else { return };
        for key in keys {
            // It exists; that is all close() could object to.
            let _ = self.close(engine, connections, key, now);
        }
    }

    /// The group is gone, its receivers and their messages with it.
    pub(super) fn remove_group(&mut self, connections: &mut Connections, group: GroupId, reason: &str) {
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
        let closed: BTreeSet<Key> = self
            .receivers
            .iter()
            .filter(|(_, receiver)| receiver.group == group)
            .map(|(&key, _)| key)
            .collect();
        for key in closed {
            self.receivers.remove(&key);
            if let Some(connection) = connections.get_mut(&key.connection) {
                connection.handles -= 1;
                let notice = Notice::HandleClosed { handle: key.number, reason: reason.to_owned() };
                connection.outbound.send(Outbound::Notice(notice));
            }
        }
    }

    /// Reads what is due from the engine and hands it on; gives up what nobody takes.
    /// Returns when to call again.
    pub(super) fn pump(
        &mut self,
        engine: &mut Engine,
        connections: &mut Connections,
        now: Instant,
    ) -> Option<Instant> {
        let mut next: Option<Instant> = None;
        let due: Vec<StreamKey> = self
            .streams
            .iter()
            .filter(|(_, stream)| stream.readable || stream.message.is_some())
            .map(|(&key, _)| key)
            .collect();
        for key in due {
            if let Some(at) = self.pump_stream(engine, connections, key, now) {
                next = Some(next.map_or(at, |other| other.min(at)));
            }
        }
        next
    }

    fn pump_stream(
        &mut self,
        engine: &mut Engine,
        connections: &mut Connections,
        key: StreamKey,
        now: Instant,
    ) -> Option<Instant> {
        let (group, origin) = key;
        let stream = self.streams.get_mut(&key)?;
        if let Some(arriving) = &stream.message {
            let stalled = arriving.ended || arriving.window_bytes == 0;
            let deadline = arriving.progressed_at.plus_us(self.patience.receiver_stall_us);
            if stalled && deadline <= now {
                let message = arriving.key;
                self.stalled_messages += 1;
                let _ = engine.abort(group, origin, FailReason::Cancelled, now);
                self.lose(connections, message, "the receiver took nothing for too long");
                return Some(now);
            }
            if stalled {
                return Some(deadline);
            }
        }
        if !stream.readable {
            return None;
        }
        if stream.read_at > now {
            return Some(stream.read_at);
        }
        let receiver = self.receivers.iter().find(|(_, receiver)| {
            receiver.group == group && receiver.origin.is_none_or(|wanted| wanted == origin)
        });
        let Some((&receiver, _)) = receiver else {
            let since = *stream.unclaimed_since.get_or_insert(now);
            let deadline = since.plus_us(self.patience.receiver_wait_us);
            if deadline > now {
                return Some(deadline);
            }
            // Whoever lets one message pass lets the next ones pass at once, until a
            // receiver opens: the group has waited enough.
            self.discard_stream(engine, key, now);
            return None;
        };
        self.read_stream(engine, connections, key, receiver, now)
    }

    /// Gives up every message that waits on a stream nobody reads.
    fn discard_stream(&mut self, engine: &mut Engine, key: StreamKey, now: Instant) {
        let (group, origin) = key;
        self.scratch.resize(READ_BYTES_MAX, 0);
        loop {
            let read = engine.read(group, origin, &mut self.scratch, now).unwrap_or_default();
            if read.length == 0 && !read.end_of_message {
                break;
            }
            self.unclaimed_messages += 1;
            if engine.abort(group, origin, FailReason::Cancelled, now).is_err() {
                break;
            }
        }
        if let Some(stream) = self.streams.get_mut(&key) {
            stream.readable = false;
        }
    }

    fn read_stream(
        &mut self,
        engine: &mut Engine,
        connections: &mut Connections,
        key: StreamKey,
        receiver: Key,
        now: Instant,
    ) -> Option<Instant> {
        let (group, origin) = key;
        let stream = self.streams.get_mut(&key)?;
        let connection = connections.get_mut(&receiver.connection)?;
        loop {
            let window = stream.message.as_ref().map_or(MESSAGE_WINDOW_BYTES, |at| at.window_bytes);
            if window == 0 {
                // extend_window() or the stall deadline goes on from here.
                let progressed = stream.message.as_ref().map_or(now, |at| at.progressed_at);
                return Some(progressed.plus_us(self.patience.receiver_stall_us));
            }
            if stream.message.is_none() && !connection.has_room() {
                // Another message of this connection has to go first.
                return Some(now.plus_us(READ_INTERVAL_US));
            }
            let want = (window as usize).min(READ_BYTES_MAX);
            self.scratch.resize(want, 0);
            let read = match engine.read(group, origin, &mut self.scratch[..want], now) {
                Ok(read) => read,
                Err(_) => {
                    stream.readable = false;
                    return None;
                }
            };
            if read.length == 0 && !read.end_of_message {
                stream.readable = false;
                return None;
            }
            if stream.message.is_none() {
                let Ok(number) = connection.open_handle() else {
                    stream.readable = false;
                    let _ = engine.abort(group, origin, FailReason::Cancelled, now);
                    return None;
                };
                let message = Key { connection: receiver.connection, number };
                self.messages.insert(message, key);
                stream.message = Some(Arriving {
                    key: message,
                    receiver,
                    window_bytes: MESSAGE_WINDOW_BYTES,
                    length: 0,
                    ended: false,
                    progressed_at: now,
                });
                connection.outbound.send(Outbound::Notice(Notice::MessageBegin {
                    receiver: receiver.number,
                    handle: number,
                    origin: origin.0,
                    window_bytes: MESSAGE_WINDOW_BYTES,
                }));
            }
            let arriving = stream.message.as_mut()?;
            let handle = arriving.key.number;
            if read.length > 0 {
                let bytes = Bytes::copy_from_slice(&self.scratch[..read.length]);
                connection.outbound.send(Outbound::Data { handle, bytes });
                arriving.window_bytes -= read.length as u32;
                arriving.length += read.length as u64;
            }
            stream.read_at = now.plus_us(READ_INTERVAL_US);
            if read.end_of_message {
                arriving.ended = true;
                arriving.progressed_at = now;
                let length = arriving.length;
                connection.outbound.send(Outbound::Notice(Notice::MessageEnd { handle, length }));
                return Some(now.plus_us(self.patience.receiver_stall_us));
            }
        }
    }
}
