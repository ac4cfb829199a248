//! ACKs: made for the parent, aggregated over all below, and taken from children.

use super::Session;
use super::broadcast::Broadcast;
use super::shared::Shared;
use crate::child::{Acked, Child, Memory};
use crate::config::WINDOW_PACKETS_MAX;
use crate::event::Transmit;
use crate::reject::Reject;
use crate::time::Instant;
use crate::window::congestion::Round;
use wormcast_wire::FailReason;
use wormcast_wire::ack::{Ack, FAILED_MAX, FailedMember, List, RANGES_MAX, SeqRange};
use wormcast_wire::pdu::Body;
use wormcast_wire::{BufferClass, HostId, Seq};

/// A list of bounded length on the stack.
struct Bounded<T: Copy, const N: usize> {
    items: [T; N],
    length: usize,
    more: bool,
}

impl<T: Copy, const N: usize> Bounded<T, N> {
    fn new(fill: T) -> Self {
        Bounded {
            items: [fill; N],
            length: 0,
            more: false,
        }
    }

    fn push(&mut self, item: T) {
        if self.length < N {
            self.items[self.length] = item;
            self.length += 1;
        } else {
            self.more = true;
        }
    }

    fn as_slice(&self) -> &[T] {
        &self.items[..self.length]
    }
}

impl Session {
    /// Writes the ACK that is due to the parent.
    pub(super) fn poll_ack(
        &mut self,
        shared: &mut Shared,
        now: Instant,
        buf: &mut [u8],
    ) -> Option<Transmit> {
        if !self.reception.as_ref()?.is_ack_due() {
            return None;
        }
        let stable = self.subtree_stable();
        let ranges = self.received_runs();
        let failed = self.failed_members(shared.config.host);
        let common = self.common();
        let below = self.children.iter_mut().filter(|child| child.copied);
        let (mut queued_us, mut marked) = (0, 0);
        for child in below {
            queued_us = child.queued_us(now).max(queued_us);
            marked = core::mem::take(&mut child.marked).max(marked);
        }
        let reception = self.reception.as_mut()?;
        let to = match reception.is_for_origin() {
            true => Some(self.origin),
            false => self.parent,
        };
        let ack = Ack {
            epoch: self.epoch,
            receiver: reception.identity,
            cumulative: Seq::of(self.cumulative),
            stable: Seq::of(stable),
            echo: reception.take_ack(stable, queued_us, now),
            packets: reception.packets,
            duplicates: reception.duplicates,
            congestion: reception.take_marks(marked),
            retransmissions: (self.statistics.retransmissions
                + self.statistics.retransmissions_below) as u32,
            ranges: List::Values(ranges.as_slice()),
            failed: List::Values(failed.as_slice()),
            failed_more: failed.more,
        };
        if let Some(gathering) = &mut self.gathering {
            gathering.note_host_ack(stable);
        }
        self.statistics.acks_sent += 1;
        shared.encode_to(buf, to?, BufferClass::One, &common, &Body::Ack(ack))
    }

    /// The run that grew last, then the lowest ones: those a sender acts on first.
    fn received_runs(&self) -> Bounded<SeqRange, RANGES_MAX> {
        let mut ranges = Bounded::new(SeqRange {
            start: Seq(0),
            end: Seq(0),
        });
        let recent = self
            .reception
            .as_ref()
            .and_then(|reception| reception.recent);
        let recent_run = recent.and_then(|recent| self.store.run_of(recent));
        let recent_run = recent_run.filter(|(_, end)| *end > self.cumulative);
        if let Some((start, end)) = recent_run {
            ranges.push(SeqRange {
                start: Seq::of(start.max(self.cumulative)),
                end: Seq::of(end),
            });
        }
        for (start, end) in self.store.runs(self.cumulative).take(RANGES_MAX) {
            if !recent.is_some_and(|recent| (start..end).contains(&recent)) {
                ranges.push(SeqRange {
                    start: Seq::of(start),
                    end: Seq::of(end),
                });
            }
        }
        ranges
    }

    /// All members at and below this host that miss a message.
    fn failed_members(&self, host: HostId) -> Bounded<FailedMember, FAILED_MAX> {
        let fill = FailedMember {
            host,
            reason: FailReason::Late,
            at: Seq(0),
        };
        let mut failed = Bounded::new(fill);
        if let Some(reception) = &self.reception {
            reception
                .missed(host)
                .for_each(|member| failed.push(member));
        }
        for child in &self.children {
            if child.excluded {
                let at = Seq::of(child.stable);
                let reason = child.reported.unwrap_or(FailReason::Silent);
                failed.push(FailedMember {
                    host: child.host,
                    reason,
                    at,
                });
                for host in &child.below {
                    let reason = FailReason::Orphaned;
                    failed.push(FailedMember {
                        host: *host,
                        reason,
                        at,
                    });
                }
            } else {
                child.failed.iter().for_each(|member| failed.push(*member));
                failed.more |= child.failed_more;
            }
        }
        failed
    }

