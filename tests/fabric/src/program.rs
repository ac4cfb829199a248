//! What runs on a host: a client of the agent's local API. It writes messages whose content says
//! what they are, reads and checks those of others, and may be slow or run out of disk.

use bytes::Bytes;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::LazyLock;
use wormcast_agent_core::agent::Agent;
use wormcast_agent_core::api::{
    AbortReason, ApiError, ErrorCode, GroupSelector, Notice, NumberedRequest, Request,
};
use wormcast_agent_core::clients::{ConnectionId, Outbound};
use wormcast_protocol::Instant;

/// The one of the program; those of a crowd have higher numbers.
pub const CONNECTION: ConnectionId = ConnectionId(1);
const WRITE_BYTES: u64 = 64 << 10;
const HEADER_BYTES: usize = 16;
const PATTERN_BYTES: usize = 65_521;

/// Byte `offset` of every message follows from (group, origin, number, size).
fn content(group: u16, origin: u16, number: u32, size: u64, offset: u64, out: &mut [u8]) {
    let mut header = [0; HEADER_BYTES];
    header[..2].copy_from_slice(&group.to_be_bytes());
    header[2..4].copy_from_slice(&origin.to_be_bytes());
    header[4..8].copy_from_slice(&number.to_be_bytes());
    header[8..].copy_from_slice(&size.to_be_bytes());
    let shift = u64::from(number) * 977 + u64::from(origin) * 131 + u64::from(group) * 17;
    let mut at = ((offset + shift) % PATTERN_BYTES as u64) as usize;
    let mut filled = 0;
    while filled < out.len() {
        let run = (out.len() - filled).min(PATTERN_BYTES - at);
        out[filled..filled + run].copy_from_slice(&PATTERN[at..at + run]);
        (at, filled) = (0, filled + run);
    }
    if let Some(rest) = header.get(offset as usize..) {
        let length = rest.len().min(out.len());
        out[..length].copy_from_slice(&rest[..length]);
    }
}

static PATTERN: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let byte = |at: u32| (at.wrapping_mul(2_654_435_761) >> 24) as u8;
    (0..PATTERN_BYTES as u32).map(byte).collect()
});

/// A message that was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// Its number at the origin.
    pub number: u32,
    pub size: u64,
    /// When its end was read, µs.
    pub at_us: u64,
}

/// What became of a message at the other members: who does not have it, and why. None: its sender
/// was closed before that was known.
pub type Outcome = Option<Vec<(u16, String)>>;

/// What a host writes to one group.
#[derive(Debug, Default)]
pub struct Writer {
    /// Sizes of the messages to come, at least 16 bytes each.
    sizes: VecDeque<u64>,
    number: u32,
    offset: u64,
    handle: Option<u32>,
    window: u64,
    unsettled: BTreeSet<u32>,
    /// Outcomes by message.
    pub outcomes: BTreeMap<u32, Outcome>,
    /// Members that the agent said would not have a message, while it was on its way.
    pub given_up: Vec<(u32, u16)>,
    /// Members that the agent said were slow, and when first, µs.
    pub slow: BTreeMap<u16, u64>,
    /// When the last outcome came, µs.
    pub settled_us: u64,
}

impl Writer {
    /// All messages have an outcome.
    pub fn is_finished(&self) -> bool {
        self.sizes.is_empty() && self.unsettled.is_empty()
    }

    /// Messages written or to be written.
    pub fn count(&self) -> u32 {
        self.number + self.sizes.len() as u32
    }

    fn settle(&mut self, number: u32, outcome: Outcome, now_us: u64) {
        self.unsettled.remove(&number);
        self.outcomes.insert(number, outcome);
        self.settled_us = now_us;
    }

    /// The sender is gone: the message being written starts again when there is another, and what
    /// became of those before will not be known.
    fn close(&mut self, now_us: u64) {
        self.handle = None;
        self.offset = 0;
        for number in std::mem::take(&mut self.unsettled) {
            self.settle(number, None, now_us);
        }
    }
}

