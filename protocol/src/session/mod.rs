//! One stream: what one host holds, forwards, confirms and, if it is the origin,
//! writes, for one (group, origin).

mod acknowledge;
mod belief;
mod broadcast;
mod choice;
pub(crate) mod copied;
mod delivery;
mod given_up;
mod incoming;
mod judgement;
mod lag;
mod measure;
mod memory;
mod messages;
mod outgoing;
mod progress;
mod reception;
mod repairs;
mod replan;
mod rest;
mod return_runs;
mod returned;
mod sending;
pub(crate) mod shared;
mod worms;

use crate::child::{Acked, Child};
use crate::config::Timing;
use crate::event::{Event, LossReason};
use crate::gather::words::{Gathering, Heard};
use crate::plan::{GroupPlan, Role};
use crate::statistics::SessionStatistics;
use crate::time::Instant;
use crate::window::store::Store;
use crate::window::unproven::Unproven;
use judgement::Claim;
pub(crate) use judgement::{Arrival, Judgement};
pub use lag::{Behind, ChildLag, StreamLag};
pub use messages::Progress;
use messages::Sending;
pub(crate) use reception::Missed;
use reception::Reception;
use return_runs::Returned;
use shared::Shared;
use std::sync::Arc;
use wormcast_wire::pdu::Common;
use wormcast_wire::{GroupId, HostId, Replication, Seq};
use worms::Broadcast;

/// Which stream a session is about, and where it starts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stream {
    pub origin: HostId,
    /// Which life of the stream.
    pub number: u32,
    /// The first packet that matters to this host.
    pub start: Seq,
    /// By which choice of the plan it travels.
    pub choice: u8,
}

/// A host's part in one stream.
pub(crate) struct Session {
    pub group: GroupId,
    pub origin: HostId,
    /// Which life of the stream.
    pub stream: u32,
    pub plan: Arc<GroupPlan>,
    /// By which of the plan's choices the stream travels.
    pub choice: u8,
    /// Another one of which STATUS spoke last, and how often in a row.
    other_choice: (u8, u8),
    /// Who copies packets. Where switches do, they copy the origin's to all members; children get from
    /// here what they miss.
    replication: Replication,
    epoch: u32,
    parent: Option<HostId>,
    pub store: Store,
    /// The first packet that matters to this host.
    first: u64,
    /// All members hold everything before, as far as this host knows.
    pub stable: u64,
    /// Origin: the next position to write. Member: the first position missing.
    pub cumulative: u64,
    /// At a member: packets have come in order since the start.
    proven: bool,
    /// At a member: what the parent or the origin says and is not believed yet.
    unproven: Option<Unproven<Claim>>,
    /// Where the packets end that this host has sent.
    sent_end: u64,
    pub children: Vec<Child>,
    rotation: usize,
    /// At a member.
    pub reception: Option<Reception>,
    /// At the origin.
    pub sending: Option<Sending>,
    /// At the origin, scheme switch.
    pub broadcast: Option<Broadcast>,
    /// At the origin of a circuit that returns; `parent` is the last host.
    returned: Option<Returned>,
    /// At a member whose ACKs switches gather.
    pub gathering: Option<Gathering>,
    /// At the origin, once a gathered ACK has come.
    pub heard: Option<Heard>,
    pub statistics: SessionStatistics,
    pub touched: Instant,
    /// The plan has no place for it any more; what is complete may still be read.
    pub detached: bool,
    /// At the origin: routes for which it was computed, and the bytes of the longest from member to member.
    unicast_route_length: Option<(u64, usize)>,
}

impl Session {
    /// The stream this host originates, from its first packet on.
    pub fn new_origin(
        plan: &Arc<GroupPlan>,
        stream: Stream,
        role: Role,
        timing: &Timing,
        now: Instant,
    ) -> Session {
        let mut session = Session::new(plan, stream, role, timing, now);
        session.sending = Some(Sending::new(plan.members.clone()));
        if session.is_copied() {
            session.broadcast = Some(Broadcast::new(session.cumulative, timing));
        }
        session.join_return();
        session.join_gathering(now);
        session
    }

    /// The stream of another host, from what is stable on. `identity` tells this memory
    /// of it from others.
    pub fn new_member(
        plan: &Arc<GroupPlan>,
        stream: Stream,
        role: Role,
        identity: u32,
        timing: &Timing,
        now: Instant,
    ) -> Session {
        let mut session = Session::new(plan, stream, role, timing, now);
        session.reception = Some(Reception::new(session.cumulative, identity));
        let copied = session.is_copied();
        for child in &mut session.children {
            child.copied = copied;
        }
        session.join_gathering(now);
        session
    }