    /// Where the packets end that a peer may have, as far as this host can know.
    pub(super) fn known_end(&self) -> u64 {
        match self.sending {
            // What nobody needed was never sent.
            Some(_) => self.sent_end.max(self.stable),
            // A host that moved here may be ahead of this one, but not of the origin.
            None => self.cumulative + u64::from(WINDOW_PACKETS_MAX),
        }
    }

    pub(super) fn child_index(&self, host: HostId) -> Result<usize, Reject> {
        let index = self.children.iter().position(|child| child.host == host);
        index.ok_or(Reject::NotChild)
    }

    /// Whether all that the ACK of a child says can be; gives `cumulative` and `stable` as positions.
    fn check_ack(&self, index: usize, ack: &Ack<'_>) -> Result<(u64, u64), Reject> {
        let near = self.cumulative;
        let cumulative = ack.cumulative.expand(near);
        let stable = ack.stable.expand(near);
        let end_most = match self.sending {
            Some(_) => self.known_end(),
            None => self.cumulative.max(cumulative) + u64::from(WINDOW_PACKETS_MAX),
        };
        let ranges_can_be = ack.ranges().all(|range| {
            let (start, end) = (range.start.expand(near), range.end.expand(near));
            start < end && end <= end_most
        });
        // What returns passes by all hosts before the origin.
        let returns = self.children[index].below.contains(&self.origin);
        let names_origin = !returns && ack.failed().any(|member| member.host == self.origin);
        if cumulative > self.known_end() || stable > cumulative || !ranges_can_be || names_origin {
            return Err(Reject::AckImpossible);
        }
        Ok((cumulative, stable))
    }

    /// At the origin: a member that is no child of this host has not heard that all it has is stable.
    fn answer_member(&mut self, ack: &Ack<'_>, sender: HostId) -> Option<()> {
        let all_stable = ack.cumulative.expand(self.cumulative) <= self.stable;
        let sending = self.sending.as_mut().filter(|_| all_stable)?;
        if !sending.members.contains(&sender) {
            return None;
        }
        sending.answers.insert(sender);
        Some(())
    }

    /// A member of an ordered group waits for a message of this host's stream and knows nothing of the
    /// stream. If all have the message, or its stream is over, it came before the member did.
    pub fn answer_asked(&mut self, stream: u32, start: Seq, sender: HostId) {
        let is_over = Seq(self.stream).is_after(Seq(stream));
        let is_stable = stream == self.stream && start.expand(self.stable) < self.stable;
        if let Some(sending) = &mut self.sending
            && (is_over || is_stable)
        {
            sending.answers.insert(sender);
        }
    }

    /// An ACK from a child: checked as a whole, then applied.
    pub fn handle_ack(
        &mut self,
        ack: &Ack<'_>,
        sender: HostId,
        shared: &mut Shared,
        now: Instant,
    ) -> Result<(), Reject> {
        let index = match self.child_index(sender) {
            Ok(index) => index,
            Err(reject) => return self.answer_member(ack, sender).ok_or(reject),
        };
        let (cumulative, stable) = self.check_ack(index, ack)?;
        let memory =
            self.children[index].judge_receiver(ack.receiver, &shared.config.timing, now)?;
        self.touched = now;
        let stable_here = self.stable;
        let child = &mut self.children[index];
        match memory {
            Memory::Known => {}
            Memory::First => child.receiver = Some(ack.receiver),
            Memory::Lost => child.reset(ack.receiver, cumulative.max(stable_here), stable_here),
        }
        child.hold_against_gathered(cumulative.max(stable_here), &shared.config.timing, now);
        let mut acked = Acked::default();
        let progress_before = (child.cumulative(), child.stable);
        // It will not get what it misses; it has to know.
        child.is_behind = cumulative < stable_here;
        if child.is_behind {
            child.probe.get_or_insert(None);
        }
        child.acknowledge_before(cumulative.max(stable_here), &mut acked);
        for range in ack.ranges() {
            let start = range.start.expand(self.cumulative);
            let end = range.end.expand(self.cumulative);
            if end > child.cumulative() {
                child.acknowledge_run(start, end, &self.store, &mut acked, now);
            }
        }
        if memory != Memory::Known || self.broadcast.is_some() {
            // A TREE worm reaches whom it reaches; what went by before the child was
            // there, or while it was given up, is made up for.
            let sent = self.broadcast.as_ref().map_or(0, Broadcast::next);
            child.catch_up(sent, &self.store, now);
        }
        if child.excluded {
            child.refresh_pending();
        }
        self.statistics.acks_received += 1;
        if ack.epoch == self.epoch {
            child.stable = child.stable.max(stable);
            child.stable_current = true;
        }
        child.failed.clear();
        child.failed.extend(ack.failed());
        child.failed_more = ack.failed_more;
        let below = &mut self.statistics.retransmissions_below;
        *below = *below - u64::from(child.below_retransmissions) + u64::from(ack.retransmissions);
        child.below_retransmissions = ack.retransmissions;
        let progress = acked.packets > 0 || (child.cumulative(), child.stable) != progress_before;
        child.note_heard(progress, now);
        if !progress && cumulative <= stable_here {
            // It has not heard that all it has is stable: what told it was lost.
            child.status_due = true;
            child.told_stable = 0;
        }
        self.measure(index, ack, &acked, shared, now);
        self.end_round(index, shared, now);
        self.gather_repairs(index, now);
        self.note_failed(index, shared);
        self.settle_child(index, now);
        self.note_stability(shared, now);
        Ok(())
    }

