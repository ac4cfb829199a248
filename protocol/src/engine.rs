//! The engine of one host: all its groups and streams, frames in, frames out.

use crate::config::{ConfigError, EngineConfig};
use crate::event::{Event, FailReason, LossReason, Read, Transmit, UseError};
use crate::ids::{BufferClass, GroupId, HostId, Seq};
use crate::plan::{GroupPlan, PlanError, Role};
use crate::session::shared::Shared;
use crate::session::{Progress, Session};
use crate::statistics::{Counters, SessionStatistics};
use crate::time::Instant;
use crate::wire::ETHERNET_LENGTH;
use crate::wire::ETHERTYPE_HOST_PDU;
use crate::wire::pdu::{self, Body, Common, Data};
use crate::wire::reject::Reject;
use crate::wire::worm::{self, Kind, ROUTE_LENGTH_MAX};
use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;

type SessionKey = (GroupId, HostId);

/// The reliable multicast of one host, without sockets, clocks or threads: the
/// shell hands in frames and the time, and takes out frames, events and the time of
/// the next call.
///
/// The order of calls in a shell's loop: [`Engine::handle_frame`] for what has
/// come; [`Engine::handle_timeout`] when [`Engine::poll_timeout`] has passed;
/// [`Engine::poll_transmit`] until it gives nothing; [`Engine::poll_event`] until it
/// gives nothing; then wait for a frame or the time of [`Engine::poll_timeout`].
pub struct Engine {
    shared: Shared,
    groups: BTreeMap<GroupId, GroupPlan>,
    sessions: BTreeMap<SessionKey, Session>,
    /// The stream that may send next.
    turn: SessionKey,
    in_transit: VecDeque<Vec<u8>>,
    in_transit_bytes: usize,
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
            sessions: BTreeMap::new(),
            turn: (GroupId(0), HostId(0)),
            in_transit: VecDeque::new(),
            in_transit_bytes: 0,
            // Zero stands for "never" in send records.
            now: Instant::from_micros(1),
        })
    }

    /// The configuration.
    pub fn config(&self) -> &EngineConfig {
        &self.shared.config
    }

    fn advance(&mut self, now: Instant) -> Instant {
        self.now = self.now.max(now);
        self.now
    }

    /// Replaces the unicast routes: port bytes to every other host, ejection to
    /// in-transit hosts included.
    ///
    /// # Errors
    /// A route that cannot be one; the routes stay as they were.
    pub fn set_routes(
        &mut self,
        routes: BTreeMap<HostId, Vec<u8>>,
        now: Instant,
    ) -> Result<(), PlanError> {
        self.advance(now);
        check_routes(&routes, worm::PORT_RECIRCULATE)?;
        if self.shared.unicast != routes {
            self.shared.unicast = routes;
            self.note_routes();
        }
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
        check_routes(&routes, worm::PORT_RECIRCULATE - 1)?;
        if self.shared.tree != routes {
            self.shared.tree = routes;
            self.note_routes();
        }
        Ok(())
    }

    fn note_routes(&mut self) {
        self.shared.routes_version += 1;
        for session in self.sessions.values_mut() {
            session.forget_delays();
        }
    }

    /// Makes this host a member of a group, or moves the group to a new plan.
    /// Streams go on: no message is lost or repeated at a member of both plans.
    ///
    /// # Errors
    /// See [`PlanError`]; the plan stays as it was.
    pub fn set_group(&mut self, plan: GroupPlan, now: Instant) -> Result<(), PlanError> {
        let now = self.advance(now);
        let host = self.shared.config.host;
        let limit = self.shared.config.limits.groups;
        if plan.id == GroupId::BROADCAST {
            return Err(PlanError::GroupReserved);
        }
        if !plan.members.contains(&host) {
            return Err(PlanError::NotMember { group: plan.id, host });
        }
        if self.groups.len() >= limit && !self.groups.contains_key(&plan.id) {
            return Err(PlanError::GroupsFull { limit });
        }
        let group = plan.id;
        let keys: Vec<SessionKey> = self.keys_of(group).collect();
        for key in keys {
            let role = self.shared.usable_role(&plan, key.1);
            let Some(session) = self.sessions.get_mut(&key) else { continue };
            match role {
                Ok(role) => session.apply_plan(&plan, role, &mut self.shared, now),
                Err(_) => session.detach(&mut self.shared),
            }
        }
        self.groups.insert(group, plan);
        self.drop_drained(group);
        Ok(())
    }

    fn keys_of(&self, group: GroupId) -> impl Iterator<Item = SessionKey> + '_ {
        self.sessions
            .range((group, HostId(0))..=(group, HostId(u16::MAX)))
            .map(|(key, _)| *key)
    }

    /// Streams without a place in the plan go when nothing is left to read.
    fn drop_drained(&mut self, group: GroupId) {
        let keys: Vec<SessionKey> = self.keys_of(group).collect();
        for key in keys {
            let gone = self.sessions.get(&key).is_some_and(|session| {
                session.detached && (session.is_idle() || key.1 == self.shared.config.host)
            });
            if gone && let Some(mut session) = self.sessions.remove(&key) {
                session.release_all(&mut self.shared);
            }
        }
    }

    /// This host leaves the group. Messages not read yet are lost.
    pub fn remove_group(&mut self, group: GroupId, now: Instant) {
        self.advance(now);
        self.groups.remove(&group);
        let keys: Vec<SessionKey> = self.keys_of(group).collect();
        for key in keys {
            if let Some(mut session) = self.sessions.remove(&key) {
                session.detach(&mut self.shared);
                session.release_all(&mut self.shared);
            }
        }
    }

    /// The groups this host is a member of.
    pub fn groups(&self) -> impl Iterator<Item = &GroupPlan> {
        self.groups.values()
    }

    /// Takes a received Ethernet frame. Worms in transit are queued to be sent on.
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
        result
    }

    fn take_frame(&mut self, frame: &[u8], now: Instant) -> Result<(), Reject> {
        let worm = worm::decode(frame)?;
        match worm.header.kind {
            Kind::Unicast if !worm.route.is_empty() => return self.queue_in_transit(frame),
            Kind::Unicast | Kind::Tree | Kind::Broadcast if worm.route.is_empty() => {}
            _ => return Err(Reject::NotForHosts),
        }
        if worm.header.next != ETHERTYPE_HOST_PDU {
            return Err(Reject::NotHostPdu);
        }
        let sender = worm.header.source;
        let pdu = pdu::decode(sender, worm.payload)?;
        let marked = worm.header.flags & worm::flags::CE != 0;
        let common = pdu.common;
        let plan = self.groups.get(&common.group).ok_or(Reject::UnknownGroup)?;
        if !plan.members.contains(&sender) {
            return Err(Reject::NotMember);
        }
        match pdu.body {
            Body::Data(data) => self.take_data(common, &data, sender, marked, now),
            Body::Ack(ack) => {
                let (session, shared) = self.known_stream(common)?;
                session.handle_ack(&ack, sender, shared, now)
            }
            Body::Nack(_) => self.known_stream(common)?.0.handle_nack(sender, now),
            Body::Repair(repair) => self.known_stream(common)?.0.handle_repair(&repair, now),
            Body::Status(status) => {
                self.open_stream(common, status.stable, now)?;
                let (session, shared) = self.known_stream(common)?;
                session.handle_status(&status, shared, now);
                Ok(())
            }
        }
    }

    fn queue_in_transit(&mut self, frame: &[u8]) -> Result<(), Reject> {
        if self.in_transit_bytes + frame.len() > self.shared.config.limits.in_transit_bytes {
            return Err(Reject::InTransitFull);
        }
        self.in_transit_bytes += frame.len();
        self.in_transit.push_back(frame.to_vec());
        Ok(())
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

    fn take_data(
        &mut self,
        common: Common,
        data: &Data<'_>,
        sender: HostId,
        marked: bool,
        now: Instant,
    ) -> Result<(), Reject> {
        if data.payload.len() > self.shared.config.mtu {
            return Err(Reject::TooLong);
        }
        let stable = Seq(data.seq.0.wrapping_sub(u32::from(data.stable_offset)));
        self.open_stream(common, stable, now)?;
        let key = (common.group, common.origin);
        let class = data.class;
        if !self.shared.pools.admits(class, false) {
            self.make_room(key, class);
        }
        let session = self.sessions.get_mut(&key).ok_or(Reject::UnknownStream)?;
        session.handle_data(data, sender, marked, &mut self.shared, now)
    }

    /// The pool runs short: other streams give up what is delivered, though not
    /// stable (the one concerned does so itself).
    fn make_room(&mut self, except: SessionKey, class: BufferClass) {
        for (key, session) in &mut self.sessions {
            if *key != except && session.evict(class, &mut self.shared) {
                return;
            }
        }
    }

    /// Makes sure there is a stream of this life of the origin.
    fn open_stream(&mut self, common: Common, stable: Seq, now: Instant) -> Result<(), Reject> {
        let host = self.shared.config.host;
        if common.origin == host {
            return Err(Reject::OwnStream);
        }
        let key = (common.group, common.origin);
        if let Some(session) = self.sessions.get(&key) {
            if session.detached {
                return Err(Reject::NotMember);
            }
            if session.stream == common.stream {
                return Ok(());
            }
            if !Seq(common.stream).is_after(Seq(session.stream)) {
                return Err(Reject::StaleIncarnation);
            }
        }
        let plan = self.groups.get(&common.group).ok_or(Reject::UnknownGroup)?;
        let role = self.shared.usable_role(plan, common.origin)?;
        if let Some(mut old) = self.sessions.remove(&key) {
            if old.break_off() {
                let (group, origin) = key;
                let reason = LossReason::OriginRestarted;
                self.shared.emit(Event::MessageLost { group, origin, reason });
            }
            old.release_all(&mut self.shared);
        }
        if self.sessions.len() >= self.shared.config.limits.sessions {
            self.reclaim_session().ok_or(Reject::SessionsFull)?;
        }
        let plan = self.groups.get(&common.group).ok_or(Reject::UnknownGroup)?;
        let identity = self.shared.take_identity();
        let timing = &self.shared.config.timing;
        let session = Session::new_member(
            plan,
            common.origin,
            common.stream,
            stable,
            role,
            identity,
            timing,
            now,
        );
        self.sessions.insert(key, session);
        Ok(())
    }

    /// Gives up the stream that has been idle longest, if forgetting it loses nothing.
    fn reclaim_session(&mut self) -> Option<()> {
        let (key, _) = self
            .sessions
            .iter()
            .filter(|(_, session)| session.is_idle())
            .min_by_key(|(_, session)| session.touched)?;
        let key = *key;
        let mut session = self.sessions.remove(&key)?;
        session.release_all(&mut self.shared);
        self.shared.counters.sessions_reclaimed += 1;
        Some(())
    }

    /// Acts on every time that has come: delayed ACKs, loss, probes, silence.
    pub fn handle_timeout(&mut self, now: Instant) {
        let now = self.advance(now);
        for session in self.sessions.values_mut() {
            session.handle_timeout(&mut self.shared, now);
        }
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
        assert!(buf.len() >= self.frame_length_max(), "the buffer must hold the longest frame");
        if let Some(frame) = self.in_transit.pop_front() {
            self.in_transit_bytes -= frame.len();
            self.shared.counters.in_transit_frames += 1;
            buf[..frame.len()].copy_from_slice(&frame);
            return Some(Transmit { length: frame.len(), class: class_of(&frame) });
        }
        for session in self.sessions.values_mut() {
            if let Some(sent) = session.poll_control(&mut self.shared, now, buf) {
                return Some(sent);
            }
        }
        // One packet of each stream in turn.
        let start = self.turn;
        for part in [(Bound::Included(start), Bound::Unbounded), (Bound::Unbounded, Bound::Excluded(start))]
        {
            for (key, session) in self.sessions.range_mut(part) {
                if let Some(sent) = session.poll_data(&mut self.shared, now, buf) {
                    self.turn = (key.0, HostId(key.1.0.saturating_add(1)));
                    return Some(sent);
                }
            }
        }
        None
    }

    /// The next time at which [`Engine::handle_timeout`] or
    /// [`Engine::poll_transmit`] has something to do.
    pub fn poll_timeout(&self) -> Option<Instant> {
        if !self.in_transit.is_empty() {
            return Some(self.now);
        }
        let now = self.now;
        let shared = &self.shared;
        self.sessions.values().filter_map(|session| session.deadline(shared, now)).min()
    }

    /// The next event, oldest first.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.shared.take_event()
    }

    fn own_session(
        &mut self,
        group: GroupId,
        now: Instant,
    ) -> Result<(&mut Session, &mut Shared), UseError> {
        let host = self.shared.config.host;
        let key = (group, host);
        if !self.sessions.contains_key(&key) {
            let plan = self.groups.get(&group).ok_or(UseError::UnknownGroup { group })?;
            let role = self
                .shared
                .usable_role(plan, host)
                .map_err(|_| UseError::NoStructure { group })?;
            let limit = self.shared.config.limits.sessions;
            if self.sessions.len() >= limit && self.reclaim_session().is_none() {
                return Err(UseError::SessionsFull { limit });
            }
            let stream = self.shared.take_identity();
            let first = self.shared.first_seq(stream);
            let plan = self.groups.get(&group).ok_or(UseError::UnknownGroup { group })?;
            let timing = &self.shared.config.timing;
            let session = Session::new_origin(plan, host, stream, first, role, timing, now);
            self.sessions.insert(key, session);
        }
        match self.sessions.get_mut(&key) {
            Some(session) => Ok((session, &mut self.shared)),
            None => Err(UseError::UnknownGroup { group }),
        }
    }

    /// Origin: appends to the message being written, or begins one. Gives the bytes
    /// accepted, fewer than given when the window is full; [`Event::Writable`] tells
    /// when to go on. `end_of_message` takes effect only if all bytes are accepted.
    ///
    /// # Errors
    /// See [`UseError`].
    pub fn write(
        &mut self,
        group: GroupId,
        bytes: &[u8],
        end_of_message: bool,
        now: Instant,
    ) -> Result<usize, UseError> {
        let now = self.advance(now);
        let (session, shared) = self.own_session(group, now)?;
        Ok(session.write(bytes, end_of_message, shared, now))
    }

    /// Origin: sends what has been written so far, though it fills no packet.
    ///
    /// # Errors
    /// See [`UseError`].
    pub fn flush(&mut self, group: GroupId, now: Instant) -> Result<(), UseError> {
        let now = self.advance(now);
        let (session, shared) = self.own_session(group, now)?;
        session.flush(shared, now);
        Ok(())
    }

    /// Origin: ends the message if one is begun; [`Event::Finished`] follows when
    /// all that was written is stable. More may be written afterwards.
    ///
    /// # Errors
    /// See [`UseError`].
    pub fn finish(&mut self, group: GroupId, now: Instant) -> Result<(), UseError> {
        let now = self.advance(now);
        let (session, shared) = self.own_session(group, now)?;
        session.finish(shared, now);
        Ok(())
    }

    /// Origin: gives up the message being written; members get
    /// [`Event::MessageLost`]. Without one, nothing happens.
    ///
    /// # Errors
    /// See [`UseError`].
    pub fn cancel(&mut self, group: GroupId, now: Instant) -> Result<(), UseError> {
        let now = self.advance(now);
        let (session, shared) = self.own_session(group, now)?;
        session.cancel(shared, now);
        Ok(())
    }

    /// Origin: what has been done so far; none before the first write.
    pub fn progress(&self, group: GroupId) -> Option<Progress> {
        self.sessions.get(&(group, self.shared.config.host))?.progress()
    }

    fn member_session(
        &mut self,
        group: GroupId,
        origin: HostId,
    ) -> Result<(&mut Session, &mut Shared), UseError> {
        let known = self.groups.contains_key(&group);
        match self.sessions.get_mut(&(group, origin)) {
            Some(session) if origin != self.shared.config.host => {
                Ok((session, &mut self.shared))
            }
            _ if known => Err(UseError::UnknownOrigin { group, origin }),
            _ => Err(UseError::UnknownGroup { group }),
        }
    }

    /// Member: reads the next bytes of the origin's stream, in order, of one message
    /// at a time. A length of 0 without `end_of_message`: nothing now.
    ///
    /// What is not read stays in the buffer pool: a member that stops reading stops
    /// the group.
    ///
    /// # Errors
    /// See [`UseError`].
    pub fn read(
        &mut self,
        group: GroupId,
        origin: HostId,
        buf: &mut [u8],
        now: Instant,
    ) -> Result<Read, UseError> {
        let now = self.advance(now);
        let (session, shared) = self.member_session(group, origin)?;
        let read = session.read(buf, shared, now)?;
        self.after_reading(group, origin);
        Ok(read)
    }

    /// Member: the message whose end has been read is safe. Only now does it count
    /// as held by this member.
    ///
    /// # Errors
    /// See [`UseError`].
    pub fn confirm(
        &mut self,
        group: GroupId,
        origin: HostId,
        now: Instant,
    ) -> Result<(), UseError> {
        let now = self.advance(now);
        let (session, shared) = self.member_session(group, origin)?;
        session.confirm(shared, now)?;
        self.after_reading(group, origin);
        Ok(())
    }

    /// Member: gives up the message being read (or whose end has been read, or the
    /// next one). The rest of it is thrown away; this host goes on forwarding it, and
    /// the origin learns the reason.
    ///
    /// # Errors
    /// See [`UseError`].
    pub fn abort(
        &mut self,
        group: GroupId,
        origin: HostId,
        reason: FailReason,
        now: Instant,
    ) -> Result<(), UseError> {
        let now = self.advance(now);
        let (session, shared) = self.member_session(group, origin)?;
        session.abort(reason, shared, now);
        self.after_reading(group, origin);
        Ok(())
    }

    fn after_reading(&mut self, group: GroupId, origin: HostId) {
        if self.sessions.get(&(group, origin)).is_some_and(|session| session.detached) {
            self.drop_drained(group);
        }
    }

    /// Counters since the start.
    pub fn counters(&self) -> &Counters {
        &self.shared.counters
    }

    /// Counters of each stream, by group and origin.
    pub fn statistics(&self) -> impl Iterator<Item = (GroupId, HostId, &SessionStatistics)> {
        self.sessions.iter().map(|((group, origin), session)| (*group, *origin, &session.statistics))
    }

    /// Bytes in a buffer pool.
    pub fn pool_bytes(&self, class: BufferClass) -> usize {
        self.shared.pools.used(class)
    }

    /// Most bytes there ever were in a buffer pool.
    pub fn pool_peak_bytes(&self, class: BufferClass) -> usize {
        self.shared.pools.peak(class)
    }
}

