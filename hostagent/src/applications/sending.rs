//! Senders: taking turns on a group's one stream, and telling each what became of its
//! messages.
//!
//! A stream carries one message at a time, so senders of a group take turns, first come
//! first served, a message each.

use super::connection::{Connection, ConnectionId, Key, Outbound};
use super::limits::{GRANT_BYTES_MIN, OUTCOMES_MAX, SENDER_STALL_US, SENDER_WINDOW_BYTES};
use crate::local::{ApiError, ErrorCode, MemberOutcome, Notice};
use bytes::{Buf, Bytes};
use serde_json::{Value, json};
use std::collections::{BTreeMap, VecDeque};
use wormcast_protocol::{Engine, FailReason, GroupId, HostId, Instant, UseError};

type Connections = BTreeMap<ConnectionId, Connection>;

/// All senders of this agent.
#[derive(Default)]
pub(super) struct Sending {
    senders: BTreeMap<Key, Sender>,
    turns: BTreeMap<GroupId, Turn>,
}

struct Sender {
    group: GroupId,
    pending: VecDeque<Item>,
    pending_bytes: u32,
    /// Taken by the engine, but the client has not been told yet.
    ungranted_bytes: u32,
    progress: Option<Progress>,
    /// Messages in flight or lately finished, by number.
    messages: BTreeMap<u64, Option<Vec<MemberOutcome>>>,
    waiting: Vec<StableWait>,
}

enum Item {
    Data(Bytes),
    End { request: u64 },
}

struct Progress {
    interval_us: u64,
    due: Instant,
}

struct StableWait {
    request: u64,
    message: u64,
    deadline: Option<Instant>,
}

/// Whose turn it is on a group's stream.
#[derive(Default)]
struct Turn {
    active: Option<Active>,
    queue: VecDeque<Key>,
    /// The end of a message is noted but has no room in the window yet: messages ended
    /// before it.
    end_waits: Option<u64>,
    /// Who is to be told when a message is stable; absent if its sender is gone.
    owners: BTreeMap<u64, Key>,
}

struct Active {
    key: Key,
    /// Number of the message, once bytes of it are in the engine.
    message: Option<u64>,
    rested_since: Instant,
}

impl Sending {
    pub(super) fn open(
        &mut self,
        connections: &mut Connections,
        connection: ConnectionId,
        group: GroupId,
        progress_ms: u32,
        now: Instant,
    ) -> Result<u32, ApiError> {
        let Some(owner) = connections.get_mut(&connection) else { return Err(gone()) };
        let number = owner.open_handle()?;
        let interval_us = u64::from(progress_ms) * 1000;
        let progress = (interval_us > 0).then(|| Progress { interval_us, due: now.plus_us(interval_us) });
        let sender = Sender {
            group,
            pending: VecDeque::new(),
            pending_bytes: 0,
            ungranted_bytes: 0,
            progress,
            messages: BTreeMap::new(),
            waiting: Vec::new(),
        };
        self.senders.insert(Key { connection, number }, sender);
        Ok(number)
    }

    pub(super) fn contains(&self, key: Key) -> bool {
        self.senders.contains_key(&key)
    }

    pub(super) fn count(&self, group: GroupId) -> usize {
        self.senders.values().filter(|sender| sender.group == group).count()
    }

    /// Queues bytes of the current message.
    pub(super) fn write(&mut self, key: Key, bytes: Bytes) -> Result<(), ApiError> {
        let sender = self.senders.get_mut(&key).ok_or_else(|| unknown_handle(key))?;
        let length = bytes.len() as u32;
        let room = SENDER_WINDOW_BYTES - sender.pending_bytes - sender.ungranted_bytes;
        if length > room {
            let text = format!(
                "{length} bytes written to sender {}, whose window has room for {room} of {SENDER_WINDOW_BYTES}",
                key.number
            );
            return Err(ApiError::new(ErrorCode::WindowExceeded, text));
        }
        sender.pending_bytes += length;
        sender.pending.push_back(Item::Data(bytes));
        self.take_place(key);
        Ok(())
    }

    /// Queues the end of the current message; the answer comes when it is its turn.
    pub(super) fn end_message(&mut self, key: Key, request: u64) -> Result<(), ApiError> {
        let sender = self.senders.get_mut(&key).ok_or_else(|| unknown_handle(key))?;
        sender.pending.push_back(Item::End { request });
        self.take_place(key);
        Ok(())
    }

    fn take_place(&mut self, key: Key) {
        let Some(sender) = self.senders.get(&key) else { return };
        let turn = self.turns.entry(sender.group).or_default();
        let active = turn.active.as_ref().is_some_and(|active| active.key == key);
        if !active && !turn.queue.contains(&key) {
            turn.queue.push_back(key);
        }
    }

