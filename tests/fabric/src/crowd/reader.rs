//! A program that receives a group: it takes messages as its habits are, confirms them, gives them up, or dies.

use super::content::Hash;
use super::record::{Fate, Record, Taken};
use super::{Desk, Who};
use serde_json::Value;
use std::collections::BTreeMap;
use wormcast_agent_core::api::{AbortReason, ApiError, ErrorCode, GroupSelector, Notice, Request};
use wormcast_agent_core::clients::{ConnectionId, Outbound};

/// Time until it tries again to open a receiver, µs.
const AGAIN_US: u64 = 200_000;

/// How a program takes messages. What is drawn is drawn for each message.
#[derive(Clone, Copy, Debug, Default)]
pub struct Habits {
    /// It takes the messages of one host alone.
    pub origin: Option<u16>,
    /// Bytes that it takes in a millisecond at most.
    pub bytes_per_ms: Option<u64>,
    /// More bytes of a message may not wait for it.
    pub lag_bytes: Option<u64>,
    /// Longest time until it goes on with a message, or confirms it, µs.
    pub rest_us: u64,
    /// While it rests with a whole message, it says so each time so many µs are over.
    pub says_so_us: Option<u64>,
    /// Of a thousand messages, those that it gives up.
    pub aborts: u64,
    /// Of a thousand messages, those at which it is killed.
    pub deaths: u64,
    /// Longest time until it is there again, µs.
    pub away_us: u64,
}

impl Habits {
    /// Whether it takes all that comes, and rests no longer than that.
    pub fn takes_all(&self, rest_us: u64) -> bool {
        let rests = self.rest_us <= rest_us || self.says_so_us.is_some();
        let quick = rests && self.bytes_per_ms.is_none_or(|bytes| bytes >= 50);
        self.origin.is_none()
            && self.lag_bytes.is_none()
            && self.aborts == 0
            && self.deaths == 0
            && quick
    }
}

/// What it will do with a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Will {
    Take,
    Abort(AbortReason),
    Die,
}

#[derive(Debug)]
struct Arriving {
    index: usize,
    /// Bytes that have come and are not taken.
    owed: u64,
    ended: bool,
    will: Will,
    /// What it does otherwise than take, it does at the end, not at the beginning.
    at_end: bool,
    rests_until_us: u64,
    /// While it rests, it says so each time so many µs are over; next at this time, µs.
    says_so_us: Option<u64>,
    says_so_at_us: u64,
    confirms_after_us: u64,
    took_in_ms: (u64, u64),
}

#[derive(Debug)]
enum Asked {
    Open,
    Confirm(usize),
    /// What it asked about may be gone meanwhile.
    Other,
}

/// A program that receives.
#[derive(Debug)]
pub struct Reader {
    group: u16,
    pub wanted: bool,
    /// How it takes messages from the next one on.
    pub habits: Habits,
    /// It opens no receiver before, µs.
    pub not_before_us: u64,
    connection: Option<ConnectionId>,
    handle: Option<u32>,
    /// Whose messages it was opened for.
    opened_for: Option<u16>,
    asked: BTreeMap<u64, Asked>,
    arriving: BTreeMap<u32, Arriving>,
    /// Since when it has been there; and from when to when it was before, µs.
    open_since_us: Option<u64>,
    was_open_us: Vec<(u64, u64)>,
    /// It does not count as there, open or not.
    is_barred: bool,
}

impl Reader {
    pub fn new(group: u16, habits: Habits) -> Reader {
        Reader {
            group,
            wanted: true,
            habits,
            not_before_us: 0,
            connection: None,
            handle: None,
            opened_for: None,
            asked: BTreeMap::new(),
            arriving: BTreeMap::new(),
            open_since_us: None,
            was_open_us: Vec::new(),
            is_barred: false,
        }
    }

    /// Whether it has been there all the time between.
    pub fn was_there(&self, from_us: u64, until_us: u64) -> bool {
        let covers = |&(since_us, to_us): &(u64, u64)| since_us <= from_us && until_us <= to_us;
        let is_open = self
            .open_since_us
            .is_some_and(|since_us| since_us <= from_us);
        is_open || self.was_open_us.iter().any(covers)
    }

    fn is_away(&mut self, now_us: u64) {
        if let Some(since_us) = self.open_since_us.take() {
            self.was_open_us.push((since_us, now_us));
        }
    }

    /// From now on it does not count as one that is there, open or not.
    pub fn bar(&mut self, now_us: u64) {
        self.is_barred = true;
        self.is_away(now_us);
    }

    /// From now on it counts as one that is there, if it is.
    pub fn unbar(&mut self, now_us: u64) {
        self.is_barred = false;
        if self.handle.is_some() {
            self.open_since_us.get_or_insert(now_us);
        }
    }

