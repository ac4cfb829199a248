//! By which of the plan's structures a stream travels. The origin chooses for each message by its length,
//! and changes only when everything before is stable; so a host that hears of another choice misses nothing
//! that came by the one before. A message waits for that only if it is too long for the choice in force: behind others that
//! are under way a shorter one is sooner there by the structure that carries them.

use super::Session;
use super::shared::Shared;
use crate::plan::{GroupPlan, Role};
use crate::reject::Reject;
use crate::time::Instant;
use wormcast_wire::Replication;
use wormcast_wire::Seq;
use wormcast_wire::pdu::CHOICE_LENGTH;
use wormcast_wire::tree_route::encode_what_fits;

/// STATUS of another choice that come one after another until it is believed, though no packet that is new says so.
/// Late ones from before a change are fewer, or are soon contradicted.
const STATUS_BELIEVED: u8 = 3;

impl Session {
    /// The place of this host by a plan, in the structure that the stream travels by. If the plan has
    /// fewer, everybody falls back to its first; the origin says so with the next packet.
    pub fn role_in(&mut self, plan: &GroupPlan, shared: &mut Shared) -> Result<Role, Reject> {
        if usize::from(self.choice) >= plan.choices.len() {
            self.choice = 0;
        }
        shared.usable_role(plan, self.origin, self.choice)
    }

    /// What a PDU from above says of the choice at a packet. One that comes late from before a change
    /// is about packets that are here.
    pub fn note_choice(&mut self, at: Seq, choice: u8, shared: &mut Shared, now: Instant) {
        // What is here beyond a gap came by the choice in force.
        let known_end = self.store.end().max(self.cumulative);
        if choice != self.choice && at.expand(self.cumulative) >= known_end {
            self.follow(choice, shared, now);
        }
    }

    /// What a STATUS says of the choice, wherever it is about. A host that missed a plan, or had it before others, may have
    /// another choice and all packets: no new one tells it. Its parent by the origin's choice asks it again and again.
    pub fn note_choice_again(&mut self, choice: u8, shared: &mut Shared, now: Instant) {
        let (other, times) = self.other_choice;
        self.other_choice = match choice {
            _ if choice == self.choice => (choice, 0),
            _ if choice == other => (choice, times.saturating_add(1)),
            _ => (choice, 1),
        };
        if self.other_choice.1 >= STATUS_BELIEVED {
            self.follow(choice, shared, now);
        }
    }

    fn follow(&mut self, choice: u8, shared: &mut Shared, now: Instant) {
        if self.detached || self.reception.is_none() {
            return;
        }
        self.other_choice = (choice, 0);
        let plan = self.plan.clone();
        self.choice = choice;
        // If this host's plan is older or newer, its place is found when the plans agree.
        if let Ok(role) = shared.usable_role(&plan, self.origin, choice) {
            self.take_place(role, shared, now);
        }
    }

    /// See [`crate::Engine::announce`].
    pub fn announce(&mut self, bytes: u64) {
        if let Some(sending) = &mut self.sending {
            sending.announce(bytes);
        }
    }

    /// At the origin: whether the next packet may be written, `last` if it ends its message. Before the
    /// first packet of a message its choice is made; one for longer messages than before waits until all that went
    /// before is stable. Where the window has been full, messages are as good as one that does not end.
    pub fn may_emit(&mut self, last: bool, shared: &mut Shared, now: Instant) -> bool {
        let has_window = self.has_window(shared);
        let Some(sending) = &mut self.sending else {
            return false;
        };
        if !has_window {
            sending.window_was_full = true;
            return false;
        }
        if self.plan.choices.len() < 2 || sending.is_in_message() {
            return true;
        }
        let known = last.then_some(sending.draft_bytes());
        let bytes = sending.announced.or(known);
        let choice = self
            .plan
            .choice_for(bytes.filter(|_| !sending.window_was_full));
        if choice == self.choice {
            return true;
        }
        if self.stable < self.cumulative {
            return choice < self.choice;
        }
        let plan = self.plan.clone();
        if let Ok(role) = shared.usable_role(&plan, self.origin, choice) {
            self.choice = choice;
            self.take_place(role, shared, now);
        }
        true
    }

    /// Bytes of the choice field in this stream's packets.
    pub fn choice_length(&self) -> usize {
        match self.plan.choices.len() {
            0 | 1 => 0,
            _ => CHOICE_LENGTH,
        }
    }

    /// Payload of a full packet that every choice can carry as routes are now.
    pub fn payload_max(&mut self, shared: &Shared) -> usize {
        let mtu = self.mtu(shared) - shared.train_room;
        let reserve = shared.config.limits.route_reserve_bytes;
        let reserve = reserve.max(self.route_length_among_members(shared));
        let reserve = reserve.min(mtu / 4);
        let by = |session: &mut Self, replication| match replication {
            Replication::Switches => {
                let route = session.tree_route_length_to_all(shared).max(reserve);
                shared.payload_max(mtu, route, false)
            }
            Replication::Hosts => shared.payload_max(mtu, reserve, true),
        };
        let kinds: Vec<Replication> = match self.plan.choices.len() {
            0 | 1 => return by(self, self.replication),
            _ => [Replication::Hosts, Replication::Switches]
                .into_iter()
                .filter(|kind| {
                    self.plan
                        .choices
                        .iter()
                        .any(|choice| choice.replication == *kind)
                })
                .collect(),
        };
        let least = kinds.into_iter().map(|kind| by(self, kind)).min();
        least.map_or(0, |least| least - self.choice_length())
    }

    /// Bytes that a route from a member to another may have: as many as by way of here.
    fn route_length_among_members(&mut self, shared: &Shared) -> usize {
        let version = shared.routes_version;
        if let Some((known, length)) = self.unicast_route_length
            && known == version
        {
            return length;
        }
        let routes = |host| {
            shared
                .unicast
                .get(host)
                .map(|turns| &turns.alternatives.routes)
        };
        let routes = self.plan.members.iter().filter_map(routes).flatten();
        let longest = routes.map(|route| route.ports.len()).max().unwrap_or(0);
        self.unicast_route_length = Some((version, 2 * longest));
        2 * longest
    }

    /// Bytes of the longest route of the TREE worms that reach all members, whether or not the stream
    /// travels by them at the moment.
    fn tree_route_length_to_all(&mut self, shared: &Shared) -> usize {
        if self.broadcast.is_some() {
            return self.tree_route_length(shared);
        }
        let Some(sending) = &mut self.sending else {
            return 0;
        };
        if let Some((version, length)) = sending.tree_route_length
            && version == shared.routes_version
        {
            return length;
        }
        let members = sending.members.iter().enumerate();
        let paths: Vec<(usize, &[u8])> = members
            .filter_map(|(index, host)| Some((index, shared.tree.get(host)?.as_slice())))
            .collect();
        let most = shared.tree_room(self.plan.mtu_within(shared.config.mtu));
        let worms = encode_what_fits(&paths, most);
        let length = worms.iter().map(|worm| worm.bytes.len()).max().unwrap_or(0);
        sending.tree_route_length = Some((shared.routes_version, length));
        length
    }
}
