//! Whose message a group's stream carries, and moving its bytes into the engine.

use super::{Item, Sending};
use crate::clients::Connections;
use crate::clients::limits::{GRANT_BYTES_MIN, SENDER_STALL_US};
use crate::clients::{Key, grant, refusal, reply};
use crate::plan::LeftOut;
use bytes::{Buf, Bytes};
use serde_json::json;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use wormcast_protocol::{Engine, Instant, UseError};
use wormcast_wire::GroupId;
use wormcast_wire::order::FOR_APPLICATIONS;

/// How long it counts that a member waits, µs; it says so again sooner.
const ASKED_US: u64 = 5_000_000;

/// Whose turn it is on a group's stream.
#[derive(Default)]
pub(super) struct Turn {
    pub(super) active: Option<Active>,
    pub(super) queue: VecDeque<Key>,
    /// The end of a message is noted but has no room in the window yet: messages ended
    /// before it.
    end_waits: Option<u64>,
    /// What the sequencer has to say next; of one that is begun, the rest.
    pub(super) order: Option<Bytes>,
    order_begun: bool,
    /// The number of the order message put last.
    order_number: u64,
    /// Order messages that are in the stream and that not all have read, as (number, message of the stream), ascending:
    /// no more than the window has packets.
    orders_open: VecDeque<(u64, u64)>,
    /// All have read those up to this number.
    orders_read: u64,
    /// When a member of an ordered group has last said that it waits for this stream.
    asked_at: Option<Instant>,
    /// Who is to be told when a message is stable; absent if its sender is gone.
    pub(super) owners: BTreeMap<u64, Key>,
    /// Of these messages, who took no part when they began.
    pub(super) began_without: BTreeMap<u64, Arc<[LeftOut]>>,
}

pub(super) struct Active {
    pub(super) key: Key,
    /// Number of the message, once bytes of it are in the engine.
    pub(super) message: Option<u64>,
    /// Who took no part when it began.
    pub(super) began_without: Option<Arc<[LeftOut]>>,
    /// When bytes of it were last taken.
    rested_since: Instant,
    /// Since when others wait for it.
    waited_since: Option<Instant>,
}

impl Active {
    /// When it is given up if others wait for it and nothing more of it comes.
    pub(super) fn stall_deadline(&self) -> Option<Instant> {
        let since = self.waited_since?.max(self.rested_since);
        Some(since.plus_us(SENDER_STALL_US))
    }
}

impl Turn {
    /// Whether others cannot go on before the message that is being written is: senders of this host, or in an ordered
    /// group all.
    fn is_waited_for(&self, now: Instant) -> bool {
        let asked = self.asked_at.is_some_and(|at| now.since_us(at) < ASKED_US);
        !self.queue.is_empty() || self.order.is_some() || asked
    }

    fn has_work(&self) -> bool {
        let waits = self.end_waits.is_some() || self.order.is_some();
        self.active.is_some() || !self.queue.is_empty() || waits
    }

    /// True while the end of the message before has no room yet.
    fn is_ending(&mut self, engine: &mut Engine, group: GroupId, now: Instant) -> bool {
        let Some(ended_before) = self.end_waits else {
            return false;
        };
        if engine.progress(group).unwrap_or_default().messages_ended == ended_before {
            // Asking in vain makes the engine tell when there is room.
            let _ = engine.write(group, &[], false, now);
            return true;
        }
        self.end_waits = None;
        false
    }

    /// An order message waits to be written.
    pub(super) fn put_order(&mut self, number: u64, bytes: Bytes) {
        (self.order, self.order_number) = (Some(bytes), number);
    }

    /// The number of the last order message that all members have read, where so many messages are stable.
    pub(super) fn orders_read(&mut self, messages_stable: u64) -> u64 {
        while let Some((number, _)) = self
            .orders_open
            .front()
            .filter(|(_, at)| *at < messages_stable)
        {
            self.orders_read = *number;
            self.orders_open.pop_front();
        }
        self.orders_read
    }

