//! The receiving side at a member: delivery in order, message boundaries,
//! confirmation, and when to acknowledge.

mod arrival;
mod missed;
mod unsettled;

use crate::event::Unbroken;
use crate::time::Instant;
use crate::window::path::Queueing;
use crate::window::store::Store;
use std::collections::VecDeque;
use wormcast_wire::FailReason;
use wormcast_wire::ack::Echo;
use wormcast_wire::pdu::Nack;

/// What happens to packets that come in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Discard {
    /// The application reads them.
    No,
    /// They belong to a message whose start this host does not have.
    UntilFirst,
    /// They belong to a message the application gave up.
    ToEnd,
}

/// Messages this member does not have, to be reported until all know.
#[derive(Clone, Debug, Default)]
pub(crate) struct Missed {
    /// Those given up here: the first packet of each that this member has not confirmed, ascending; so no ACK before
    /// has said that more is. They are of the window, so there are no more than it has packets.
    given_up: VecDeque<(u64, FailReason)>,
    /// It has nothing of what begins before; and whether more packets may be thrown away, since no message has begun.
    late: Option<(u64, bool)>,
}

/// The packets read of a message.
#[derive(Clone, Copy, Debug)]
struct Came {
    /// Position of the next.
    next: u64,
    first: Instant,
    last: Instant,
    /// In those that came at `first`.
    first_bytes: u64,
    bytes: u64,
}

/// Packets refused for lack of room, one after another, of which an ACK says what is here.
const NACKS_AN_ACK: u32 = 8;

/// Time until a member says again what it has, µs, if it has confirmed all and has not heard that it is stable, or
/// if the rest of a message does not come: what says so may have been lost, or the origin knows nothing of the stream
/// any more, and nothing else may follow. It doubles.
const UNSETTLED_US: u64 = 250_000;

/// The receiving side of a stream.
#[derive(Debug)]
pub(crate) struct Reception {
    /// Which memory of the stream this is; a parent tells by it that it was lost.
    pub identity: u32,
    consumed: u64,
    /// What is read now has no gap since this began.
    pub unbroken: Unbroken,
    /// What comes again before this has been taken by an earlier memory of the stream.
    taken: u64,
    pub read_offset: usize,
    pub awaiting_confirm: bool,
    discard: Discard,
    message_start: Option<u64>,
    missed: Missed,
    /// The last ACK had less of `stable` than is true, for want of room for who lacks messages.
    pub advertises_less: bool,
    came: Option<Came>,
    pub packets: u32,
    pub duplicates: u32,
    pub congestion: u32,
    since_ack: u32,
    ack_due: bool,
    /// What is here is not whole, or is confirmed and not known to be stable: when to say so again.
    unsettled_at: Option<Instant>,
    unsettled_us: u64,
    /// No message is begun here that is not whole.
    is_whole: bool,
    /// It was reported to the origin last: the parent may know nothing of the stream.
    asks_origin: bool,
    /// The next ACK says it, to the origin. What the parent asks for meanwhile is not lost: it asks again.
    is_for_origin: bool,
    ack_deadline: Option<Instant>,
    last_arrival: Option<(u32, Instant)>,
    forward_least_us: Option<u32>,
    /// Of the packets of which the forward delay is reported.
    queueing: Queueing,
    /// Packets and marks of the last ACK, and the marks it reported.
    acked_packets: u32,
    acked_congestion: u32,
    reported_congestion: u32,
    /// Duplicates of the last ACK.
    acked_duplicates: u32,
    /// An ACK has left of this memory.
    has_answered: bool,
    advertised_stable: u64,
    message_end: u64,
    /// Where messages end that are here whole and not stable, ascending: of the window.
    open_ends: VecDeque<u64>,
    /// The message that is not stable, or not as a whole, begins here, or before if nothing is known of its beginning.
    open_from: u64,
    pub nack: Option<Nack>,
    pub nack_at: Instant,
    /// NACKs since the last ACK.
    nacks: u32,
    pub readable_reported: bool,
    /// The application has been notified that another message has begun to arrive.
    pub begin_reported: bool,
    /// The packet that came last. The run in which it is is reported first.
    pub recent: Option<u64>,
}

impl Reception {
    pub fn new(start: u64, identity: u32) -> Reception {
        Reception {
            identity,
            consumed: start,
            unbroken: Unbroken(identity, 0),
            taken: start,
            read_offset: 0,
            awaiting_confirm: false,
            discard: Discard::UntilFirst,
            message_start: None,
            missed: Missed::default(),
            advertises_less: false,
            came: None,
            packets: 0,
            duplicates: 0,
            congestion: 0,
            since_ack: 0,
            ack_due: false,
            unsettled_at: None,
            unsettled_us: UNSETTLED_US,
            is_whole: true,
            asks_origin: false,
            is_for_origin: false,
            ack_deadline: None,
            last_arrival: None,
            forward_least_us: None,
            queueing: Queueing::default(),
            acked_packets: 0,
            acked_congestion: 0,
            reported_congestion: 0,
            acked_duplicates: 0,
            has_answered: false,
            advertised_stable: start,
            message_end: start,
            open_ends: VecDeque::new(),
            open_from: 0,
            nack: None,
            nack_at: Instant::ZERO,
            nacks: 0,
            readable_reported: false,
            begin_reported: false,
            recent: None,
        }
    }

