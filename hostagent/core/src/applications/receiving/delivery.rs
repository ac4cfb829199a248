//! Moving bytes from the engine to receivers, and giving up what nobody takes.

use super::lag::Lag;
use super::ordered::TURN_LOOK_US;
use super::{Arriving, Receiving, Stream, StreamKey};
use crate::api::{Arrival, Notice};
use crate::clients::limits::{
    MESSAGE_WINDOW_BYTES, READ_BYTES_MAX, READ_INTERVAL_US, UNCLAIMED_FIRST_US,
    UNCLAIMED_INTERVAL_US,
};
use crate::clients::{Connection, Connections, GroupTable};
use crate::clients::{Key, Outbound};
use crate::transfers::file_start::Beginning;
use bytes::Bytes;
use wormcast_protocol::{Engine, Instant, Read};
use wormcast_wire::FailReason;

impl Receiving {
    /// Reads what is due from the engine and hands it on; where nobody receives, takes what comes in a
    /// group that is a sink, and gives up what comes in others. Returns when to call again.
    pub(crate) fn pump(
        &mut self,
        engine: &mut Engine,
        connections: &mut Connections,
        groups: Option<&GroupTable>,
        now: Instant,
    ) -> Option<Instant> {
        let mut next = self.pump_once(engine, connections, groups, now);
        // Each message that is read may have been what others wait for.
        while std::mem::take(&mut self.turn_moved) {
            next = self.pump_once(engine, connections, groups, now);
        }
        next
    }

