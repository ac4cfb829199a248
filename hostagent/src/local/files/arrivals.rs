//! Files between the data plane and a client: which bytes go to the client, and which into files.

use super::order::{Going, Order, Reading, Writing};
use super::source;
use super::target::{Piece, Target};
use super::window::Window;
use crate::dataplane::DataPlaneHandle;
use bytes::{Bytes, BytesMut};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::mpsc;
use wormcast_agent_core::api::{ApiError, ErrorCode, Notice};
use wormcast_agent_core::clients::{ConnectionId, Outbound};
use wormcast_agent_core::transfers::file_start::{Start, look};

/// Messages of a connection that may be files and are not whole, or have failed. Nobody has them.
#[derive(Clone, Debug, Default)]
pub(in crate::local) struct Unchecked(Arc<Mutex<BTreeSet<u32>>>);

impl Unchecked {
    pub(in crate::local) fn contains(&self, message: u32) -> bool {
        let messages = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        messages.contains(&message)
    }

    fn set(&self, message: u32, unchecked: bool) {
        let mut messages = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if unchecked {
            messages.insert(message);
        } else {
            messages.remove(&message);
        }
    }
}

/// What stands between the data plane and the writer of a connection.
pub(in crate::local) struct Arrivals {
    connection: ConnectionId,
    dataplane: DataPlaneHandle,
    orders: mpsc::UnboundedSender<Order>,
    unchecked: Unchecked,
    /// Files to be read, by the request that asks the data plane for its window.
    asked: BTreeMap<u64, Reading>,
    /// Senders of which a file is read.
    read: BTreeMap<u32, Arc<Window>>,
    /// Messages for receivers that take files, from their first byte until they are whole or given up.
    arriving: BTreeMap<u32, Arriving>,
    /// Of these, those that go, by the request that awaits its answer.
    going: BTreeMap<u64, Going>,
    /// What goes to the client next.
    out: VecDeque<Outbound>,
}

struct Arriving {
    receiver: u32,
    state: State,
}

enum State {
    /// It is not known yet what it is: its beginning is held back.
    Begun {
        begin: Notice,
        start: BytesMut,
    },
    /// A file; its content waits for a place to go.
    Waiting {
        pieces: Vec<Piece>,
    },
    Written(Target),
    /// It goes nowhere; the client is to give it up.
    Failed,
}

impl Arrivals {
    pub(in crate::local) fn new(
        connection: ConnectionId,
        dataplane: DataPlaneHandle,
        orders: mpsc::UnboundedSender<Order>,
        unchecked: Unchecked,
    ) -> Self {
        Self {
            connection,
            dataplane,
            orders,
            unchecked,
            asked: BTreeMap::new(),
            read: BTreeMap::new(),
            arriving: BTreeMap::new(),
            going: BTreeMap::new(),
            out: VecDeque::new(),
        }
    }

    /// What goes to the client next.
    pub(in crate::local) fn poll(&mut self) -> Option<Outbound> {
        self.out.pop_front()
    }

    /// Takes what the data plane has for the client.
    pub(in crate::local) fn pass(&mut self, outbound: Outbound) {
        match outbound {
            Outbound::Window { handle, bytes } => match self.read.get(&handle) {
                Some(window) => window.open(bytes),
                None => self.out.push_back(Outbound::Window { handle, bytes }),
            },
            Outbound::Data { handle, bytes } => self.pass_data(handle, bytes),
            Outbound::Notice(notice) => self.pass_notice(notice),
            Outbound::Reply { id, result } => self.pass_reply(id, result),
            Outbound::Close { .. } => self.out.push_back(outbound),
        }
    }

    fn pass_reply(&mut self, id: u64, result: Result<Value, ApiError>) {
        if let Some(going) = self.going.remove(&id) {
            // Nothing comes of these messages behind it.
            self.forget(going);
        }
        match (self.asked.remove(&id), result) {
            (Some(reading), Ok(answer)) => {
                let room = answer["window"].as_u64().unwrap_or_default();
                reading.window.open(u32::try_from(room).unwrap_or(u32::MAX));
                self.read
                    .insert(reading.handle, Arc::clone(&reading.window));
                let (dataplane, orders) = (self.dataplane.clone(), self.orders.clone());
                source::start(id, reading, self.connection, dataplane, orders);
            }
            (Some(reading), Err(error)) => {
                reading.window.answer();
                self.reply(id, Err(error));
            }
            (None, result) => self.reply(id, result),
        }
    }

    fn pass_data(&mut self, handle: u32, bytes: Bytes) {
        match self.arriving.get_mut(&handle).map(|it| &mut it.state) {
            None => self.out.push_back(Outbound::Data { handle, bytes }),
            Some(State::Waiting { pieces }) => pieces.push(Piece::Bytes(bytes)),
            Some(State::Written(target)) => target.take(Piece::Bytes(bytes)),
            Some(State::Failed) => {}
            Some(State::Begun { start, .. }) => {
                start.extend_from_slice(&bytes);
                match look(start) {
                    Start::Open => {}
                    Start::Other => self.give_as_it_is(handle),
                    Start::File { header, rest } => {
                        let (header, rest) = (header.to_owned(), Bytes::copy_from_slice(rest));
                        self.announce(handle, header, rest);
                    }
                }
            }
        }
    }

