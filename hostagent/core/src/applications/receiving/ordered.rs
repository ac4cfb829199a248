//! Ordered groups: what the sequencer says is taken here, and messages of applications are held back
//! until it is their turn.

use super::{Opened, Receiving, Stream, StreamKey};
use crate::applications::sending::Sending;
use crate::order::{
    ASK_FIRST_US, ASK_INTERVAL_US, MessageId, ORDER_BYTES_MAX, Order, StreamState, Streams, Turn,
};
use crate::plan::PlannedGroup;
use wormcast_protocol::{Arrived, Engine, Instant};
use wormcast_wire::order::{FOR_APPLICATIONS, ORDER};
use wormcast_wire::{FailReason, GroupId, HostId, Seq};

/// Time after which the turn is looked at anew where no event said that it came, µs.
pub(super) const TURN_LOOK_US: u64 = 50_000;

/// Questions of members that are answered in one turn. More: they ask again.
const WANTED_MAX: usize = 256;

impl Stream {
    /// Nothing is left to read of the message at the front.
    pub(super) fn has_ended(&self) -> bool {
        let ended = |opened: &Opened| opened.ended && opened.kind == FOR_APPLICATIONS;
        self.message.as_ref().is_none_or(|arriving| !arriving.ended)
            && self.opened.as_ref().is_some_and(ended)
    }
}

/// What the engine has of a group.
struct OfEngine<'e> {
    engine: &'e mut Engine,
    group: GroupId,
}

impl Streams for OfEngine<'_> {
    fn state(&self, origin: HostId) -> Option<StreamState> {
        self.engine.arrived_from(self.group, origin).map(state)
    }

    fn origins(&self) -> Vec<HostId> {
        let arrived = self.engine.arrived(self.group);
        arrived.map(|arrived| arrived.origin).collect()
    }

    fn starts(&mut self, origin: HostId, from: Seq, most: usize) -> Vec<Seq> {
        self.engine.message_starts(self.group, origin, from, most)
    }
}

fn state(arrived: Arrived) -> StreamState {
    StreamState {
        stream: arrived.stream,
        next: arrived.next,
        stable: arrived.stable,
        unbroken: arrived.unbroken,
    }
}

/// Whether it is time to ask, for the first time or again.
fn is_due(at: &mut Option<Instant>, now: Instant) -> bool {
    let is_due = *at.get_or_insert(now.plus_us(ASK_FIRST_US)) <= now;
    if is_due {
        *at = Some(now.plus_us(ASK_INTERVAL_US));
    }
    is_due
}

impl Receiving {
    /// A group as the plan in force has it.
    pub(crate) fn plan_order(&mut self, host: HostId, group: &PlannedGroup) {
        let Some(sequencer) = group.sequencer else {
            self.orders.remove(&group.id);
            return;
        };
        match self.orders.get_mut(&group.id) {
            Some(order) => order.plan(&group.members, sequencer),
            None => {
                let order = Order::new(host, &group.members, sequencer);
                self.orders.insert(group.id, order);
            }
        }
        self.turn_moved = true;
    }

    /// Members ask for the places of these messages.
    fn want_order(&mut self, engine: &mut Engine, sending: &mut Sending, now: Instant) {
        for (group, member, message) in std::mem::take(&mut self.wanted) {
            if let Some(order) = self.orders.get_mut(&group)
                && let Some(announced_by) = order.want(message, &OfEngine { engine, group }, now)
                && sending.is_order_read(engine, group, announced_by)
            {
                engine.notify_next(group, member, message.named());
            }
        }
    }

    /// A member does not know the place of a message.
    pub(crate) fn note_wanted(&mut self, group: GroupId, member: HostId, message: MessageId) {
        if self.wanted.len() < WANTED_MAX {
            self.wanted.push((group, member, message));
        }
    }

    pub(crate) fn note_next(&mut self, group: GroupId, from: HostId, message: MessageId) {
        if let Some(order) = self.orders.get_mut(&group) {
            self.turn_moved |= order.note_next(from, message);
        }
    }

    /// Order messages that were refused, in all groups.
    pub(crate) fn orders_refused(&self) -> u64 {
        self.orders.values().map(|order| order.refused).sum()
    }

    /// Where this host is the sequencer: takes into the order what has begun to arrive, and puts what there is to say into
    /// its own stream. Where another is: asks it if something is missing. Gives when to call again.
    pub(crate) fn sequence(
        &mut self,
        engine: &mut Engine,
        sending: &mut Sending,
        now: Instant,
    ) -> Option<Instant> {
        self.want_order(engine, sending, now);
        let mut next: Option<Instant> = None;
        for (&group, order) in &mut self.orders {
            let mut streams = OfEngine {
                engine: &mut *engine,
                group,
            };
            if !order.leads() {
                if let Some(message) = order.poll_question(&streams, now) {
                    engine.ask_for_order(group, message.origin, message.named());
                }
                next = [next, order.question_timeout()].into_iter().flatten().min();
                continue;
            }
            order.gather(&mut streams);
            if !sending.takes_order(group) {
                continue;
            }
            if let Some(message) = order.poll(now) {
                order.note_announced(sending.put_order(group, message));
            }
            next = [next, order.poll_timeout()].into_iter().flatten().min();
        }
        next
    }

