//! Where every packet stands with one child (the scoreboard of RFC 6675), with what is
//! asked for each packet kept as counts and queues, so that no answer takes a search
//! through the window.

use crate::time::Instant;
use crate::window::runs::Runs;
use crate::window::store::Store;
use std::collections::{BTreeSet, VecDeque};

/// Sends that may be remembered beyond twice those in flight, before those that matter
/// no more are thrown out.
const SENDS_SPARE: usize = 64;

/// Where a packet stands with this child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Passed over: not here yet, or not to be sent before the child has answered.
    Waiting,
    /// Sent, not acknowledged.
    InFlight,
    /// Switches sent a copy, not acknowledged.
    Copied,
    /// To be sent again.
    Lost,
    Acked,
    /// No longer held here; the origin is asked to send it.
    Remote,
}

#[derive(Clone, Copy, Debug)]
struct Record {
    state: State,
    again: bool,
    /// Which of the sends to the child was its last; 0: it was never sent.
    order: u64,
    sent: Instant,
}

/// The last send of a packet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Send {
    /// Which of the sends to the child it was, from 1.
    pub order: u64,
    pub sent: Instant,
    /// The packet had been sent before.
    pub again: bool,
    /// This host sent it, and had not taken it for lost.
    pub own: bool,
}

/// What an ACK changed.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Acked {
    /// Packets acknowledged for the first time.
    pub packets: u32,
    /// The latest of the sends that brought them.
    pub(super) latest: Option<Send>,
}

impl Acked {
    /// When the latest of the packets acknowledged was sent, if it was sent once.
    pub fn latest_sent(&self) -> Option<Instant> {
        let once = self.latest.filter(|send| send.own && !send.again);
        once.map(|send| send.sent)
    }
}

/// The packets from the first one that the child lacks to the next new one.
#[derive(Debug)]
pub(crate) struct Scoreboard {
    /// The child has everything before.
    cumulative: u64,
    /// One for each packet from `cumulative` on.
    records: VecDeque<Record>,
    /// Packets above `cumulative` that the child has.
    acked: Runs,
    /// Packets to be sent again.
    pending: BTreeSet<u64>,
    /// Those of `pending` that have come to it since [`Scoreboard::take_fresh`].
    fresh: Vec<u64>,
    in_flight: u32,
    copied: u32,
    /// Sends of this host taken for lost since [`Scoreboard::take_own_lost`].
    own_lost: u32,
    waiting: u32,
    remote: u32,
    /// Sends in their order, as (order, position); those overtaken by a later send or an
    /// acknowledgement are skipped.
    sends: VecDeque<(u64, u64)>,
    send_count: u64,
}

impl Scoreboard {
    pub fn new(start: u64) -> Scoreboard {
        Scoreboard {
            cumulative: start,
            records: VecDeque::new(),
            acked: Runs::default(),
            pending: BTreeSet::new(),
            fresh: Vec::new(),
            in_flight: 0,
            copied: 0,
            own_lost: 0,
            waiting: 0,
            remote: 0,
            sends: VecDeque::new(),
            send_count: 0,
        }
    }

    /// Forgets everything but the count of sends. What the child has after all it gets twice.
    pub fn restart(&mut self, start: u64) {
        *self = Scoreboard {
            send_count: self.send_count,
            ..Scoreboard::new(start)
        };
    }

    /// The child has everything before.
    pub fn cumulative(&self) -> u64 {
        self.cumulative
    }

    /// First position not dealt with yet: never sent, nor passed over.
    pub fn next(&self) -> u64 {
        self.cumulative + self.records.len() as u64
    }

    pub fn in_flight(&self) -> u32 {
        self.in_flight
    }

    /// Packets under way to the child, sent by this host or copied by switches.
    pub fn under_way(&self) -> u32 {
        self.in_flight + self.copied
    }

    pub fn has_remote(&self) -> bool {
        self.remote > 0
    }

    /// Whether a packet that arrives here may have been passed over.
    pub fn awaits_arrivals(&self) -> bool {
        self.remote > 0 || self.waiting > 0
    }

