//! The engine of one host: all its groups and streams, frames in, frames out.

mod acks;
pub(crate) mod active;
mod application;
mod arrivals;
mod early;
mod figures;
mod past;
mod reports;
mod roles;
mod streams;
mod unread;

use crate::config::{ConfigError, EngineConfig};
use crate::event::{Event, LossReason, Transmit};
use crate::gather::branches::Branches;
use crate::plan::{GroupPlan, PlanError};
use crate::reject::Reject;
use crate::routes::Alternatives;
use crate::session::shared::{SessionKey, Shared};
use crate::session::{Arrival, Session};
use crate::time::Instant;
use crate::trace::Probes;
use active::Sessions;
pub use reports::UNREAD_MAX;
use std::collections::BTreeMap;
use std::sync::Arc;
use wormcast_wire::pdu::{self, Body, Common, Data};
use wormcast_wire::worm::{self, Kind};
use wormcast_wire::{BufferClass, GroupId, HostId, Seq};
use wormcast_wire::{ETHERNET_LENGTH, ETHERTYPE_HOST_PDU};

/// The reliable multicast of one host, without sockets, clocks or threads: the
/// shell hands in frames and the time, and takes out frames, events and the time of
/// the next call.
///
/// The order of calls in a shell's loop: [`Engine::handle_frame`] for what has
/// come; [`Engine::handle_timeout`] when [`Engine::poll_timeout`] has passed;
/// [`Engine::poll_transmit`] until it gives nothing; [`Engine::poll_event`] until it
/// gives nothing; then wait for a frame or the time of [`Engine::poll_timeout`].
pub struct Engine {
    pub(crate) shared: Shared,
    pub(crate) groups: BTreeMap<GroupId, Arc<GroupPlan>>,
    pub(crate) sessions: Sessions,
    past: past::Past,
    /// The stream that may send next.
    turn: SessionKey,
    reports: reports::Reports,
    pub(crate) probes: Probes,
    pub(crate) branches: Branches,
    early: early::EarlyAcks,
    now: Instant,
}

impl Engine {
    /// An engine with no groups and no routes.
    ///
    /// # Errors
    /// A field of `config` is out of its bounds.
    pub fn new(config: EngineConfig) -> Result<Engine, ConfigError> {
        config.check()?;
        Ok(Engine {
            shared: Shared::new(config),
            groups: BTreeMap::new(),
            sessions: Sessions::default(),
            past: past::Past::default(),
            turn: (GroupId(0), HostId(0)),
            reports: reports::Reports::default(),
            probes: Probes::default(),
            branches: Branches::default(),
            early: early::EarlyAcks::default(),
            // Zero stands for "never" in send records.
            now: Instant::from_micros(1),
        })
    }

    pub fn config(&self) -> &EngineConfig {
        &self.shared.config
    }

    fn advance(&mut self, now: Instant) -> Instant {
        self.now = self.now.max(now);
        self.now
    }

    /// Replaces the unicast routes: to every other host one or several.
    ///
    /// # Errors
    /// Routes that cannot be some; all stay as they were.
    pub fn set_routes<R: Into<Alternatives>>(
        &mut self,
        routes: BTreeMap<HostId, R>,
        now: Instant,
    ) -> Result<(), PlanError> {
        self.advance(now);
        let routes = routes.into_iter();
        let routes = routes.map(|(host, routes)| (host, Arc::new(routes.into())));
        let routes: BTreeMap<HostId, Arc<Alternatives>> = routes.collect();
        let new = self.new_unicast(&routes)?;
        self.replace_unicast(&routes, new);
        Ok(())
    }

    /// Replaces the routes along the multicast spanning tree, to every other host.
    /// TREE routes are made of them.
    ///
    /// # Errors
    /// A route that cannot be one; the routes stay as they were.
    pub fn set_tree_routes(
        &mut self,
        routes: BTreeMap<HostId, Vec<u8>>,
        now: Instant,
    ) -> Result<(), PlanError> {
        self.advance(now);
        self.replace_tree(&Arc::new(routes))
    }

