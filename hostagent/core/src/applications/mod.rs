//! Applications on this host and what they have open: the pure half of the local API.
//!
//! Requests, bytes and engine events in; answers and bytes out.

pub mod answers;
mod groups;
mod receiving;
mod sending;

use crate::api::{ApiError, ErrorCode, NumberedRequest, Request, StreamProgress};
use crate::clients::limits::{GROUPS_BYTES_MAX, PROGRESS_MS};
use crate::clients::{
    Connection, ConnectionId, Connections, Key, Outbound, Patience, Serving, Watch, limits, send,
    unknown_handle,
};
use crate::order::MessageId;
use crate::pacing::RATE_BITS;
use crate::plan::PlannedGroup;
use crate::transfers::Transfers;
use answers::{Answer, Answers};
use bytes::Bytes;
use groups::{describe_group, find_group, find_origin, group_bytes, no_plan};
pub use receiving::OpenReceivers;
use receiving::Receiving;
use sending::{LeftOuts, Sending};
use serde_json::{Value, json};
use std::sync::Arc;
use wormcast_protocol::{Engine, Event, Instant, Unread};
use wormcast_wire::{GroupId, HostId};

pub struct Applications {
    connections: Connections,
    sending: Sending,
    receiving: Receiving,
    answers: Answers,
}

impl Applications {
    pub fn new(patience: Patience) -> Self {
        Self {
            connections: Connections::default(),
            sending: Sending::default(),
            receiving: Receiving::new(patience),
            answers: Answers::default(),
        }
    }

    /// A client has connected; `process` names it in error texts.
    pub fn connect(&mut self, id: ConnectionId, process: String) {
        self.connections.open.insert(id, Connection::new(process));
    }

    /// What goes to a client next.
    pub fn poll_outbound(&mut self) -> Option<(ConnectionId, Outbound)> {
        self.connections.outbound.pop_front()
    }

    /// A client is gone; so is what it had open.
    pub fn disconnect(&mut self, id: ConnectionId, serving: &mut Serving<'_>) {
        let now = serving.now;
        self.sending.disconnect(
            serving.engine.as_deref_mut(),
            &mut self.connections,
            id,
            now,
        );
        self.receiving.disconnect(
            serving.engine.as_deref_mut(),
            &mut self.connections,
            id,
            now,
        );
        self.connections.open.remove(&id);
    }

    /// Serves a request; its answer comes now or later through the connection's queue.
    pub fn request(
        &mut self,
        connection: ConnectionId,
        request: NumberedRequest,
        serving: &mut Serving<'_>,
    ) {
        let NumberedRequest { id, request } = request;
        let result = match self.serve(connection, id, request, serving) {
            Ok(Some(answer)) => Ok(answer),
            Ok(None) => return,
            Err(error) => Err(error),
        };
        send(
            &mut self.connections,
            connection,
            Outbound::Reply { id, result },
        );
    }