    fn drop_all(&mut self, fate: &Fate, record: &mut Record, now_us: u64) {
        for arriving in std::mem::take(&mut self.arriving).into_values() {
            record.finish(arriving.index, fate.clone());
        }
        self.handle = None;
        // It has the message, and goes before it reads the answer.
        for asked in std::mem::take(&mut self.asked).into_values() {
            if let Asked::Confirm(index) = asked {
                record.finish(index, Fate::Confirmed(now_us));
            }
        }
        self.is_away(now_us);
    }

    pub(super) fn restart(&mut self, record: &mut Record, now_us: u64) {
        self.drop_all(&Fate::AgentGone, record, now_us);
        self.connection = None;
    }

    pub(super) fn break_off(&mut self, desk: &mut Desk<'_>) {
        self.drop_all(&Fate::Dropped, desk.record, desk.now_us);
        if let Some(connection) = self.connection.take() {
            desk.disconnect(connection);
        }
    }

    /// Closes its receiver; its connection stays.
    pub(super) fn close(&mut self, desk: &mut Desk<'_>) {
        if let (Some(connection), Some(handle)) = (self.connection, self.handle) {
            self.drop_all(&Fate::Dropped, desk.record, desk.now_us);
            let id = desk.ask(connection, Request::Close { handle });
            self.asked.insert(id, Asked::Other);
        }
    }

    pub(super) fn act(&mut self, desk: &mut Desk<'_>) -> Option<u64> {
        if !self.wanted {
            return None;
        }
        if self.opened_for != self.habits.origin {
            self.close(desk);
        }
        if self.handle.is_none() {
            if desk.now_us < self.not_before_us {
                return Some(self.not_before_us);
            }
            self.open(desk);
            return None;
        }
        let handles: Vec<u32> = self.arriving.keys().copied().collect();
        let mut next: Option<u64> = None;
        for handle in handles {
            let wake = self.go_on(handle, desk);
            next = [next, wake].into_iter().flatten().min();
            if self.handle.is_none() {
                return Some(self.not_before_us);
            }
        }
        next
    }

    fn open(&mut self, desk: &mut Desk<'_>) {
        if self
            .asked
            .values()
            .any(|asked| matches!(asked, Asked::Open))
        {
            return;
        }
        let group = self.group;
        let connection = match self.connection {
            Some(connection) => connection,
            None => desk.connect(Who::Reader(group)),
        };
        self.connection = Some(connection);
        self.opened_for = self.habits.origin;
        let request = Request::OpenReceiver {
            group: GroupSelector::from(group),
            origin: self.habits.origin.map(u32::from),
            files: false,
        };
        let id = desk.ask(connection, request);
        self.asked.insert(id, Asked::Open);
    }

    /// Does with a message what it will; gives the time at which to go on.
    fn go_on(&mut self, handle: u32, desk: &mut Desk<'_>) -> Option<u64> {
        let connection = self.connection?;
        let arriving = self.arriving.get_mut(&handle)?;
        if desk.now_us < arriving.rests_until_us {
            let Some(every_us) = arriving.says_so_us.filter(|_| arriving.ended) else {
                return Some(arriving.rests_until_us);
            };
            if arriving.says_so_at_us <= desk.now_us {
                arriving.says_so_at_us = desk.now_us + every_us;
                let id = desk.ask(connection, Request::Extend { handle });
                self.asked.insert(id, Asked::Other);
            }
            return Some(arriving.rests_until_us.min(arriving.says_so_at_us));
        }
        if arriving.will != Will::Take && (arriving.ended || !arriving.at_end) {
            let (will, index) = (arriving.will, arriving.index);
            if let Will::Abort(reason) = will {
                self.arriving.remove(&handle);
                desk.record.finish(index, Fate::Aborted);
                let id = desk.ask(connection, Request::Abort { handle, reason });
                self.asked.insert(id, Asked::Other);
            } else {
                self.break_off(desk);
                self.not_before_us = desk.now_us + desk.random.below(self.habits.away_us + 1);
            }
            return None;
        }
        let mut take = arriving.owed;
        if let Some(rate) = self.habits.bytes_per_ms {
            let ms = desk.now_us / 1_000;
            if arriving.took_in_ms.0 != ms {
                arriving.took_in_ms = (ms, 0);
            }
            take = take.min(rate.saturating_sub(arriving.took_in_ms.1));
            arriving.took_in_ms.1 += take;
        }
        arriving.owed -= take;
        if take > 0 {
            desk.agent.window(connection, handle, take as u32, desk.now);
        }
        if arriving.owed > 0 {
            return Some((desk.now_us / 1_000 + 1) * 1_000);
        }
        if !arriving.ended {
            return None;
        }
        let rest_us = std::mem::take(&mut arriving.confirms_after_us);
        if rest_us > 0 {
            arriving.rests_until_us = desk.now_us + rest_us;
            return Some(arriving.rests_until_us);
        }
        let index = arriving.index;
        self.arriving.remove(&handle);
        let id = desk.ask(connection, Request::Confirm { handle });
        self.asked.insert(id, Asked::Confirm(index));
        None
    }

