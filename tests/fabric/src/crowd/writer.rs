//! A program that sends: it writes its messages one after another and waits for what becomes of them.

use super::content::{Content, Hash, Ident};
use super::record::{Outcome, Sent};
use super::{Desk, Who};
use bytes::Bytes;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use wormcast_agent_core::api::{ApiError, ErrorCode, GroupSelector, Notice, Request};
use wormcast_agent_core::clients::{ConnectionId, Outbound};

const WRITE_BYTES: u64 = 64 << 10;
/// Time until it tries again to open a sender, µs.
const AGAIN_US: u64 = 200_000;
/// Least time between two questions of how a message stands, µs.
const STATE_US: u64 = 40_000;
/// Questions that one program asks at most.
const STATES_MAX: u32 = 12;

/// How the writing of a message ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// It is ended.
    Whole,
    /// It is cancelled half-way.
    Cancelled,
    /// The program is killed half-way; another goes on with the next message.
    Killed,
}

/// A message to be written.
#[derive(Clone, Copy, Debug)]
pub struct Draft {
    /// Bytes: none, or at least those that say which it is.
    pub size: u64,
    /// The program says so before.
    pub is_announced: bool,
    pub ending: Ending,
}

#[derive(Debug)]
enum Asked {
    Open,
    End(usize),
    Stable(usize),
    State(usize),
    /// What it asked about may be gone meanwhile.
    Other,
}

#[derive(Debug)]
struct Current {
    index: usize,
    content: Content,
    left: u64,
    ending: Ending,
}

/// A program that sends.
#[derive(Debug)]
pub struct Writer {
    number: usize,
    group: u16,
    drafts: VecDeque<Draft>,
    /// It writes the next message before it knows what became of the one before.
    in_a_row: bool,
    not_before_us: u64,
    counter: u32,
    connection: Option<ConnectionId>,
    handle: Option<u32>,
    window: u64,
    current: Option<Current>,
    asked: BTreeMap<u64, Asked>,
    /// Ended, and the agent has not said that it has all.
    ending: BTreeSet<usize>,
    /// Ended, without an outcome.
    awaited: BTreeSet<usize>,
    states_asked: u32,
    state_due_us: u64,
}

impl Writer {
    pub(super) fn new(
        (number, group): (usize, u16),
        drafts: Vec<Draft>,
        in_a_row: bool,
        starts_us: u64,
    ) -> Writer {
        Writer {
            number,
            group,
            drafts: drafts.into(),
            in_a_row,
            not_before_us: starts_us,
            counter: 0,
            connection: None,
            handle: None,
            window: 0,
            current: None,
            asked: BTreeMap::new(),
            ending: BTreeSet::new(),
            awaited: BTreeSet::new(),
            states_asked: 0,
            state_due_us: 0,
        }
    }

    /// It has nothing more to write or to wait for.
    pub(super) fn is_done(&self) -> bool {
        self.drafts.is_empty() && self.connection.is_none()
    }

    /// Connections have broken.
    pub(super) fn restart(&mut self, record: &mut super::Record, now_us: u64) {
        for index in std::mem::take(&mut self.ending) {
            let reason = "the agent is gone".to_owned();
            record.settle(index, Outcome::Closed(reason), now_us);
        }
        for index in std::mem::take(&mut self.awaited) {
            let reason = "the agent is gone".to_owned();
            record.settle(index, Outcome::Closed(reason), now_us);
        }
        self.asked.clear();
        self.current = None;
        self.connection = None;
        self.handle = None;
    }

    /// Ends its process. What the agent has not taken to its end is void.
    fn exit(&mut self, desk: &mut Desk<'_>) {
        let Some(connection) = self.connection.take() else {
            return;
        };
        desk.disconnect(connection);
        for index in std::mem::take(&mut self.ending) {
            desk.record.settle(index, Outcome::Void, desk.now_us);
        }
        for index in std::mem::take(&mut self.awaited) {
            let reason = "its program is gone".to_owned();
            let outcome = Outcome::Closed(reason);
            desk.record.settle(index, outcome, desk.now_us);
        }
        self.asked.clear();
        self.current = None;
        self.handle = None;
    }

