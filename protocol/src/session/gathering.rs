//! ACKs that switches gather (`wire/SPEC.md` §3.2): what a member says, and how seldom it then acknowledges to its
//! parent; what the origin makes of what comes. Nothing depends on them: they only make ACKs between hosts rarer.

use super::Session;
use super::shared::Shared;
use crate::child::Patience;
use crate::event::Transmit;
use crate::reject::Reject;
use crate::time::Instant;
use crate::window::congestion::Round;
use crate::window::path::Path;
use wormcast_wire::gather::{Op, Said, flags};
use wormcast_wire::{HostId, Seq};

/// Packets after which a member speaks at once. All count by sequence numbers, and so alike: the least of all moves
/// once in so many.
const EVERY_PACKETS: u64 = 8;
/// Time until a member says again what is not known to be stable, µs. It doubles.
const REPEAT_US: u64 = 25_000;
const REPEAT_US_MAX: u64 = 32_000_000;
/// From this interval on switches are to pass on what is said again, µs. Each such ACK comes to the origin, while one
/// without REFRESH goes no further than it says anything new.
const REFRESH_US: u64 = 200_000;
/// How long an ACK to the parent waits where gathered ACKs come and say the same, µs.
const HOST_ACK_US: u64 = 25_000;
/// Packets since the last ACK to the parent for which one leaves in any case, since it tells their delay.
const MEASURED_PACKETS: u32 = 32;
/// How long a parent waits there before it asks a child that is silent, µs: two such times, and a way.
const CHILD_PATIENCE_US: u64 = 60_000;
/// How long an origin waits there for a word that only confirms, µs.
const CONFIRM_PATIENCE_US: u64 = 100_000;
/// Time without a sign that gathered ACKs come after which ACKs to the parent are as frequent as without, µs.
const PROOF_US: u64 = 500_000;
/// How long they are so at the beginning, µs: the window of the origin opens by them.
const FIRST_US: u64 = 200_000;
/// How long they are so when no sign came, µs, before another attempt. It doubles while none succeeds.
const USUAL_US: u64 = 1_000_000;
const USUAL_US_MAX: u64 = 8_000_000;

/// At a member: what it says for switches to gather, and whether that comes to the origin.
#[derive(Debug)]
pub(crate) struct Gathering {
    /// Of the plan's branches and members.
    epoch: u32,
    /// `cumulative` and `stable` as said last.
    told: (u64, u64),
    due: bool,
    refresh: bool,
    deadline: Option<Instant>,
    repeat_at: Option<Instant>,
    repeat_us: u64,
    /// The most that ACKs to other hosts have said to be stable here.
    host_told: u64,
    /// Since when something said is neither known to be stable nor was any sign seen.
    unproved_since: Option<Instant>,
    /// ACKs to the parent are as frequent as without, until then.
    usual_until: Instant,
    usual_us: u64,
}

impl Gathering {
    fn new(epoch: u32, now: Instant) -> Gathering {
        Gathering {
            epoch,
            told: (0, 0),
            due: false,
            refresh: false,
            deadline: None,
            repeat_at: None,
            repeat_us: REPEAT_US,
            host_told: 0,
            unproved_since: None,
            usual_until: now.plus_us(FIRST_US),
            usual_us: USUAL_US,
        }
    }

    /// This host holds everything before `cumulative`, and has confirmed all before `stable`; whole messages are here up to
    /// `message_end`.
    fn note(
        &mut self,
        (cumulative, stable): (u64, u64),
        message_end: u64,
        delay_us: u64,
        now: Instant,
    ) {
        if cumulative <= self.told.0 && stable <= self.told.1 {
            return;
        }
        let is_far = cumulative / EVERY_PACKETS > self.told.0 / EVERY_PACKETS;
        let is_whole = stable >= message_end && message_end > self.told.1;
        if is_far || is_whole {
            self.due = true;
        } else {
            self.deadline.get_or_insert(now.plus_us(delay_us));
        }
    }

    /// An ACK leaves for another host that says `stable`.
    pub fn note_host_ack(&mut self, stable: u64) {
        self.host_told = self.host_told.max(stable);
    }

    /// All members have everything before `stable`. That counts this host, so if no ACK to a host has said so much, a
    /// gathered one has.
    fn note_known(&mut self, stable: u64) {
        if stable > self.host_told {
            self.unproved_since = None;
            self.usual_us = USUAL_US;
        }
        if stable >= self.told.0 {
            self.repeat_at = None;
            self.repeat_us = REPEAT_US;
        }
    }