    fn new(
        plan: &Arc<GroupPlan>,
        stream: Stream,
        role: Role,
        timing: &Timing,
        now: Instant,
    ) -> Session {
        let start = stream.start.first_position();
        Session {
            group: plan.id,
            origin: stream.origin,
            stream: stream.number,
            plan: Arc::clone(plan),
            choice: stream.choice,
            other_choice: (stream.choice, 0),
            replication: plan.choice(stream.choice).replication,
            epoch: plan.epoch_of(stream.choice),
            parent: role.parent,
            store: Store::new(start),
            first: start,
            stable: start,
            cumulative: start,
            proven: false,
            unproven: None,
            sent_end: start,
            children: role
                .children
                .iter()
                .map(|child| Child::new(child, start, timing, now))
                .collect(),
            rotation: 0,
            reception: None,
            sending: None,
            broadcast: None,
            returned: None,
            gathering: None,
            heard: None,
            statistics: SessionStatistics::default(),
            touched: now,
            detached: false,
            unicast_route_length: None,
        }
    }

    /// Whether switches copy the origin's packets to all members.
    pub fn is_copied(&self) -> bool {
        self.replication == Replication::Switches
    }

    fn common(&self) -> Common {
        Common {
            group: self.group,
            origin: self.origin,
            stream: self.stream,
        }
    }

    /// Whether nothing is lost when this member forgets the stream: all is read,
    /// confirmed, and stable.
    pub fn is_idle(&self) -> bool {
        self.reception
            .as_ref()
            .is_some_and(|reception| reception.is_drained(self.cumulative))
            && (self.stable == self.cumulative || self.detached)
            && self.store.end() <= self.cumulative
    }

    /// Everything this host and all below it have confirmed.
    fn subtree_stable(&self) -> u64 {
        let own = match &self.reception {
            Some(reception) => reception.consumed(),
            None => self.cumulative,
        };
        self.children
            .iter()
            .filter(|child| !child.excluded)
            .map(|child| {
                if child.stable_current {
                    child.stable
                } else {
                    self.stable
                }
            })
            .fold(own, u64::min)
            .max(self.stable)
    }

    /// The subtree has confirmed more, or may have: tell the parent, or at the
    /// origin, move the window.
    pub fn note_stability(&mut self, shared: &mut Shared, now: Instant) {
        let stable = self.subtree_stable();
        let delay_us = shared.config.timing.ack_delay_us;
        self.note_word(delay_us, now);
        let rare_us = self.rare_ack_us(now);
        if self.sending.is_some() {
            if stable > self.stable {
                self.advance_stable(stable, shared, now);
            }
        } else if let Some(reception) = &mut self.reception {
            match rare_us {
                None => reception.note_stable(stable, delay_us, false, now),
                // What all know to be stable need not be sent.
                Some(us) if stable > self.stable => reception.note_stable(stable, us, true, now),
                Some(_) => {}
            }
            let all_here = self.store.end() <= self.cumulative;
            let all_read = all_here && reception.consumed() == self.cumulative;
            let unsettled = all_read && self.stable < self.cumulative && !self.detached;
            let is_whole = reception.has_whole(self.cumulative, self.store.end());
            reception.note_unsettled(unsettled, is_whole || self.detached, now);
        }
    }

    /// All members hold everything before `stable`.
    fn advance_stable(&mut self, stable: u64, shared: &mut Shared, now: Instant) {
        if stable <= self.stable {
            return;
        }
        self.stable = stable;
        let mut keep_from = stable;
        if let Some(reception) = &mut self.reception {
            reception.forget_settled(stable);
            reception.note_settled();
            if core::mem::take(&mut reception.advertises_less) {
                // There is room for the rest now.
                reception.request_ack();
            }
            keep_from = keep_from.min(reception.consumed());
        }
        self.release_before(keep_from, shared);
        if let Some(broadcast) = &mut self.broadcast {
            broadcast.skip_to(stable);
        }
        if let Some(returned) = &mut self.returned {
            returned.skip_to(stable);
        }
        for child in &mut self.children {
            child.status_due = true;
            // What is stable nobody gets any more, not even one taken for dead. That it has it is not said by this: it
            // failed with the message, or says itself that it came too late.
            child.acknowledge_before(stable, &mut Acked::default());
        }
        self.note_gathered_stable(now);
        self.settle_messages(shared);
        self.write_pending_end(shared, now);
    }
}

impl Session {
    /// The stream ends here: what is being read breaks off.
    pub fn break_off(&mut self, reason: LossReason, shared: &mut Shared) {
        let reception = self.reception.as_mut();
        if reception.is_some_and(Reception::break_off) {
            let (group, origin) = (self.group, self.origin);
            shared.emit(Event::MessageLost {
                group,
                origin,
                reason,
            });
        }
    }
}