    fn pump_once(
        &mut self,
        engine: &mut Engine,
        connections: &mut Connections,
        groups: Option<&GroupTable>,
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
            let due = self.pump_stream(engine, connections, groups, key, now);
            let look = self.judge_lag(engine, connections, key, now);
            next = next.into_iter().chain(due).chain(look).min();
        }
        next
    }

    fn pump_stream(
        &mut self,
        engine: &mut Engine,
        connections: &mut Connections,
        groups: Option<&GroupTable>,
        key: StreamKey,
        now: Instant,
    ) -> Option<Instant> {
        let (group, origin) = key;
        let stream = self.streams.get_mut(&key)?;
        if let Some(arriving) = &stream.message {
            let stalled = arriving.ended || arriving.window_bytes == 0;
            let deadline = arriving
                .progressed_at
                .plus_us(self.patience.receiver_stall_us);
            if stalled && deadline <= now {
                let message = arriving.key;
                self.stalled_messages += 1;
                let _ = engine.abort(group, origin, FailReason::Cancelled, now);
                self.lose(
                    connections,
                    message,
                    "the receiver took nothing for too long",
                );
                return Some(now);
            }
            if stalled {
                return Some(deadline);
            }
        }
        if !stream.readable {
            return None;
        }
        // Whoever waits for the end of a message gets it at once.
        if stream.read_at > now && !engine.has_end(group, origin) {
            return Some(stream.read_at);
        }
        if self.orders.contains_key(&group) && !self.may_read(engine, key, now) {
            let stream = self.streams.get(&key)?;
            return stream.readable.then(|| now.plus_us(TURN_LOOK_US));
        }
        let wait_us = self.receiver_wait_us(connections);
        let stream = self.streams.get_mut(&key)?;
        let receiver = self.receivers.iter().find(|(_, receiver)| {
            receiver.group == group && receiver.origin.is_none_or(|wanted| wanted == origin)
        });
        let arrives = |to| self.messages.keys().any(|other| other.connection == to);
        let receiver = receiver.map(|(&receiver, _)| receiver).filter(|key| {
            // One that has as many senders and receivers open as it may takes nothing, and no message of it will go.
            let owner = connections.open.get(&key.connection);
            owner.is_some_and(Connection::has_room) || arrives(key.connection)
        });
        let Some(receiver) = receiver else {
            let planned = groups.and_then(|groups| groups.get(&group));
            if planned.is_some_and(|planned| planned.sink) {
                return self.sink_stream(engine, key, now);
            }
            if !engine.has_message(group, origin) {
                // Nobody waits for what is not there, or not any more.
                let passed = |since: Instant| since.plus_us(wait_us) <= now;
                stream.unclaimed_since = stream.unclaimed_since.filter(|&since| passed(since));
                stream.unclaimed_due = None;
                stream.readable = false;
                return None;
            }
            let since = *stream.unclaimed_since.get_or_insert(now);
            let deadline = since.plus_us(wait_us);
            if deadline > now {
                let due = stream
                    .unclaimed_due
                    .get_or_insert(now.plus_us(UNCLAIMED_FIRST_US));
                if *due <= now {
                    *due = now.plus_us(UNCLAIMED_INTERVAL_US);
                    engine.report_unread(group, origin, false);
                }
                return Some(deadline.min(*due));
            }
            // Whoever lets one message pass lets the next ones pass at once, until a
            // receiver opens: the group has waited enough.
            self.discard_stream(engine, key, now);
            return None;
        };
        (stream.unclaimed_since, stream.unclaimed_due) = (None, None);
        self.read_stream(engine, connections, key, receiver, now)
    }

    /// How long a message waits for a receiver: longer where a client has yet to ask which groups there are now.
    fn receiver_wait_us(&self, connections: &Connections) -> u64 {
        let patience = &self.patience;
        if connections.any_told() {
            patience.receiver_stall_us.max(patience.receiver_wait_us)
        } else {
            patience.receiver_wait_us
        }
    }

    /// Takes what is there and drops it; confirms each message at its end. At the pace at which a receiver
    /// would get it, since this is how a fabric is measured.
    fn sink_stream(
        &mut self,
        engine: &mut Engine,
        key: StreamKey,
        now: Instant,
    ) -> Option<Instant> {
        let (group, origin) = key;
        let stream = self.streams.get_mut(&key)?;
        loop {
            let read = engine.read(group, origin, &mut self.scratch, now);
            let read = read.unwrap_or_default();
            if read.length == 0 && !read.end_of_message {
                stream.readable = false;
                return None;
            }
            stream.read_at = now.plus_us(READ_INTERVAL_US);
            if read.end_of_message {
                stream.read_at = now;
                self.sunk_messages += 1;
                // Refused only if the stream is gone.
                let _ = engine.confirm(group, origin, now);
            }
        }
    }

    /// Gives up every message that waits on a stream nobody reads.
    fn discard_stream(&mut self, engine: &mut Engine, key: StreamKey, now: Instant) {
        let (group, origin) = key;
        loop {
            if self.orders.contains_key(&group) && !self.may_read(engine, key, now) {
                return;
            }
            let ended = self.streams.get(&key).is_some_and(Stream::has_ended);
            if !ended {
                let read = engine
                    .read(group, origin, &mut self.scratch, now)
                    .unwrap_or_default();
                if read.length == 0 && !read.end_of_message {
                    break;
                }
            }
            self.note_read(key);
            self.unclaimed_messages += 1;
            if engine
                .abort(group, origin, FailReason::Cancelled, now)
                .is_err()
            {
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
        let to = receiver.connection;
        let Connections { open, outbound } = connections;
        let connection = open.get_mut(&to)?;
        loop {
            let window = stream
                .message
                .as_ref()
                .map_or(MESSAGE_WINDOW_BYTES, |at| at.window_bytes);
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
            // Refused only if the stream is gone.
            let read = if stream.has_ended() {
                Read {
                    length: 0,
                    end_of_message: true,
                }
            } else {
                engine
                    .read(group, origin, &mut self.scratch[..want], now)
                    .unwrap_or_default()
            };
            if read.length == 0 && !read.end_of_message {
                stream.readable = false;
                return None;
            }
            if stream.message.is_none() {
                // Its numbers are used up: the origin learns that this member does not take it.
                let Ok(number) = connection.open_handle() else {
                    stream.readable = false;
                    let _ = engine.abort(group, origin, FailReason::Cancelled, now);
                    return None;
                };
                let message = Key {
                    connection: receiver.connection,
                    number,
                };
                self.messages.insert(message, key);
                stream.message = Some(Arriving {
                    key: message,
                    receiver,
                    window_bytes: MESSAGE_WINDOW_BYTES,
                    length: 0,
                    ended: false,
                    answered: false,
                    progressed_at: now,
                    lag: Lag::default(),
                    beginning: Beginning::default(),
                });
                let notice = Notice::MessageBegin {
                    receiver: receiver.number,
                    handle: number,
                    origin: origin.0,
                    message: engine
                        .arrived_from(group, origin)
                        .map_or(0, |at| u64::from(at.stream) << 32 | u64::from(at.next.0)),
                    window_bytes: MESSAGE_WINDOW_BYTES,
                    age_us: engine
                        .message_arrival(group, origin)
                        .map_or(0, |came| now.since_us(came.first)),
                    header: None,
                    files: self.receivers.get(&receiver).is_some_and(|it| it.files),
                };
                outbound.push_back((to, Outbound::Notice(notice)));
            }
            let arriving = stream.message.as_mut()?;
            let handle = arriving.key.number;
            if read.length > 0 {
                let bytes = &self.scratch[..read.length];
                let header = arriving.beginning.feed(bytes);
                if let Some(most) = header.and_then(|header| header.lag_bytes) {
                    arriving.lag.bound(most);
                }
                let bytes = Bytes::copy_from_slice(bytes);
                outbound.push_back((to, Outbound::Data { handle, bytes }));
                arriving.window_bytes -= read.length as u32;
                arriving.length += read.length as u64;
                if arriving.window_bytes == 0 {
                    // From now on it is the application that is waited for.
                    arriving.progressed_at = now;
                }
            }
            if read.end_of_message {
                // What comes next is another message, and somebody may wait for it.
                stream.read_at = now;
                arriving.ended = true;
                arriving.progressed_at = now;
                let length = arriving.length;
                let arrival = engine.message_arrival(group, origin);
                let arrival = arrival.map(|came| Arrival {
                    us: came.last.since_us(came.first),
                    bytes: came.later_bytes,
                });
                let notice = Notice::MessageEnd {
                    handle,
                    length,
                    arrival,
                    file: None,
                };
                outbound.push_back((to, Outbound::Notice(notice)));
                return Some(now.plus_us(self.patience.receiver_stall_us));
            }
            stream.read_at = now.plus_us(READ_INTERVAL_US);
        }
    }
}