    fn ask(&mut self, desk: &mut Desk<'_>, request: Request, asked: Asked) {
        if let Some(connection) = self.connection {
            let id = desk.ask(connection, request);
            self.asked.insert(id, asked);
        }
    }

    pub(super) fn act(&mut self, desk: &mut Desk<'_>) -> Option<u64> {
        loop {
            let rests = self.ending.is_empty() && self.awaited.is_empty();
            if self.drafts.is_empty() && self.current.is_none() && rests {
                self.exit(desk);
                return None;
            }
            if desk.now_us < self.not_before_us {
                return Some(self.not_before_us);
            }
            if self.connection.is_none() {
                self.connection = Some(desk.connect(Who::Writer(self.number)));
                let request = Request::OpenSender {
                    group: GroupSelector::from(self.group),
                    rate_bits: None,
                    progress_ms: 0,
                };
                self.ask(desk, request, Asked::Open);
            }
            let handle = self.handle?;
            let wake = self.ask_states(handle, desk);
            if self.current.is_none() {
                if !self.in_a_row && !rests || self.drafts.is_empty() {
                    return wake;
                }
                self.begin(handle, desk);
            }
            if !self.write(handle, desk) {
                return wake;
            }
        }
    }

    /// Now and then it asks how a message stands.
    fn ask_states(&mut self, handle: u32, desk: &mut Desk<'_>) -> Option<u64> {
        let first = *self.awaited.first()?;
        if self.states_asked >= STATES_MAX {
            return None;
        }
        if self.state_due_us <= desk.now_us {
            self.states_asked += 1;
            self.state_due_us =
                desk.now_us + (STATE_US << self.states_asked) + desk.random.below(STATE_US);
            let message = desk.record.sent[first].number;
            let request = Request::MessageState { handle, message };
            self.ask(desk, request, Asked::State(first));
        }
        Some(self.state_due_us)
    }

    fn begin(&mut self, handle: u32, desk: &mut Desk<'_>) {
        let Some(draft) = self.drafts.pop_front() else {
            return;
        };
        let ident = Ident {
            group: self.group,
            origin: desk.host,
            life: desk.life_in(self.group),
            writer: self.number as u32,
            counter: self.counter,
            size: draft.size,
        };
        self.counter += 1;
        desk.record.sent.push(Sent {
            ident,
            hash: Hash::default(),
            number: None,
            times_us: [desk.now_us, 0, 0],
            outcome: Outcome::Void,
            states: Vec::new(),
        });
        if draft.is_announced {
            let bytes = draft.size;
            let request = Request::AnnounceMessage { handle, bytes };
            self.ask(desk, request, Asked::Other);
        }
        let left = match draft.ending {
            Ending::Whole => draft.size,
            Ending::Cancelled | Ending::Killed => draft.size / 2,
        };
        self.current = Some(Current {
            index: desk.record.sent.len() - 1,
            content: Content::new(&ident),
            left,
            ending: draft.ending,
        });
    }

    /// Writes what the window lets; true if it came to the end of the message.
    fn write(&mut self, handle: u32, desk: &mut Desk<'_>) -> bool {
        let (Some(connection), Some(current)) = (self.connection, &mut self.current) else {
            return false;
        };
        while current.left > 0 {
            let take = current.left.min(self.window).min(WRITE_BYTES);
            if take == 0 {
                return false;
            }
            let bytes = current.content.take(take as usize);
            desk.record.sent[current.index].hash.add(&bytes);
            current.left -= take;
            self.window -= take;
            let bytes = Bytes::from(bytes);
            desk.agent.data(connection, handle, bytes, desk.now);
        }
        let (index, ending) = (current.index, current.ending);
        self.current = None;
        match ending {
            Ending::Whole => {
                desk.record.sent[index].outcome = Outcome::Awaited;
                desk.record.awaited += 1;
                self.ending.insert(index);
                self.ask(desk, Request::EndMessage { handle }, Asked::End(index));
            }
            Ending::Cancelled => self.ask(desk, Request::CancelMessage { handle }, Asked::Other),
            Ending::Killed => self.exit(desk),
        }
        true
    }

