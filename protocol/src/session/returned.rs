//! At the origin of a circuit that returns (WORM §5): what comes back from the last host is compared with
//! what was sent, which is held until it is stable, and acknowledged as by any child. So a message is stable
//! only when it has gone through all members and back.

use super::Session;
use super::reception::Reception;
use super::return_runs::Returned;
use super::shared::Shared;
use crate::event::{Event, Transmit};
use crate::reject::Reject;
use crate::time::Instant;
use crate::window::runs::Runs;
use wormcast_wire::ack::{Ack, List, RANGES_MAX, SeqRange};
use wormcast_wire::pdu::{Body, Data, Status};
use wormcast_wire::{BufferClass, FailReason, HostId, Seq};

impl Session {
    /// Where the plan says so, the stream comes back here from now on, or goes on to.
    pub(super) fn join_return(&mut self) {
        let returns = self.sending.is_some() && self.parent.is_some();
        let (end, stream) = (self.stable, self.stream);
        let new = || Returned {
            reception: Reception::new(end, stream),
            end,
            runs: Runs::default(),
        };
        self.returned = returns.then(|| self.returned.take().unwrap_or_else(new));
    }

    /// What says when to acknowledge: at a member, or at an origin for what comes back.
    pub(super) fn acknowledging_mut(&mut self) -> Option<&mut Reception> {
        let returned = self
            .returned
            .as_mut()
            .map(|returned| &mut returned.reception);
        self.reception.as_mut().or(returned)
    }

    /// Whether the stream starts here and comes back from that host.
    pub fn returns_from(&self, host: HostId) -> bool {
        self.returned.is_some() && self.parent == Some(host)
    }

    pub fn handle_returned(
        &mut self,
        data: &Data<'_>,
        marked: bool,
        shared: &mut Shared,
        now: Instant,
    ) -> Result<(), Reject> {
        let sent_end = self.known_end();
        let returned = self.returned.as_mut().ok_or(Reject::OwnStream)?;
        let position = data.seq.expand(returned.end);
        if position >= sent_end {
            return Err(Reject::BeyondWindow);
        }
        self.touched = now;
        let reception = &mut returned.reception;
        reception.note_parent_arrival(data.tx_time, now);
        reception.packets = reception.packets.wrapping_add(1);
        reception.congestion = reception.congestion.wrapping_add(marked.into());
        self.statistics.data_received_packets += 1;
        self.statistics.congestion_marks += u64::from(marked);
        // Whatever comes beside the order is reported at once.
        let has_gap = position != returned.end || returned.runs.after(position).next().is_some();
        let timing = &shared.config.timing;
        let (every, delay_us) = (timing.ack_every_packets, timing.ack_delay_us);
        reception.note_arrival(data.ack_now || has_gap, every, delay_us, now);
        if position < returned.end || returned.runs.containing(position).is_some() {
            reception.duplicates = reception.duplicates.wrapping_add(1);
            self.statistics.duplicates_received += 1;
            return Ok(());
        }
        returned.add(position, position + 1);
        self.statistics.data_received_bytes += data.payload.len() as u64;
        let is_same = self.store.get(position).is_some_and(|sent| {
            let flags = (sent.first, sent.last, sent.cancel);
            sent.payload == data.payload && flags == (data.first, data.last, data.cancel)
        });
        if !is_same {
            self.statistics.differences += 1;
            self.note_unreturned((position, position + 1), FailReason::Differs, shared);
        }
        Ok(())
    }

    /// A STATUS from the last host: this one knows best what is stable.
    pub fn handle_returned_status(&mut self, status: &Status) {
        if status.ack_now
            && let Some(returned) = &mut self.returned
        {
            returned.reception.request_ack();
        }
    }

    /// The last host has had packets and cannot send them back: it does not hold them, and who was to pass
    /// them on is gone.
    pub(super) fn give_up_return(&mut self, start: u64, end: u64, shared: &mut Shared) {
        let Some(returned) = &mut self.returned else {
            return;
        };
        let missing: Vec<(u64, u64)> = returned.runs.gaps(start.max(returned.end), end).collect();
        for &(start, end) in &missing {
            returned.add(start, end);
        }
        returned.reception.request_ack();
        for run in missing {
            self.note_unreturned(run, FailReason::Orphaned, shared);
        }
    }

    /// Packets have not come back as they were sent.
    fn note_unreturned(&mut self, run: (u64, u64), reason: FailReason, shared: &mut Shared) {
        let (group, host) = (self.group, self.origin);
        let Some(sending) = &mut self.sending else {
            return;
        };
        for message in sending.note_unreturned(host, run, reason) {
            if !reason.is_host_dead() {
                shared.emit(Event::MemberAborted {
                    group,
                    message,
                    host,
                    reason,
                });
            }
        }
    }

    /// Writes the ACK that is due to the last host.
    pub(super) fn poll_returned_ack(
        &mut self,
        shared: &mut Shared,
        now: Instant,
        buf: &mut [u8],
    ) -> Option<Transmit> {
        let (common, epoch, to) = (self.common(), self.epoch, self.parent?);
        let returned = self.returned.as_mut()?;
        if !returned.reception.is_ack_due() {
            return None;
        }
        let range = |(start, end)| SeqRange {
            start: Seq::of(start),
            end: Seq::of(end),
        };
        let runs = returned.runs.after(returned.end).map(range);
        // What is left out is sent again, and counts as a duplicate.
        let ranges: Vec<SeqRange> = runs.take(RANGES_MAX).collect();
        let reception = &mut returned.reception;
        let end = Seq::of(returned.end);
        let ack = Ack {
            epoch,
            receiver: reception.identity,
            cumulative: end,
            stable: end,
            echo: reception.take_ack(returned.end, 0, now),
            packets: reception.packets,
            duplicates: reception.duplicates,
            congestion: reception.take_marks(0),
            retransmissions: 0,
            ranges: List::Values(&ranges),
            failed: List::Values(&[]),
            sets: List::Values(&[]),
        };
        self.statistics.acks_sent += 1;
        shared.encode_to(buf, to, BufferClass::One, &common, &Body::Ack(ack))
    }
}