#[derive(Clone, Copy, Debug, Default)]
pub struct ReaderPolicy {
    /// Bytes after which the disk is full, in each message.
    pub disk_bytes: Option<u64>,
    /// Reads nothing before this time, µs.
    pub asleep_until_us: u64,
    /// Bytes read in a millisecond at most.
    pub bytes_per_ms: Option<u64>,
    /// More bytes of a message may not wait for it.
    pub lag_bytes: Option<u64>,
}

/// What a host has read of one origin.
#[derive(Debug, Default)]
pub struct Reader {
    /// Numbers of the messages read to the end.
    pub messages: Vec<u32>,
    /// Messages that broke off.
    pub lost: u32,
}

/// A message on its way in.
#[derive(Debug)]
struct Arriving {
    group: u16,
    origin: u16,
    waiting: VecDeque<Bytes>,
    ended: Option<u64>,
    head: Vec<u8>,
    offset: u64,
}

#[derive(Debug)]
enum Asked {
    OpenSender(u16),
    OpenReceiver(u16),
    End(u16, u32),
    Stable(u16, u32),
    /// Confirm or abort, or what may be too late.
    Done,
}

/// Everything that runs on a host.
#[derive(Debug, Default)]
pub struct Program {
    /// By group.
    pub writers: BTreeMap<u16, Writer>,
    /// By group and origin.
    pub readers: BTreeMap<(u16, u16), Reader>,
    /// Messages read to the end, by group, in the order of their ends: origin and number.
    pub read: BTreeMap<u16, Vec<(u16, u32)>>,
    pub policy: ReaderPolicy,
    /// Groups it reads.
    pub groups: BTreeSet<u16>,
    receivers: BTreeMap<u32, u16>,
    /// Messages that have begun since it acted last.
    begun: Vec<u32>,
    arriving: BTreeMap<u32, Arriving>,
    asked: BTreeMap<u64, Asked>,
    requests: u64,
    connected: bool,
    /// There is a new plan: what could not be opened may be now.
    plan_changed: bool,
    read_in_ms: (u64, u64),
}

impl Program {
    /// Writes messages of these sizes, after those to be written already.
    pub fn write(&mut self, group: u16, sizes: &[u64]) {
        let least = sizes.iter().copied().min().unwrap_or_default();
        assert!(
            least >= HEADER_BYTES as u64,
            "a message says what it is in 16 bytes"
        );
        self.writers.entry(group).or_default().sizes.extend(sizes);
        self.plan_changed = true;
    }

    /// The agent is another one: everything is opened again.
    pub fn restart(&mut self, now_us: u64) {
        for writer in self.writers.values_mut() {
            writer.close(now_us);
        }
        self.receivers.clear();
        self.readers.clear();
        self.read.clear();
        self.arriving.clear();
        self.asked.clear();
        self.connected = false;
        self.plan_changed = true;
    }

    /// The agent has another plan.
    pub fn on_plan(&mut self) {
        self.plan_changed = true;
    }

    /// Opens, writes and reads what it can. Gives the time at which to go on, if the policy holds
    /// it back.
    pub fn act(&mut self, agent: &mut Agent, host: u16, now: Instant, now_us: u64) -> Option<u64> {
        if !std::mem::replace(&mut self.connected, true) {
            agent.connect(CONNECTION, format!("program of host {host}"));
        }
        if std::mem::take(&mut self.plan_changed) {
            self.open(agent, now);
        }
        for handle in std::mem::take(&mut self.begun) {
            if let Some(bytes) = self.policy.lag_bytes {
                let request = Request::BoundLag { handle, bytes };
                self.ask(agent, request, Asked::Done, now);
            }
        }
        let groups: Vec<u16> = self.writers.keys().copied().collect();
        for group in groups {
            self.write_group(agent, host, group, now);
        }
        if now_us < self.policy.asleep_until_us {
            let woken = !self.arriving.is_empty() && self.policy.asleep_until_us < u64::MAX;
            return woken.then_some(self.policy.asleep_until_us);
        }
        let handles: Vec<u32> = self.arriving.keys().copied().collect();
        let mut again = None;
        for handle in handles {
            again = again.max(self.read(agent, handle, now, now_us));
        }
        again
    }