    pub fn pending(&self) -> &BTreeSet<u64> {
        &self.pending
    }

    fn index(&self, position: u64) -> Option<usize> {
        let index = position.checked_sub(self.cumulative)? as usize;
        (index < self.records.len()).then_some(index)
    }

    fn count(&mut self, state: State, by: i32) {
        let count = match state {
            State::Waiting => &mut self.waiting,
            State::InFlight => &mut self.in_flight,
            State::Copied => &mut self.copied,
            State::Remote => &mut self.remote,
            State::Lost | State::Acked => return,
        };
        *count = count.wrapping_add_signed(by);
    }

    fn set_state(&mut self, index: usize, state: State) {
        let position = self.cumulative + index as u64;
        let before = core::mem::replace(&mut self.records[index].state, state);
        if before == state {
            return;
        }
        self.count(before, -1);
        self.count(state, 1);
        if before == State::Lost {
            self.pending.remove(&position);
        }
        if state == State::Lost {
            self.pending.insert(position);
            self.fresh.push(position);
        }
    }

    /// Passes over everything before `until`: what is held is to be sent, if the child is
    /// `served` already; what is not is sent when it comes, or by the origin. True if the
    /// origin has to be asked.
    pub fn pass_over(&mut self, until: u64, served: bool, store: &Store) -> bool {
        let mut remote = false;
        while self.next() < until {
            let position = self.next();
            self.records.push_back(Record {
                state: State::Waiting,
                again: false,
                order: 0,
                sent: Instant::ZERO,
            });
            self.waiting += 1;
            let index = self.records.len() - 1;
            if position < store.base() {
                self.set_state(index, State::Remote);
                remote = true;
            } else if served && store.has(position) {
                self.set_state(index, State::Lost);
            }
        }
        remote
    }

    /// The child is served from now on: what was passed over and is held is to be sent.
    pub fn release_waiting(&mut self, store: &Store) {
        for index in 0..self.records.len() {
            if self.waiting == 0 {
                return;
            }
            let held = store.has(self.cumulative + index as u64);
            if held && self.records[index].state == State::Waiting {
                self.set_state(index, State::Lost);
            }
        }
    }

    /// A packet that was passed over has come.
    pub fn note_arrived(&mut self, position: u64) {
        if let Some(index) = self.index(position)
            && matches!(self.records[index].state, State::Waiting | State::Remote)
        {
            self.set_state(index, State::Lost);
        }
    }

    /// A packet to be sent again is no longer held here.
    pub fn note_evicted(&mut self, position: u64) {
        match self.index(position) {
            Some(index) => self.set_state(index, State::Remote),
            None => drop(self.pending.remove(&position)),
        }
    }

    /// A packet before [`Scoreboard::next`], or just that, leaves for the child; true if
    /// it did before.
    pub fn note_sent(&mut self, position: u64, now: Instant) -> bool {
        self.note_under_way(position, State::InFlight, now)
    }

    /// The same of one that switches copied to the child.
    pub fn note_copied(&mut self, position: u64, now: Instant) {
        self.note_under_way(position, State::Copied, now);
    }

    fn note_under_way(&mut self, position: u64, state: State, now: Instant) -> bool {
        if position == self.next() {
            self.records.push_back(Record {
                state: State::Waiting,
                again: false,
                order: 0,
                sent: Instant::ZERO,
            });
            self.waiting += 1;
        }
        let Some(index) = self.index(position) else {
            return true;
        };
        let again = self.records[index].order > 0;
        if self.records[index].state == State::Acked {
            // A copy meant for others.
            return again;
        }
        self.set_state(index, state);
        self.send_count += 1;
        let order = self.send_count;
        let record = &mut self.records[index];
        (record.order, record.sent, record.again) = (order, now, again);
        if self.sends.len() >= 2 * self.under_way() as usize + SENDS_SPARE {
            let mut sends = core::mem::take(&mut self.sends);
            sends.retain(|send| self.is_current(*send));
            self.sends = sends;
        }
        self.sends.push_back((order, position));
        again
    }

