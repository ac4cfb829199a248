//! What a sender knows of one child: which packets it has, which are on the way,
//! which are taken for lost (RACK, RFC 8985), and when to probe it.

mod loss;
mod silence;

use super::congestion::Congestion;
use super::path::Path;
use super::store::Store;
use crate::config::Timing;
use crate::event::FailReason;
use crate::ids::{BufferClass, HostId};
use crate::plan::ChildRole;
use crate::time::Instant;
use crate::wire::ack::FailedMember;
use std::collections::{BTreeSet, VecDeque};

/// Pause after the first NACK; doubles up to [`NACK_PAUSE_US_MAX`] while no packet
/// gets through.
const NACK_PAUSE_US: u64 = 5_000;
/// Time between two REPAIR requests for one child.
pub(crate) const REPAIR_INTERVAL_US: u64 = 30_000;

/// Where a packet stands with this child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Not here yet when its successors were sent.
    Waiting,
    /// Sent, not acknowledged.
    InFlight,
    /// To be sent again.
    Lost,
    /// The child has it.
    Acked,
    /// No longer held here; the origin is asked to send it.
    Remote,
}

#[derive(Clone, Copy, Debug)]
struct Record {
    sent: Instant,
    state: State,
    again: bool,
}

/// What an ACK changed.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Acked {
    /// Packets acknowledged for the first time.
    pub packets: u32,
    /// When the latest sent of them was sent, its position, and whether it had been
    /// sent before.
    latest: Option<(Instant, u64, bool)>,
}

/// One child of a stream.
#[derive(Debug)]
pub(crate) struct Child {
    pub host: HostId,
    pub class: BufferClass,
    pub below: Vec<HostId>,
    /// Which life of the child answers; none before its first answer.
    pub receiver: Option<u32>,
    /// The child has everything before.
    pub cumulative: u64,
    /// First position not dealt with yet: never sent, nor skipped as missing here.
    pub next: u64,
    records: VecDeque<Record>,
    pending: BTreeSet<u64>,
    in_flight: u32,
    /// The child and all below it have confirmed everything before.
    pub stable: u64,
    /// `stable` is of the present epoch.
    pub stable_current: bool,
    pub failed: Vec<FailedMember>,
    pub failed_more: bool,
    pub path: Path,
    pub congestion: Congestion,
    /// When the latest sent packet that has arrived was sent, and its position.
    rack_sent: (Instant, u64),
    rack_rtt_us: u64,
    reorder_steps: u64,
    reorder_calm: u32,
    reorder_deadline: Option<Instant>,
    owed_since: Option<Instant>,
    last_heard: Instant,
    last_probe_basis: Instant,
    probes: u32,
    pub paused_until: Option<Instant>,
    nack_pause_us: u64,
    /// A probe to send: the position, or none for a STATUS.
    pub probe: Option<Option<u64>>,
    /// A STATUS to send, without asking for an answer.
    pub status_due: bool,
    /// The `stable` it was last told.
    pub told_stable: u64,
    pub repair_at: Option<Instant>,
    pub reported: Option<FailReason>,
    pub excluded: bool,
    pub seen_packets: u32,
    pub seen_duplicates: u32,
    pub seen_congestion: u32,
    pub below_retransmissions: u32,
}

impl Child {
    /// A child of which nothing is known but that everything before `stable` is
    /// stable.
    pub fn new(role: &ChildRole, stable: u64, timing: &Timing, now: Instant) -> Child {
        Child {
            host: role.host,
            class: role.class,
            below: role.below.clone(),
            receiver: None,
            cumulative: stable,
            next: stable,
            records: VecDeque::new(),
            pending: BTreeSet::new(),
            in_flight: 0,
            stable,
            stable_current: false,
            failed: Vec::new(),
            failed_more: false,
            path: Path::new(),
            congestion: Congestion::new(timing.queue_delay_target_us),
            rack_sent: (Instant::ZERO, 0),
            rack_rtt_us: 0,
            reorder_steps: 1,
            reorder_calm: 0,
            reorder_deadline: None,
            owed_since: None,
            last_heard: now,
            last_probe_basis: now,
            probes: 0,
            paused_until: None,
            nack_pause_us: NACK_PAUSE_US,
            probe: None,
            status_due: false,
            told_stable: stable,
            repair_at: None,
            reported: None,
            excluded: false,
            seen_packets: 0,
            seen_duplicates: 0,
            seen_congestion: 0,
            below_retransmissions: 0,
        }
    }

    /// The child lost its memory: forget what it had.
    pub fn reset(&mut self, receiver: u32, cumulative: u64, stable: u64) {
        self.receiver = Some(receiver);
        self.cumulative = cumulative;
        self.next = cumulative;
        self.records.clear();
        self.pending.clear();
        self.in_flight = 0;
        self.stable = stable;
        self.stable_current = false;
        self.failed.clear();
        self.probe = None;
        self.repair_at = None;
        self.seen_packets = 0;
        self.seen_duplicates = 0;
        self.seen_congestion = 0;
    }

    pub fn in_flight(&self) -> u32 {
        self.in_flight
    }

    fn index(&self, position: u64) -> Option<usize> {
        let index = position.checked_sub(self.cumulative)? as usize;
        (index < self.records.len()).then_some(index)
    }

    /// Notes that everything up to `until` is passed over, to be sent when it comes,
    /// or for what the store has given up, by the origin.
    fn pass_over(&mut self, until: u64, store: &Store, now: Instant) {
        while self.next < until {
            let state = if self.next < store.base() {
                State::Remote
            } else {
                State::Waiting
            };
            if state == State::Remote && self.repair_at.is_none() {
                self.repair_at = Some(now);
            }
            self.records.push_back(Record {
                sent: Instant::ZERO,
                state,
                again: false,
            });
            self.next += 1;
        }
    }

