//! Packets that are sent again where switches copy, and those that the origin sends for a parent that no longer has them.

use super::Session;
use super::shared::{Shared, WormRoute};
use crate::event::Transmit;
use crate::reject::Reject;
use crate::time::Instant;
use wormcast_wire::HostId;
use wormcast_wire::pdu::{Body, Repair};
use wormcast_wire::tree_route::encode_first;
use wormcast_wire::worm::Kind;

/// What came of a packet to be sent again.
enum Repaired {
    Sent(Transmit),
    /// The window is full.
    NoRoom,
    /// There is nothing to send, or it cannot be sent.
    Done,
}

/// Time between two packets sent at REPAIR requests, µs.
const REPAIR_PACE_US: u64 = 400;

/// Time for which members that miss a packet are gathered before it is sent again.
const GATHER_US: u64 = 3_000;

impl Session {
    /// A parent asks the origin to serve a child.
    pub fn handle_repair(
        &mut self,
        repair: &Repair,
        sender: HostId,
        shared: &mut Shared,
        now: Instant,
    ) -> Result<(), Reject> {
        let (stable, end) = (self.stable, self.known_end());
        let returns = repair.child == self.origin && self.returns_from(sender);
        let Some(sending) = &mut self.sending else {
            return Err(Reject::NotMember);
        };
        if !sending.members.contains(&repair.child) {
            return Err(Reject::NotMember);
        }
        let (from, to) = (repair.from.expand(stable), repair.to.expand(stable));
        let child_can_be = repair.child != sender && (returns || repair.child != self.origin);
        if from >= to || to > end || !child_can_be {
            return Err(Reject::RepairImpossible);
        }
        self.touched = now;
        if returns {
            self.give_up_return(from, to, shared);
            return Ok(());
        }
        for position in from.max(stable)..to {
            if !sending.repairs.add(repair.child, position, repair.class) {
                self.statistics.repairs_dropped += 1;
                break;
            }
        }
        Ok(())
    }

    /// A packet another parent asked this origin to send.
    pub(super) fn poll_repair(
        &mut self,
        shared: &mut Shared,
        now: Instant,
        buf: &mut [u8],
    ) -> Option<Transmit> {
        loop {
            let sending = self.sending.as_mut()?;
            if sending.repair_next > now {
                return None;
            }
            let (host, position, class) = sending.repairs.take_next()?;
            if !self.store.has(position) {
                // It is stable by now: who lacks it learns that it came too late.
                continue;
            }
            sending.repair_next = now.plus_us(REPAIR_PACE_US);
            let common = self.common();
            let data = self.data_of(position, class, false, now)?;
            if let Some(sent) = shared.encode_to(buf, host, class, &common, &Body::Data(data)) {
                self.statistics.repairs_sent += 1;
                self.count_sent(position, true);
                return Some(sent);
            }
        }
    }

    /// Notes what the child misses, to be sent again to all that miss it.
    pub(super) fn gather_repairs(&mut self, index: usize, now: Instant) {
        let broadcast = &mut self.broadcast;
        self.children[index].take_fresh(|position| {
            if let Some(broadcast) = broadcast
                && broadcast.queued.insert(position)
            {
                let due = now.plus_us(GATHER_US);
                broadcast.repairs.push_back((due, position));
            }
        });
    }

    /// Sends again the first packet that is due, to all that miss it.
    pub(super) fn send_repair(
        &mut self,
        shared: &mut Shared,
        now: Instant,
        buf: &mut [u8],
    ) -> Option<Transmit> {
        loop {
            let broadcast = self.broadcast.as_mut()?;
            let (due, position) = broadcast.repairs.front().copied()?;
            if due > now {
                return None;
            }
            let mut targets = core::mem::take(&mut broadcast.targets);
            targets.clear();
            targets.extend((0..self.children.len()).filter(|index| {
                let child = &self.children[*index];
                child.is_pending(position) && !child.excluded && child.paused_until.is_none()
            }));
            let result = self.send_repair_to(&targets, position, shared, now, buf);
            if let Some(broadcast) = &mut self.broadcast {
                broadcast.targets = targets;
            }
            match result {
                Repaired::Sent(sent) => return Some(sent),
                Repaired::NoRoom => return None,
                Repaired::Done => {}
            }
        }
    }

    fn send_repair_to(
        &mut self,
        targets: &[usize],
        position: u64,
        shared: &mut Shared,
        now: Instant,
        buf: &mut [u8],
    ) -> Repaired {
        let in_flight = targets
            .iter()
            .map(|index| self.children[*index].in_flight())
            .max();
        let Some(broadcast) = &mut self.broadcast else {
            return Repaired::NoRoom;
        };
        let (Some(in_flight), true) = (in_flight, self.store.has(position)) else {
            broadcast.drop_repair();
            return Repaired::Done;
        };
        if !broadcast.congestion.has_room(in_flight) {
            return Repaired::NoRoom;
        }
        let payload = self
            .store
            .get(position)
            .map_or(0, |packet| packet.payload.len());
        let length_max = self.route_room(payload, shared).min(shared.tree_route_max);
        let worm = match targets {
            [_] => None,
            _ => encode_first(&self.tree_paths(targets, shared), length_max),
        };
        // What one worm does not reach stays in `repairs` for the next.
        let sent = match &worm {
            Some(worm) => {
                let children = worm.hosts.iter().copied();
                let by = WormRoute {
                    kind: Kind::Tree,
                    route: &worm.bytes,
                };
                self.send_copied(position, (by, children), true, shared, now, buf)
            }
            // One alone, or no tree route to any of them: one by one.
            None => {
                let sent = self.send_to_child(targets[0], position, false, shared, now, buf);
                if sent.is_some() {
                    self.pace_broadcast(now);
                }
                sent
            }
        };
        match (sent, &mut self.broadcast) {
            (Some(sent), _) => Repaired::Sent(sent),
            (None, Some(broadcast)) => {
                broadcast.drop_repair();
                Repaired::Done
            }
            (None, None) => Repaired::NoRoom,
        }
    }

    /// No worm leads to a child without a tree route; it is served like one that
    /// missed the packet.
    pub(super) fn serve_those_left_out(&mut self, sent: u64, now: Instant) {
        for index in 0..self.children.len() {
            let child = &mut self.children[index];
            if child.next() < sent && child.receiver.is_some() && !child.excluded {
                child.catch_up(sent, &self.store, now);
                self.gather_repairs(index, now);
            }
        }
    }

    /// The paths along the tree to those of `children` that have one.
    pub(super) fn tree_paths<'s>(
        &self,
        children: &[usize],
        shared: &'s Shared,
    ) -> Vec<(usize, &'s [u8])> {
        let path = |index: &usize| {
            let path = shared.tree.get(&self.children[*index].host)?;
            Some((*index, path.as_slice()))
        };
        children.iter().filter_map(path).collect()
    }
}
