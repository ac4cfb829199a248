//! Scheme switch at the origin: one TREE worm reaches all members (WORM §3); loss
//! is repaired by a TREE worm to exactly those that miss a packet.

use super::Session;
use super::congestion::Congestion;
use super::shared::{Shared, Way};
use crate::config::Timing;
use crate::event::Transmit;
use crate::ids::BufferClass;
use crate::time::Instant;
use crate::wire::pdu::Body;
use crate::wire::tree_route;
use crate::wire::worm::{Kind, ROUTE_LENGTH_MAX};
use std::collections::BTreeMap;

/// Time for which members that miss a packet are gathered before it is sent again.
const GATHER_US: u64 = 3_000;

/// Children reached by one worm.
#[derive(Clone, Debug)]
struct Branching {
    route: Vec<u8>,
    targets: Vec<usize>,
}

/// The sending side of a TREE stream.
#[derive(Debug)]
pub(crate) struct Broadcast {
    pub congestion: Congestion,
    /// The next position to send to all.
    next: u64,
    /// The worms that together reach all children.
    branchings: Vec<Branching>,
    /// For which routes and children `branchings` was made.
    made_for: Option<(u64, Vec<bool>)>,
    /// The worm of `next` to send.
    turn: usize,
    /// Packets to send again, and when.
    repairs: BTreeMap<u64, Instant>,
}

impl Broadcast {
    pub fn new(start: u64, timing: &Timing) -> Broadcast {
        Broadcast {
            congestion: Congestion::new(timing.queue_delay_target_us),
            next: start,
            branchings: Vec::new(),
            made_for: None,
            turn: 0,
            repairs: BTreeMap::new(),
        }
    }

    /// The children are others now.
    pub fn forget_branchings(&mut self) {
        self.made_for = None;
    }
}

impl Session {
    /// Splits `children` into sets that one TREE worm each reaches; `length_max`
    /// bounds each route. Children without a tree route are left out.
    fn branch_out(&self, children: &[usize], length_max: usize, shared: &Shared) -> Vec<Branching> {
        let mut paths: Vec<(&[u8], usize)> = children
            .iter()
            .filter_map(|index| {
                let route = shared.tree.get(&self.children[*index].host)?;
                Some((route.as_slice(), *index))
            })
            .collect();
        // In order of paths neighbours in the tree come together, so halves share links.
        paths.sort_unstable();
        let mut branchings = Vec::new();
        let mut stack = vec![&paths[..]];
        while let Some(part) = stack.pop() {
            if part.is_empty() {
                continue;
            }
            let ways: Vec<&[u8]> = part.iter().map(|(path, _)| *path).collect();
            let mut route = Vec::new();
            match tree_route::encode(&ways, length_max, &mut route) {
                Ok(()) => {
                    let targets = part.iter().map(|(_, index)| *index).collect();
                    branchings.push(Branching { route, targets });
                }
                Err(_) if part.len() > 1 => {
                    let (low, high) = part.split_at(part.len() / 2);
                    stack.push(high);
                    stack.push(low);
                }
                Err(_) => {}
            }
        }
        branchings
    }

    fn refresh_branchings(&mut self, shared: &Shared) {
        let Some(broadcast) = &self.broadcast else {
            return;
        };
        let excluded: Vec<bool> = self.children.iter().map(|child| child.excluded).collect();
        let fresh = broadcast
            .made_for
            .as_ref()
            .is_some_and(|(version, made)| *version == shared.routes_version && *made == excluded);
        if fresh {
            return;
        }
        let children: Vec<usize> = (0..self.children.len())
            .filter(|index| !excluded[*index])
            .collect();
        // Packets in the store were cut for the routes of their time; a longer route
        // must not push them past the MTU.
        let payload = self
            .store
            .runs(self.stable)
            .next()
            .and_then(|(start, _)| self.store.get(start));
        let fits = payload.map_or(ROUTE_LENGTH_MAX, |packet| {
            let room = shared.payload_max(0, false);
            room.saturating_sub(packet.payload.len()).max(16)
        });
        let length_max = ROUTE_LENGTH_MAX.min(fits).min(shared.config.mtu / 4);
        let branchings = self.branch_out(&children, length_max, shared);
        if let Some(broadcast) = &mut self.broadcast {
            broadcast.branchings = branchings;
            broadcast.made_for = Some((shared.routes_version, excluded));
            broadcast.turn = 0;
        }
    }

    /// Bytes of the longest route of the worms that reach all children.
    pub(super) fn tree_route_length(&mut self, shared: &Shared) -> usize {
        self.refresh_branchings(shared);
        let branchings = self
            .broadcast
            .iter()
            .flat_map(|broadcast| &broadcast.branchings);
        branchings
            .map(|branching| branching.route.len())
            .max()
            .unwrap_or(0)
    }

    /// Notes what the child misses, to be sent again to all that miss it.
    pub(super) fn gather_repairs(&mut self, index: usize, now: Instant) {
        let Some(broadcast) = &mut self.broadcast else {
            return;
        };
        for position in self.children[index].pending() {
            broadcast
                .repairs
                .entry(position)
                .or_insert(now.plus_us(GATHER_US));
        }
    }

    pub(super) fn poll_broadcast(
        &mut self,
        shared: &mut Shared,
        now: Instant,
        buf: &mut [u8],
    ) -> Option<Transmit> {
        self.refresh_branchings(shared);
        if self.broadcast.as_ref()?.congestion.next_send() > now {
            return None;
        }
        if let Some(sent) = self.send_repair(shared, now, buf) {
            return Some(sent);
        }
        self.send_new(shared, now, buf)
    }

