//! A new plan: another structure, other members, the same positions. Nothing is lost
//! or repeated at a member of both plans, for positions do not depend on the epoch.

use super::Session;
use super::shared::Shared;
use crate::child::Child;
use crate::event::LossReason;
use crate::plan::{GroupPlan, Role};
use crate::time::Instant;
use std::sync::Arc;
use wormcast_wire::HostId;

impl Session {
    /// Takes the place the new plan gives this host.
    pub fn apply_plan(
        &mut self,
        plan: &Arc<GroupPlan>,
        role: Role,
        shared: &mut Shared,
        now: Instant,
    ) {
        if self.detached {
            self.attach(shared);
        }
        self.plan = Arc::clone(plan);
        self.unicast_route_length = None;
        // By a new plan a child that was given up may answer. What became stable without it is reported.
        for child in &mut self.children {
            child.excluded = false;
            child.reported = None;
        }
        self.take_place(role, shared, now);
    }

    /// Takes this place in the structure of the plan's choice in force. A child that was given up stays so,
    /// unless others are below it now that would be given up with it.
    pub(super) fn take_place(&mut self, role: Role, shared: &mut Shared, now: Instant) {
        self.touched = now;
        let epoch = self.plan.epoch_of(self.choice);
        let epoch_changed = self.epoch != epoch;
        self.epoch = epoch;
        self.replication = self.plan.choice(self.choice).replication;
        self.parent = role.parent;
        let timing = shared.config.timing.clone();
        let mut before = core::mem::take(&mut self.children);
        for child_role in &role.children {
            let known = before
                .iter()
                .position(|child| child.host == child_role.host);
            let child = match known {
                Some(index) => {
                    let mut child = before.swap_remove(index);
                    child.class = child_role.class;
                    let has_more = child_role
                        .below
                        .iter()
                        .any(|host| !child.below.contains(host));
                    if !child.excluded || has_more {
                        child.excluded = false;
                        child.reported = None;
                    }
                    child.below = child_role.below.clone();
                    if epoch_changed {
                        // What it confirmed was for another set of hosts below it.
                        child.forget_report(self.stable);
                    }
                    child
                }
                None => Child::new(child_role, self.stable, &timing, now),
            };
            self.children.push(child);
        }
        let copied = self.is_copied() && self.sending.is_none();
        for child in &mut self.children {
            child.copied = copied;
        }
        self.rotation = 0;
        self.statistics.retransmissions_below = self
            .children
            .iter()
            .map(|child| u64::from(child.below_retransmissions))
            .sum();
        if let Some(sending) = &mut self.sending {
            sending.change_members(&self.plan.members);
            if self.is_copied() {
                self.join_broadcast(&timing, now);
            } else if self.broadcast.take().is_some() {
                for child in &mut self.children {
                    if child.receiver.is_some() {
                        child.catch_up(0, &self.store, now);
                    }
                }
            }
        }
        for index in 0..self.children.len() {
            self.settle_child(index, now);
        }
        self.join_return();
        self.join_gathering(now);
        // The new parent learns at once what this host has.
        if let Some(reception) = self.acknowledging_mut() {
            reception.request_ack();
        }
        self.note_stability(shared, now);
    }

    /// Unicast routes to some hosts have changed: delays measured before say nothing, and what
    /// is still to be sent goes by the new ones.
    pub fn note_routes(&mut self, changed: impl Fn(HostId) -> bool) {
        for child in &mut self.children {
            if changed(child.host) {
                child.routes.forget();
                child.path.forget_delays();
            }
        }
        self.retry_unroutable();
    }

    /// Routes along the spanning tree have changed.
    pub fn note_tree_routes(&mut self) {
        for child in &mut self.children {
            child.path.forget_delays();
        }
        self.retry_unroutable();
    }

    fn retry_unroutable(&mut self) {
        for child in &mut self.children {
            // What had no route may have one now.
            child.refresh_pending();
            if child.reported == Some(wormcast_wire::FailReason::NoRoute) {
                child.reported = None;
            }
        }
    }

    /// The plan has no place for the stream any more: whole messages that are here
    /// may still be read, nothing else will come. Failures that children reported go too: the
    /// origin's stream has ended as well, or it waits for this host until it answers or is given up with all below it.
    pub fn detach(&mut self, shared: &mut Shared) {
        self.detached = true;
        self.parent = None;
        self.children.clear();
        self.broadcast = None;
        self.returned = None;
        self.gathering = None;
        self.heard = None;
        let Some(reception) = &mut self.reception else {
            return;
        };
        // Nobody is asked what is stable.
        reception.note_settled();
        let mut end = reception.consumed();
        for position in reception.consumed()..self.cumulative {
            if self.store.get(position).is_some_and(|packet| packet.last) {
                end = position + 1;
            }
        }
        let broke = end == reception.consumed();
        self.cumulative = end;
        self.store
            .truncate(end, |packet| shared.pools.release(packet));
        if broke {
            self.break_off(LossReason::GroupChanged, shared);
        }
    }

    /// The plan has a place for the stream again. What was truncated is gone, and parents
    /// must not take it for received: this is another memory of the stream.
    fn attach(&mut self, shared: &mut Shared) {
        self.detached = false;
        let identity = shared.take_identity();
        if let Some(reception) = &mut self.reception {
            reception.restart(identity, self.cumulative);
        }
    }
}