    /// Makes this host a member of a group, or moves the group to a new plan.
    /// Streams go on: no message is lost or repeated at a member of both plans.
    ///
    /// # Errors
    /// See [`PlanError`]; the plan stays as it was.
    pub fn set_group(&mut self, mut plan: GroupPlan, now: Instant) -> Result<(), PlanError> {
        let now = self.advance(now);
        let host = self.shared.config.host;
        let limit = self.shared.config.limits.groups;
        if plan.id == GroupId::BROADCAST {
            return Err(PlanError::GroupReserved);
        }
        if !plan.members.contains(&host) {
            return Err(PlanError::NotMember {
                group: plan.id,
                host,
            });
        }
        if self.groups.len() >= limit && !self.groups.contains_key(&plan.id) {
            return Err(PlanError::GroupsFull { limit });
        }
        let group = plan.id;
        // Sets of members in ACKs count by places in this order.
        plan.members.sort_unstable();
        let plan = Arc::new(plan);
        let keys: Vec<SessionKey> = self.keys_of(group).collect();
        for key in keys {
            let Some(session) = self.sessions.get_mut(&key) else {
                continue;
            };
            match session.role_in(&plan, &mut self.shared) {
                Ok(role) => session.apply_plan(&plan, role, &mut self.shared, now),
                Err(_) => session.detach(&mut self.shared),
            }
        }
        self.groups.insert(group, plan);
        self.drop_drained(group);
        Ok(())
    }