    fn send_new(&mut self, shared: &mut Shared, now: Instant, buf: &mut [u8]) -> Option<Transmit> {
        let in_flight = self.most_in_flight(|_| true);
        let broadcast = self.broadcast.as_mut()?;
        let position = broadcast.next;
        if !self.store.has(position) {
            return None;
        }
        if broadcast.branchings.is_empty() {
            return None;
        }
        if broadcast.turn == 0 && !broadcast.congestion.has_room(in_flight) {
            return None;
        }
        let turn = broadcast.turn;
        let branching = broadcast.branchings[turn].clone();
        let first_worm = turn == 0;
        broadcast.turn = (turn + 1) % broadcast.branchings.len();
        if broadcast.turn == 0 {
            broadcast.next += 1;
        }
        self.send_tree(position, &branching, !first_worm, shared, now, buf)
    }

    fn most_in_flight(&self, counts: impl Fn(usize) -> bool) -> u32 {
        let children = self.children.iter().enumerate();
        children
            .filter(|(index, child)| !child.excluded && counts(*index))
            .map(|(_, child)| child.in_flight())
            .max()
            .unwrap_or(0)
    }

    /// Sends again the first packet that is due, to all that miss it.
    fn send_repair(
        &mut self,
        shared: &mut Shared,
        now: Instant,
        buf: &mut [u8],
    ) -> Option<Transmit> {
        loop {
            let broadcast = self.broadcast.as_mut()?;
            let due = broadcast.repairs.iter().find(|(_, due)| **due <= now);
            let position = *due?.0;
            let targets: Vec<usize> = (0..self.children.len())
                .filter(|index| {
                    let child = &self.children[*index];
                    child.is_pending(position) && !child.excluded && child.paused_until.is_none()
                })
                .collect();
            if targets.is_empty() || !self.store.has(position) {
                broadcast.repairs.remove(&position);
                continue;
            }
            let in_flight = self.most_in_flight(|index| targets.contains(&index));
            let broadcast = self.broadcast.as_mut()?;
            if !broadcast.congestion.has_room(in_flight) {
                return None;
            }
            if let [only] = targets[..] {
                broadcast.repairs.remove(&position);
                if let Some(sent) = self.send_to_child(only, position, false, shared, now, buf) {
                    self.pace_broadcast(shared, now);
                    return Some(sent);
                }
                continue;
            }
            let room = shared.payload_max(0, false);
            let payload = self
                .store
                .get(position)
                .map_or(0, |packet| packet.payload.len());
            let length_max = room.saturating_sub(payload).min(ROUTE_LENGTH_MAX);
            let branchings = self.branch_out(&targets, length_max, shared);
            let Some(branching) = branchings.into_iter().next() else {
                // No tree route to any of them: one by one.
                let sent = self.send_to_child(targets[0], position, false, shared, now, buf);
                if sent.is_none()
                    && let Some(broadcast) = &mut self.broadcast
                {
                    broadcast.repairs.remove(&position);
                }
                return sent;
            };
            // What one worm does not reach stays in `repairs` for the next.
            return self.send_tree(position, &branching, true, shared, now, buf);
        }
    }

    fn send_tree(
        &mut self,
        position: u64,
        branching: &Branching,
        again: bool,
        shared: &mut Shared,
        now: Instant,
        buf: &mut [u8],
    ) -> Option<Transmit> {
        let common = self.common();
        let data = self.data_of(position, BufferClass::One, false, now)?;
        let way = Way {
            kind: Kind::Tree,
            route: &branching.route,
        };
        let sent = shared.encode(buf, way, BufferClass::One, &common, &Body::Data(data));
        for index in &branching.targets {
            let child = &mut self.children[*index];
            child.status_due = false;
            child.told_stable = self.stable;
            child.note_sent(position, &self.store, now);
        }
        self.pace_broadcast(shared, now);
        self.count_sent(position, again);
        sent
    }

    fn pace_broadcast(&mut self, _shared: &Shared, now: Instant) {
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

    /// When the TREE stream may send.
    pub(super) fn broadcast_deadline(
        &self,
        broadcast: &Broadcast,
        now: Instant,
    ) -> Option<Instant> {
        let next_send = broadcast.congestion.next_send();
        let repair = match broadcast.repairs.iter().find(|(_, due)| **due <= now) {
            // One that is due and has no room waits for an ACK, not for a time.
            Some((position, due)) => {
                let misses = |index: usize| self.children[index].is_pending(*position);
                let room = self.most_in_flight(misses) < broadcast.congestion.window();
                room.then_some(*due)
            }
            None => broadcast.repairs.values().min().copied(),
        };
        let repair = repair.map(|due| due.max(next_send));
        let room = self.most_in_flight(|_| true) < broadcast.congestion.window();
        let new = (self.store.has(broadcast.next) && room && !broadcast.branchings.is_empty())
            .then_some(next_send);
        match (repair, new) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    /// A child that came later, or a scheme that was changed: everything not yet
    /// acknowledged and sent before counts as missed.
    pub(super) fn join_broadcast(&mut self, start: u64, timing: &Timing, now: Instant) {
        let broadcast = self
            .broadcast
            .get_or_insert_with(|| Broadcast::new(start, timing));
        broadcast.forget_branchings();
        let next = broadcast.next;
        for child in &mut self.children {
            if child.receiver.is_some() {
                child.catch_up(next, &self.store, now);
            }
        }
    }
}
