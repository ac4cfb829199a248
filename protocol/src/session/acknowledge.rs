//! ACKs: made for the parent, aggregated over all below, and taken from children.

use super::Session;
use super::shared::Shared;
use super::worms::Broadcast;
use crate::child::{Acked, Memory};
use crate::config::WINDOW_PACKETS_MAX;
use crate::event::Transmit;
use crate::failure::{Word, failures};
use crate::reject::Reject;
use crate::time::Instant;
use wormcast_wire::ack::{Ack, List, RANGES_MAX, SeqRange};
use wormcast_wire::pdu::Body;
use wormcast_wire::{BufferClass, HostId, Seq};

/// Most ranges of received packets in an ACK that names failed members in sets, so that there is room for them in
/// the shortest frame.
const RANGES_BESIDE_SETS: usize = 8;

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
        let word = self.ack_word(shared.config.host);
        let sets = word.sets();
        let ranges_most = if sets.is_empty() {
            RANGES_MAX
        } else {
            RANGES_BESIDE_SETS
        };
        let ranges = self.received_runs(ranges_most);
        let common = self.common();
        let below = self.children.iter_mut().filter(|child| child.copied);
        let (mut queued_us, mut marked) = (0, 0);
        for child in below {
            queued_us = child.queued_us(now).max(queued_us);
            marked = core::mem::take(&mut child.marked).max(marked);
        }
        let reception = self.reception.as_mut()?;
        let to = if reception.is_for_origin() {
            // Without a place it knows nothing of who was below, and the origin may still count on what it says of them.
            Some(self.origin).filter(|_| !self.detached)
        } else {
            self.parent
        };
        let ack = Ack {
            epoch: self.epoch,
            receiver: reception.identity,
            cumulative: Seq::of(self.cumulative),
            stable: Seq::of(word.stable),
            echo: reception.take_ack(stable, queued_us, now),
            packets: reception.packets,
            duplicates: reception.duplicates,
            congestion: reception.take_marks(marked),
            retransmissions: (self.statistics.retransmissions
                + self.statistics.retransmissions_below) as u32,
            ranges: List::Values(&ranges),
            failed: List::Values(&word.listed),
            sets: List::Values(&sets),
        };
        reception.advertises_less = word.stable < stable;
        if let Some(gathering) = &mut self.gathering {
            gathering.note_host_ack(word.stable);
        }
        self.statistics.acks_sent += 1;
        shared.encode_to(buf, to?, BufferClass::One, &common, &Body::Ack(ack))
    }

    /// The run of the packet that came last, then the lowest ones: those a sender acts on first. `most` of them.
    fn received_runs(&self, most: usize) -> Vec<SeqRange> {
        let range = |(start, end): (u64, u64)| SeqRange {
            start: Seq::of(start.max(self.cumulative)),
            end: Seq::of(end),
        };
        let reception = self.reception.as_ref();
        let recent = reception.and_then(|reception| reception.recent);
        let recent_run = recent.and_then(|recent| self.store.run_of(recent));
        let recent_run = recent_run.filter(|(_, end)| *end > self.cumulative);
        let holds_recent =
            |run: &(u64, u64)| recent.is_some_and(|recent| (run.0..run.1).contains(&recent));
        let others = self.store.runs(self.cumulative).take(RANGES_MAX);
        let others = others.filter(|run| !holds_recent(run));
        recent_run
            .into_iter()
            .chain(others)
            .map(range)
            .take(most)
            .collect()
    }

    /// What this host says of `stable`, and of all members at and below it to which that does not apply.
    fn ack_word(&self, host: HostId) -> Word {
        let mut stable = self.subtree_stable();
        let (mut failed, mut open_from) = (Vec::new(), 0);
        if let Some(reception) = &self.reception {
            open_from = reception.open_from();
            stable = stable.min(reception.missed_until());
            failed.extend(reception.missed(host));
        }
        for child in &self.children {
            failed.extend(child.failures());
        }
        Word::new(stable, (self.stable, open_from), failed, &self.plan.members)
    }

    /// Where the packets end that a peer may have, as far as this host can know.
    pub fn known_end(&self) -> u64 {
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
        let mut failed = failures(ack, near, &self.plan.members);
        let names_origin = !returns && failed.any(|failure| failure.host == self.origin);
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

    /// A member of an ordered group waits for a message of this host's stream. If all have it, it came before the
    /// member did.
    pub fn answer_asked(&mut self, start: Seq, sender: HostId) {
        if start.expand(self.stable) < self.stable {
            self.answer(sender);
        }
    }

    /// A member is to be sent what is stable, and which life the stream has.
    pub fn answer(&mut self, member: HostId) {
        if let Some(sending) = &mut self.sending {
            sending.answers.insert(member);
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
        // Another epoch counts other members, by other places.
        if ack.epoch == self.epoch {
            let failed = failures(ack, stable_here, &self.plan.members);
            child.take_report(stable, failed);
        }
        let below = &mut self.statistics.retransmissions_below;
        *below = *below - u64::from(child.below_retransmissions) + u64::from(ack.retransmissions);
        child.below_retransmissions = ack.retransmissions;
        let progress = acked.packets > 0 || (child.cumulative(), child.stable) != progress_before;
        child.note_heard(progress, now);
        if !progress && cumulative <= stable_here {
            // It has not heard that all it has is stable: the message that had it was lost.
            child.status_due = true;
            child.advertised_stable = 0;
        }
        self.measure(index, ack, &acked, shared, now);
        self.end_round(index, shared, now);
        self.gather_repairs(index, now);
        self.note_failed(index, shared);
        self.settle_child(index, now);
        self.note_stability(shared, now);
        Ok(())
    }

    /// Whether the child still owes something, after any change of its state.
    pub fn settle_child(&mut self, index: usize, now: Instant) {
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
