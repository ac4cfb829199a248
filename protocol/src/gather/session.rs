//! ACKs that switches gather (`wire/SPEC.md` §3.2): what a member says, and how seldom it then acknowledges to its
//! parent; what the origin makes of what comes. Nothing depends on them: they only make ACKs between hosts rarer.

use crate::child::Patience;
use crate::event::Transmit;
use crate::gather::words::{EVERY_PACKETS, Gathering, Heard};
use crate::reject::Reject;
use crate::session::Session;
use crate::session::shared::Shared;
use crate::time::Instant;
use crate::window::congestion::Round;
use wormcast_wire::HostId;
use wormcast_wire::Seq;
use wormcast_wire::gather::Announcement;
use wormcast_wire::gather::Op;

/// How long an ACK to the parent waits where gathered ACKs come and say the same, µs.
const HOST_ACK_US: u64 = 25_000;
/// Packets since the last ACK to the parent for which one leaves in any case, since it tells their delay.
const MEASURED_PACKETS: u32 = 32;
/// How long a parent waits there before it asks a child that is silent, µs: two such times, and a way.
const CHILD_PATIENCE_US: u64 = 60_000;
/// How long an origin waits there for a word that only confirms, µs.
const CONFIRM_PATIENCE_US: u64 = 100_000;

impl Session {
    /// The epoch by which switches gather the ACKs of the stream as it travels now, and from whom they come to the origin.
    fn gathered(&self) -> Option<(u32, HostId)> {
        let gathered = self.plan.gathered.as_ref()?;
        let source = gathered.origins.get(&self.origin)?;
        let is_gathered = self.is_copied() && !self.detached;
        is_gathered.then_some((gathered.epoch, *source))
    }

    /// Speaks by the plan in force from now on.
    pub(crate) fn join_gathering(&mut self, now: Instant) {
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
    pub(crate) fn gathers(&self) -> bool {
        self.gathering.is_some() || self.heard.is_some()
    }

    /// At the origin: whether gathered ACKs have come.
    pub(crate) fn hears_gathered(&self) -> bool {
        self.heard.as_ref().is_some_and(|heard| heard.has_come)
    }

    /// This host has more, or has confirmed more.
    pub(crate) fn note_word(&mut self, delay_us: u64, now: Instant) {
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
    pub(crate) fn note_gathered_stable(&mut self, now: Instant) {
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
    pub(crate) fn rare_ack_us(&self, now: Instant) -> Option<u64> {
        let comes = self.gathering.as_ref().is_some_and(|own| own.comes(now));
        let reception = self.reception.as_ref().filter(|_| comes)?;
        let has_gap = self.store.end() > self.cumulative;
        let below = self.children.iter().any(|child| child.says_more());
        (!has_gap && !below && !reception.says_more()).then_some(HOST_ACK_US)
    }

    /// How long children may be silent before they are asked.
    pub(crate) fn patience(&self, now: Instant) -> Patience {
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
    pub(crate) fn handle_gathering_timeout(&mut self, now: Instant) {
        if let Some(gathering) = &mut self.gathering {
            gathering.handle_timeout(now);
        }
    }

    /// Writes the member's own word that is due.
    pub(crate) fn poll_gathering(
        &mut self,
        shared: &mut Shared,
        now: Instant,
        buf: &mut [u8],
    ) -> Option<Transmit> {
        let word = self.word()?;
        let known = self.stable;
        let gathering = self.gathering.as_mut().filter(|own| own.due)?;
        let announced = Announcement {
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
        Some(shared.encode_gathered(buf, &announced))
    }

    /// At the origin: an ACK of all members of the plan.
    pub fn handle_gathered(
        &mut self,
        announced: &Announcement,
        sender: HostId,
        shared: &mut Shared,
        now: Instant,
    ) -> Result<(), Reject> {
        let (epoch, source) = self.gathered().ok_or(Reject::GatheredUnasked)?;
        if announced.op != Op::Ack || sender != source {
            return Err(Reject::GatheredUnasked);
        }
        // Of other members, or of another life: those of now say it again until it is known.
        if (announced.epoch, announced.stream) != (epoch, self.stream) {
            return Err(Reject::GatheredStale);
        }
        let cumulative = announced.cumulative.expand(self.cumulative);
        let stable = announced.stable.expand(self.cumulative);
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