    /// Round trip, delay, marks and losses an ACK tells of.
    fn measure(
        &mut self,
        index: usize,
        ack: &Ack<'_>,
        acked: &Acked,
        shared: &Shared,
        now: Instant,
    ) {
        let is_rare = self.hears_gathered();
        let child = &mut self.children[index];
        let settled_at = match &self.broadcast {
            Some(broadcast) => broadcast.congestion.settled_at(),
            None => child.congestion.settled_at(),
        };
        if child.copied {
            child.measure_copied(ack.echo, acked, now);
        } else if let Some(echo) = ack.echo {
            let age_us = now.stamp().wrapping_sub(echo.tx_time);
            let rtt_us = u64::from(age_us.wrapping_sub(echo.delay_us));
            // Half the range: such an echo is no echo of this host's clock.
            if rtt_us < 1 << 31 {
                let settled = settled_at.plus_us(age_us.into()) <= now;
                let sent = now.as_micros().checked_sub(age_us.into());
                let route = sent.and_then(|sent| child.routes.at(Instant::from_micros(sent)));
                let route = match self.broadcast {
                    Some(_) => Some(0),
                    None => route,
                };
                let forward = route.map(|route| (route, echo.forward_delay_us));
                child.path.add(rtt_us.max(1), forward, settled, now);
                if is_rare && settled {
                    let packets = ack.packets.wrapping_sub(child.seen_packets);
                    let every = shared.config.timing.ack_every_packets;
                    child.path.weigh(packets.min(WINDOW_PACKETS_MAX) / every);
                }
            }
        }
        child.note_duplicates(ack.duplicates);
        let packets = ack.packets.wrapping_sub(child.seen_packets);
        let marked = ack.congestion.wrapping_sub(child.seen_congestion);
        if packets < u32::MAX / 2 {
            child.seen_packets = ack.packets;
            child.seen_congestion = ack.congestion;
            child.marked = child.marked.saturating_add(marked.min(packets));
        }
        let lost = child.detect_loss(acked, now);
        let (copied, lost_by_window) = (child.copied, child.lost_by_window(lost));
        self.statistics.losses_detected += u64::from(lost);
        let congestion = match &mut self.broadcast {
            Some(broadcast) => &mut broadcast.congestion,
            None => &mut child.congestion,
        };
        if packets < u32::MAX / 2 && !copied {
            congestion.note_ack(packets, marked);
        }
        congestion.note_lost(lost_by_window);
    }

    /// Ends the round of the child, or of the TREE stream, when it is over.
    fn end_round(&mut self, index: usize, shared: &mut Shared, now: Instant) {
        let round = match &self.broadcast {
            Some(broadcast) => {
                // One that is silent does not hold up the others for long.
                let rtt_us = self.children[index].path.rtt_us();
                let patience = broadcast
                    .congestion
                    .settled_at()
                    .plus_us(2 * rtt_us + 10_000);
                let ready = |child: &Child| child.path.has_round() || child.excluded;
                if !self.children.iter().all(ready) && now < patience {
                    return;
                }
                // The slowest branch rules the stream.
                let rounds = self.children.iter_mut().filter_map(|child| {
                    child.note_round();
                    child.path.end_round()
                });
                rounds.fold(None, |slowest: Option<(u64, u64)>, (delay, rtt)| {
                    let (delay_most, rtt_most) = slowest.unwrap_or((0, 0));
                    Some((delay_most.max(delay), rtt_most.max(rtt)))
                })
            }
            None => {
                let child = &mut self.children[index];
                if !child.path.has_round() {
                    return;
                }
                child.note_round();
                child.path.end_round()
            }
        };
        let Some((queue_delay_us, rtt_us)) = round else {
            return;
        };
        let congestion = match &mut self.broadcast {
            Some(broadcast) => &mut broadcast.congestion,
            None => &mut self.children[index].congestion,
        };
        congestion.end_round(
            Round {
                queue_delay_us,
                rtt_us,
            },
            now,
        );
        if congestion.keeps_queue() {
            shared.note_queue(queue_delay_us, now);
        }
    }

    /// Whether the child still owes something, after any change of its state.
    pub(super) fn settle_child(&mut self, index: usize, now: Instant) {
        let end = self.cumulative.max(self.store.end());
        // That it confirmed what all have confirmed need not be said by it.
        let known = if self.gathers() { self.stable } else { 0 };
        let child = &mut self.children[index];
        let known = if child.excluded { 0 } else { known };
        child.set_owing(end, known, now);
        if !child.has_remote() {
            child.repair_at = None;
        }
    }
}
