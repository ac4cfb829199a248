//! What comes from the parent, and requests to the origin.

use super::Session;
use super::judgement::Arrival;
use super::shared::Shared;
use crate::config::WINDOW_PACKETS_MAX;
use crate::event::Event;
use crate::event::LossReason;
use crate::reject::Reject;
use crate::time::Instant;
use crate::window::store::Packet;
use wormcast_wire::BufferClass;
use wormcast_wire::HostId;
use wormcast_wire::Seq;
use wormcast_wire::pdu::Data;
use wormcast_wire::pdu::Nack;
use wormcast_wire::pdu::Status;

/// Least time between two NACKs of a stream, µs.
const NACK_INTERVAL_US: u64 = 1_000;

/// Packets in order that a stream may hold however full the pool is. Structures of
/// several groups together can ask for buffers in a cycle where each alone does not
/// (an unordered tree climbs where a circuit descends); with room of its own at
/// every member no stream waits for another (WORM §4 asks for two worms' room).
const SESSION_PACKETS: u64 = 4;

impl Session {
    /// A DATA packet, from the parent, a former parent, or the origin itself.
    pub fn handle_data(
        &mut self,
        data: &Data<'_>,
        arrival: Arrival,
        shared: &mut Shared,
        now: Instant,
    ) -> Result<(), Reject> {
        let Arrival {
            sender,
            stable_counts,
            marked,
            copied,
        } = arrival;
        let seq = data.seq;
        let stable = Seq(seq.0.wrapping_sub(u32::from(data.stable_offset))).expand(self.stable);
        let start = if stable_counts {
            self.cumulative.max(stable)
        } else {
            self.cumulative
        };
        let position = seq.expand(start);
        // No origin sends so far ahead; one that did would send again what nobody has confirmed.
        if position >= start + u64::from(WINDOW_PACKETS_MAX) {
            return Err(Reject::BeyondWindow);
        }
        self.touched = now;
        if stable_counts {
            self.learn_stable(stable, shared, now);
        }
        // The delay is that of the packets that the window of who sends them is for.
        let measured = if self.is_copied() {
            sender == self.origin
        } else {
            Some(sender) == self.parent
        };
        let timing = &shared.config.timing;
        let rare_us = self.rare_ack_us(now).filter(|_| !marked);
        let (every, delay_us) = match rare_us {
            Some(us) => (u32::MAX, us),
            None => (timing.ack_every_packets, timing.ack_delay_us),
        };
        let Some(reception) = &mut self.reception else {
            return Err(Reject::OwnStream);
        };
        if measured {
            reception.note_parent_arrival(data.tx_time, now);
        }
        reception.packets = reception.packets.wrapping_add(1);
        reception.congestion = reception.congestion.wrapping_add(marked.into());
        // Of a packet that was lost before, where there are no buffer classes, only its number comes.
        let is_hole = shared.config.limits.unclassed && data.payload.is_empty();
        self.statistics.data_received_packets += u64::from(!is_hole);
        self.statistics.congestion_marks += u64::from(marked);
        if position < self.cumulative || self.store.has(position) {
            reception.duplicates = reception.duplicates.wrapping_add(1);
            self.statistics.duplicates_received += 1;
            // Who sends it again may not know of the run that it is in, where not all fit into an ACK.
            reception.recent = Some(position);
            reception.note_arrival(data.ack_now, every, delay_us, now);
            return Ok(());
        }
        let admitted = if is_hole {
            Ok(())
        } else {
            self.admit(data, position, shared, now)
        };
        let is_lost = admitted == Err(Reject::Overflow);
        if is_lost {
            shared.counters.count_reject(Reject::Overflow);
        } else if let Err(reject) = admitted {
            // Who asks learns what is here, or it would send again what has no room, and not what
            // comes first.
            if let Some(reception) = self.reception.as_mut().filter(|_| data.ack_now) {
                reception.request_ack();
            }
            return Err(reject);
        }
        let pool = (!is_lost && !is_hole).then_some(data.class);
        let kept = if is_lost { &[] } else { data.payload };
        let payload = shared.pools.take(kept, pool);
        self.statistics.data_received_bytes += payload.len() as u64;
        let end_before = self.store.end();
        let packet = Packet {
            payload,
            first: data.first,
            last: data.last,
            cancel: data.cancel,
            pool,
            came: now,
        };
        self.store.insert(position, packet);
        let closes_gap = position == self.cumulative && position + 1 < end_before;
        let opens_gap = position > end_before.max(self.cumulative);
        let waits_below = self.is_copied() && !self.children.is_empty();
        let is_whole = data.last && position == self.cumulative && position >= end_before;
        for child in &mut self.children {
            if copied && child.copied {
                child.note_copied(position, &self.store, now);
                // The copy tells it what is stable.
                child.advertised_stable = self.stable;
                child.status_due = false;
            } else {
                child.note_arrived(position);
            }
        }
        if let Some(reception) = &mut self.reception {
            reception.recent = Some(position);
            reception.note_packet(now);
            let at_once = data.ack_now || opens_gap || closes_gap;
            reception.note_arrival(at_once, every, delay_us, now);
            if is_whole && waits_below && rare_us.is_none() {
                reception.await_below(delay_us, now);
            }
        }
        self.advance_cumulative(shared, now);
        Ok(())
    }