    pub(super) fn take(&mut self, outbound: Outbound, desk: &mut Desk<'_>) {
        match outbound {
            Outbound::Reply { id, result } => {
                if let Some(asked) = self.asked.remove(&id) {
                    self.take_reply(asked, result, desk);
                }
            }
            Outbound::Notice(notice) => self.take_notice(notice, desk),
            Outbound::Data { handle, bytes } => {
                // What the program has given up may still come.
                if let Some(arriving) = self.arriving.get_mut(&handle) {
                    assert!(!arriving.ended, "bytes behind the end of a message");
                    arriving.owed += bytes.len() as u64;
                    desk.record.taken[arriving.index].add(&bytes);
                }
            }
            Outbound::Window { .. } => panic!("a window for one that receives"),
            Outbound::Close { reason } => panic!("expelled: {reason}"),
        }
    }

    fn take_reply(&mut self, asked: Asked, result: Result<Value, ApiError>, desk: &mut Desk<'_>) {
        match (asked, result) {
            (Asked::Open, Ok(answer)) => {
                let handle = answer["handle"].as_u64().expect("as API.md says");
                self.handle = Some(handle as u32);
                self.open_since_us = (!self.is_barred).then_some(desk.now_us);
            }
            (Asked::Open, Err(error)) => {
                // An origin that is no member any more is out of range.
                let later = [
                    ErrorCode::UnknownGroup,
                    ErrorCode::NoPlan,
                    ErrorCode::OutOfRange,
                ];
                assert!(later.contains(&error.code), "{error}");
                self.not_before_us = desk.now_us + AGAIN_US;
            }
            (Asked::Confirm(index), Ok(_)) => {
                desk.record.finish(index, Fate::Confirmed(desk.now_us));
            }
            (Asked::Confirm(index), Err(error)) => {
                desk.record.finish(index, Fate::Lost(error.message));
            }
            (Asked::Other, _) => {}
        }
    }

    fn take_notice(&mut self, notice: Notice, desk: &mut Desk<'_>) {
        match notice {
            Notice::MessageBegin { handle, origin, .. } => self.begin(handle, origin, desk),
            Notice::MessageEnd { handle, length, .. } => {
                if let Some(arriving) = self.arriving.get_mut(&handle) {
                    let taken = &mut desk.record.taken[arriving.index];
                    assert_eq!(length, taken.bytes, "bytes of a message");
                    taken.length = Some(length);
                    arriving.ended = true;
                }
            }
            Notice::MessageLost { handle, reason } => {
                if let Some(arriving) = self.arriving.remove(&handle) {
                    desk.record.finish(arriving.index, Fate::Lost(reason));
                }
            }
            Notice::HandleClosed { handle, .. } if self.handle == Some(handle) => {
                // Its messages have been said to be lost before.
                assert!(self.arriving.is_empty(), "a receiver closed with messages");
                self.handle = None;
                self.is_away(desk.now_us);
                self.not_before_us = desk.now_us + AGAIN_US;
            }
            Notice::Goodbye { reason } => panic!("expelled: {reason}"),
            _ => {}
        }
    }

    fn begin(&mut self, handle: u32, origin: u16, desk: &mut Desk<'_>) {
        let habits = self.habits;
        let random = &mut *desk.random;
        let reasons = [
            AbortReason::NoSpace,
            AbortReason::Storage,
            AbortReason::Cancelled,
        ];
        let lot = random.below(1_000);
        let will = match lot {
            _ if lot < habits.aborts => Will::Abort(*random.pick(&reasons)),
            _ if lot < habits.aborts + habits.deaths => Will::Die,
            _ => Will::Take,
        };
        let rest_us = random.below(habits.rest_us + 1);
        let at_end = random.below(2) == 0;
        // That it is at work it can say of a whole message alone, and a long one does not come whole while it rests.
        let (at_first, at_last) = if random.below(2) == 0 && habits.says_so_us.is_none() {
            (rest_us, 0)
        } else {
            (0, rest_us)
        };
        desk.record.taken.push(Taken {
            origin,
            group: self.group,
            life: desk.life_in(self.group),
            head: Vec::new(),
            hash: Hash::default(),
            bytes: 0,
            length: None,
            begun_us: desk.now_us,
            fate: Fate::Open,
        });
        desk.record.open += 1;
        let arriving = Arriving {
            index: desk.record.taken.len() - 1,
            owed: 0,
            ended: false,
            will,
            at_end,
            rests_until_us: desk.now_us + at_first,
            says_so_us: habits.says_so_us,
            says_so_at_us: 0,
            confirms_after_us: at_last,
            took_in_ms: (0, 0),
        };
        let before = self.arriving.insert(handle, arriving);
        assert!(before.is_none(), "two messages of one handle");
        if let (Some(connection), Some(bytes)) = (self.connection, habits.lag_bytes) {
            let id = desk.ask(connection, Request::BoundLag { handle, bytes });
            self.asked.insert(id, Asked::Other);
        }
    }
}