    /// Gives up the message that the sender is writing, if any.
    pub(super) fn cancel(
        &mut self,
        engine: &mut Engine,
        connections: &mut Connections,
        key: Key,
        now: Instant,
    ) -> Result<(), ApiError> {
        let sender = self.senders.get_mut(&key).ok_or_else(|| unknown_handle(key))?;
        let mut freed = 0;
        // Complete messages that wait for their turn stay; the last, unfinished one goes.
        while let Some(Item::Data(bytes)) = sender.pending.back() {
            freed += bytes.len() as u32;
            sender.pending.pop_back();
        }
        sender.pending_bytes -= freed;
        let unfinished_in_engine = sender.pending.is_empty();
        let turn = self.turns.entry(sender.group).or_default();
        if let Some(active) = &turn.active
            && active.key == key
            && unfinished_in_engine
        {
            if active.message.is_some() {
                engine.cancel(sender.group, now).map_err(|error| refusal(&error))?;
            }
            turn.active = None;
        }
        if freed > 0 {
            grant(connections, key, freed);
        }
        Ok(())
    }

    /// Answers at once if the message is stable already, else when it becomes so.
    pub(super) fn wait_stable(
        &mut self,
        key: Key,
        request: u64,
        message: u64,
        timeout_ms: Option<u64>,
        now: Instant,
    ) -> Result<Option<Value>, ApiError> {
        let sender = self.senders.get_mut(&key).ok_or_else(|| unknown_handle(key))?;
        match sender.messages.get(&message) {
            Some(Some(outcomes)) => Ok(Some(stable_answer(message, outcomes))),
            Some(None) => {
                let deadline = timeout_ms.map(|ms| now.plus_us(ms.saturating_mul(1000)));
                sender.waiting.push(StableWait { request, message, deadline });
                Ok(None)
            }
            None => {
                let known: Vec<Value> = sender.messages.keys().map(|&number| number.into()).collect();
                let text = format!(
                    "message {message} is not among the last {OUTCOMES_MAX} messages of sender {}; those are: {}",
                    key.number,
                    if known.is_empty() { "none".to_owned() } else { Value::from(known.clone()).to_string() }
                );
                Err(ApiError { code: ErrorCode::OutOfRange, message: text, choices: known })
            }
        }
    }

    /// Moves pending bytes into the engine, turn by turn, as far as it takes them.
    pub(super) fn pump(&mut self, engine: &mut Engine, connections: &mut Connections, now: Instant) {
        let groups: Vec<GroupId> =
            self.turns.iter().filter(|(_, turn)| turn.has_work()).map(|(&group, _)| group).collect();
        for group in groups {
            while self.pump_turn(engine, connections, group, now) {}
        }
    }

    /// One item of one group; false when there is nothing more to do now.
    fn pump_turn(
        &mut self,
        engine: &mut Engine,
        connections: &mut Connections,
        group: GroupId,
        now: Instant,
    ) -> bool {
        let Some(turn) = self.turns.get_mut(&group) else { return false };
        let progress = engine.progress(group).unwrap_or_default();
        if let Some(ended_before) = turn.end_waits {
            if progress.messages_ended == ended_before {
                // The end of the message before has no room yet. Asking in vain makes the
                // engine tell when it has.
                let _ = engine.write(group, &[], false, now);
                return false;
            }
            turn.end_waits = None;
        }
        if turn.active.is_none() {
            let Some(key) = turn.queue.pop_front() else { return false };
            turn.active = Some(Active { key, message: None, rested_since: now });
        }
        let Some(active) = &mut turn.active else { return false };
        let key = active.key;
        let Some(sender) = self.senders.get_mut(&key) else {
            turn.active = None;
            return true;
        };
        let Some(item) = sender.pending.front_mut() else {
            if active.message.is_none() {
                turn.active = None;
                return true;
            }
            if turn.queue.is_empty() {
                active.rested_since = now;
            } else if now.since_us(active.rested_since) >= SENDER_STALL_US {
                let reason = format!(
                    "its unfinished message rested for {} s while another sender of {group} waited",
                    SENDER_STALL_US / 1_000_000
                );
                self.close(engine, connections, key, now, Some(reason));
                return true;
            }
            return false;
        };
        active.rested_since = now;
        match item {
            Item::Data(bytes) => match engine.write(group, bytes, false, now) {
                Ok(0) => false,
                Ok(accepted) => {
                    active.message.get_or_insert(progress.messages_ended);
                    let all = accepted >= bytes.len();
                    bytes.advance(accepted);
                    if all {
                        sender.pending.pop_front();
                    }
                    sender.pending_bytes -= accepted as u32;
                    sender.ungranted_bytes += accepted as u32;
                    if sender.ungranted_bytes >= GRANT_BYTES_MIN || sender.pending_bytes == 0 {
                        grant(connections, key, std::mem::take(&mut sender.ungranted_bytes));
                    }
                    all
                }
                Err(error) => {
                    let reason = refusal(&error).message;
                    self.close(engine, connections, key, now, Some(reason));
                    true
                }
            },
            Item::End { request } => {
                let request = *request;
                match engine.write(group, &[], true, now) {
                    Ok(_) => {
                        sender.pending.pop_front();
                        let message = active.message.unwrap_or(progress.messages_ended);
                        let ended = engine.progress(group).unwrap_or_default().messages_ended;
                        turn.end_waits = (ended == progress.messages_ended).then_some(ended);
                        turn.owners.insert(message, key);
                        turn.active = None;
                        sender.messages.insert(message, None);
                        sender.forget_old();
                        let again = !sender.pending.is_empty();
                        reply(connections, key, request, Ok(json!({ "message": message })));
                        if again {
                            turn.queue.push_back(key);
                        }
                        true
                    }
                    Err(error) => {
                        let reason = refusal(&error).message;
                        self.close(engine, connections, key, now, Some(reason));
                        true
                    }
                }
            }
        }
    }