    pub(super) fn take(&mut self, outbound: Outbound, desk: &mut Desk<'_>) {
        match outbound {
            Outbound::Reply { id, result } => {
                let asked = self.asked.remove(&id).expect("it was asked");
                self.take_reply(asked, result, desk);
            }
            Outbound::Window { handle, bytes } if self.handle == Some(handle) => {
                self.window += u64::from(bytes);
            }
            Outbound::Notice(Notice::HandleClosed { handle, .. })
                if self.handle == Some(handle) =>
            {
                self.exit(desk);
                self.not_before_us = desk.now_us + AGAIN_US;
            }
            Outbound::Notice(Notice::MemberFailed { message, host, .. }) => {
                let of_message = |index: &&usize| desk.record.sent[**index].number == Some(message);
                let found = self.awaited.iter().find(of_message).copied();
                if let Some(index) = found {
                    let states = &mut desk.record.sent[index].states;
                    states.push((desk.now_us, host, false));
                }
            }
            Outbound::Window { .. } | Outbound::Notice(_) => {}
            Outbound::Data { .. } => panic!("data for one that sends"),
            Outbound::Close { reason } => panic!("expelled: {reason}"),
        }
    }

    fn take_reply(&mut self, asked: Asked, result: Result<Value, ApiError>, desk: &mut Desk<'_>) {
        let number = |value: &Value, name: &str| value[name].as_u64().expect("as API.md says");
        match (asked, result) {
            (Asked::Open, Ok(answer)) => {
                self.handle = Some(number(&answer, "handle") as u32);
                self.window = number(&answer, "window_bytes");
            }
            (Asked::Open, Err(error)) => {
                let later = [ErrorCode::UnknownGroup, ErrorCode::NoPlan];
                assert!(later.contains(&error.code), "{error}");
                self.exit(desk);
                self.not_before_us = desk.now_us + AGAIN_US;
            }
            (Asked::End(index), Ok(answer)) => {
                self.ending.remove(&index);
                self.awaited.insert(index);
                let message = number(&answer, "message");
                let sent = &mut desk.record.sent[index];
                sent.number = Some(message);
                sent.times_us[1] = desk.now_us;
                if let Some(handle) = self.handle {
                    let request = Request::WaitStable {
                        handle,
                        message,
                        timeout_ms: None,
                    };
                    self.ask(desk, request, Asked::Stable(index));
                }
            }
            (Asked::Stable(index), Ok(answer)) => {
                self.awaited.remove(&index);
                let members = answer["outcomes"].as_array().expect("as API.md says");
                let outcome = members.iter().map(|member| {
                    let reason = member["reason"].as_str().map(str::to_owned);
                    let is_there = member["delivered"].as_bool().expect("as API.md says");
                    assert_eq!(is_there, reason.is_none(), "{member}");
                    (number(member, "host") as u16, reason)
                });
                let outcome = Outcome::Reported(outcome.collect());
                desk.record.settle(index, outcome, desk.now_us);
            }
            (Asked::End(index) | Asked::Stable(index), Err(error)) => {
                assert_eq!(error.code, ErrorCode::Closed, "{error}");
                self.ending.remove(&index);
                self.awaited.remove(&index);
                let outcome = Outcome::Closed(error.message);
                desk.record.settle(index, outcome, desk.now_us);
            }
            (Asked::State(index), Ok(answer)) => {
                let members = answer["outcomes"].as_array().expect("as API.md says");
                for member in members {
                    let host = number(member, "host") as u16;
                    let said = match member["state"].as_str() {
                        Some("delivered") => true,
                        Some("failed") => false,
                        _ => continue,
                    };
                    let states = &mut desk.record.sent[index].states;
                    states.push((desk.now_us, host, said));
                }
            }
            (Asked::State(_) | Asked::Other, _) => {}
        }
    }
}