    /// `None`: the answer comes later.
    fn serve(
        &mut self,
        connection: ConnectionId,
        id: u64,
        request: Request,
        serving: &mut Serving<'_>,
    ) -> Result<Option<Value>, ApiError> {
        let key = |number| Key { connection, number };
        let now = serving.now;
        match request {
            Request::Hello { .. } | Request::Status {} | Request::ReceiveFile { .. } => {
                let text = "hello, status and files are not for the data plane";
                Err(ApiError::new(ErrorCode::WrongState, text))
            }
            Request::Groups { after, watch } => {
                let open = self.connections.open.get_mut(&connection);
                if let Some(connection) = open.filter(|_| watch) {
                    connection.watch = Watch::Asked;
                }
                let (groups, left_out) = self.describe_groups(serving, after)?;
                Ok(Some(json!({ "groups": groups, "left_out": left_out })))
            }
            Request::OpenSender {
                group,
                progress_ms,
                rate_bits,
            } => {
                if progress_ms != 0 && !PROGRESS_MS.contains(&progress_ms) {
                    let (least, most) = (PROGRESS_MS.start(), PROGRESS_MS.end());
                    let text =
                        format!("progress_ms is {progress_ms}; it must be 0 or {least} to {most}");
                    return Err(ApiError::new(ErrorCode::OutOfRange, text));
                }
                if let Some(rate) = rate_bits.filter(|rate| !RATE_BITS.contains(rate)) {
                    let (least, most) = (RATE_BITS.start(), RATE_BITS.end());
                    let text = format!("rate_bits is {rate}; it must be {least} to {most}");
                    return Err(ApiError::new(ErrorCode::OutOfRange, text));
                }
                let planned = find_group(serving, &group)?;
                let number = self.sending.open(
                    &mut self.connections,
                    connection,
                    planned.id,
                    progress_ms,
                    rate_bits,
                    now,
                )?;
                let mut answer = describe_group(planned);
                answer["handle"] = number.into();
                answer["window_bytes"] = limits::SENDER_WINDOW_BYTES.into();
                let engine = serving.engine.as_deref();
                let progress =
                    engine.map(|engine| stream_progress(engine, serving.host, planned.id));
                answer["progress"] = json!(progress.unwrap_or_default());
                Ok(Some(answer))
            }
            Request::OpenReceiver {
                group,
                origin,
                files,
            } => {
                let planned = find_group(serving, &group)?;
                let origin = origin
                    .map(|origin| find_origin(planned, origin, serving.host))
                    .transpose()?;
                let number = self.receiving.open(
                    &mut self.connections,
                    connection,
                    planned.id,
                    origin,
                    files,
                )?;
                let mut answer = describe_group(planned);
                answer["handle"] = number.into();
                Ok(Some(answer))
            }
            Request::SendFile { handle, .. } => {
                self.expect(key(handle), Kind::Sender)?;
                let room = self.sending.room(key(handle))?;
                Ok(Some(json!({ "window": room })))
            }
            Request::EndMessage { handle } => {
                self.expect(key(handle), Kind::Sender)?;
                self.sending.end_message(key(handle), id).map(|()| None)
            }
            Request::WaitStable {
                handle,
                message,
                timeout_ms,
            } => {
                self.expect(key(handle), Kind::Sender)?;
                self.sending
                    .wait_stable(key(handle), id, message, timeout_ms, now)
            }
            Request::MessageState { handle, message } => {
                self.expect(key(handle), Kind::Sender)?;
                self.sending
                    .message_state(key(handle), message, serving)
                    .map(Some)
            }
            Request::AnnounceMessage { handle, bytes } => {
                self.expect(key(handle), Kind::Sender)?;
                self.sending.announce(key(handle), bytes)?;
                Ok(Some(json!({})))
            }
            Request::CancelMessage { handle } => {
                self.expect(key(handle), Kind::Sender)?;
                let engine = engine_of(serving)?;
                self.sending
                    .cancel(engine, &mut self.connections, key(handle), now)?;
                Ok(Some(json!({})))
            }
            Request::Confirm { handle } => {
                self.expect(key(handle), Kind::Message)?;
                let engine = engine_of(serving)?;
                self.receiving
                    .confirm(engine, &mut self.connections, key(handle), now)?;
                Ok(Some(json!({})))
            }
            Request::Abort { handle, reason } => {
                self.expect(key(handle), Kind::Message)?;
                let engine = engine_of(serving)?;
                self.receiving
                    .abort(engine, &mut self.connections, key(handle), reason, now)?;
                Ok(Some(json!({})))
            }
            Request::Extend { handle } => {
                self.expect(key(handle), Kind::Message)?;
                self.receiving.extend(key(handle), now)?;
                Ok(Some(json!({})))
            }
            Request::BoundLag { handle, bytes } => {
                self.expect(key(handle), Kind::Message)?;
                self.receiving.bound_lag(key(handle), bytes)?;
                Ok(Some(json!({})))
            }
            Request::Answer { handle, text } => {
                self.expect(key(handle), Kind::Message)?;
                answers::check(&text)?;
                let (group, host) = self.receiving.note_answer(key(handle))?;
                self.answers.put(Answer { group, host, text });
                Ok(Some(json!({})))
            }
            Request::Close { handle } => {
                let engine = engine_of(serving)?;
                match self.kind_of(key(handle)) {
                    Some(Kind::Sender) => {
                        self.sending
                            .close(engine, &mut self.connections, key(handle), now, None);
                    }
                    Some(Kind::Receiver) => {
                        self.receiving
                            .close(engine, &mut self.connections, key(handle), now)?;
                    }
                    Some(Kind::Message) => {
                        let text = format!("handle {handle} is a message; confirm or abort it");
                        return Err(ApiError::new(ErrorCode::WrongHandle, text));
                    }
                    None => return Err(unknown_handle(key(handle))),
                }
                Ok(Some(json!({})))
            }
        }
    }

    /// Bytes of a message to be sent. An error ends the connection.
    ///
    /// # Errors
    /// If the client disregards its window, or there is no such sender.
    pub fn data(
        &mut self,
        connection: ConnectionId,
        handle: u32,
        bytes: Bytes,
    ) -> Result<(), ApiError> {
        let key = Key {
            connection,
            number: handle,
        };
        if !self.sending.contains(key) && self.was_open(key) {
            // The agent closed it while the bytes were on their way; the client is being notified.
            return Ok(());
        }
        self.expect(key, Kind::Sender)?;
        self.sending.write(key, bytes)
    }