    /// The engine reports a message stable.
    pub(super) fn on_stable(
        &mut self,
        connections: &mut Connections,
        group: GroupId,
        message: u64,
        members: &[HostId],
        failed: &[(HostId, FailReason)],
    ) {
        let Some(turn) = self.turns.get_mut(&group) else { return };
        let Some(key) = turn.owners.remove(&message) else { return };
        let Some(sender) = self.senders.get_mut(&key) else { return };
        let mut outcomes: BTreeMap<u16, Option<String>> =
            members.iter().map(|member| (member.0, None)).collect();
        for (host, reason) in failed {
            outcomes.insert(host.0, Some(reason.to_string()));
        }
        let outcomes: Vec<MemberOutcome> = outcomes
            .into_iter()
            .map(|(host, reason)| MemberOutcome { host, delivered: reason.is_none(), reason })
            .collect();
        let answer = stable_answer(message, &outcomes);
        sender.messages.insert(message, Some(outcomes));
        sender.forget_old();
        sender.waiting.retain(|wait| {
            if wait.message == message {
                reply(connections, key, wait.request, Ok(answer.clone()));
            }
            wait.message != message
        });
    }

    /// The engine reports that a member will not have a message.
    pub(super) fn on_member_aborted(
        &self,
        connections: &mut Connections,
        group: GroupId,
        message: u64,
        host: HostId,
        reason: FailReason,
    ) {
        let Some(turn) = self.turns.get(&group) else { return };
        // A message still being written has no owner here yet.
        let key = turn.owners.get(&message).copied().or_else(|| {
            let active = turn.active.as_ref()?;
            (active.message == Some(message)).then_some(active.key)
        });
        if let Some(key) = key {
            let notice = Notice::MemberFailed {
                handle: key.number,
                message,
                host: host.0,
                reason: reason.to_string(),
            };
            send(connections, key.connection, Outbound::Notice(notice));
        }
    }

    /// Closes a sender: at its owner's wish (`reason` none) or against it.
    ///
    /// What it has ended goes on its way; an unfinished message is cancelled.
    pub(super) fn close(
        &mut self,
        engine: &mut Engine,
        connections: &mut Connections,
        key: Key,
        now: Instant,
        reason: Option<String>,
    ) {
        let Some(sender) = self.senders.remove(&key) else { return };
        if let Some(turn) = self.turns.get_mut(&sender.group) {
            turn.queue.retain(|&waiting| waiting != key);
            turn.owners.retain(|_, &mut owner| owner != key);
            if turn.active.as_ref().is_some_and(|active| active.key == key) {
                if turn.active.as_ref().is_some_and(|active| active.message.is_some()) {
                    // Refused only if the group is gone, and with it the message.
                    let _ = engine.cancel(sender.group, now);
                }
                turn.active = None;
            }
        }
        sender.dismiss(connections, key, reason);
    }

    /// Closes every sender of a connection.
    pub(super) fn disconnect(
        &mut self,
        engine: Option<&mut Engine>,
        connections: &mut Connections,
        connection: ConnectionId,
        now: Instant,
    ) {
        let keys: Vec<Key> =
            self.senders.keys().copied().filter(|key| key.connection == connection).collect();
        let Some(engine) = engine else { return };
        for key in keys {
            self.close(engine, connections, key, now, None);
        }
    }

    /// The group is gone, and all its senders.
    pub(super) fn remove_group(&mut self, connections: &mut Connections, group: GroupId, reason: &str) {
        self.turns.remove(&group);
        let keys: Vec<Key> = self
            .senders
            .iter()
            .filter(|(_, sender)| sender.group == group)
            .map(|(&key, _)| key)
            .collect();
        for key in keys {
            if let Some(sender) = self.senders.remove(&key) {
                sender.dismiss(connections, key, Some(reason.to_owned()));
            }
        }
    }