    /// It is said now; gives the flags. Everything before `known` is known to be stable.
    fn take(&mut self, word: (u64, u64), known: u64, now: Instant) -> u8 {
        if word > self.told {
            self.repeat_us = REPEAT_US;
        }
        let is_again = core::mem::take(&mut self.refresh);
        self.due = false;
        self.deadline = None;
        self.told = word;
        self.repeat_at = (word.0 > known).then(|| now.plus_us(self.repeat_us));
        if word.1 > known && now >= self.usual_until {
            self.unproved_since.get_or_insert(now);
        }
        if is_again { flags::REFRESH } else { 0 }
    }

    fn handle_timeout(&mut self, now: Instant) {
        if self.deadline.is_some_and(|at| at <= now) {
            self.deadline = None;
            self.due = true;
        }
        if self.repeat_at.is_some_and(|at| at <= now) {
            self.repeat_at = None;
            self.refresh = self.repeat_us >= REFRESH_US;
            self.repeat_us = (2 * self.repeat_us).min(REPEAT_US_MAX);
            self.due = true;
        }
        if self.has_no_sign(now) {
            self.usual_until = now.plus_us(self.usual_us);
            self.usual_us = (2 * self.usual_us).min(USUAL_US_MAX);
            self.unproved_since = None;
        }
    }

    fn has_no_sign(&self, now: Instant) -> bool {
        self.unproved_since
            .is_some_and(|since| now.since_us(since) >= PROOF_US)
    }

    /// Whether gathered ACKs are taken to come, so that ACKs to the parent may be rare.
    fn comes(&self, now: Instant) -> bool {
        now >= self.usual_until && !self.has_no_sign(now)
    }

    /// When there is something to do.
    pub fn timeout(&self, now: Instant) -> Option<Instant> {
        let due = self.due.then_some(now);
        let silent = self.unproved_since.map(|since| since.plus_us(PROOF_US));
        let all = [due, self.deadline, self.repeat_at, silent];
        all.into_iter().flatten().min()
    }
}

/// At the origin: what has come of the plan's epoch and this stream.
#[derive(Debug)]
pub(crate) struct Heard {
    epoch: u32,
    /// Gathered ACKs have come.
    has_come: bool,
    /// Round trips of packets to the last member and back.
    path: Path,
}

impl Heard {
    fn new(epoch: u32) -> Heard {
        Heard {
            epoch,
            has_come: false,
            path: Path::new(),
        }
    }
}

impl Session {
    /// The epoch by which switches gather the ACKs of the stream as it travels now, and from whom they come to the origin.
    fn gathered(&self) -> Option<(u32, HostId)> {
        let gathered = self.plan.gathered.as_ref()?;
        let source = gathered.origins.get(&self.origin)?;
        let is_gathered = self.is_copied() && !self.detached;
        is_gathered.then_some((gathered.epoch, *source))
    }

    /// Speaks by the plan in force from now on.
    pub(super) fn join_gathering(&mut self, now: Instant) {
        let epoch = self.gathered().map(|(epoch, _)| epoch);
        let of_origin = epoch.filter(|_| self.sending.is_some());
        if self.heard.as_ref().map(|heard| heard.epoch) != of_origin {
            self.heard = of_origin.map(Heard::new);
            for child in &mut self.children {
                child.forget_gathered();
            }
        }
        if self.gathering.as_ref().map(|own| own.epoch) != epoch {
            let epoch = epoch.filter(|_| self.reception.is_some());
            self.gathering = epoch.map(|epoch| Gathering::new(epoch, now));
        }
    }

    /// Whether what is known to be stable may have become known by gathered ACKs alone.
    pub(super) fn gathers(&self) -> bool {
        self.gathering.is_some() || self.heard.is_some()
    }

    /// At the origin: whether gathered ACKs have come.
    pub(super) fn hears_gathered(&self) -> bool {
        self.heard.as_ref().is_some_and(|heard| heard.has_come)
    }

    /// This host has more, or has confirmed more.
    pub(super) fn note_word(&mut self, delay_us: u64, now: Instant) {
        let Some(word) = self.word() else {
            return;
        };
        if let (Some(gathering), Some(reception)) = (&mut self.gathering, &self.reception) {
            gathering.note(word, reception.message_end(), delay_us, now);
        }
    }

    /// What this host alone holds and has confirmed. A message that it will not have must not seem confirmed before
    /// the origin knows who lacks it, which only ACKs between hosts say.
    fn word(&self) -> Option<(u64, u64)> {
        let reception = self.reception.as_ref()?;
        let confirmed = if reception.misses_any() {
            self.stable
        } else {
            reception.consumed().max(self.stable)
        };
        Some((self.cumulative, confirmed))
    }