    /// What to send next: the lowest packet to send again, else the next new one.
    pub fn next_position(&mut self, store: &Store, now: Instant) -> Option<(u64, bool)> {
        while let Some(position) = self.pending.first().copied() {
            if store.has(position) {
                return Some((position, true));
            }
            // Evicted since: only the origin has it now.
            self.pending.remove(&position);
            if let Some(index) = self.index(position) {
                self.records[index].state = State::Remote;
                self.repair_at.get_or_insert(now);
            }
        }
        if self.next < store.base() {
            self.pass_over(store.base(), store, now);
        }
        store.next_held(self.next).map(|position| (position, false))
    }

    /// Whether there is anything to send, now or when the window opens: packets to be
    /// sent again, or new ones before `lead_end`.
    pub fn may_send(&self, store: &Store, lead_end: u64) -> bool {
        self.paused_until.is_none()
            && !self.excluded
            && (!self.pending.is_empty() || self.next < store.end().min(lead_end))
    }

    /// Whether its siblings wait for it: it answers, has room, and is not done.
    pub fn keeps_up(&self, store: &Store) -> bool {
        self.receiver.is_some()
            && self.probes < 2
            && self.paused_until.is_none()
            && !self.excluded
            && self.next < store.end()
    }

    /// The lowest packets to be sent again.
    pub fn pending(&self) -> impl Iterator<Item = u64> + '_ {
        self.pending.iter().copied()
    }

    pub fn is_pending(&self, position: u64) -> bool {
        self.pending.contains(&position)
    }

    /// A packet leaves for the child; true if it did before.
    pub fn note_sent(&mut self, position: u64, store: &Store, now: Instant) -> bool {
        if self.owed_since.is_none() {
            self.owed_since = Some(now);
        }
        if self.in_flight == 0 || self.probes == 0 {
            self.last_probe_basis = now;
        }
        if position >= self.next {
            self.pass_over(position, store, now);
            self.records.push_back(Record {
                sent: now,
                state: State::InFlight,
                again: false,
            });
            self.next = position + 1;
            self.in_flight += 1;
            return false;
        }
        self.pending.remove(&position);
        let Some(index) = self.index(position) else {
            return true;
        };
        let record = &mut self.records[index];
        if record.state != State::InFlight {
            self.in_flight += 1;
        }
        let again = record.sent != Instant::ZERO;
        *record = Record {
            sent: now,
            state: State::InFlight,
            again,
        };
        again
    }

    /// A packet that was passed over has come.
    pub fn note_arrived(&mut self, position: u64) {
        if let Some(index) = self.index(position)
            && matches!(self.records[index].state, State::Waiting | State::Remote)
        {
            self.records[index].state = State::Lost;
            self.pending.insert(position);
        }
    }

    /// Everything passed over and held is to be sent.
    pub fn release_waiting(&mut self, store: &Store) -> bool {
        let before = self.pending.len();
        for (offset, record) in self.records.iter_mut().enumerate() {
            let position = self.cumulative + offset as u64;
            if record.state == State::Waiting && store.has(position) {
                record.state = State::Lost;
                self.pending.insert(position);
            }
        }
        self.pending.len() > before
    }

    /// Marks everything before `next` that the child was never sent as to be sent.
    pub fn catch_up(&mut self, until: u64, store: &Store, now: Instant) {
        if self.next < until {
            self.pass_over(until, store, now);
            self.release_waiting(store);
        }
    }

    /// The child has everything before `cumulative`.
    pub fn acknowledge_before(&mut self, cumulative: u64, acked: &mut Acked) {
        while self.cumulative < cumulative {
            let Some(record) = self.records.pop_front() else {
                self.cumulative = cumulative;
                break;
            };
            let position = self.cumulative;
            self.settle(position, record, acked);
            self.cumulative += 1;
        }
        self.next = self.next.max(cumulative);
    }

    /// The child has `start..end`, above its cumulative point.
    pub fn acknowledge_run(
        &mut self,
        start: u64,
        end: u64,
        store: &Store,
        acked: &mut Acked,
        now: Instant,
    ) {
        if end > self.next {
            // From another parent it has more than this host ever sent it.
            self.pass_over(end, store, now);
            self.release_waiting(store);
        }
        for position in start.max(self.cumulative)..end {
            let Some(index) = self.index(position) else {
                continue;
            };
            let record = self.records[index];
            if record.state != State::Acked {
                self.records[index].state = State::Acked;
                self.settle(position, record, acked);
            }
        }
    }

    fn settle(&mut self, position: u64, record: Record, acked: &mut Acked) {
        match record.state {
            State::Acked => return,
            State::InFlight => self.in_flight -= 1,
            State::Lost => {
                self.pending.remove(&position);
            }
            State::Waiting | State::Remote => {}
        }
        acked.packets += 1;
        if record.sent != Instant::ZERO
            && acked
                .latest
                .is_none_or(|(sent, at, _)| (record.sent, position) > (sent, at))
        {
            acked.latest = Some((record.sent, position, record.again));
        }
    }

    /// The first run that only the origin can send.
    pub fn remote_run(&self) -> Option<(u64, u64)> {
        let start = self
            .records
            .iter()
            .position(|record| record.state == State::Remote)?;
        let length = self
            .records
            .iter()
            .skip(start)
            .take(64)
            .take_while(|record| record.state == State::Remote)
            .count();
        let first = self.cumulative + start as u64;
        Some((first, first + length as u64))
    }
}