    /// Writes the order message that waits; true while it is not written whole.
    fn is_ordering(
        &mut self,
        engine: &mut Engine,
        group: GroupId,
        now: Instant,
    ) -> Result<bool, UseError> {
        let in_message = self
            .active
            .as_ref()
            .is_some_and(|active| active.message.is_some());
        let Some(order) = self.order.as_mut().filter(|_| !in_message) else {
            return Ok(false);
        };
        let ended_before = engine.progress(group).unwrap_or_default().messages_ended;
        if !self.order_begun {
            engine.announce(group, order.len() as u64, now)?;
        }
        let accepted = engine.write(group, order, true, now)?;
        self.order_begun |= accepted > 0;
        order.advance(accepted);
        if !order.is_empty() {
            return Ok(true);
        }
        self.order = None;
        self.order_begun = false;
        self.orders_open
            .push_back((self.order_number, ended_before));
        let progress = engine.progress(group).unwrap_or_default();
        self.orders_read(progress.messages_stable);
        let ended = progress.messages_ended;
        self.end_waits = (ended == ended_before).then_some(ended);
        Ok(self.end_waits.is_some())
    }

    /// Who has the turn, or takes it now.
    fn take_active(&mut self, now: Instant) -> Option<&mut Active> {
        if self.active.is_none() {
            let key = self.queue.pop_front()?;
            self.active = Some(Active {
                key,
                message: None,
                began_without: None,
                rested_since: now,
                waited_since: None,
            });
        }
        self.active.as_mut()
    }
}

/// What came of one step.
enum Step {
    /// There may be more to do.
    Again,
    /// Nothing more now.
    Done,
    /// The sender has to be closed.
    Close(Key, String),
}

impl Sending {
    /// A member of an ordered group waits for this host's stream.
    pub(crate) fn note_waited(&mut self, group: GroupId, now: Instant) {
        if let Some(turn) = self.turns.get_mut(&group) {
            turn.asked_at = Some(now);
        }
    }

    /// Moves pending bytes into the engine, turn by turn, as far as it takes them.
    pub(crate) fn pump(
        &mut self,
        engine: &mut Engine,
        connections: &mut Connections,
        now: Instant,
    ) {
        let groups: Vec<GroupId> = self
            .turns
            .iter()
            .filter(|(_, turn)| turn.has_work())
            .map(|(&group, _)| group)
            .collect();
        for group in groups {
            loop {
                match self.step(engine, connections, group, now) {
                    Step::Again => {}
                    Step::Done => break,
                    Step::Close(key, reason) => {
                        self.close(engine, connections, key, now, Some(reason));
                    }
                }
            }
        }
    }

    /// One item of one group.
    fn step(
        &mut self,
        engine: &mut Engine,
        connections: &mut Connections,
        group: GroupId,
        now: Instant,
    ) -> Step {
        let Some(turn) = self.turns.get_mut(&group) else {
            return Step::Done;
        };
        if turn.is_ending(engine, group, now) {
            return Step::Done;
        }
        // Refused only if the group is gone.
        if turn.is_ordering(engine, group, now).unwrap_or(true) {
            return Step::Done;
        }
        let is_waited_for = turn.is_waited_for(now);
        let Some(active) = turn.take_active(now) else {
            return Step::Done;
        };
        let key = active.key;
        let item = self
            .senders
            .get_mut(&key)
            .and_then(|sender| sender.pending.front_mut());
        let result = match item {
            None if active.message.is_none() => {
                turn.active = None;
                return Step::Again;
            }
            None => {
                active.waited_since = if is_waited_for {
                    active.waited_since.or(Some(now))
                } else {
                    None
                };
                if active.stall_deadline().is_none_or(|at| now < at) {
                    return Step::Done;
                }
                let reason = format!(
                    "its unfinished message rested for {} s while others of group {group} waited",
                    SENDER_STALL_US / 1_000_000
                );
                return Step::Close(key, reason);
            }
            Some(Item::Announced(bytes)) => {
                let begun = active.message.is_some();
                let result = if begun {
                    Ok(())
                } else {
                    engine.announce(group, *bytes, now)
                };
                if let Some(sender) = self.senders.get_mut(&key) {
                    sender.pending.pop_front();
                }
                result.map(|()| Step::Again)
            }
            Some(Item::Data(_)) => self.write_data(engine, connections, group, now),
            Some(Item::End { .. }) => self.write_end(engine, connections, group, now),
        };
        result.unwrap_or_else(|error| Step::Close(key, refusal(&error).message))
    }

