//! Reading at a member.

use super::Session;
use super::reception::{Missed, Reception};
use super::shared::Shared;
use crate::event::{Arrived, Event, LossReason, MessageArrival, Read, Unbroken, UseError};
use crate::time::Instant;
use wormcast_wire::{FailReason, Seq};

impl Session {
    /// See [`crate::Engine::read`].
    pub fn read(
        &mut self,
        buf: &mut [u8],
        shared: &mut Shared,
        now: Instant,
    ) -> Result<Read, UseError> {
        self.touched = now;
        let (group, origin) = (self.group, self.origin);
        let unknown = UseError::UnknownOrigin { group, origin };
        let Some(reception) = &mut self.reception else {
            return Err(unknown);
        };
        if reception.awaiting_confirm {
            return Err(UseError::NotConfirmed);
        }
        let mut read = Read::default();
        let before = reception.consumed();
        while reception.discard(&self.store, self.cumulative) {
            let Some(packet) = self.store.get(reception.consumed()) else {
                break;
            };
            if packet.cancel {
                reception.finish_packet(true);
                let reason = LossReason::Cancelled;
                shared.emit(Event::MessageLost {
                    group,
                    origin,
                    reason,
                });
                // What this call has put into the buffer is void with the rest. The
                // next message is announced anew, after the loss.
                self.announce_more(shared);
                self.after_consuming(shared, now);
                return Ok(Read::default());
            }
            reception.begin_packet(packet.first);
            reception.note_came(packet.came, packet.payload.len());
            let rest = &packet.payload[reception.read_offset..];
            let take = rest.len().min(buf.len() - read.length);
            buf[read.length..read.length + take].copy_from_slice(&rest[..take]);
            read.length += take;
            reception.read_offset += take;
            if reception.read_offset < packet.payload.len() {
                break;
            }
            if packet.last {
                reception.awaiting_confirm = true;
                read.end_of_message = true;
                break;
            }
            reception.finish_packet(false);
        }
        self.statistics.delivered_bytes += read.length as u64;
        let more = reception.awaiting_confirm || reception.consumed() < self.cumulative;
        if !more {
            reception.readable_reported = false;
        }
        if reception.consumed() > before {
            self.after_consuming(shared, now);
        }
        Ok(read)
    }

    /// See [`crate::Engine::confirm`].
    pub fn confirm(&mut self, shared: &mut Shared, now: Instant) -> Result<(), UseError> {
        let Some(reception) = &mut self.reception else {
            return Err(UseError::NothingToConfirm);
        };
        if !reception.awaiting_confirm {
            return Err(UseError::NothingToConfirm);
        }
        reception.finish_packet(true);
        self.statistics.delivered_messages += 1;
        self.announce_more(shared);
        self.after_consuming(shared, now);
        Ok(())
    }

    /// See [`crate::Engine::abort`].
    pub fn abort(&mut self, reason: FailReason, shared: &mut Shared, now: Instant) {
        if let Some(reception) = &mut self.reception {
            reception.abort(reason);
            reception.discard(&self.store, self.cumulative);
            self.announce_more(shared);
            self.after_consuming(shared, now);
        }
    }

    /// More can be read, of another message.
    fn announce_more(&mut self, shared: &mut Shared) {
        let Some(reception) = &mut self.reception else {
            return;
        };
        reception.readable_reported = reception.consumed() < self.cumulative;
        if reception.readable_reported {
            shared.emit(Event::Readable {
                group: self.group,
                origin: self.origin,
            });
        }
    }

    /// See [`crate::Engine::arrived`].
    pub fn arrived(&self) -> Arrived {
        let reception = self.reception.as_ref();
        let next = reception.map_or(self.cumulative, Reception::next_start);
        Arrived {
            origin: self.origin,
            stream: self.stream,
            next: Seq::of(next),
            stable: Seq::of(self.stable),
            unbroken: self.unbroken(),
        }
    }

    /// Which part of the stream without a gap is being read.
    fn unbroken(&self) -> Unbroken {
        let reception = self.reception.as_ref();
        reception.map_or(Unbroken::default(), |reception| reception.unbroken)
    }

    /// The first packet that has not been taken here, what is missed of those before, and since when no gap was; none if nothing has shown yet
    /// that the stream begins where it seemed to.
    pub fn taken(&self) -> Option<(Seq, Missed, Unbroken)> {
        let reception = self.reception.as_ref().filter(|_| self.proven)?;
        let taken = Seq::of(reception.consumed());
        Some((taken, reception.remember_missed(), reception.unbroken))
    }

    /// See [`crate::Engine::message_arrival`].
    pub fn message_arrival(&self) -> Option<MessageArrival> {
        self.reception.as_ref()?.came()
    }

    /// Whether there are messages that this member will not have, and not all know.
    pub fn misses_any(&self) -> bool {
        let reception = self.reception.as_ref();
        reception.is_some_and(Reception::misses_any)
    }

    /// Everything before was taken here, but for what was missed, in the same life of the stream.
    pub fn note_taken(&mut self, (taken, missed, unbroken): (Seq, Missed, Unbroken)) {
        let taken = taken.expand(self.cumulative);
        if let Some(reception) = &mut self.reception {
            reception.note_taken(taken, missed.moved_to(self.cumulative));
            reception.unbroken = unbroken;
        }
    }

    /// See [`crate::Engine::message_starts`].
    pub fn message_starts(&mut self, from: Seq, most: usize) -> Vec<Seq> {
        let Some(reception) = &mut self.reception else {
            return Vec::new();
        };
        reception.begin_reported = false;
        let from = from.expand(self.cumulative).max(reception.next_start());
        let store = &self.store;
        let is_first = |at: &u64| store.get(*at).is_some_and(|packet| packet.first);
        let starts = (from..self.cumulative).filter(is_first).take(most);
        starts.map(Seq::of).collect()
    }

    fn after_consuming(&mut self, shared: &mut Shared, now: Instant) {
        if let Some(reception) = &self.reception {
            let keep_from = self.stable.min(reception.consumed());
            self.release_before(keep_from, shared);
        }
        self.note_stability(shared, now);
    }
}