    fn keys_of(&self, group: GroupId) -> impl Iterator<Item = SessionKey> + '_ {
        self.sessions.of_group(group).map(|(key, _)| *key)
    }

    /// This host leaves the group. Messages not read yet are lost; origins count it as removed. Of its own
    /// messages no outcome comes any more: the shell ends its senders with an error.
    pub fn remove_group(&mut self, group: GroupId, now: Instant) {
        self.advance(now);
        self.groups.remove(&group);
        self.past.leave(group);
        let keys: Vec<SessionKey> = self.keys_of(group).collect();
        for key in keys {
            if let Some(mut session) = self.sessions.remove(&key) {
                session.break_off(LossReason::GroupChanged, &mut self.shared);
                session.release_all(&mut self.shared);
            }
        }
    }

    /// The groups this host is a member of.
    pub fn groups(&self) -> impl Iterator<Item = &GroupPlan> {
        self.groups.values().map(Arc::as_ref)
    }

    /// Takes a received Ethernet frame. Worms in transit are the shell's: this host does not take
    /// them.
    ///
    /// # Errors
    /// Why the frame was not taken; it has been counted.
    pub fn handle_frame(&mut self, frame: &[u8], now: Instant) -> Result<(), Reject> {
        let now = self.advance(now);
        self.shared.counters.received_frames += 1;
        let result = self.take_frame(frame, now);
        if let Err(reject) = result {
            self.shared.counters.count_reject(reject);
        }
        self.take_early(now);
        result
    }

    fn take_frame(&mut self, frame: &[u8], now: Instant) -> Result<(), Reject> {
        let worm = worm::decode(frame)?;
        match worm.header.kind {
            // Switches refuse trains of other kinds.
            Kind::Broadcast | Kind::Group if worm.train.is_some() => {
                return Err(Reject::NotForHosts);
            }
            Kind::Unicast | Kind::Tree | Kind::Broadcast if worm.route.is_empty() => {}
            // Its route is the number, which switches leave.
            Kind::Group => {}
            Kind::Gather if worm.route.is_empty() => return self.take_gathered(&worm, now),
            _ => return Err(Reject::NotForHosts),
        }
        if worm.header.next != ETHERTYPE_HOST_PDU {
            return Err(Reject::NotHostPdu);
        }
        let sender = worm.header.source;
        let pdu = pdu::decode(sender, worm.payload)?;
        let marked = worm.header.flags & worm::flags::CE != 0;
        let common = pdu.common;
        if let Body::Probe(probe) = pdu.body {
            self.take_probe(&worm, common, probe);
            return Ok(());
        }
        let own = sender == self.shared.config.host;
        let is_for_all = matches!(worm.header.kind, Kind::Broadcast | Kind::Group);
        if is_for_all && (own || !self.groups.contains_key(&common.group)) {
            // Switches copy these to more hosts than the members, the sender too.
            self.shared.counters.filtered += 1;
            return Ok(());
        }
        let plan = self.groups.get(&common.group).ok_or(Reject::UnknownGroup)?;
        if own {
            return Err(Reject::OwnSource);
        }
        if !plan.members.contains(&sender) {
            return Err(Reject::NotMember);
        }
        let is_own = common.origin == self.shared.config.host;
        match pdu.body {
            Body::Data(data) => {
                let copied = worm.header.kind != Kind::Unicast;
                self.take_data(common, &data, (sender, marked, copied), now)
            }
            Body::Ack(ack) => match self.known_stream(common) {
                Ok((session, shared)) => session.handle_ack(&ack, sender, shared, now),
                Err(_) if is_own => self.answer_forgotten(common.group, sender, now),
                Err(Reject::UnknownStream) => self.keep_early(frame, common, now),
                Err(reject) => Err(reject),
            },
            Body::Nack(nack) => {
                let (session, _) = self.known_stream(common)?;
                session.handle_nack(&nack, sender, now)
            }
            Body::Repair(repair) => {
                let (session, shared) = self.known_stream(common)?;
                session.handle_repair(&repair, sender, shared, now)
            }
            Body::Status(status) if status.order_wanted => {
                if is_own && !status.order_next {
                    match self.known_stream(common) {
                        Ok((session, _)) => session.answer_asked(status.stable, sender),
                        Err(_) => self.answer_forgotten(common.group, sender, now)?,
                    }
                }
                self.shared.emit(Event::OrderWanted {
                    group: common.group,
                    from: sender,
                    is_next: status.order_next,
                    origin: common.origin,
                    stream: common.stream,
                    start: status.stable,
                });
                Ok(())
            }
            Body::Status(status) if is_own && (status.unclaimed || status.slow) => {
                self.take_unread(common, (status.stable, status.slow), sender)
            }
            Body::Status(status) if is_own => {
                let (session, _) = self.returning_stream(common, sender)?;
                session.handle_returned_status(&status);
                Ok(())
            }
            Body::Status(status) => {
                if let Ok((session, shared)) = self.known_stream(common) {
                    session.note_choice_again(status.choice, shared, now);
                }
                let at = (status.stable, status.choice);
                if !self.open_stream(common, status.stable, at, sender, now)? {
                    return Err(Reject::NotParent);
                }
                let (session, shared) = self.known_stream(common)?;
                session.handle_status(&status, shared, now);
                Ok(())
            }
            // Taken before: it is not a member's alone.
            Body::Probe(_) => Ok(()),
        }
    }

    /// The stream an answer is about.
    fn known_stream(&mut self, common: Common) -> Result<(&mut Session, &mut Shared), Reject> {
        let key = (common.group, common.origin);
        let session = self.sessions.get_mut(&key).ok_or(Reject::UnknownStream)?;
        if session.stream != common.stream {
            return Err(Reject::StaleIncarnation);
        }
        Ok((session, &mut self.shared))
    }

    /// A member has something of this host's stream in a life that this engine knows nothing of: it is told in which
    /// one the stream is now, so that it waits for no more of the other. If there is none, it begins here.
    fn answer_forgotten(
        &mut self,
        group: GroupId,
        member: HostId,
        now: Instant,
    ) -> Result<(), Reject> {
        let (session, _) = self
            .own_session(group, now)
            .map_err(|_| Reject::UnknownStream)?;
        session.answer(member);
        Ok(())
    }

    /// The stream of this host that comes back from the sender.
    fn returning_stream(
        &mut self,
        common: Common,
        sender: HostId,
    ) -> Result<(&mut Session, &mut Shared), Reject> {
        let session = self.sessions.get(&(common.group, common.origin));
        if !session.is_some_and(|session| session.returns_from(sender)) {
            return Err(Reject::OwnStream);
        }
        self.known_stream(common)
    }

    fn take_data(
        &mut self,
        common: Common,
        data: &Data<'_>,
        (sender, marked, copied): (HostId, bool, bool),
        now: Instant,
    ) -> Result<(), Reject> {
        if data.payload.len() > self.shared.config.mtu {
            return Err(Reject::TooLong);
        }
        if common.origin == self.shared.config.host {
            let (session, shared) = self.returning_stream(common, sender)?;
            return session.handle_returned(data, marked, shared, now);
        }
        let stable = Seq(data.seq.0.wrapping_sub(u32::from(data.stable_offset)));
        let at = (data.seq, data.choice);
        let stable_counts = self.open_stream(common, stable, at, sender, now)?;
        let key = (common.group, common.origin);
        let class = if self.shared.config.limits.unclassed {
            BufferClass::One
        } else {
            data.class
        };
        let data = &Data { class, ..*data };
        if !self.shared.pools.admits(class, data.payload.len(), false) {
            self.make_room(key, class);
        }
        let session = self.sessions.get_mut(&key).ok_or(Reject::UnknownStream)?;
        let arrival = Arrival {
            sender,
            stable_counts,
            marked,
            copied,
        };
        session.handle_data(data, arrival, &mut self.shared, now)
    }

    /// The pool runs short: other streams give up what is delivered, though not
    /// stable (the one concerned does so itself).
    fn make_room(&mut self, except: SessionKey, class: BufferClass) {
        let shared = &mut self.shared;
        self.sessions
            .find_mut(|key, session| *key != except && session.evict(class, shared));
    }

    /// Acts on every time that has come: delayed ACKs, loss, probes, silence.
    pub fn handle_timeout(&mut self, now: Instant) {
        let now = self.advance(now);
        self.sessions.handle_timeout(&mut self.shared, now);
    }

    /// Bytes a buffer for [`Engine::poll_transmit`] must have.
    pub fn frame_length_max(&self) -> usize {
        ETHERNET_LENGTH + self.shared.config.mtu
    }

    /// Writes the next frame to be sent to the front of `buf`, which must have
    /// [`Engine::frame_length_max`] bytes. None: nothing may be sent at this time;
    /// [`Engine::poll_timeout`] says when to ask again.
    pub fn poll_transmit(&mut self, now: Instant, buf: &mut [u8]) -> Option<Transmit> {
        let now = self.advance(now);
        assert!(
            buf.len() >= self.frame_length_max(),
            "the buffer must hold the longest frame"
        );
        if let Some(sent) = self.send_unread(buf) {
            return Some(sent);
        }
        if let Some(sent) = self.send_probe(buf) {
            return Some(sent);
        }
        if let Some(sent) = self.send_request(buf) {
            return Some(sent);
        }
        let (shared, turn) = (&mut self.shared, &mut self.turn);
        self.sessions.poll(shared, turn, now, buf)
    }

    /// The next time at which [`Engine::handle_timeout`] or
    /// [`Engine::poll_transmit`] has something to do.
    pub fn poll_timeout(&self) -> Option<Instant> {
        if self.reports.is_due() || self.probes.is_due() || self.branches.is_due() {
            return Some(self.now);
        }
        self.sessions.deadline(&self.shared, self.now)
    }

    /// The next event, oldest first.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.shared.take_event()
    }
}