    /// All members have everything before what is known to be stable.
    pub(super) fn note_gathered_stable(&mut self, now: Instant) {
        if !self.gathers() {
            return;
        }
        let is_rare = self.rare_ack_us(now).is_some();
        let all_here = self.store.end() <= self.stable;
        if let Some(gathering) = &mut self.gathering {
            gathering.note_known(self.stable);
        }
        if let Some(reception) = self.reception.as_mut().filter(|_| is_rare && all_here) {
            reception.drop_ack(MEASURED_PACKETS);
        }
        for index in 0..self.children.len() {
            self.settle_child(index, now);
        }
    }

    /// How long an ACK to the parent may wait; none where it is to come as soon as without gathered ACKs, because it says
    /// more than those can.
    pub(super) fn rare_ack_us(&self, now: Instant) -> Option<u64> {
        let comes = self.gathering.as_ref().is_some_and(|own| own.comes(now));
        let reception = self.reception.as_ref().filter(|_| comes)?;
        let has_gap = self.store.end() > self.cumulative;
        let below = self.children.iter().any(|child| child.says_more());
        (!has_gap && !below && !reception.says_more()).then_some(HOST_ACK_US)
    }

    /// How long children may be silent before they are asked.
    pub(super) fn patience(&self, now: Instant) -> Patience {
        let comes = self.gathering.as_ref().is_some_and(|own| own.comes(now));
        if comes {
            Patience {
                in_flight_us: CHILD_PATIENCE_US,
                confirm_us: CHILD_PATIENCE_US,
            }
        } else if self.hears_gathered() {
            Patience {
                in_flight_us: 0,
                confirm_us: CONFIRM_PATIENCE_US,
            }
        } else {
            Patience::default()
        }
    }

    /// Acts on every time of the member's own word that has come.
    pub(super) fn handle_gathering_timeout(&mut self, now: Instant) {
        if let Some(gathering) = &mut self.gathering {
            gathering.handle_timeout(now);
        }
    }

    /// Writes the member's own word that is due.
    pub(super) fn poll_gathering(
        &mut self,
        shared: &mut Shared,
        now: Instant,
        buf: &mut [u8],
    ) -> Option<Transmit> {
        let word = self.word()?;
        let known = self.stable;
        let gathering = self.gathering.as_mut().filter(|own| own.due)?;
        let said = Said {
            op: Op::Ack,
            flags: gathering.take(word, known, now),
            group: self.group,
            origin: self.origin,
            port: 0,
            epoch: gathering.epoch,
            stream: self.stream,
            cumulative: Seq::of(word.0),
            stable: Seq::of(word.1),
        };
        self.statistics.gathered_sent += 1;
        Some(shared.encode_gathered(buf, &said))
    }

    /// At the origin: an ACK of all members of the plan.
    pub fn handle_gathered(
        &mut self,
        said: &Said,
        sender: HostId,
        shared: &mut Shared,
        now: Instant,
    ) -> Result<(), Reject> {
        let (epoch, source) = self.gathered().ok_or(Reject::GatheredUnasked)?;
        if said.op != Op::Ack || sender != source {
            return Err(Reject::GatheredUnasked);
        }
        // Of other members, or of another life: those of now say it again until it is known.
        if (said.epoch, said.stream) != (epoch, self.stream) {
            return Err(Reject::GatheredStale);
        }
        let cumulative = said.cumulative.expand(self.cumulative);
        let stable = said.stable.expand(self.cumulative);
        if cumulative > self.known_end() || stable > cumulative {
            return Err(Reject::AckImpossible);
        }
        self.touched = now;
        self.statistics.gathered_received += 1;
        let heard = self.heard.as_mut().ok_or(Reject::GatheredUnasked)?;
        heard.has_come = true;
        let mut latest = None;
        for child in &mut self.children {
            let acked = child.take_gathered(cumulative, stable, now);
            latest = latest.or(acked.latest_sent());
        }
        // Others were said after a while, not as the packet came.
        let is_prompt = cumulative.is_multiple_of(EVERY_PACKETS);
        if let (Some(sent), Some(broadcast)) = (latest, &mut self.broadcast)
            && is_prompt
        {
            let rtt_us = now.since_us(sent).max(1);
            let is_settled = broadcast.congestion.settled_at() <= sent;
            heard
                .path
                .add(rtt_us, Some((0, rtt_us as u32)), is_settled, now);
            if heard.path.has_round()
                && let Some((queue_delay_us, rtt_us)) = heard.path.end_round()
                && broadcast.congestion.may_double(queue_delay_us)
            {
                // The way back counts as well, so only that there is no queue at all is certain.
                let round = Round {
                    queue_delay_us,
                    rtt_us,
                };
                broadcast.congestion.end_round(round, now);
                for child in &mut self.children {
                    child.path.end_round();
                }
            }
        }
        for index in 0..self.children.len() {
            self.settle_child(index, now);
        }
        self.note_stability(shared, now);
        Ok(())
    }
}