    /// Reception goes on at `cumulative`, as another memory of the stream. Unless whole
    /// messages are still to be read, it goes on with the next message that begins.
    pub fn restart(&mut self, identity: u32, cumulative: u64) {
        self.identity = identity;
        if self.consumed == cumulative && self.message_start.is_none() {
            self.discard = Discard::UntilFirst;
        }
        (self.packets, self.duplicates, self.congestion) = (0, 0, 0);
        (
            self.acked_packets,
            self.acked_congestion,
            self.reported_congestion,
        ) = (0, 0, 0);
        self.acked_duplicates = 0;
        self.has_answered = false;
        self.last_arrival = None;
        self.forward_least_us = None;
        self.recent = None;
        self.nack = None;
    }

    /// Everything before has been read and confirmed, or thrown away.
    pub fn consumed(&self) -> u64 {
        self.consumed
    }

    /// The first packet of the message that is being read, or that is read next.
    pub fn next_start(&self) -> u64 {
        self.message_start.unwrap_or(self.consumed)
    }

    pub fn is_drained(&self, cumulative: u64) -> bool {
        self.consumed == cumulative && !self.awaiting_confirm && self.message_start.is_none()
    }

    /// The packet at `consumed` is next to be read, its message having begun there
    /// or before.
    pub fn begin_packet(&mut self, first: bool) {
        if first || self.message_start.is_none() {
            if self.message_start != Some(self.consumed) {
                self.came = None;
            }
            self.message_start = Some(self.consumed);
        }
    }

    /// The packet at `consumed` has been read.
    pub fn finish_packet(&mut self, last: bool) {
        self.consumed += 1;
        self.read_offset = 0;
        if last {
            self.message_start = None;
            self.awaiting_confirm = false;
        }
    }

    /// The application gives the message up.
    pub fn abort(&mut self, reason: FailReason) {
        self.message_start.get_or_insert(self.consumed);
        // Of what is stable as a whole everybody knows that this member, which counted as dead, lacks it.
        if self.discard != Discard::ToEnd && self.consumed >= self.open_from {
            self.missed.given_up.push_back((self.consumed, reason));
        }
        self.discard = Discard::ToEnd;
        self.read_offset = 0;
        self.awaiting_confirm = false;
        self.ack_due = true;
    }

    /// Throws away what nobody will read; true if anything can be read now.
    pub fn discard(&mut self, store: &Store, cumulative: u64) -> bool {
        self.consumed = self.consumed.max(self.taken.min(cumulative));
        while self.consumed < cumulative && self.discard != Discard::No {
            let Some(packet) = store.get(self.consumed) else {
                break;
            };
            match self.discard {
                Discard::No => {}
                Discard::UntilFirst if packet.first => {
                    self.discard = Discard::No;
                    self.missed.late = self.missed.late.map(|(at, _)| (at, false));
                }
                Discard::UntilFirst => {
                    self.consumed += 1;
                    self.note_late();
                }
                Discard::ToEnd => {
                    self.consumed += 1;
                    if packet.last {
                        self.discard = Discard::No;
                        self.message_start = None;
                    }
                }
            }
        }
        self.discard == Discard::No && self.consumed < cumulative
    }

    /// A late start: nothing before `consumed` was delivered that is not known to be stable.
    fn note_late(&mut self) {
        self.missed.late = Some((self.consumed, true));
        self.unbroken.1 = self.unbroken.1.wrapping_add(1);
    }

    /// The group went on without this host: nothing before `position` will come.
    /// True if a message breaks off.
    pub fn skip_to(&mut self, position: u64) -> bool {
        let broke = self.message_start.take().is_some() && self.discard == Discard::No;
        self.consumed = position;
        self.read_offset = 0;
        self.awaiting_confirm = false;
        self.discard = Discard::UntilFirst;
        self.message_end = self.message_end.max(position);
        self.note_late();
        self.ack_due = true;
        broke
    }

    /// The rest of the message being read will not come; true if there is one.
    pub fn break_off(&mut self) -> bool {
        self.read_offset = 0;
        self.awaiting_confirm = false;
        self.message_start.take().is_some() && self.discard == Discard::No
    }

    /// Whether the next ACK says more than how far this member has come.
    pub fn says_more(&self) -> bool {
        let has_marks = self.congestion != self.acked_congestion;
        let has_duplicates = self.duplicates != self.acked_duplicates;
        !self.has_answered || has_marks || has_duplicates || self.misses_any()
    }

