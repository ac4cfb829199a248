//! The writing side at the origin: messages cut into packets, the window, and what
//! became of each message at each member.

use super::Session;
use super::messages::{Message, Sending};
use super::shared::Shared;
use crate::child::Child;
use crate::config::WINDOW_PACKETS_LEAST;
use crate::event::Event;
use crate::event::UseError;
use crate::time::Instant;
use crate::window::store::Packet;
use wormcast_wire::FailReason;
use wormcast_wire::HostId;

/// Members that count as dead for a message that ends there, if it becomes stable now.
pub(super) fn dead_for(
    children: &[Child],
    end: Option<u64>,
) -> impl Iterator<Item = (HostId, FailReason)> + '_ {
    let children = children.iter().filter(move |child| {
        let is_reported = |end: u64| end <= child.report.stable();
        child.excluded || end.is_some_and(is_reported)
    });
    let failures = children.flat_map(Child::failures);
    let dead = failures.filter(|failure| failure.reason.is_host_dead());
    dead.map(|failure| (failure.host, failure.reason))
}

impl Session {
    pub(super) fn has_window(&self, shared: &Shared) -> bool {
        let limits = &shared.config.limits;
        let packets = self.cumulative - self.stable;
        packets < u64::from(limits.origin_window_packets)
            && (packets < WINDOW_PACKETS_LEAST || self.store.bytes() < limits.origin_window_bytes)
    }

    /// Takes bytes of the message; see [`crate::Engine::write`].
    pub fn write(
        &mut self,
        bytes: &[u8],
        end_of_message: bool,
        shared: &mut Shared,
        now: Instant,
    ) -> Result<usize, UseError> {
        self.touched = now;
        let payload_max = self.payload_max(shared);
        self.cut_long_draft(shared, now);
        let mut accepted = 0;
        loop {
            let left = bytes.len() - accepted;
            let full = |sending: &Sending| sending.draft.len() >= payload_max && left > 0;
            let room =
                !self.sending.as_ref().is_some_and(full) || self.may_emit(false, shared, now);
            let group = self.group;
            let Some(sending) = &mut self.sending else {
                return Ok(0);
            };
            if sending.end_waits {
                sending.blocked = true;
                // None of no bytes accepted would read like success.
                return if bytes.is_empty() && end_of_message {
                    Err(UseError::EndWaits { group })
                } else {
                    Ok(0)
                };
            }
            if sending.draft.len() >= payload_max && left > 0 {
                if !room {
                    sending.blocked = true;
                    break;
                }
                self.emit_packet(false, false, shared, now);
                continue;
            }
            let take = left.min(payload_max.saturating_sub(sending.draft.len()));
            sending
                .draft
                .extend_from_slice(&bytes[accepted..accepted + take]);
            if take > 0 {
                sending.begin_message(self.cumulative);
            }
            accepted += take;
            sending.accepted_bytes += take as u64;
            if accepted == bytes.len() {
                break;
            }
        }
        if let Some(sending) = &mut self.sending
            && end_of_message
            && accepted == bytes.len()
        {
            sending.begin_message(self.cumulative);
            sending.end_waits = true;
            self.write_pending_end(shared, now);
        }
        Ok(accepted)
    }

    /// Sends what has been written so far, though it fills no packet.
    pub fn flush(&mut self, shared: &mut Shared, now: Instant) {
        self.cut_long_draft(shared, now);
        let draws = |sending: &Sending| !sending.end_waits && !sending.draft.is_empty();
        let room = self.sending.as_ref().is_some_and(draws) && self.may_emit(false, shared, now);
        if let Some(sending) = &mut self.sending
            && room
            && !sending.end_waits
            && !sending.draft.is_empty()
        {
            self.emit_packet(false, false, shared, now);
        }
    }

    /// Ends the message if one is begun, and asks for [`Event::Finished`].
    pub fn finish(&mut self, shared: &mut Shared, now: Instant) {
        if let Some(sending) = &mut self.sending {
            sending.end_waits |= sending.in_message || !sending.draft.is_empty();
            sending.finish_wanted = true;
        }
        self.write_pending_end(shared, now);
        self.settle_messages(shared);
    }

