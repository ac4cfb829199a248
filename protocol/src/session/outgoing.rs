//! What a host sends in a stream, and the times at which it has to act.

use super::Session;
use super::shared::Shared;
use crate::child::REPAIR_INTERVAL_US;
use crate::event::Transmit;
use crate::time::Instant;
use wormcast_wire::pdu::{Body, Data, Repair, Status};
use wormcast_wire::{BufferClass, Seq};

/// Packets by which one child may be ahead of a sibling that is doing well. Children
/// share their parent's link; served in step, all subtrees end at the same time
/// (PACKET §4: packet by packet to all children).
const LEAD_PACKETS: u64 = 64;

impl Session {
    /// The next control packet: NACK, ACK, probe, REPAIR or STATUS.
    pub fn poll_control(
        &mut self,
        shared: &mut Shared,
        now: Instant,
        buf: &mut [u8],
    ) -> Option<Transmit> {
        let common = self.common();
        if let Some(nack) = self
            .reception
            .as_mut()
            .and_then(|reception| reception.nack.take())
            && let Some(parent) = self.parent
        {
            self.statistics.nacks_sent += 1;
            let body = Body::Nack(nack);
            if let Some(sent) = shared.encode_to(buf, parent, BufferClass::One, &common, &body) {
                return Some(sent);
            }
        }
        if let Some(sent) = self.poll_gathering(shared, now, buf) {
            return Some(sent);
        }
        if let Some(sent) = self.poll_ack(shared, now, buf) {
            return Some(sent);
        }
        if let Some(sent) = self.poll_returned_ack(shared, now, buf) {
            return Some(sent);
        }
        while let Some(host) = self
            .sending
            .as_mut()
            .and_then(|own| own.answers.pop_first())
        {
            let body = Body::Status(Status {
                stable: Seq::of(self.stable),
                ack_now: false,
                choice: self.choice,
                unclaimed: false,
                slow: false,
                order_wanted: false,
                order_next: false,
            });
            if let Some(sent) = shared.encode_to(buf, host, BufferClass::One, &common, &body) {
                return Some(sent);
            }
        }
        for index in 0..self.children.len() {
            if let Some(sent) = self.poll_child_control(index, shared, now, buf) {
                return Some(sent);
            }
        }
        None
    }

    fn poll_child_control(
        &mut self,
        index: usize,
        shared: &mut Shared,
        now: Instant,
        buf: &mut [u8],
    ) -> Option<Transmit> {
        let common = self.common();
        let stable = Seq::of(self.stable);
        let is_idle = self.store.end() <= self.children[index].cumulative();
        let host = self.children[index].host;
        if let Some(probe) = self.children[index].probe.take() {
            // One that a link on the way may not carry would tell nothing.
            let tells = |at: &u64| self.store.has(*at) && !self.is_too_long(index, *at, shared);
            let probe = probe.filter(tells);
            let child = &mut self.children[index];
            self.statistics.probes_sent += 1;
            child.status_due = false;
            let sent = match probe {
                Some(position) => self.send_to_child(index, position, true, shared, now, buf),
                None => {
                    let body = Body::Status(Status {
                        stable,
                        ack_now: true,
                        choice: self.choice,
                        unclaimed: false,
                        slow: false,
                        order_wanted: false,
                        order_next: false,
                    });
                    child.advertised_stable = self.stable;
                    shared.encode_to(buf, host, BufferClass::One, &common, &body)
                }
            };
            if sent.is_some() {
                return sent;
            }
        }
        let child = &mut self.children[index];
        if child.receiver.is_some() && child.repair_at.is_some_and(|at| at <= now) {
            child.repair_at = child.remote_run().map(|_| now.plus_us(REPAIR_INTERVAL_US));
            let class = child.class;
            if let Some((from, to)) = child.remote_run()
                && self.sending.is_none()
            {
                self.statistics.repairs_requested += 1;
                let (from, to) = (Seq::of(from), Seq::of(to));
                let body = Body::Repair(Repair {
                    child: host,
                    class,
                    from,
                    to,
                });
                let origin = self.origin;
                let sent = shared.encode_to(buf, origin, BufferClass::One, &common, &body);
                if sent.is_some() {
                    return sent;
                }
            }
        }
        let child = &mut self.children[index];
        // With data under way the news travels with it.
        if child.status_due && is_idle && child.advertised_stable < self.stable && !child.excluded {
            child.status_due = false;
            child.advertised_stable = self.stable;
            let body = Body::Status(Status {
                stable,
                ack_now: false,
                choice: self.choice,
                unclaimed: false,
                slow: false,
                order_wanted: false,
                order_next: false,
            });
            return shared.encode_to(buf, host, BufferClass::One, &common, &body);
        }
        None
    }