    /// Answers waits that are over and sends progress that is due. Returns when to call
    /// again.
    pub(super) fn handle_timeout(
        &mut self,
        connections: &mut Connections,
        now: Instant,
        progress_of: impl Fn(GroupId) -> crate::local::StreamProgress,
    ) -> Option<Instant> {
        let mut next: Option<Instant> = None;
        let mut sooner = |at: Instant| next = Some(next.map_or(at, |other| other.min(at)));
        for (&key, sender) in &mut self.senders {
            sender.waiting.retain(|wait| {
                let over = wait.deadline.is_some_and(|deadline| deadline <= now);
                if over {
                    let text = format!("message {} is not stable yet", wait.message);
                    reply(connections, key, wait.request, Err(ApiError::new(ErrorCode::Timeout, text)));
                }
                !over
            });
            for deadline in sender.waiting.iter().filter_map(|wait| wait.deadline) {
                sooner(deadline);
            }
            if let Some(progress) = &mut sender.progress {
                if progress.due <= now {
                    progress.due = now.plus_us(progress.interval_us);
                    let busy = connections.get(&key.connection).is_none_or(|at| at.outbound.is_busy());
                    if !busy {
                        let progress = progress_of(sender.group);
                        let notice = Notice::Progress { handle: key.number, progress };
                        send(connections, key.connection, Outbound::Notice(notice));
                    }
                }
                sooner(progress.due);
            }
        }
        for turn in self.turns.values() {
            if let Some(active) = &turn.active
                && !turn.queue.is_empty()
            {
                sooner(active.rested_since.plus_us(SENDER_STALL_US));
            }
        }
        next
    }
}

impl Sender {
    /// Tells everyone who waits for this sender that it is gone.
    fn dismiss(self, connections: &mut Connections, key: Key, reason: Option<String>) {
        let text = reason.as_deref().unwrap_or("the sender was closed");
        let error = || Err(ApiError::new(ErrorCode::Closed, text));
        for wait in &self.waiting {
            reply(connections, key, wait.request, error());
        }
        for item in &self.pending {
            if let Item::End { request } = item {
                reply(connections, key, *request, error());
            }
        }
        if let Some(connection) = connections.get_mut(&key.connection) {
            connection.handles -= 1;
            if let Some(reason) = reason {
                let notice = Notice::HandleClosed { handle: key.number, reason };
                connection.outbound.send(Outbound::Notice(notice));
            }
        }
    }

    fn forget_old(&mut self) {
        while self.messages.len() > OUTCOMES_MAX {
            let oldest = self.messages.iter().find(|(_, outcome)| outcome.is_some()).map(|(&number, _)| number);
            let Some(oldest) = oldest else { return };
            self.messages.remove(&oldest);
        }
    }
}

impl Turn {
    fn has_work(&self) -> bool {
        self.active.is_some() || !self.queue.is_empty() || self.end_waits.is_some()
    }
}

fn stable_answer(message: u64, outcomes: &[MemberOutcome]) -> Value {
    let delivered = outcomes.iter().filter(|outcome| outcome.delivered).count();
    json!({
        "message": message,
        "delivered": delivered,
        "failed": outcomes.len() - delivered,
        "outcomes": outcomes,
    })
}

pub(super) fn send(connections: &Connections, connection: ConnectionId, outbound: Outbound) {
    if let Some(connection) = connections.get(&connection) {
        connection.outbound.send(outbound);
    }
}

fn reply(connections: &Connections, key: Key, id: u64, result: Result<Value, ApiError>) {
    send(connections, key.connection, Outbound::Reply { id, result });
}

fn grant(connections: &Connections, key: Key, bytes: u32) {
    send(connections, key.connection, Outbound::Window { handle: key.number, bytes });
}

pub(super) fn unknown_handle(key: Key) -> ApiError {
    let text = format!("this connection has no open handle {}", key.number);
    ApiError::new(ErrorCode::UnknownHandle, text)
}

pub(super) fn refusal(error: &UseError) -> ApiError {
    let code = match error {
        UseError::UnknownGroup { .. } => ErrorCode::UnknownGroup,
        UseError::SessionsFull { .. } => ErrorCode::LimitReached,
        UseError::UnknownOrigin { .. } | UseError::NotConfirmed | UseError::NothingToConfirm => {
            ErrorCode::WrongState
        }
        UseError::NoStructure { .. } => ErrorCode::NoPlan,
    };
    ApiError::new(code, error.to_string())
}

fn gone() -> ApiError {
    ApiError::new(ErrorCode::Closed, "the connection is closed")
}