fn class_of(frame: &[u8]) -> BufferClass {
    if frame[ETHERNET_LENGTH + 1] & worm::flags::CLASS2 != 0 {
        BufferClass::Two
    } else {
        BufferClass::One
    }
}

fn check_routes(routes: &BTreeMap<HostId, Vec<u8>>, port_max: u8) -> Result<(), PlanError> {
    for (host, route) in routes {
        let host = *host;
        if route.is_empty() || route.len() > ROUTE_LENGTH_MAX {
            let most = ROUTE_LENGTH_MAX;
            return Err(PlanError::RouteLength { host, length: route.len(), most });
        }
        if let Some(port) = route.iter().find(|port| **port > port_max) {
            return Err(PlanError::RoutePort { host, port: *port });
        }
    }
    Ok(())
}

impl Shared {
    /// The role of this host for an origin, if this host can play it.
    fn usable_role(&mut self, plan: &GroupPlan, origin: HostId) -> Result<Role, Reject> {
        if !plan.members.contains(&origin) {
            return Err(Reject::NotMember);
        }
        let role = plan.structures.role(origin).ok_or(Reject::NotMember)?;
        let is_origin = origin == self.config.host;
        if role.parent.is_some() == is_origin {
            return Err(Reject::NotMember);
        }
        let limit = self.config.limits.children;
        let children = role.children.len();
        if children > limit {
            let group = plan.id;
            self.emit(Event::StructureRejected { group, origin, children, limit });
            return Err(Reject::Structure);
        }
        Ok(role)
    }

    /// Where a stream starts: anywhere, so that old packets fit no new stream.
    fn first_seq(&self, stream: u32) -> Seq {
        if let Some(first) = self.config.first_seq {
            return first;
        }
        let mix = self.config.seed ^ (u64::from(stream) << 32 | u64::from(self.config.host.0));
        // The finalizer of SplitMix64 (Steele, Lea, Flood 2014).
        let mix = (mix ^ (mix >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mix = (mix ^ (mix >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        Seq((mix ^ (mix >> 31)) as u32)
    }
}