    /// Writes the active sender's first run of bytes, as far as the engine takes it.
    fn write_data(
        &mut self,
        engine: &mut Engine,
        connections: &mut Connections,
        group: GroupId,
        now: Instant,
    ) -> Result<Step, UseError> {
        let turn = self.turns.get_mut(&group);
        let Some(active) = turn.and_then(|turn| turn.active.as_mut()) else {
            return Ok(Step::Done);
        };
        let key = active.key;
        let Some(sender) = self.senders.get_mut(&key) else {
            return Ok(Step::Done);
        };
        let whole_bytes = sender.bytes_to_end();
        let left_out = self.left_out.get(&group);
        let Some(Item::Data(bytes)) = sender.pending.front_mut() else {
            return Ok(Step::Done);
        };
        active.rested_since = now;
        if active.message.is_none()
            && let Some(whole) = whole_bytes
        {
            engine.announce(group, whole, now)?;
        }
        if active.message.is_none() && self.ordered.contains(&group) {
            if engine.write(group, &[FOR_APPLICATIONS], false, now)? == 0 {
                return Ok(Step::Done);
            }
            active.message = Some(engine.progress(group).unwrap_or_default().messages_ended);
            active.began_without = left_out.cloned();
        }
        let accepted = engine.write(group, bytes, false, now)?;
        if accepted == 0 {
            return Ok(Step::Done);
        }
        if active.message.is_none() {
            active.message = Some(engine.progress(group).unwrap_or_default().messages_ended);
            active.began_without = left_out.cloned();
        }
        let all = accepted >= bytes.len();
        bytes.advance(accepted);
        if all {
            sender.pending.pop_front();
        }
        sender.pending_bytes -= accepted as u32;
        sender.ungranted_bytes += accepted as u32;
        if sender.ungranted_bytes >= GRANT_BYTES_MIN || sender.pending_bytes == 0 {
            let bytes = std::mem::take(&mut sender.ungranted_bytes);
            grant(connections, key, bytes);
        }
        Ok(if all { Step::Again } else { Step::Done })
    }

    /// Ends the active sender's message; the turn goes on to the next.
    fn write_end(
        &mut self,
        engine: &mut Engine,
        connections: &mut Connections,
        group: GroupId,
        now: Instant,
    ) -> Result<Step, UseError> {
        let Some(turn) = self.turns.get_mut(&group) else {
            return Ok(Step::Done);
        };
        let ended_before = engine.progress(group).unwrap_or_default().messages_ended;
        let begun = turn
            .active
            .as_ref()
            .is_some_and(|active| active.message.is_some());
        let rest: &[u8] = if begun || !self.ordered.contains(&group) {
            &[]
        } else {
            &[FOR_APPLICATIONS]
        };
        match engine.write(group, rest, true, now) {
            // A cancelled message has no room for its end yet; this one comes after it.
            Err(UseError::EndWaits { .. }) => return Ok(Step::Done),
            Ok(accepted) if accepted < rest.len() => return Ok(Step::Done),
            result => result?,
        };
        let Some(active) = turn.active.take() else {
            return Ok(Step::Done);
        };
        let key = active.key;
        let Some(sender) = self.senders.get_mut(&key) else {
            return Ok(Step::Again);
        };
        let ended = engine.progress(group).unwrap_or_default().messages_ended;
        turn.end_waits = (ended == ended_before).then_some(ended);
        let (message, left_out) = match active.message {
            Some(message) => (message, active.began_without),
            None => (ended_before, self.left_out.get(&group).cloned()),
        };
        turn.owners.insert(message, key);
        turn.began_without
            .extend(left_out.map(|hosts| (message, hosts)));
        if let Some(Item::End { request }) = sender.pending.pop_front() {
            let answer = Ok(json!({ "message": message }));
            reply(connections, key, request, answer);
        }
        sender.messages.insert(message, None);
        sender.forget_old();
        if !sender.pending.is_empty() {
            turn.queue.push_back(key);
        }
        Ok(Step::Again)
    }
}