    /// Gives up the message being written.
    pub fn cancel(&mut self, shared: &mut Shared, now: Instant) {
        let Some(sending) = &mut self.sending else {
            return;
        };
        if sending.end_waits {
            // The message written last has been ended; no other is begun.
            return;
        }
        sending.drop_draft();
        if sending.in_message {
            sending.end_waits = true;
            sending.cancel_waits = true;
            self.write_pending_end(shared, now);
        }
    }

    /// Writes the last packet of a message that waited for room, and lets the
    /// application go on.
    pub(super) fn write_pending_end(&mut self, shared: &mut Shared, now: Instant) {
        self.cut_long_draft(shared, now);
        let ends = self
            .sending
            .as_ref()
            .is_some_and(|sending| sending.end_waits);
        let room = if ends {
            self.may_emit(true, shared, now)
        } else {
            self.has_window(shared)
        };
        let Some(sending) = &mut self.sending else {
            return;
        };
        if !room {
            return;
        }
        if sending.end_waits {
            let cancel = core::mem::take(&mut sending.cancel_waits);
            sending.end_waits = false;
            self.emit_packet(true, cancel, shared, now);
        }
        let group = self.group;
        if let Some(sending) = &mut self.sending
            && core::mem::take(&mut sending.blocked)
        {
            shared.emit(Event::Writable { group });
        }
    }

    fn emit_packet(&mut self, last: bool, cancel: bool, shared: &mut Shared, now: Instant) {
        self.emit_part(usize::MAX, (last, cancel), shared, now);
    }

    /// Writes a packet of so many bytes of the draft, or all there are.
    pub fn emit_part(
        &mut self,
        end: usize,
        (last, cancel): (bool, bool),
        shared: &mut Shared,
        now: Instant,
    ) {
        let Some(sending) = &mut self.sending else {
            return;
        };
        let first = !sending.in_message;
        sending.in_message = !last;
        if first {
            sending.begin_message(self.cumulative);
            if let Some(taken) = sending.messages_by_choice.get_mut(usize::from(self.choice)) {
                *taken += 1;
            }
        }
        let end = sending.draft.len().min(end);
        let payload = shared.pools.take(&sending.draft[..end], None);
        sending.draft.drain(..end);
        self.store.insert(
            self.cumulative,
            Packet {
                payload,
                first,
                last,
                cancel,
                pool: None,
                came: now,
            },
        );
        self.cumulative += 1;
        if last {
            sending.announced = sending.announced_after.take();
        }
        if last && let Some(message) = sending.messages.back_mut() {
            message.end = Some(self.cumulative);
            message.cancelled = cancel;
            sending.messages_ended += 1;
        }
        for index in 0..self.children.len() {
            self.settle_child(index, now);
        }
        self.note_stability(shared, now);
    }

    /// Tells of messages that have become stable.
    pub(super) fn settle_messages(&mut self, shared: &mut Shared) {
        let Session {
            sending, children, ..
        } = self;
        let Some(sending) = sending else {
            return;
        };
        let (group, host) = (self.group, self.origin);
        let is_stable = |message: &Message| message.end.is_some_and(|end| end <= self.stable);
        while sending.messages.front().is_some_and(is_stable)
            && let Some(mut message) = sending.messages.pop_front()
        {
            sending.messages_stable += 1;
            if message.cancelled {
                continue;
            }
            for (host, reason) in dead_for(children, message.end) {
                message.failed.entry(host).or_insert(reason);
            }
            let number = message.number;
            let (confirmed, failed) = sending.outcome(message, host);
            shared.emit(Event::Stable {
                group,
                message: number,
                confirmed,
                failed,
            });
        }
        let written = self.stable == self.cumulative && sending.draft.is_empty();
        if sending.finish_wanted && written && !sending.end_waits {
            sending.finish_wanted = false;
            shared.emit(Event::Finished { group });
        }
    }

    /// What the child reports of living members that miss messages, itself or below, is noted with these.
    pub(super) fn note_failed(&mut self, index: usize, shared: &mut Shared) {
        let group = self.group;
        let Some(sending) = &mut self.sending else {
            return;
        };
        let failed = self.children[index].report.failed().iter();
        for failure in failed.filter(|failure| !failure.reason.is_host_dead()) {
            for message in sending.note_failed(failure) {
                shared.emit(Event::MemberAborted {
                    group,
                    message,
                    host: failure.host,
                    reason: failure.reason,
                });
            }
        }
    }
}
