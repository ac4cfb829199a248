//! What a sender knows of one child: which packets it has, which are on the way,
//! which are taken for lost (RACK, RFC 8985), and when to probe it.

mod lives;
mod loss;
mod queueing;
mod routes;
mod scoreboard;
mod silence;

use crate::config::Timing;
use crate::failure::Report;
use crate::gather::belief::Gathered;
use crate::plan::ChildRole;
use crate::time::Instant;
use crate::window::congestion::Congestion;
use crate::window::path::{Path, Queueing};
use crate::window::store::Store;
use crate::window::unproven::Unproven;
use routes::MessageRoutes;
pub(crate) use scoreboard::Acked;
use scoreboard::Scoreboard;
pub(crate) use silence::Patience;
use wormcast_wire::FailReason;
use wormcast_wire::{BufferClass, HostId};

/// Pause after the first NACK; doubles up to [`NACK_PAUSE_US_MAX`] while no packet
/// gets through.
const NACK_PAUSE_US: u64 = 5_000;
/// Time between two REPAIR requests for one child.
pub(crate) const REPAIR_INTERVAL_US: u64 = 30_000;

/// Which memory of the stream an ACK is by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Memory {
    /// The one that answered before.
    Known,
    /// The first one that answers.
    First,
    /// A later one: what the child had is lost.
    Lost,
}

/// One child of a stream.
#[derive(Debug)]
pub(crate) struct Child {
    pub host: HostId,
    pub class: BufferClass,
    pub below: Vec<HostId>,
    /// Switches copy to it what comes here; it gets from here what it misses.
    pub copied: bool,
    /// Which life of the child answers; none before its first answer.
    pub receiver: Option<u32>,
    /// Another memory that seems to answer.
    unproven: Option<Unproven<u32>>,
    pub board: Scoreboard,
    /// The child and all below it have confirmed everything before.
    pub stable: u64,
    /// `stable` is of the present epoch.
    pub stable_current: bool,
    /// It misses something that is stable, and has not said yet that it knows.
    pub is_behind: bool,
    /// What it acknowledged last in the present epoch.
    pub report: Report,
    pub path: Path,
    pub routes: MessageRoutes,
    pub congestion: Congestion,
    /// The latest send that has arrived.
    rack_order: u64,
    rack_rtt_us: u64,
    reorder_steps: u64,
    reorder_calm: u32,
    reorder_deadline: Option<Instant>,
    owed_since: Option<Instant>,
    last_heard: Instant,
    pub last_probe_basis: Instant,
    pub probes: u32,
    pub paused_until: Option<Instant>,
    nack_pause_us: u64,
    /// A probe to send: the position, or none for a STATUS.
    pub probe: Option<Option<u64>>,
    /// A STATUS to send, without asking for an answer.
    pub status_due: bool,
    /// The `stable` last sent to it.
    pub advertised_stable: u64,
    pub repair_at: Option<Instant>,
    pub reported: Option<FailReason>,
    pub excluded: bool,
    /// The packet that the child lacks first, if it was cut for a larger MTU than the plan has, and since
    /// when it has lacked it.
    pub too_long: Option<(u64, Instant)>,
    pub seen_packets: u32,
    pub seen_duplicates: u32,
    pub seen_congestion: u32,
    pub below_retransmissions: u32,
    /// Packets with CE at the child since the last ACK from here, the most of those below it.
    pub marked: u32,
    queueing: Queueing,
    /// Queueing delay from the origin to the child, the most of those below it, µs, and when it
    /// was measured.
    queued: Option<(u64, Instant)>,
    pub gathered: Gathered,
}

impl Child {
    /// A child of which nothing is known but that everything before `stable` is
    /// stable.
    pub fn new(role: &ChildRole, stable: u64, timing: &Timing, now: Instant) -> Child {
        Child {
            host: role.host,
            class: role.class,
            below: role.below.clone(),
            copied: false,
            receiver: None,
            unproven: None,
            board: Scoreboard::new(stable),
            stable,
            stable_current: false,
            is_behind: false,
            report: Report::new(stable),
            path: Path::new(),
            routes: MessageRoutes::default(),
            congestion: Congestion::new(timing.queue_delay_target_us),
            rack_order: 0,
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
            advertised_stable: stable,
            repair_at: None,
            reported: None,
            excluded: false,
            too_long: None,
            seen_packets: 0,
            seen_duplicates: 0,
            seen_congestion: 0,
            below_retransmissions: 0,
            marked: 0,
            queueing: Queueing::default(),
            queued: None,
            gathered: Gathered::default(),
        }
    }

