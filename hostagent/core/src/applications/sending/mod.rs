//! Senders: taking turns on a group's one stream, and telling each what became of its
//! messages.
//!
//! A stream carries one message at a time, so senders of a group take turns, first come
//! first served, a message each.

mod closing;
mod due;
mod left_out;
mod order;
mod outcomes;
mod planned;
mod rates;
mod turn;
mod turns;

pub(super) use left_out::LeftOuts;

use crate::api::{ApiError, ErrorCode, MemberOutcome};
use crate::clients::limits::{OUTCOMES_MAX, SENDER_WINDOW_BYTES};
use crate::clients::{ConnectionId, Connections, Key, gone, grant, refusal, unknown_handle};
use crate::pacing::Pacing;
use crate::plan::LeftOut;
use crate::transfers::Transfers;
use bytes::Bytes;
use rates::GroupRates;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use turn::Turn;
use wormcast_protocol::{Engine, Instant};
use wormcast_wire::GroupId;

/// All senders of this agent.
#[derive(Default)]
pub(crate) struct Sending {
    senders: BTreeMap<Key, Sender>,
    turns: BTreeMap<GroupId, Turn>,
    /// Groups whose messages say in their first byte what they are.
    ordered: BTreeSet<GroupId>,
    /// Order messages put into streams.
    orders_put: u64,
    /// Members that take no part, of groups that have some.
    left_out: BTreeMap<GroupId, Arc<[LeftOut]>>,
    rates: GroupRates,
    /// Of these messages, those that are files.
    pub(super) transfers: Transfers,
}

struct Sender {
    group: GroupId,
    pending: VecDeque<Item>,
    pending_bytes: u32,
    /// Taken by the engine, but the client has not been answered yet.
    ungranted_bytes: u32,
    progress: Option<Progress>,
    /// How fast its messages may go.
    pacing: Pacing,
    /// Messages in flight or lately finished, by number.
    messages: BTreeMap<u64, Option<Vec<MemberOutcome>>>,
    waiting: Vec<StableWait>,
}

enum Item {
    /// Length of the message that follows.
    Announced(u64),
    Data(Bytes),
    End {
        request: u64,
    },
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

impl Sending {
    pub(crate) fn open(
        &mut self,
        connections: &mut Connections,
        connection: ConnectionId,
        group: GroupId,
        progress_ms: u32,
        rate_bits: Option<u64>,
        now: Instant,
    ) -> Result<u32, ApiError> {
        let Some(owner) = connections.open.get_mut(&connection) else {
            return Err(gone());
        };
        let number = owner.open_handle()?;
        let interval_us = u64::from(progress_ms) * 1000;
        let progress = (interval_us > 0).then(|| Progress {
            interval_us,
            due: now.plus_us(interval_us),
        });
        let mut pacing = Pacing::default();
        pacing.set_rate(rate_bits.map(|bits| bits / 8));
        let sender = Sender {
            group,
            pending: VecDeque::new(),
            pending_bytes: 0,
            ungranted_bytes: 0,
            progress,
            pacing,
            messages: BTreeMap::new(),
            waiting: Vec::new(),
        };
        self.senders.insert(Key { connection, number }, sender);
        Ok(number)
    }

    pub(crate) fn contains(&self, key: Key) -> bool {
        self.senders.contains_key(&key)
    }

    pub(crate) fn counts(&self) -> BTreeMap<GroupId, usize> {
        let mut counts = BTreeMap::new();
        for sender in self.senders.values() {
            *counts.entry(sender.group).or_default() += 1;
        }
        counts
    }

    /// Queues bytes of the current message.
    pub(crate) fn write(&mut self, key: Key, bytes: Bytes) -> Result<(), ApiError> {
        let sender = self
            .senders
            .get_mut(&key)
            .ok_or_else(|| unknown_handle(key))?;
        let length = bytes.len() as u32;
        let room = sender.room();
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

    /// What is left of the window.
    pub(crate) fn room(&self, key: Key) -> Result<u32, ApiError> {
        let sender = self.senders.get(&key).ok_or_else(|| unknown_handle(key))?;
        Ok(sender.room())
    }

    /// Notes how long the message will be that is written next. Said of one that is being written, or
    /// twice, the last word counts if it comes in time.
    pub(crate) fn announce(&mut self, key: Key, bytes: u64) -> Result<(), ApiError> {
        let sender = self
            .senders
            .get_mut(&key)
            .ok_or_else(|| unknown_handle(key))?;
        if let Some(Item::Announced(_)) = sender.pending.back() {
            sender.pending.pop_back();
        }
        sender.pending.push_back(Item::Announced(bytes));
        Ok(())
    }

    /// Queues the end of the current message; the answer comes when it is its turn.
    pub(crate) fn end_message(&mut self, key: Key, request: u64) -> Result<(), ApiError> {
        let sender = self
            .senders
            .get_mut(&key)
            .ok_or_else(|| unknown_handle(key))?;
        sender.pending.push_back(Item::End { request });
        self.take_place(key);
        Ok(())
    }

    fn take_place(&mut self, key: Key) {
        let Some(sender) = self.senders.get(&key) else {
            return;
        };
        let turn = self.turns.entry(sender.group).or_default();
        let active = turn.active.as_ref().is_some_and(|active| active.key == key);
        if !active && !turn.queue.contains(&key) {
            turn.queue.push_back(key);
        }
    }

    /// Gives up the message that the sender is writing, if any.
    pub(crate) fn cancel(
        &mut self,
        engine: &mut Engine,
        connections: &mut Connections,
        key: Key,
        now: Instant,
    ) -> Result<(), ApiError> {
        let sender = self
            .senders
            .get_mut(&key)
            .ok_or_else(|| unknown_handle(key))?;
        let mut freed = 0;
        // Complete messages that wait for their turn stay; the last, unfinished one goes.
        while let Some(item @ (Item::Data(_) | Item::Announced(_))) = sender.pending.back() {
            if let Item::Data(bytes) = item {
                freed += bytes.len() as u32;
            }
            sender.pending.pop_back();
        }
        sender.pending_bytes -= freed;
        let unfinished_in_engine = sender.pending.is_empty();
        let turn = self.turns.entry(sender.group).or_default();
        if let Some(active) = &turn.active
            && active.key == key
            && unfinished_in_engine
        {
            let group = sender.group;
            if let Some(message) = active.message {
                self.cancel_transfer(engine, group, message, "its program gave it up");
                engine.cancel(group, now).map_err(|error| refusal(&error))?;
            }
            if let Some(turn) = self.turns.get_mut(&group) {
                turn.active = None;
            }
        }
        if freed > 0 {
            grant(connections, key, freed);
        }
        Ok(())
    }
}

impl Sender {
    fn room(&self) -> u32 {
        SENDER_WINDOW_BYTES - self.pending_bytes - self.ungranted_bytes
    }

    /// Bytes that are waiting of the message at the front, if its end is among them.
    fn bytes_to_end(&self) -> Option<u64> {
        let mut bytes = 0;
        for item in &self.pending {
            match item {
                Item::Announced(_) => {}
                Item::Data(data) => bytes += data.len() as u64,
                Item::End { .. } => return Some(bytes),
            }
        }
        None
    }

    /// Whoever asks for one of these afterwards gets an error, and who waits for one has its answer.
    fn forget_old(&mut self) {
        while self.messages.len() > OUTCOMES_MAX {
            let oldest = self
                .messages
                .iter()
                .find(|(_, outcome)| outcome.is_some())
                .map(|(&number, _)| number);
            let Some(oldest) = oldest else { return };
            self.messages.remove(&oldest);
        }
    }
}