    /// Makes sure there is room for the packet, or has a NACK sent.
    fn admit(
        &mut self,
        data: &Data<'_>,
        position: u64,
        shared: &mut Shared,
        now: Instant,
    ) -> Result<(), Reject> {
        if shared.config.limits.unclassed {
            return self.admit_unclassed(data.payload.len(), shared);
        }
        let in_order = position == self.cumulative;
        // Those beyond a gap do not count: what closes it must find room.
        let held_in_order = |session: &Self| session.cumulative - session.store.base();
        if in_order && held_in_order(self) < SESSION_PACKETS {
            return Ok(());
        }
        while !shared
            .pools
            .admits(data.class, data.payload.len(), in_order)
        {
            if self.evict(data.class, shared) {
                if in_order && held_in_order(self) < SESSION_PACKETS {
                    return Ok(());
                }
                continue;
            }
            if let Some(reception) = &mut self.reception
                && now.since_us(reception.nack_at) >= NACK_INTERVAL_US
            {
                let nack = Nack {
                    seq: data.seq,
                    class: data.class,
                };
                reception.refuse(nack, now);
            }
            return Err(Reject::NoBuffer);
        }
        Ok(())
    }

    /// Where there are no buffer classes: whatever there is room for, in the order in which it comes.
    fn admit_unclassed(&mut self, payload_bytes: usize, shared: &mut Shared) -> Result<(), Reject> {
        while !shared.pools.admits(BufferClass::One, payload_bytes, true) {
            if !self.evict(BufferClass::One, shared) {
                return Err(Reject::Overflow);
            }
        }
        Ok(())
    }

    fn advance_cumulative(&mut self, shared: &mut Shared, now: Instant) {
        let Some(reception) = &mut self.reception else {
            return;
        };
        let (before, mut begun, mut ended) = (self.cumulative, false, false);
        while let Some(packet) = self.store.get(self.cumulative) {
            self.cumulative += 1;
            begun |= packet.first;
            if packet.last {
                reception.note_message_end(self.cumulative);
                ended = true;
            }
        }
        if self.cumulative == before {
            return;
        }
        self.proven = true;
        if begun
            && self.plan.reports_begin
            && !core::mem::replace(&mut reception.begin_reported, true)
        {
            let (group, origin) = (self.group, self.origin);
            shared.emit(Event::Begun { group, origin });
        }
        let readable = reception.discard(&self.store, self.cumulative);
        // Whoever lets more come before it reads is notified of an end.
        if readable && (ended || !reception.readable_reported) {
            reception.readable_reported = true;
            shared.emit(Event::Readable {
                group: self.group,
                origin: self.origin,
            });
        }
        // A child that came from another parent may have these packets. Then none is sent, and only its
        // word that they are stable is missing.
        for index in 0..self.children.len() {
            self.settle_child(index, now);
        }
        self.note_stability(shared, now);
    }

    /// The origin says, directly or through a parent, what is stable.
    fn learn_stable(&mut self, stable: u64, shared: &mut Shared, now: Instant) {
        if stable <= self.stable || self.reception.is_none() {
            return;
        }
        if stable > self.cumulative {
            self.fall_behind(stable, shared);
        }
        self.advance_stable(stable, shared, now);
        self.advance_cumulative(shared, now);
        self.note_stability(shared, now);
    }

    /// All others are past `stable`: this host was taken for dead, or it lost its
    /// memory. What it misses will not come, so it says that it was too late for all before, read or not.
    fn fall_behind(&mut self, stable: u64, shared: &mut Shared) {
        let Some(reception) = &mut self.reception else {
            return;
        };
        if reception.skip_to(stable) {
            let (group, origin) = (self.group, self.origin);
            shared.emit(Event::MessageLost {
                group,
                origin,
                reason: LossReason::LeftBehind,
            });
        }
        if self.plan.reports_begin {
            let (group, origin) = (self.group, self.origin);
            shared.emit(Event::Begun { group, origin });
        }
        self.store
            .advance(stable, |packet| shared.pools.release(packet));
        self.cumulative = stable;
    }

    /// A STATUS from the parent.
    pub fn handle_status(&mut self, status: &Status, shared: &mut Shared, now: Instant) {
        self.learn_stable(status.stable.expand(self.stable), shared, now);
        if status.ack_now
            && let Some(reception) = &mut self.reception
        {
            reception.request_ack();
        }
    }

    /// A NACK from a child.
    pub fn handle_nack(&mut self, nack: &Nack, sender: HostId, now: Instant) -> Result<(), Reject> {
        let index = self.child_index(sender)?;
        if nack.seq.expand(self.cumulative) >= self.known_end() {
            return Err(Reject::NackImpossible);
        }
        self.touched = now;
        self.statistics.nacks_received += 1;
        self.children[index].note_nack(now);
        Ok(())
    }
}