    fn pass_notice(&mut self, notice: Notice) {
        match &notice {
            Notice::MessageBegin {
                receiver,
                handle,
                files: true,
                ..
            } => {
                let (receiver, handle) = (*receiver, *handle);
                let start = BytesMut::new();
                let state = State::Begun {
                    begin: notice,
                    start,
                };
                self.arriving.insert(handle, Arriving { receiver, state });
                self.unchecked.set(handle, true);
                return;
            }
            Notice::MessageEnd {
                handle,
                length,
                arrival,
                ..
            } => {
                let (length, arrival) = (*length, *arrival);
                let end = Piece::End { length, arrival };
                match self.arriving.get_mut(handle).map(|it| &mut it.state) {
                    Some(State::Waiting { pieces }) => return pieces.push(end),
                    Some(State::Written(target)) => return target.take(end),
                    Some(State::Failed) => return,
                    // Too short for a file.
                    Some(State::Begun { .. }) => self.give_as_it_is(*handle),
                    None => {}
                }
            }
            Notice::MessageLost { handle, .. } => {
                let state = self.arriving.get(handle).map(|it| &it.state);
                if let Some(State::Begun { .. }) = state {
                    self.give_as_it_is(*handle);
                }
                self.forget(Going::Message(*handle));
            }
            Notice::HandleClosed { handle, reason } => {
                if let Some(window) = self.read.get(handle) {
                    window.end(reason);
                }
            }
            _ => {}
        }
        self.out.push_back(Outbound::Notice(notice));
    }

    /// It is no file: the client gets it as any message.
    fn give_as_it_is(&mut self, handle: u32) {
        let was = self.arriving.remove(&handle).map(|it| it.state);
        self.unchecked.set(handle, false);
        if let Some(State::Begun { begin, start }) = was {
            self.out.push_back(Outbound::Notice(begin));
            if !start.is_empty() {
                let bytes = start.freeze();
                self.out.push_back(Outbound::Data { handle, bytes });
            }
        }
    }

    /// It is a file: the client is to say where its content goes.
    fn announce(&mut self, handle: u32, header: String, rest: Bytes) {
        let Some(arriving) = self.arriving.get_mut(&handle) else {
            return;
        };
        let pieces = vec![Piece::Bytes(rest)];
        let was = std::mem::replace(&mut arriving.state, State::Waiting { pieces });
        if let State::Begun { mut begin, .. } = was {
            if let Notice::MessageBegin { header: to, .. } = &mut begin {
                *to = Some(header);
            }
            self.out.push_back(Outbound::Notice(begin));
        }
    }

    /// Takes what the reader, or a thread with a file, has to say.
    pub(in crate::local) fn take(&mut self, order: Order) {
        match order {
            Order::Read { id, reading } => drop(self.asked.insert(id, reading)),
            Order::Sent {
                id,
                handle,
                window,
                result,
            } => {
                self.read.remove(&handle);
                let (result, left) = (
                    result.map(|(bytes, sha256)| json!({ "bytes": bytes, "sha256": sha256 })),
                    window.answer(),
                );
                self.reply(id, result);
                if left > 0 {
                    let bytes = left;
                    self.out.push_back(Outbound::Window { handle, bytes });
                }
            }
            Order::Write {
                id,
                handle,
                writing,
            } => self.write(id, handle, writing),
            Order::Placed { id, handle, result } => {
                if result.is_err() {
                    self.fail(handle);
                }
                self.reply(id, result.map(|()| json!({})));
            }
            Order::Written(progress) => {
                progress.waits.store(false, Ordering::Relaxed);
                let (handle, bytes) = (progress.handle, progress.bytes);
                if self.is_written(handle) {
                    let notice = Notice::FileProgress { handle, bytes };
                    self.out.push_back(Outbound::Notice(notice));
                }
            }
            Order::Tell { handle, notice } => {
                // What was lost or given up meanwhile needs no word.
                if !self.is_written(handle) {
                    return;
                }
                if matches!(notice, Notice::FileFailed { .. }) {
                    self.fail(handle);
                } else {
                    self.forget(Going::Message(handle));
                }
                self.out.push_back(Outbound::Notice(notice));
            }
            Order::GivenUp { id, going } => {
                for (handle, arriving) in &mut self.arriving {
                    if going.takes(*handle, arriving.receiver) {
                        arriving.state = State::Failed;
                    }
                }
                self.going.insert(id, going);
            }
        }
    }

    fn reply(&mut self, id: u64, result: Result<Value, ApiError>) {
        self.out.push_back(Outbound::Reply { id, result });
    }

    fn is_written(&self, handle: u32) -> bool {
        let state = self.arriving.get(&handle).map(|it| &it.state);
        matches!(state, Some(State::Written(_)))
    }

    fn fail(&mut self, handle: u32) {
        if let Some(arriving) = self.arriving.get_mut(&handle) {
            arriving.state = State::Failed;
        }
    }

    fn forget(&mut self, going: Going) {
        self.arriving.retain(|handle, arriving| {
            let goes = going.takes(*handle, arriving.receiver);
            if goes {
                self.unchecked.set(*handle, false);
            }
            !goes
        });
    }

    fn write(&mut self, id: u64, handle: u32, writing: Writing) {
        let state = self.arriving.get_mut(&handle).map(|it| &mut it.state);
        let Some(state @ State::Waiting { .. }) = state else {
            let text = format!("handle {handle} is no file that waits for a place to go");
            return self.reply(id, Err(ApiError::new(ErrorCode::WrongState, text)));
        };
        let (dataplane, orders) = (self.dataplane.clone(), self.orders.clone());
        let started = Target::start(id, writing, self.connection, handle, dataplane, orders);
        let target = match started {
            Ok(target) => target,
            Err(error) => {
                *state = State::Failed;
                return self.reply(id, Err(error));
            }
        };
        if let State::Waiting { pieces } = state {
            for piece in pieces.drain(..) {
                target.take(piece);
            }
        }
        *state = State::Written(target);
    }
}

impl Going {
    fn takes(self, message: u32, receiver: u32) -> bool {
        match self {
            Self::Message(of) => of == message,
            Self::Receiver(of) => of == receiver,
        }
    }
}
