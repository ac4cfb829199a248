//! Where switches copy, at the origin: one TREE, GROUP or BROADCAST worm reaches all members
//! (WORM §3); loss at a child is repaired by a TREE worm to exactly the children that miss a
//! packet. Those below a child are served by it.

use super::Session;
use super::copied::{CopiedWorm, RouteRoom, copied_worms};
use super::shared::{Shared, WormRoute};
use super::worms::{Broadcast, Worm};
use crate::child::Child;
use crate::config::Timing;
use crate::event::Transmit;
use crate::time::Instant;
use wormcast_wire::BufferClass;
use wormcast_wire::HostId;
use wormcast_wire::ROUTE_LENGTH_MAX;
use wormcast_wire::pdu::Body;
use wormcast_wire::worm::Kind;

impl Session {
    pub(super) fn refresh_worms(&mut self, shared: &Shared) {
        let Some(broadcast) = &self.broadcast else {
            return;
        };
        let excluded = self.children.iter().map(|child| child.excluded);
        if broadcast.made_for == Some(shared.routes_version)
            && broadcast.left_out.iter().copied().eq(excluded)
        {
            return;
        }
        let worms = self.make_worms(shared);
        if let Some(broadcast) = &mut self.broadcast {
            broadcast.worms = worms;
            broadcast.made_for = Some(shared.routes_version);
            broadcast.left_out.clear();
            let excluded = self.children.iter().map(|child| child.excluded);
            broadcast.left_out.extend(excluded);
            broadcast.turn = 0;
        }
    }

    /// The worms that reach all members, for each tree.
    fn make_worms(&self, shared: &Shared) -> Vec<Vec<Worm>> {
        let members = self.sending.iter().flat_map(|sending| &sending.members);
        let place = |host: &HostId| {
            let index = self.child_index(*host).ok();
            let wanted = index.is_none_or(|index| !self.children[index].excluded);
            wanted.then_some((*host, index))
        };
        let others = members.filter(|host| **host != self.origin);
        let others: Vec<(HostId, Option<usize>)> = others.filter_map(place).collect();
        // Packets in the store were cut for the routes of their time; a longer route
        // must not push them past the MTU.
        let payload = self
            .store
            .runs(self.stable)
            .next()
            .and_then(|(start, _)| self.store.get(start));
        let fits = payload.map_or(ROUTE_LENGTH_MAX, |packet| {
            self.route_room(packet.payload.len(), shared)
        });
        let room = RouteRoom {
            root: fits,
            tree: shared.tree_room(self.mtu(shared)).min(fits.max(16)),
        };
        let copies = self.plan.structures.copies(self.choice);
        let trees = copied_worms(copies, &others, room, shared).into_iter();
        let worm = |worm: CopiedWorm<Option<usize>>| Worm {
            kind: worm.kind,
            route: worm.route,
            children: worm.to.into_iter().flatten().collect(),
        };
        let worms = trees.map(|worms| worms.into_iter().map(worm).collect());
        worms.collect()
    }

    /// Bytes of the longest route of the worms that reach all members.
    pub(super) fn tree_route_length(&mut self, shared: &Shared) -> usize {
        self.refresh_worms(shared);
        let worms = self.broadcast.iter().flat_map(|broadcast| &broadcast.worms);
        let lengths = worms.flatten().map(|worm| worm.route.len());
        lengths.max().unwrap_or(0)
    }

    pub(super) fn poll_broadcast(
        &mut self,
        shared: &mut Shared,
        now: Instant,
        buf: &mut [u8],
    ) -> Option<Transmit> {
        if self.broadcast.as_ref()?.congestion.next_send() > now {
            return None;
        }
        if let Some(sent) = self.send_repair(shared, now, buf) {
            return Some(sent);
        }
        self.send_new(shared, now, buf)
    }

    fn send_new(&mut self, shared: &mut Shared, now: Instant, buf: &mut [u8]) -> Option<Transmit> {
        loop {
            let in_flight = self.most_in_flight(|_| true);
            let broadcast = self.broadcast.as_mut()?;
            let position = broadcast.next;
            if !self.store.has(position) {
                return None;
            }
            if broadcast.turn == 0 && !broadcast.congestion.has_room(in_flight) {
                return None;
            }
            if broadcast.worms.is_empty() && !self.serves_any() {
                return None;
            }
            let broadcast = self.broadcast.as_mut()?;
            let turn = broadcast.turn;
            if turn == 0 && self.store.get(position).is_some_and(|packet| packet.first) {
                // Packets of a message keep to one tree.
                broadcast.tree = (broadcast.tree + 1) % broadcast.worms.len().max(1);
            }
            let mut worms = core::mem::take(&mut broadcast.worms);
            let tree = broadcast.tree.min(worms.len().saturating_sub(1));
            let count = worms.get(tree).map_or(0, Vec::len);
            broadcast.turn = (turn + 1) % count.max(1);
            let complete = broadcast.turn == 0;
            broadcast.next += u64::from(complete);
            let worm = worms.get_mut(tree).and_then(|worms| worms.get_mut(turn));
            let sent = worm.and_then(|worm| {
                let children = worm.children.iter().copied();
                let by = WormRoute {
                    kind: worm.kind,
                    route: &worm.route,
                };
                self.send_copied(position, (by, children), turn > 0, shared, now, buf)
            });
            if let Some(broadcast) = &mut self.broadcast {
                broadcast.worms = worms;
            }
            if complete {
                self.serve_those_left_out(position + 1, now);
            }
            if sent.is_some() {
                return sent;
            }
        }
    }