    fn ask(&mut self, agent: &mut Agent, request: Request, asked: Asked, now: Instant) {
        self.requests += 1;
        self.asked.insert(self.requests, asked);
        let id = self.requests;
        agent.request(CONNECTION, NumberedRequest { id, request }, now);
    }

    fn open(&mut self, agent: &mut Agent, now: Instant) {
        for group in self.groups.clone() {
            let asked = |asked: &Asked| matches!(asked, Asked::OpenReceiver(of) if *of == group);
            if !self.receivers.values().any(|of| *of == group) && !self.asked.values().any(asked) {
                let selector = GroupSelector::from(group);
                let request = Request::OpenReceiver {
                    group: selector,
                    origin: None,
                    files: false,
                };
                self.ask(agent, request, Asked::OpenReceiver(group), now);
            }
        }
        let closed = |(_, writer): &(&u16, &Writer)| writer.handle.is_none();
        let groups: Vec<u16> = self
            .writers
            .iter()
            .filter(closed)
            .map(|(group, _)| *group)
            .collect();
        for group in groups {
            let asked = |asked: &Asked| matches!(asked, Asked::OpenSender(of) if *of == group);
            if !self.asked.values().any(asked) {
                let selector = GroupSelector::from(group);
                let request = Request::OpenSender {
                    group: selector,
                    rate_bits: None,
                    progress_ms: 0,
                };
                self.ask(agent, request, Asked::OpenSender(group), now);
            }
        }
    }

    fn write_group(&mut self, agent: &mut Agent, host: u16, group: u16, now: Instant) {
        loop {
            let Some(writer) = self.writers.get_mut(&group) else {
                return;
            };
            let (Some(handle), Some(&size)) = (writer.handle, writer.sizes.front()) else {
                return;
            };
            let take = (size - writer.offset).min(writer.window).min(WRITE_BYTES);
            if take == 0 {
                return;
            }
            let mut bytes = vec![0; take as usize];
            content(group, host, writer.number, size, writer.offset, &mut bytes);
            writer.offset += take;
            writer.window -= take;
            agent.data(CONNECTION, handle, Bytes::from(bytes), now);
            if writer.offset == size {
                let number = writer.number;
                writer.sizes.pop_front();
                writer.number += 1;
                writer.offset = 0;
                writer.unsettled.insert(number);
                self.ask(
                    agent,
                    Request::EndMessage { handle },
                    Asked::End(group, number),
                    now,
                );
            }
        }
    }

    /// Reads and checks what has come of a message.
    fn read(&mut self, agent: &mut Agent, handle: u32, now: Instant, now_us: u64) -> Option<u64> {
        loop {
            let message = self.arriving.get_mut(&handle)?;
            let Some(mut bytes) = message.waiting.pop_front() else {
                if message.ended.is_some() {
                    self.finish(agent, handle, now);
                }
                return None;
            };
            if let Some(rate) = self.policy.bytes_per_ms {
                let ms = now_us / 1_000;
                if self.read_in_ms.0 != ms {
                    self.read_in_ms = (ms, 0);
                }
                let most = rate.saturating_sub(self.read_in_ms.1) as usize;
                if most < bytes.len() {
                    message.waiting.push_front(bytes.split_off(most));
                }
                if bytes.is_empty() {
                    return Some((ms + 1) * 1_000);
                }
                self.read_in_ms.1 += bytes.len() as u64;
            }
            message.check(&bytes);
            if self
                .policy
                .disk_bytes
                .is_some_and(|disk| message.offset > disk)
            {
                self.arriving.remove(&handle);
                let reason = AbortReason::NoSpace;
                self.ask(agent, Request::Abort { handle, reason }, Asked::Done, now);
                return None;
            }
            agent.window(CONNECTION, handle, bytes.len() as u32, now);
        }
    }