    /// The next DATA packet, to the next child in turn that may have one (FPFS,
    /// PACKET §4: packet by packet to all children).
    pub fn poll_data(
        &mut self,
        shared: &mut Shared,
        now: Instant,
        buf: &mut [u8],
    ) -> Option<Transmit> {
        if let Some(sent) = self.poll_repair(shared, now, buf) {
            return Some(sent);
        }
        // The deadline depends on them.
        self.refresh_worms(shared);
        if shared.drain_until > now {
            return None;
        }
        if self.broadcast.is_some() {
            return self.poll_broadcast(shared, now, buf);
        }
        let count = self.children.len();
        let lead_end = self.lead_end();
        for turn in 0..count {
            let index = (self.rotation + turn) % count;
            let child = &mut self.children[index];
            if !child.may_send(&self.store, lead_end) {
                continue;
            }
            let in_flight = child.in_flight();
            if child.congestion.next_send() > now || !child.congestion.has_room(in_flight) {
                continue;
            }
            let Some((position, _)) = child.next_position(&self.store, now) else {
                continue;
            };
            if let Some(sent) = self.send_to_child(index, position, false, shared, now, buf) {
                self.rotation = index + 1;
                return Some(sent);
            }
        }
        None
    }

    /// Where new packets end for now, so that no child runs far ahead of its siblings.
    pub(super) fn lead_end(&self) -> u64 {
        let behind = self
            .children
            .iter()
            .filter(|child| child.keeps_up(&self.store));
        behind
            .map(|child| child.next() + LEAD_PACKETS)
            .min()
            .unwrap_or(u64::MAX)
    }

    /// Sends one packet to one child, by the route of its message.
    pub(super) fn send_to_child(
        &mut self,
        index: usize,
        position: u64,
        probe: bool,
        shared: &mut Shared,
        now: Instant,
        buf: &mut [u8],
    ) -> Option<Transmit> {
        let first = self.store.get(position)?.first;
        let child = &mut self.children[index];
        let (host, class) = (child.host, child.class);
        let cumulative = child.cumulative();
        let mut route = child
            .routes
            .of(position, first, cumulative, || shared.choose_route(host));
        // A window smaller than the receiver's ACK interval must not wait for it.
        let ack_now = probe || child.congestion.window() <= 4;
        let common = self.common();
        let data = self.data_of(position, class, ack_now, now)?;
        let body = Body::Data(data);
        let mut sent = shared.encode_by(buf, (host, route), class, &common, &body);
        let shortest = shared.shortest_route(host).map(|(shortest, _)| shortest);
        if sent.is_none()
            && let Some(shortest) = shortest.filter(|shortest| *shortest != route)
        {
            // The packet was cut before routes grew.
            route = shortest;
            sent = shared.encode_by(buf, (host, route), class, &common, &body);
        }
        if sent.is_none() {
            self.report_unroutable(index, shared);
            self.children[index].congestion.note_sent(100_000, now);
            return None;
        }
        let child = &mut self.children[index];
        child.status_due = false;
        child.advertised_stable = self.stable;
        let again = child.note_sent(position, &self.store, now);
        child.routes.note_sent(route, now);
        child.congestion.note_sent(child.path.rtt_us(), now);
        self.count_sent(position, again);
        sent.map(|sent| self.coupled(sent, again, shared))
    }