    /// What the next ACK would say is known: unless it is due, or tells the delay of so many packets, it need not leave.
    pub fn drop_ack(&mut self, measured_packets: u32) {
        if !self.ack_due && self.since_ack < measured_packets {
            self.since_ack = 0;
            self.ack_deadline = None;
            self.last_arrival = None;
            self.forward_least_us = None;
        }
    }

    /// Packets with CE to be reported in the ACK that leaves, all in all: at each ACK those here or at
    /// the member below that had the most.
    pub fn take_marks(&mut self, below: u32) -> u32 {
        let packets = self.packets.wrapping_sub(self.acked_packets);
        let own = self.congestion.wrapping_sub(self.acked_congestion);
        self.acked_packets = self.packets;
        self.acked_congestion = self.congestion;
        self.reported_congestion = self
            .reported_congestion
            .wrapping_add(own.max(below.min(packets)));
        self.reported_congestion
    }

    /// Whole messages have come up to here.
    pub fn note_message_end(&mut self, end: u64) {
        self.message_end = end;
        self.open_ends.push_back(end);
    }

    /// Where the message begins that is not stable, or not as a whole; not after that.
    pub fn open_from(&self) -> u64 {
        self.open_from
    }

    /// Up to where whole messages have come.
    pub fn message_end(&self) -> u64 {
        self.message_end
    }

    /// A packet came from the parent, so long after it was sent.
    pub fn note_parent_arrival(&mut self, tx_time: u32, now: Instant) {
        self.last_arrival = Some((tx_time, now));
        let delay = now.stamp().wrapping_sub(tx_time);
        self.forward_least_us = Some(match self.forward_least_us {
            Some(least) if (least.wrapping_sub(delay) as i32) < 0 => least,
            _ => delay,
        });
    }

    /// A data packet came: acknowledge at once, after so many, or after a while.
    pub fn note_arrival(&mut self, at_once: bool, every: u32, delay_us: u64, now: Instant) {
        self.since_ack += 1;
        if at_once || self.since_ack >= every {
            self.ack_due = true;
        } else {
            let deadline = now.plus_us(delay_us);
            let before = self.ack_deadline.unwrap_or(deadline);
            self.ack_deadline = Some(before.min(deadline));
        }
    }

    /// The packet that came is a message of its own, and the first since the last ACK: that it is here need
    /// not be reported before those below have it too, which follows soon. A parent waits for two delays before it asks.
    pub fn await_below(&mut self, delay_us: u64, now: Instant) {
        if self.since_ack == 1 && !self.ack_due {
            self.ack_deadline = Some(now.plus_us(2 * delay_us));
        }
    }

    pub fn request_ack(&mut self) {
        self.ack_due = true;
    }

    /// The subtree's confirmation stands at `stable`; the end of a message is told
    /// at once, if not `rare`.
    pub fn note_stable(&mut self, stable: u64, delay_us: u64, rare: bool, now: Instant) {
        if stable <= self.advertised_stable {
            return;
        }
        if !rare && stable >= self.message_end && self.message_end > self.advertised_stable {
            self.ack_due = true;
        } else if self.ack_deadline.is_none() {
            self.ack_deadline = Some(now.plus_us(delay_us));
        }
    }

    pub fn ack_deadline(&self) -> Option<Instant> {
        [self.ack_deadline, self.unsettled_at]
            .into_iter()
            .flatten()
            .min()
    }

    pub fn handle_timeout(&mut self, now: Instant) {
        self.say_again(now);
        if self.ack_deadline.is_some_and(|deadline| deadline <= now) {
            self.ack_deadline = None;
            self.ack_due = true;
        }
    }

    /// A packet finds no room. Now and then an ACK goes with the NACK: a parent that does not know what is here,
    /// as of a new memory, would send the same for ever, and not what comes first.
    pub fn refuse(&mut self, nack: Nack, now: Instant) {
        self.nack_at = now;
        self.nack = Some(nack);
        self.nacks += 1;
        if self.nacks >= NACKS_AN_ACK {
            self.ack_due = true;
        }
    }

    pub fn is_ack_due(&self) -> bool {
        self.ack_due
    }

    /// An ACK leaves that says `stable`. The longest queueing delay from the origin to a member
    /// below is `queued_us`: where switches copy, the slowest member rules the stream.
    pub fn take_ack(&mut self, stable: u64, queued_us: u64, now: Instant) -> Option<Echo> {
        self.ack_due = false;
        self.nacks = 0;
        self.is_for_origin = false;
        self.ack_deadline = None;
        self.since_ack = 0;
        self.advertised_stable = stable;
        self.acked_duplicates = self.duplicates;
        self.has_answered = true;
        let (tx_time, arrived) = self.last_arrival.take()?;
        let least_us = self.forward_least_us.take()?;
        let beyond_us = queued_us.saturating_sub(self.queueing.add(least_us, now));
        let forward_delay_us = least_us.wrapping_add(beyond_us as u32);
        let delay_us = now.since_us(arrived).min(u64::from(u32::MAX)) as u32;
        Some(Echo {
            tx_time,
            delay_us,
            forward_delay_us,
        })
    }
}