    /// A window update. An error ends the connection.
    ///
    /// # Errors
    /// If it opens the window wider than it was.
    pub fn window(
        &mut self,
        connection: ConnectionId,
        handle: u32,
        bytes: u32,
        now: Instant,
    ) -> Result<(), ApiError> {
        self.receiving.extend_window(
            Key {
                connection,
                number: handle,
            },
            bytes,
            now,
        )
    }

    /// Ends a connection whose client broke the rules.
    pub fn expel(&mut self, id: ConnectionId, reason: &ApiError, serving: &mut Serving<'_>) {
        let reason = reason.message.clone();
        send(&mut self.connections, id, Outbound::Close { reason });
        self.disconnect(id, serving);
    }

    /// Takes an event of the engine.
    pub fn on_event(&mut self, event: &Event, serving: &Serving<'_>) {
        match event {
            Event::Readable { group, origin } => self.receiving.on_readable(*group, *origin),
            Event::Stable {
                group,
                message,
                confirmed,
                failed,
            } => {
                let left_out = LeftOuts::of(serving, *group);
                self.sending.on_stable(
                    &mut self.connections,
                    (*group, *message),
                    confirmed,
                    failed,
                    &left_out,
                    serving.engine.as_deref(),
                );
            }
            Event::MemberAborted {
                group,
                message,
                host,
                reason,
            } => {
                self.sending.on_member_aborted(
                    &mut self.connections,
                    *group,
                    *message,
                    *host,
                    *reason,
                );
            }
            Event::MessageLost {
                group,
                origin,
                reason,
            } => {
                self.receiving
                    .on_message_lost(&mut self.connections, *group, *origin, *reason);
            }
            Event::OrderWanted {
                group,
                from,
                is_next,
                origin,
                stream,
                start,
            } => {
                let (origin, stream, start) = (*origin, *stream, *start);
                let message = MessageId {
                    origin,
                    stream,
                    start,
                };
                if serving.host == Some(origin) && !is_next {
                    self.sending.note_waited(*group, serving.now);
                }
                if *is_next {
                    self.receiving.note_next(*group, *from, message)
                } else {
                    self.receiving.note_wanted(*group, *from, message)
                }
            }
            // Room to write, and what has begun to arrive in an ordered group, is found by the pump;
            // failures of members reach senders with Stable, and the controller through the data plane.
            Event::Writable { .. }
            | Event::Begun { .. }
            | Event::Finished { .. }
            | Event::MemberSilent { .. }
            | Event::MemberFailed { .. }
            | Event::StructureRejected { .. } => {}
        }
    }

    /// Tells the sender of a message of a member where nobody receives, or slowly.
    pub fn on_unread(&mut self, unread: &Unread) {
        self.sending.on_unread(&mut self.connections, unread);
    }

    /// The next answer of a receiver here, to a message of another host.
    pub fn poll_answer(&mut self) -> Option<Answer> {
        self.answers.poll()
    }

    /// Another member answers a message of this host. Those who send to the group know whether it is theirs.
    pub fn on_answer(&mut self, answer: &Answer, serving: &Serving<'_>) {
        let Answer { group, host, text } = answer;
        let planned = serving.groups.and_then(|groups| groups.get(group));
        let is_member = planned.is_some_and(|planned| planned.members.contains(host));
        let connections = &mut self.connections;
        let told = is_member && self.sending.on_answer(connections, *group, *host, text);
        self.answers.refused += u64::from(!told);
    }