    pub(super) fn count_sent(&mut self, position: u64, again: bool) {
        self.sent_end = self.sent_end.max(position + 1);
        let bytes = self
            .store
            .get(position)
            .map_or(0, |packet| packet.payload.len()) as u64;
        if again {
            self.statistics.retransmissions += 1;
            self.statistics.retransmitted_bytes += bytes;
        } else {
            self.statistics.data_sent_packets += 1;
            self.statistics.data_sent_bytes += bytes;
        }
    }

    pub(super) fn data_of(
        &self,
        position: u64,
        class: BufferClass,
        ack_now: bool,
        now: Instant,
    ) -> Option<Data<'_>> {
        let packet = self.store.get(position)?;
        let offset = position
            .saturating_sub(self.stable)
            .min(u64::from(u16::MAX)) as u16;
        Some(Data {
            seq: Seq::of(position),
            stable_offset: offset,
            tx_time: now.stamp(),
            first: packet.first,
            last: packet.last,
            cancel: packet.cancel,
            class,
            ack_now,
            choice: self.choice,
            payload: &packet.payload,
        })
    }

    /// Acts on every time that has come.
    pub fn handle_timeout(&mut self, shared: &mut Shared, now: Instant) {
        if let Some(reception) = self.acknowledging_mut() {
            reception.handle_timeout(now);
        }
        self.handle_gathering_timeout(now);
        let patience = self.patience(now);
        let mut given_up = false;
        for index in 0..self.children.len() {
            let timing = &shared.config.timing;
            let child = &mut self.children[index];
            let lost = child.handle_timeout(timing, patience, &self.store, now);
            self.statistics.losses_detected += u64::from(lost);
            let lost = child.lost_by_window(lost);
            if lost > 0 {
                match &mut self.broadcast {
                    Some(broadcast) => broadcast.congestion.note_lost(lost),
                    None => child.congestion.note_lost(lost),
                }
            }
            self.gather_repairs(index, now);
            given_up |= self.judge_silence(index, shared, now);
            given_up |= self.judge_length(index, shared, now);
        }
        if given_up {
            // Not before all children have had their turn: what is stable then may end a choice, and give them others.
            self.note_stability(shared, now);
            if let Some(reception) = &mut self.reception {
                reception.request_ack();
            }
        }
    }

    /// When [`Session::handle_timeout`] or a poll has something to do.
    pub fn deadline(&self, shared: &Shared, now: Instant) -> Option<Instant> {
        let timing = &shared.config.timing;
        let mut earliest: Option<Instant> = None;
        let mut add = |time: Option<Instant>| {
            if let Some(time) = time {
                earliest = Some(earliest.map_or(time, |other| other.min(time)));
            }
        };
        let returned = self.returned.as_ref().map(|returned| &returned.reception);
        if let Some(reception) = self.reception.as_ref().or(returned) {
            add(reception.ack_deadline());
            add(reception.is_ack_due().then_some(now));
        }
        if let Some(gathering) = &self.gathering {
            add(gathering.timeout(now));
        }
        if let Some(sending) = &self.sending {
            add((!sending.repairs.is_empty()).then_some(sending.repair_next));
            add((!sending.answers.is_empty()).then_some(now));
        }
        let drained = shared.drain_until;
        if let Some(broadcast) = &self.broadcast {
            add(self
                .broadcast_deadline(broadcast, shared, now)
                .map(|time| time.max(drained)));
        }
        let lead_end = self.lead_end();
        let patience = self.patience(now);
        for child in &self.children {
            add(child.deadline(timing, patience));
            if child.receiver.is_some() {
                add(child.repair_at);
            }
            if child.reported.is_none() {
                add(child.silent_deadline(timing.member_timeout_us));
            }
            if !child.excluded {
                add(child.silent_deadline(timing.member_exclude_us));
            }
            if let Some((_, since)) = child.too_long.filter(|_| !child.excluded) {
                add(Some(since.plus_us(timing.member_exclude_us)));
            }
            if child.probe.is_some() {
                add(Some(now));
            }
            let sends = self.broadcast.is_none()
                && child.may_send(&self.store, lead_end)
                && child.in_flight() < child.congestion.window();
            if sends {
                add(Some(child.congestion.next_send().max(drained)));
            }
        }
        earliest
    }
}