    /// The message at the front of a stream is read, or will not be.
    pub(super) fn note_read(&mut self, key: StreamKey) {
        let Some(order) = self.orders.get_mut(&key.0) else {
            return;
        };
        if let Some(opened) = self
            .streams
            .get_mut(&key)
            .and_then(|stream| stream.opened.take())
        {
            order.note_read(opened.id);
            self.turn_moved = true;
        }
    }

    /// Whether the message at the front of a stream may be read by applications now. Takes what the
    /// sequencer says.
    pub(super) fn may_read(&mut self, engine: &mut Engine, key: StreamKey, now: Instant) -> bool {
        if self
            .streams
            .get(&key)
            .is_some_and(|stream| stream.message.is_some())
        {
            return true;
        }
        loop {
            if !self.open_front(engine, key, now) {
                return false;
            }
            let (group, origin) = key;
            let others_read = self
                .streams
                .range((group, HostId(0))..=(group, HostId(u16::MAX)));
            let others_read = others_read.filter(|(other, _)| **other != key);
            let reading: Vec<MessageId> = others_read
                .filter(|(_, stream)| stream.message.is_some())
                .filter_map(|(_, stream)| stream.opened.as_ref().map(|opened| opened.id))
                .collect();
            let (Some(order), Some(stream)) =
                (self.orders.get_mut(&group), self.streams.get_mut(&key))
            else {
                return true;
            };
            let Some(opened) = &mut stream.opened else {
                return true;
            };
            if opened.kind != ORDER {
                let streams = OfEngine {
                    engine: &mut *engine,
                    group,
                };
                let turn = order.turn(opened.id, &streams);
                if turn == Turn::Never {
                    order.note_read(opened.id);
                    stream.opened = None;
                    self.turn_moved = true;
                    let _ = engine.abort(group, origin, FailReason::Cancelled, now);
                    continue;
                }
                let waited_for = order.waited_for(&streams);
                if turn == Turn::Now {
                    (stream.ask_at, stream.remind_at) = (None, None);
                }
                // What comes first nobody may send any more: the sequencer's word of that may stand behind
                // what waits here, but the origin knows too. And it learns that others wait.
                if turn != Turn::Now
                    && is_due(&mut stream.remind_at, now)
                    && let Some(first) = waited_for
                {
                    engine.ask_for_order(group, first.origin, first.named());
                }
                // What is read here takes as long as it takes.
                if !reading.is_empty() && order.follows_any() {
                    stream.ask_at = None;
                } else if turn != Turn::Now && is_due(&mut stream.ask_at, now) {
                    engine.ask_for_order(group, order.sequencer(), opened.id.named());
                }
                // What is being read by an order that counts no more goes on beside.
                return turn == Turn::Now;
            }
            while !opened.ended {
                let read = engine.read(group, origin, &mut self.scratch, now);
                let read = read.unwrap_or_default();
                if read.length == 0 && !read.end_of_message {
                    stream.readable = false;
                    return false;
                }
                opened.ended = read.end_of_message;
                if opened.bytes.len() + read.length <= ORDER_BYTES_MAX {
                    opened.bytes.extend(&self.scratch[..read.length]);
                }
            }
            if let Some(opened) = stream.opened.take() {
                let streams = OfEngine {
                    engine: &mut *engine,
                    group,
                };
                order.take(origin, &opened.bytes, &reading, &streams);
                self.turn_moved = true;
            }
            // Refused only if the stream is gone.
            let _ = engine.confirm(group, origin, now);
        }
    }

    /// Reads the first byte of the message at the front; false if there is none.
    fn open_front(&mut self, engine: &mut Engine, key: StreamKey, now: Instant) -> bool {
        let (group, origin) = key;
        let Some(stream) = self.streams.get_mut(&key) else {
            return false;
        };
        loop {
            let Some(arrived) = engine.arrived_from(group, origin) else {
                stream.readable = false;
                return false;
            };
            let id = MessageId {
                origin,
                stream: arrived.stream,
                start: arrived.next,
            };
            if stream.opened.as_ref().is_some_and(|opened| opened.id == id) {
                return true;
            }
            stream.opened = None;
            let mut kind = [0];
            let read = engine
                .read(group, origin, &mut kind, now)
                .unwrap_or_default();
            match (read.length, read.end_of_message) {
                (0, false) => {
                    stream.readable = false;
                    return false;
                }
                (0, true) => {
                    // Not even a first byte: nobody sends such a message in an ordered group.
                    let _ = engine.abort(group, origin, FailReason::Cancelled, now);
                    continue;
                }
                _ => {}
            }
            // What was thrown away before it did not count, so it may begin later than it seemed.
            let start = engine
                .arrived_from(group, origin)
                .map_or(id.start, |arrived| arrived.next);
            stream.opened = Some(Opened {
                id: MessageId { start, ..id },
                kind: kind[0],
                ended: read.end_of_message,
                bytes: kind.to_vec(),
            });
            return true;
        }
    }
}