    /// Moves bytes both ways and keeps time. Returns when to call again at the latest.
    pub fn pump(&mut self, serving: &mut Serving<'_>) -> Option<Instant> {
        let (now, groups) = (serving.now, serving.groups);
        let engine = serving.engine.as_deref_mut()?;
        let sequencing = self.receiving.sequence(engine, &mut self.sending, now);
        self.sending
            .pump(engine, &mut self.connections, groups, now);
        let reading = self
            .receiving
            .pump(engine, &mut self.connections, groups, now);
        let reading = [reading, sequencing].into_iter().flatten().min();
        let host = serving.host;
        let engine = &*engine;
        let sending = self
            .sending
            .handle_timeout(&mut self.connections, now, |group| {
                stream_progress(engine, host, group)
            });
        match (reading, sending) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    /// A group as the plan in force has it.
    pub fn plan_group(&mut self, host: HostId, group: &PlannedGroup) {
        self.sending.plan_group(group);
        self.receiving.plan_order(host, group);
    }

    /// This host's stream to a group has ended, with all that was not stable.
    pub fn end_senders(&mut self, group: GroupId, reason: &str) {
        self.sending
            .end_stream(&mut self.connections, group, reason);
    }

    /// The plan has other groups than before, or other members in them.
    pub fn groups_changed(&mut self) {
        self.connections.tell_watchers();
    }

    /// A group left the plan, or the engine starts anew.
    pub fn remove_group(&mut self, group: GroupId, reason: &str) {
        self.sending
            .remove_group(&mut self.connections, group, reason);
        self.receiving
            .remove_group(&mut self.connections, group, reason);
    }

    /// What the controller is told of files that this host sends.
    pub fn transfers(&mut self) -> &mut Transfers {
        &mut self.sending.transfers
    }

    /// Figures of the applications, as (name, value).
    pub fn counters(&self) -> [(&'static str, u64); 9] {
        let transfers = &self.sending.transfers;
        [
            ("transfers.begun", transfers.begun()),
            ("transfers.left_out", transfers.left_out()),
            (
                "applications.connections",
                self.connections.open.len() as u64,
            ),
            (
                "applications.unclaimed_messages",
                self.receiving.unclaimed_messages,
            ),
            (
                "applications.stalled_messages",
                self.receiving.stalled_messages,
            ),
            ("applications.slow_messages", self.receiving.slow_messages),
            (
                "applications.orders_refused",
                self.receiving.orders_refused(),
            ),
            ("applications.sunk_messages", self.receiving.sunk_messages),
            ("drops.answers_unasked", self.answers.refused),
        ]
    }

    /// Groups with senders and receivers, those after a number, and how many are left out
    /// because an answer does not hold them.
    ///
    /// # Errors
    /// Before the first plan.
    pub fn describe_groups(
        &self,
        serving: &Serving<'_>,
        after: Option<u32>,
    ) -> Result<(Vec<Value>, usize), ApiError> {
        let groups = serving.groups.ok_or_else(no_plan)?;
        let (senders, receivers) = (self.sending.counts(), self.receiving.counts());
        let wanted = |group: &&Arc<PlannedGroup>| after.is_none_or(|id| u32::from(group.id.0) > id);
        let mut bytes = 0;
        let mut described = Vec::new();
        let mut left_out = 0;
        for group in groups.values().filter(wanted) {
            bytes += group_bytes(group);
            if bytes > GROUPS_BYTES_MAX && !described.is_empty() {
                left_out += 1;
                continue;
            }
            let mut value = describe_group(group);
            value["senders"] = senders.get(&group.id).copied().unwrap_or_default().into();
            value["receivers"] = receivers.get(&group.id).copied().unwrap_or_default().into();
            described.push(value);
        }
        Ok((described, left_out))
    }

    /// All receivers, if others are open than when this was asked last.
    pub fn changed_receivers(&mut self) -> Option<OpenReceivers> {
        self.receiving.changed_receivers()
    }

    fn kind_of(&self, key: Key) -> Option<Kind> {
        if self.sending.contains(key) {
            Some(Kind::Sender)
        } else if self.receiving.contains_receiver(key) {
            Some(Kind::Receiver)
        } else if self.receiving.contains_message(key) {
            Some(Kind::Message)
        } else {
            None
        }
    }

    fn was_open(&self, key: Key) -> bool {
        self.connections
            .open
            .get(&key.connection)
            .is_some_and(|connection| connection.has_used(key.number))
            && self.kind_of(key).is_none()
    }

    fn expect(&self, key: Key, wanted: Kind) -> Result<(), ApiError> {
        match self.kind_of(key) {
            Some(kind) if kind == wanted => Ok(()),
            Some(kind) => {
                let text = format!(
                    "handle {} is {}, not {}",
                    key.number,
                    kind.name(),
                    wanted.name()
                );
                Err(ApiError::new(ErrorCode::WrongHandle, text))
            }
            None => Err(unknown_handle(key)),
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Sender,
    Receiver,
    Message,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Sender => "a sender",
            Self::Receiver => "a receiver",
            Self::Message => "a message",
        }
    }
}

/// Progress of this host's own stream in a group.
pub fn stream_progress(engine: &Engine, host: Option<HostId>, group: GroupId) -> StreamProgress {
    let Some(progress) = engine.progress(group) else {
        return StreamProgress::default();
    };
    let own = host.and_then(|host| engine.sent_again(group, host));
    StreamProgress {
        accepted_bytes: progress.accepted_bytes,
        sent_bytes: progress.sent_bytes,
        stable_bytes: progress.stable_bytes,
        retransmissions: own.unwrap_or(0),
    }
}

fn engine_of<'a>(serving: &'a mut Serving<'_>) -> Result<&'a mut Engine, ApiError> {
    serving.engine.as_deref_mut().ok_or_else(no_plan)
}
