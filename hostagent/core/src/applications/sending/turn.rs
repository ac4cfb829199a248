//! Whose turn it is on a group's stream.

use crate::clients::Key;
use crate::clients::limits::SENDER_STALL_US;
use crate::plan::LeftOut;
use crate::transfers::file_start::Beginning;
use bytes::{Buf, Bytes};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use wormcast_protocol::{Engine, Instant, UseError};
use wormcast_wire::GroupId;

/// How long it counts that a member waits, µs; it says so again sooner.
const ASKED_US: u64 = 5_000_000;

/// Whose turn it is on a group's stream.
#[derive(Default)]
pub(super) struct Turn {
    pub(super) active: Option<Active>,
    pub(super) queue: VecDeque<Key>,
    /// The end of a message is noted but has no room in the window yet: messages ended
    /// before it.
    pub(super) end_waits: Option<u64>,
    /// What the sequencer has to say next; of one that is begun, the rest.
    pub(super) order: Option<Bytes>,
    order_begun: bool,
    /// The number of the order message put last.
    order_number: u64,
    /// Order messages that are in the stream and that not all have read, as (number, message of the stream), ascending:
    /// no more than the window has packets.
    orders_open: VecDeque<(u64, u64)>,
    /// All have read those up to this number.
    pub(super) orders_read: u64,
    /// When a member of an ordered group has last said that it waits for this stream.
    pub(super) asked_at: Option<Instant>,
    /// Who is to be notified when a message is stable; absent if its sender is gone.
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
    /// What its first bytes say.
    pub(super) beginning: Beginning,
    /// When bytes of it were last taken.
    pub(super) rested_since: Instant,
    /// Since when others wait for it.
    pub(super) waited_since: Option<Instant>,
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
    pub(super) fn is_waited_for(&self, now: Instant) -> bool {
        let asked = self.asked_at.is_some_and(|at| now.since_us(at) < ASKED_US);
        !self.queue.is_empty() || self.order.is_some() || asked
    }

    pub(super) fn has_work(&self) -> bool {
        let waits = self.end_waits.is_some() || self.order.is_some();
        self.active.is_some() || !self.queue.is_empty() || waits
    }

    /// True while the end of the message before has no room yet.
    pub(super) fn is_ending(&mut self, engine: &mut Engine, group: GroupId, now: Instant) -> bool {
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
    pub(super) fn is_ordering(
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

    pub(super) fn take_active(&mut self, now: Instant) -> Option<&mut Active> {
        if self.active.is_none() {
            let key = self.queue.pop_front()?;
            self.active = Some(Active {
                key,
                message: None,
                began_without: None,
                beginning: Beginning::default(),
                rested_since: now,
                waited_since: None,
            });
        }
        self.active.as_mut()
    }
}