    /// The child has everything before.
    pub fn cumulative(&self) -> u64 {
        self.board.cumulative()
    }

    /// First position not dealt with yet: never sent, nor passed over.
    pub fn next(&self) -> u64 {
        self.board.next()
    }

    pub fn in_flight(&self) -> u32 {
        self.board.in_flight()
    }

    fn pass_over(&mut self, until: u64, store: &Store, now: Instant) {
        if self.board.pass_over(until, self.receiver.is_some(), store) {
            self.repair_at.get_or_insert(now);
        }
    }

    /// What to send next: the lowest packet to send again, else the next new one.
    pub fn next_position(&mut self, store: &Store, now: Instant) -> Option<(u64, bool)> {
        while let Some(position) = self.board.pending().first().copied() {
            if store.has(position) {
                return Some((position, true));
            }
            // Evicted since: only the origin has it now.
            self.board.note_evicted(position);
            self.repair_at.get_or_insert(now);
        }
        self.pass_over(store.base(), store, now);
        let next = store.next_held(self.next());
        next.map(|position| (position, false))
    }

    /// Packets under way to the child, sent by this host or copied by switches.
    pub fn under_way(&self) -> u32 {
        self.board.under_way()
    }

    /// Whether there is anything to send, now or when the window opens: packets to be
    /// sent again, or new ones before `lead_end`.
    pub fn may_send(&self, store: &Store, lead_end: u64) -> bool {
        self.paused_until.is_none()
            // Before it answers, nobody knows what it has of the copies.
            && (self.receiver.is_some() || !self.copied)
            && !self.excluded
            && (!self.board.pending().is_empty() || self.next() < store.end().min(lead_end))
    }

    /// Whether its siblings wait for it: it answers, has room, and is not done.
    pub fn keeps_up(&self, store: &Store) -> bool {
        self.receiver.is_some()
            && self.probes < 2
            && self.paused_until.is_none()
            && !self.excluded
            && self.next() < store.end()
    }

    /// Packets that have to be sent again since the last call.
    pub fn take_fresh(&mut self, take: impl FnMut(u64)) {
        self.board.take_fresh(take);
    }

    /// All packets to be sent again are named by the next [`Child::take_fresh`].
    pub fn refresh_pending(&mut self) {
        self.board.refresh_pending();
    }

    pub fn is_pending(&self, position: u64) -> bool {
        self.board.pending().contains(&position)
    }

    /// Whether only the origin can send some of what the child lacks.
    pub fn has_remote(&self) -> bool {
        self.board.has_remote()
    }

    /// The first run that only the origin can send.
    pub fn remote_run(&self) -> Option<(u64, u64)> {
        self.board.remote_run()
    }

    /// A packet leaves for the child; true if it did before.
    pub fn note_sent(&mut self, position: u64, store: &Store, now: Instant) -> bool {
        self.note_owing(now);
        self.pass_over(position, store, now);
        self.board.note_sent(position, now)
    }

    /// A packet has come here, and switches sent the child a copy.
    pub fn note_copied(&mut self, position: u64, store: &Store, now: Instant) {
        self.note_owing(now);
        self.pass_over(position, store, now);
        self.board.note_copied(position, now);
    }

    fn note_owing(&mut self, now: Instant) {
        if self.owed_since.is_none() {
            self.owed_since = Some(now);
        }
        if self.under_way() == 0 || self.probes == 0 {
            self.last_probe_basis = now;
        }
    }

    /// A packet that was passed over may have come.
    pub fn note_arrived(&mut self, position: u64) {
        if self.board.awaits_arrivals() {
            self.board.note_arrived(position);
        }
    }

    /// The child is served from now on; everything before `until` that it was never sent
    /// is to be sent.
    pub fn catch_up(&mut self, until: u64, store: &Store, now: Instant) {
        self.board.release_waiting(store);
        self.pass_over(until, store, now);
    }

    /// The child has everything before `cumulative`.
    pub fn acknowledge_before(&mut self, cumulative: u64, acked: &mut Acked) {
        self.board.acknowledge_before(cumulative, acked);
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
        // From another parent it may have more than this host ever sent it. What lies
        // between was not sent either.
        self.pass_over(end, store, now);
        self.board.acknowledge_run(start, end, acked);
    }
}