    fn finish(&mut self, agent: &mut Agent, handle: u32, now: Instant) {
        let Some(message) = self.arriving.remove(&handle) else {
            return;
        };
        assert!(
            message.head.len() == HEADER_BYTES,
            "a message without its header"
        );
        let (.., number, size) = message.header();
        assert_eq!(message.offset, size, "message {number} has another length");
        assert_eq!(
            message.ended,
            Some(size),
            "message {number} has another length"
        );
        let reader = self
            .readers
            .entry((message.group, message.origin))
            .or_default();
        if let Some(before) = reader.messages.last() {
            let origin = message.origin;
            assert!(
                number > *before,
                "message {number} of host {origin} after {before}"
            );
        }
        reader.messages.push(number);
        let read = self.read.entry(message.group).or_default();
        read.push((message.origin, number));
        self.ask(agent, Request::Confirm { handle }, Asked::Done, now);
    }

    /// Takes what the agent sends.
    pub fn take(&mut self, agent: &mut Agent, outbound: Outbound, now: Instant, now_us: u64) {
        match outbound {
            Outbound::Reply { id, result } => {
                let asked = self.asked.remove(&id).expect("it was asked");
                self.take_reply(agent, asked, result, now, now_us);
            }
            Outbound::Notice(notice) => self.take_notice(notice, now_us),
            Outbound::Data { handle, bytes } => {
                // What the program has given up may still come.
                if let Some(message) = self.arriving.get_mut(&handle) {
                    message.waiting.push_back(bytes);
                }
            }
            Outbound::Window { handle, bytes } => {
                let mut writers = self.writers.values_mut();
                if let Some(writer) = writers.find(|writer| writer.handle == Some(handle)) {
                    writer.window += u64::from(bytes);
                }
            }
            Outbound::Close { reason } => panic!("expelled: {reason}"),
        }
    }

    fn take_reply(
        &mut self,
        agent: &mut Agent,
        asked: Asked,
        result: Result<Value, ApiError>,
        now: Instant,
        now_us: u64,
    ) {
        let number = |value: &Value, name: &str| value[name].as_u64().expect("as API.md says");
        match (asked, result) {
            (Asked::OpenSender(group), Ok(answer)) => {
                let writer = self.writers.get_mut(&group).expect("it was asked for");
                writer.handle = Some(number(&answer, "handle") as u32);
                writer.window = number(&answer, "window_bytes");
            }
            (Asked::OpenReceiver(group), Ok(answer)) => {
                self.receivers
                    .insert(number(&answer, "handle") as u32, group);
            }
            (Asked::OpenSender(_) | Asked::OpenReceiver(_), Err(error)) => {
                let later = [ErrorCode::UnknownGroup, ErrorCode::NoPlan];
                assert!(later.contains(&error.code), "{error}");
            }
            (Asked::End(group, ours), Ok(answer)) => {
                let writer = &self.writers[&group];
                if let Some(handle) = writer.handle {
                    let message = number(&answer, "message");
                    let timeout_ms = None;
                    let request = Request::WaitStable {
                        handle,
                        message,
                        timeout_ms,
                    };
                    self.ask(agent, request, Asked::Stable(group, ours), now);
                }
            }
            (Asked::Stable(group, ours), Ok(answer)) => {
                let outcomes = answer["outcomes"].as_array().expect("as API.md says");
                let failed = outcomes
                    .iter()
                    .filter(|outcome| outcome["delivered"] != true);
                let failed = failed.map(|outcome| {
                    let reason = outcome["reason"].as_str().expect("as API.md says");
                    (number(outcome, "host") as u16, reason.to_owned())
                });
                let outcome = Some(failed.collect());
                let writer = self.writers.get_mut(&group).expect("it was asked for");
                writer.settle(ours, outcome, now_us);
            }
            (Asked::End(group, ours) | Asked::Stable(group, ours), Err(error)) => {
                assert_eq!(error.code, ErrorCode::Closed, "{error}");
                let writer = self.writers.get_mut(&group).expect("it was asked for");
                writer.settle(ours, None, now_us);
            }
            // A message may be lost while its confirmation is on the way.
            (Asked::Done, _) => {}
        }
    }

