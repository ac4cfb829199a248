//! The MTU by path: a group may go along links that carry less than this host's interface. Packets are cut so that all
//! its ways carry them, and children behind a packet that was cut for more are given up.

use crate::plan::GroupPlan;
use crate::session::Session;
use crate::session::shared::Shared;
use crate::time::Instant;
use wormcast_wire::{FailReason, MTU_MIN};

impl GroupPlan {
    /// Bytes of a frame after its Ethernet header, where the interface carries `most`.
    pub(crate) fn mtu_within(&self, most: usize) -> usize {
        let mtu = self.mtu.map_or(most, usize::from);
        mtu.clamp(MTU_MIN.min(most), most)
    }
}

impl Session {
    /// Bytes of a frame after its Ethernet header that all ways of the group carry.
    pub(crate) fn mtu(&self, shared: &Shared) -> usize {
        self.plan.mtu_within(shared.config.mtu)
    }

    /// Bytes of route for which a packet of that payload leaves room. One that was cut for a larger MTU
    /// than the plan's has the room of the interface's: it gets where that is carried.
    pub(crate) fn route_room(&self, payload: usize, shared: &Shared) -> usize {
        let room =
            |mtu| (shared.payload_max(mtu, 0, false) - self.choice_length()).checked_sub(payload);
        let room_there = room(self.mtu(shared)).or_else(|| room(shared.config.mtu));
        room_there.unwrap_or(0)
    }

    /// Of a draft that was begun for a larger MTU, packets of the size of now; an end shorter than that stays.
    pub(crate) fn cut_long_draft(&mut self, shared: &mut Shared, now: Instant) {
        if self.plan.mtu.is_none()
            || self
                .sending
                .as_ref()
                .is_none_or(|sending| sending.draft.is_empty())
        {
            return;
        }
        let most = self.payload_max(shared);
        let is_long =
            |session: &Self| (session.sending.iter()).any(|sending| sending.draft.len() > most);
        while is_long(self) && self.may_emit(false, shared, now) {
            self.emit_part(most, (false, false), shared, now);
        }
    }

    /// A child that gets nowhere at a packet that was cut for a larger MTU than the plan has now, or for shorter routes, is
    /// given up after as long as a silent one: it may be behind a link that does not carry the packet, or the packet has
    /// no room for a route there. It is served again when the others have all such packets. Whether it is given up now.
    pub(crate) fn judge_length(&mut self, index: usize, shared: &mut Shared, now: Instant) -> bool {
        let child = &self.children[index];
        let position = child.cumulative();
        let is_long = self.is_too_long(index, position, shared);
        let exclude_us = shared.config.timing.member_exclude_us;
        let child = &mut self.children[index];
        if child.excluded {
            if child.too_long.is_some() && !is_long {
                child.excluded = false;
                child.reported = None;
                child.too_long = None;
                child.status_due = true;
            }
            return false;
        }
        if !is_long || child.receiver.is_none() || child.paused_until.is_some() {
            child.too_long = None;
            return false;
        }
        let since = match child.too_long {
            Some((before, since)) if before == position => since,
            _ => now,
        };
        child.too_long = Some((position, since));
        let is_over = now.since_us(since) >= exclude_us;
        if is_over {
            let silent_us = child.silent_us(now);
            child.reported = Some(FailReason::NoRoute);
            self.give_up(index, (FailReason::NoRoute, silent_us), shared);
        }
        is_over
    }

    /// Whether [`Session::judge_length`] would note anything.
    pub(crate) fn is_length_news(&self, index: usize, shared: &Shared) -> bool {
        let child = &self.children[index];
        let position = child.cumulative();
        let is_long = self.is_too_long(index, position, shared);
        if child.excluded {
            return child.too_long.is_some() && !is_long;
        }
        let counts = is_long && child.receiver.is_some() && child.paused_until.is_none();
        child.too_long.map(|(before, _)| before) != counts.then_some(position)
    }

    /// Whether a packet is held that the plan's MTU leaves no room for, or that has none for a route to the child.
    pub(crate) fn is_too_long(&self, index: usize, position: u64, shared: &Shared) -> bool {
        let Some(packet) = self.store.get(position) else {
            return false;
        };
        let is_beyond = |mtu, route_length, with_origin| {
            let most = shared.payload_max(mtu, route_length, with_origin);
            packet.payload.len() > most.saturating_sub(self.choice_length())
        };
        let route = shared.shortest_route(self.children[index].host);
        let is_beyond_route = |(_, length)| {
            let with_origin = self.sending.is_none();
            is_beyond(shared.config.mtu, length, with_origin)
        };
        let is_beyond_plan = self.plan.mtu.is_some() && is_beyond(self.mtu(shared), 1, false);
        is_beyond_plan || route.is_some_and(is_beyond_route)
    }
}