    /// Whether the packet of a send is in flight by it.
    fn is_current(&self, (order, position): (u64, u64)) -> bool {
        self.index(position).is_some_and(|index| {
            let record = &self.records[index];
            matches!(record.state, State::InFlight | State::Copied) && record.order == order
        })
    }

    /// Takes for lost, in the order of sending, what is in flight, was sent before the
    /// send `before`, and at `until` or earlier. Gives the number, and when the first one
    /// was sent that is left though sent before `before`.
    pub fn give_up_sent(&mut self, before: u64, until: Option<Instant>) -> (u32, Option<Instant>) {
        let mut lost = 0;
        while let Some((order, position)) = self.sends.front().copied() {
            if self.is_current((order, position)) {
                if order >= before {
                    break;
                }
                let index = (position - self.cumulative) as usize;
                let sent = self.records[index].sent;
                if until.is_none_or(|until| sent > until) {
                    return (lost, Some(sent));
                }
                self.own_lost += u32::from(self.records[index].state == State::InFlight);
                self.set_state(index, State::Lost);
                lost += 1;
            }
            self.sends.pop_front();
        }
        (lost, None)
    }

    /// Of the packets taken for lost since the last call, those that this host had sent.
    pub fn take_own_lost(&mut self) -> u32 {
        core::mem::take(&mut self.own_lost)
    }

    /// The packet sent last of those in flight and held.
    pub fn last_in_flight(&self, store: &Store) -> Option<u64> {
        let mut sends = self.sends.iter().rev();
        let last = sends.find(|send| self.is_current(**send) && store.has(send.1));
        last.map(|(_, position)| *position)
    }

    /// The child has everything before `cumulative`.
    pub fn acknowledge_before(&mut self, cumulative: u64, acked: &mut Acked) {
        while self.cumulative < cumulative {
            if self.records.is_empty() {
                self.cumulative = cumulative;
                break;
            }
            self.acknowledge_at(0, acked);
            self.records.pop_front();
            self.cumulative += 1;
        }
        self.acked.forget_before(self.cumulative);
    }

    /// The child has `start..end`, all of it passed over or sent.
    pub fn acknowledge_run(&mut self, start: u64, end: u64, acked: &mut Acked) {
        let (start, end) = (start.max(self.cumulative), end.min(self.next()));
        if start >= end {
            return;
        }
        let runs = core::mem::take(&mut self.acked);
        for (from, to) in runs.gaps(start, end) {
            for position in from..to {
                self.acknowledge_at((position - self.cumulative) as usize, acked);
            }
        }
        self.acked = runs;
        self.acked.add(start, end);
    }

    fn acknowledge_at(&mut self, index: usize, acked: &mut Acked) {
        let record = self.records[index];
        if record.state == State::Acked {
            return;
        }
        self.set_state(index, State::Acked);
        acked.packets += 1;
        let send = Send {
            order: record.order,
            sent: record.sent,
            again: record.again,
            own: record.state == State::InFlight,
        };
        if record.order > acked.latest.map_or(0, |latest| latest.order) {
            acked.latest = Some(send);
        }
    }

    /// Hands `take` the packets that are to be sent again since the last call.
    pub fn take_fresh(&mut self, mut take: impl FnMut(u64)) {
        for position in self.fresh.drain(..) {
            if self.pending.contains(&position) {
                take(position);
            }
        }
    }

    /// Whether [`Scoreboard::take_fresh`] would hand out any.
    pub fn has_fresh(&self) -> bool {
        !self.fresh.is_empty()
    }

    /// All packets to be sent again count as fresh.
    pub fn refresh_pending(&mut self) {
        self.fresh.clear();
        self.fresh.extend(&self.pending);
    }

    /// The first run, of 64 packets at most, that only the origin can send. The rest is asked for after these.
    pub fn remote_run(&self) -> Option<(u64, u64)> {
        if self.remote == 0 {
            return None;
        }
        let is_remote = |record: &&Record| record.state == State::Remote;
        let start = self.records.iter().position(|record| is_remote(&record))?;
        let rest = self.records.range(start..).take(64);
        let length = rest.take_while(is_remote).count();
        let first = self.cumulative + start as u64;
        Some((first, first + length as u64))
    }
}