    fn take_notice(&mut self, notice: Notice, now_us: u64) {
        match notice {
            Notice::MessageBegin {
                receiver,
                handle,
                origin,
                ..
            } => {
                let message = Arriving {
                    group: self.receivers[&receiver],
                    origin,
                    waiting: VecDeque::new(),
                    ended: None,
                    head: Vec::new(),
                    offset: 0,
                };
                self.arriving.insert(handle, message);
                self.begun.push(handle);
            }
            Notice::MessageEnd { handle, length, .. } => {
                if let Some(message) = self.arriving.get_mut(&handle) {
                    message.ended = Some(length);
                }
            }
            Notice::MessageLost { handle, .. } => {
                if let Some(message) = self.arriving.remove(&handle) {
                    let key = (message.group, message.origin);
                    self.readers.entry(key).or_default().lost += 1;
                }
            }
            Notice::HandleClosed { handle, .. } => {
                // Who comes back reads anew, and may get again what it had not confirmed in time.
                if let Some(group) = self.receivers.remove(&handle) {
                    self.readers.retain(|(of, _), _| *of != group);
                }
                for writer in self.writers.values_mut() {
                    if writer.handle == Some(handle) {
                        writer.close(now_us);
                    }
                }
            }
            Notice::MemberFailed { handle, host, .. } => {
                let mut writers = self.writers.values_mut();
                if let Some(writer) = writers.find(|writer| writer.handle == Some(handle)) {
                    writer.given_up.push((writer.number, host));
                }
            }
            Notice::MemberSlow { handle, host, .. } => {
                let mut writers = self.writers.values_mut();
                if let Some(writer) = writers.find(|writer| writer.handle == Some(handle)) {
                    writer.slow.entry(host).or_insert(now_us);
                }
            }
            Notice::Progress { .. }
            | Notice::MemberUnclaimed { .. }
            | Notice::FileProgress { .. }
            | Notice::GroupsChanged {}
            | Notice::Answer { .. }
            | Notice::FileFailed { .. } => {}
            Notice::Goodbye { reason } => panic!("expelled: {reason}"),
        }
    }
}

impl Arriving {
    fn header(&self) -> (u16, u16, u32, u64) {
        let at = |from: usize, to: usize| &self.head[from..to];
        (
            u16::from_be_bytes(at(0, 2).try_into().expect("two bytes")),
            u16::from_be_bytes(at(2, 4).try_into().expect("two bytes")),
            u32::from_be_bytes(at(4, 8).try_into().expect("four bytes")),
            u64::from_be_bytes(at(8, 16).try_into().expect("eight bytes")),
        )
    }

    fn check(&mut self, bytes: &[u8]) {
        let missing = (HEADER_BYTES - self.head.len()).min(bytes.len());
        self.head.extend_from_slice(&bytes[..missing]);
        if self.head.len() == HEADER_BYTES {
            let (group, origin, number, size) = self.header();
            let named = (group, origin);
            assert_eq!(named, (self.group, self.origin), "a message gone astray");
            let mut expected = vec![0; bytes.len()];
            content(group, origin, number, size, self.offset, &mut expected);
            assert!(
                bytes == expected,
                "message {number} of host {origin} differs near byte {}",
                self.offset
            );
        }
        self.offset += bytes.len() as u64;
    }
}