    /// Whether there is a child that answers and counts.
    fn serves_any(&self) -> bool {
        let mut children = self.children.iter();
        children.any(|child| child.receiver.is_some() && !child.excluded)
    }

    fn most_in_flight(&self, counts: impl Fn(usize) -> bool) -> u32 {
        let children = self.children.iter().enumerate();
        children
            .filter(|(index, child)| !child.excluded && counts(*index))
            .map(|(_, child)| child.in_flight())
            .max()
            .unwrap_or(0)
    }

    pub(super) fn send_copied(
        &mut self,
        position: u64,
        (by, children): (WormRoute<'_>, impl Iterator<Item = usize>),
        again: bool,
        shared: &mut Shared,
        now: Instant,
        buf: &mut [u8],
    ) -> Option<Transmit> {
        let common = self.common();
        let data = self.data_of(position, BufferClass::One, false, now)?;
        let sent = shared.encode(buf, by, BufferClass::One, &common, &Body::Data(data));
        for index in children {
            let child = &mut self.children[index];
            child.status_due = false;
            child.advertised_stable = self.stable;
            child.note_sent(position, &self.store, now);
        }
        self.pace_broadcast(now);
        self.count_sent(position, again);
        // Switches refuse trains of other kinds.
        let alone = again || by.kind != Kind::Tree;
        sent.map(|sent| self.coupled(sent, alone, shared))
    }

    pub(super) fn pace_broadcast(&mut self, now: Instant) {
        let rtt_us = self
            .children
            .iter()
            .filter(|child| !child.excluded)
            .map(|child| child.path.rtt_us())
            .max()
            .unwrap_or(1);
        if let Some(broadcast) = &mut self.broadcast {
            broadcast.congestion.note_sent(rtt_us, now);
        }
    }

    /// Whether there is something to send, and the window may have no room for it.
    pub(super) fn has_no_room(&self, broadcast: &Broadcast) -> bool {
        let has_any = self.store.has(broadcast.next) || !broadcast.repairs.is_empty();
        has_any && self.most_in_flight(|_| true) >= broadcast.congestion.window()
    }

    /// When the stream may send.
    pub(super) fn broadcast_deadline(
        &self,
        broadcast: &Broadcast,
        shared: &Shared,
        now: Instant,
    ) -> Option<Instant> {
        let next_send = broadcast.congestion.next_send();
        let repair = match broadcast.repairs.front() {
            // One that is due and has no room waits for an ACK, not for a time.
            Some((due, position)) if *due <= now => {
                let misses = |index: usize| self.children[index].is_pending(*position);
                let room = self.most_in_flight(misses) < broadcast.congestion.window();
                room.then_some(*due)
            }
            Some((due, _)) => Some(*due),
            None => None,
        };
        let repair = repair.map(|due| due.max(next_send));
        let room = self.most_in_flight(|_| true) < broadcast.congestion.window();
        // By other routes it may reach whom it did not.
        let is_stale = broadcast.made_for != Some(shared.routes_version);
        let reaches_any = is_stale || !broadcast.worms.is_empty() || self.serves_any();
        let new = (self.store.has(broadcast.next) && room && reaches_any).then_some(next_send);
        match (repair, new) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    /// The children are others, or the scheme is: everything sent before that a child has
    /// not acknowledged counts as missed, once the child answers.
    pub(super) fn join_broadcast(&mut self, timing: &Timing, now: Instant) {
        let sent = self.children.iter().map(Child::next).max();
        let start = sent.unwrap_or(self.cumulative);
        let broadcast = self
            .broadcast
            .get_or_insert_with(|| Broadcast::new(start, timing));
        broadcast.made_for = None;
        let next = broadcast.next;
        for index in 0..self.children.len() {
            let child = &mut self.children[index];
            if child.receiver.is_some() {
                child.catch_up(next, &self.store, now);
            }
            child.refresh_pending();
            self.gather_repairs(index, now);
        }
    }
}
