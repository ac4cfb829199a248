//! The agent: the engine, the applications over it, and what is done when.
//!
//! Whoever runs it tells it of frames, requests and plans, calls [`advance`](Agent::advance) when
//! something has come or [`poll_timeout`](Agent::poll_timeout) says so, and then empties what it
//! has to say: [`poll_outbound`](Agent::poll_outbound), [`poll_report`](Agent::poll_report),
//! [`poll_transfer`](Agent::poll_transfer) and [`poll_log_event`](Agent::poll_log_event).

mod counts;
mod failed;
mod lag;
mod planned;

pub use lag::LagReport;

use crate::api::{ApiError, NumberedRequest};
use crate::applications::answers::Answer;
use crate::applications::{Applications, OpenReceivers};
use crate::clients::{ConnectionId, Outbound, Patience, Serving};
use crate::figures::FailedMember;
use crate::pacing::Pacing;
use crate::plan::{AgentPlan, GROUPS_MAX};
use crate::transfers::{TransferReport, TransfersUnderWay};
use crate::transit::{Outgoing, Transit, TransitLimits, is_in_transit};
use crate::wormhole::flow_control::FlowControl;
use crate::wormhole::trains::{Arrivals, Taken, Trains};
use bytes::Bytes;
use std::collections::{BTreeMap, VecDeque};
use wormcast_protocol::{ConfigError, Engine, EngineConfig, Instant};
use wormcast_wire::wormhole::signal::is_signal;
use wormcast_wire::wormhole::train::is_train;
use wormcast_wire::{GroupId, HostId};

/// Settings of an agent.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Bytes after the Ethernet header, at most the interface's.
    pub mtu_bytes: u32,
    /// Memory for received packets, bytes.
    pub buffer_bytes: usize,
    /// For experiments alone: one pool for all packets ([`wormcast_protocol::Limits::unclassed`]).
    pub unclassed: bool,
    /// How long applications may let a group wait.
    pub patience: Patience,
}

impl Settings {
    /// The engine of `host` with an interface of address `mac`. All its randomness comes from `seed`;
    /// `incarnation` is greater than those of its lives before.
    pub fn engine_config(
        &self,
        host: HostId,
        mac: [u8; 6],
        seed: u64,
        incarnation: u32,
    ) -> EngineConfig {
        let mut config = EngineConfig::new(host, mac, self.mtu_bytes as usize, seed, incarnation);
        config.limits.groups = GROUPS_MAX;
        config.limits.pool_class1_bytes = self.buffer_bytes / 2;
        // Those of other hosts are as large as this one's, for all that is known.
        config.limits.origin_window_bytes =
            (config.limits.pool_class1_bytes / 2).min(config.limits.origin_window_bytes);
        config.limits.pool_class2_bytes = self.buffer_bytes / 2;
        config.limits.unclassed = self.unclassed;
        config
    }
}

/// A member that was seen failing, for the controller.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MemberReport {
    pub group: GroupId,
    pub origin: HostId,
    pub host: HostId,
    pub reason: String,
    /// True: the host is silent; false: its application gave up, or is slow.
    pub host_dead: bool,
    /// It has not failed: its application takes a message slower than it comes.
    pub slow: bool,
}

/// A line for the operator.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LogEvent {
    /// Something is lost or refused.
    Warning(String),
    Info(String),
}

pub struct Agent {
    pub(crate) engine: Option<Engine>,
    transit: Transit,
    flow: FlowControl,
    trains: Trains,
    pacing: Pacing,
    arrivals: Arrivals,
    host: Option<HostId>,
    pub(crate) plan: Option<AgentPlan>,
    applications: Applications,
    applications_due: Option<Instant>,
    failed: VecDeque<FailedMember>,
    /// Members that were reported as slow, and when.
    slow: BTreeMap<(GroupId, HostId), Instant>,
    /// At most one for each event; they are taken after each turn.
    reports: VecDeque<MemberReport>,
    log_events: VecDeque<LogEvent>,
    frames_without_engine: u64,
}

impl Agent {
    /// An agent that is no host yet.
    pub fn new(patience: Patience, transit: TransitLimits) -> Self {
        Self {
            engine: None,
            transit: Transit::new(transit),
            flow: FlowControl::default(),
            trains: Trains::default(),
            pacing: Pacing::default(),
            arrivals: Arrivals::default(),
            host: None,
            plan: None,
            applications: Applications::new(patience),
            applications_due: None,
            failed: VecDeque::new(),
            slow: BTreeMap::new(),
            reports: VecDeque::new(),
            log_events: VecDeque::new(),
            frames_without_engine: 0,
        }
    }

    /// The host it is, once known.
    pub fn host(&self) -> Option<HostId> {
        self.host
    }

    /// The engine, once it is a host.
    pub fn engine(&self) -> Option<&Engine> {
        self.engine.as_ref()
    }

    /// Worms in transit, which it re-injects whether it is a host or not.
    pub fn transit(&self) -> &Transit {
        &self.transit
    }

    /// For whoever sends worms in transit on at once.
    pub fn transit_mut(&mut self) -> &mut Transit {
        &mut self.transit
    }

    /// Whether worms in transit may be sent on at once: none waits, no STOP is in force and no own train is open.
    pub fn may_send_at_once(&self, now: Instant) -> bool {
        self.transit.is_empty() && !self.flow.is_stopped(now) && !self.trains.is_open()
    }

    /// Frames that came before it was a host.
    pub fn frames_without_engine(&self) -> u64 {
        self.frames_without_engine
    }

    /// Becomes a host, or another one than before. The plan and what was open are gone.
    ///
    /// # Errors
    /// If the engine refuses its configuration.
    pub fn start(&mut self, config: EngineConfig) -> Result<(), ConfigError> {
        let host = config.host;
        let engine = Engine::new(config)?;
        if let Some(before) = self.host {
            let text = format!("this host was host {before} and is host {host} now");
            self.drop_groups(&text);
            self.warn(format!("{text}; what was open is closed"));
        }
        self.engine = Some(engine);
        self.trains.clear();
        self.host = Some(host);
        self.plan = None;
        Ok(())
    }

    /// A local client has connected; `process` names it in error texts.
    pub fn connect(&mut self, id: ConnectionId, process: String) {
        self.applications.connect(id, process);
    }

    /// A local client is gone; so is what it had open.
    pub fn disconnect(&mut self, id: ConnectionId, now: Instant) {
        let (applications, mut serving) = self.serving(now);
        applications.disconnect(id, &mut serving);
    }

    pub fn request(&mut self, from: ConnectionId, request: NumberedRequest, now: Instant) {
        let (applications, mut serving) = self.serving(now);
        applications.request(from, request, &mut serving);
    }

    /// Bytes of a message to be sent. Who breaks the rules is expelled.
    pub fn data(&mut self, from: ConnectionId, handle: u32, bytes: Bytes, now: Instant) {
        let result = self.applications.data(from, handle, bytes);
        self.expel_unless(from, result, now);
    }

    /// A local client takes so many bytes more of a message.
    pub fn window(&mut self, from: ConnectionId, handle: u32, bytes: u32, now: Instant) {
        let result = self.applications.window(from, handle, bytes, now);
        self.expel_unless(from, result, now);
    }

    fn expel_unless(&mut self, id: ConnectionId, result: Result<(), ApiError>, now: Instant) {
        let (applications, mut serving) = self.serving(now);
        if let Err(error) = result {
            applications.expel(id, &error, &mut serving);
        }
    }

    /// The applications, and what they are served with. They have the next chance to be.
    fn serving(&mut self, now: Instant) -> (&mut Applications, Serving<'_>) {
        self.applications_due = Some(now);
        let serving = Serving {
            engine: self.engine.as_mut(),
            host: self.host,
            groups: self.plan.as_ref().map(|plan| &plan.groups),
            now,
        };
        (&mut self.applications, serving)
    }

    /// A frame has come. A worm in transit waits to be sent on, what a switch says of the link is obeyed; the rest
    /// is for the engine, which counts what it rejects, by reason.
    pub fn handle_frame(&mut self, frame: &[u8], now: Instant) {
        if is_in_transit(frame) {
            self.transit.accept(frame, now);
        } else if is_train(frame) {
            match self.arrivals.take(frame, now) {
                Taken::Own => self.hand_over(frame, now),
                Taken::Passes(frames) => self.transit.accept_all(frames, now),
                Taken::Nothing => {}
            }
        } else if is_signal(frame) {
            if let Some(sequence) = self.flow.take(frame, self.host, now) {
                self.trains.reset(sequence);
            }
        } else {
            self.hand_over(frame, now);
        }
    }

    fn hand_over(&mut self, frame: &[u8], now: Instant) {
        match &mut self.engine {
            Some(engine) => drop(engine.handle_frame(frame, now)),
            None => self.frames_without_engine += 1,
        }
    }

    /// Before the requests of a turn: a message that broke off must not be confused with the next by
    /// a request that is about the old one. `passed_us` have passed since some moment, pauses of the process included.
    pub fn begin_turn(&mut self, now: Instant, passed_us: u64) {
        self.applications.transfers().set_passed(passed_us);
        if self.take_events(now) {
            self.applications_due = Some(now);
        }
    }

    /// Timers, frames out, events, applications; `send` takes what can be sent. It is not asked while the first
    /// switch takes nothing.
    pub fn advance(&mut self, now: Instant, mut send: impl FnMut(&mut Outgoing<'_>)) {
        let mut send = |agent: &mut Self| {
            if !agent.flow.holds(now) {
                send(&mut agent.outgoing());
            }
        };
        if let Some(engine) = &mut self.engine
            && engine.poll_timeout().is_some_and(|time| time <= now)
        {
            engine.handle_timeout(now);
        }
        send(self);
        if self.take_events(now) || self.applications_due.is_some_and(|due| due <= now) {
            let (applications, mut serving) = self.serving(now);
            self.applications_due = applications.pump(&mut serving);
            send(self);
            // What the applications did may have news for them, as of a message that breaks off and the next one behind it.
            if self.take_events(now) {
                self.applications_due = Some(now);
            }
        }
    }

    fn outgoing(&mut self) -> Outgoing<'_> {
        Outgoing {
            transit: &mut self.transit,
            flow: &mut self.flow,
            trains: &mut self.trains,
            pacing: &mut self.pacing,
            engine: self.engine.as_mut(),
        }
    }

    /// When to call [`advance`](Self::advance) at the latest.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let engine = self.engine.as_ref().and_then(Engine::poll_timeout);
        // What is due while the first switch takes nothing, or own frames wait for their rate, wakes nobody.
        let paced = if self.trains.is_open() {
            Instant::ZERO
        } else {
            self.pacing.open_at()
        };
        let own = |time: Option<Instant>| time.map(|time| time.max(paced));
        let to_send = [
            own(engine),
            self.transit.poll_timeout(),
            own(self.trains.poll_timeout()),
        ];
        let to_send = to_send.map(|time| time.map(|time| time.max(self.flow.open_at())));
        let times = to_send.into_iter().chain([self.applications_due]);
        times.flatten().min()
    }

    /// What goes to a local client next.
    pub fn poll_outbound(&mut self) -> Option<(ConnectionId, Outbound)> {
        self.applications.poll_outbound()
    }

    /// The next report to the controller.
    pub fn poll_report(&mut self) -> Option<MemberReport> {
        self.reports.pop_front()
    }

    /// The next file of which the controller is told how its transfer ended.
    pub fn poll_transfer(&mut self) -> Option<TransferReport> {
        self.applications.transfers().poll()
    }

    /// The next answer of a receiver here, for the origin of a message.
    pub fn poll_answer(&mut self) -> Option<Answer> {
        self.applications.poll_answer()
    }

    /// Another host answers a message of this one.
    pub fn take_answer(&mut self, answer: &Answer, now: Instant) {
        let (applications, serving) = self.serving(now);
        applications.on_answer(answer, &serving);
    }

    /// The files that are under way, for the controller: how those that it names end will be told.
    pub fn list_transfers(&mut self) -> TransfersUnderWay {
        self.applications.transfers().list()
    }

    /// All receivers that local clients have open, if others are than when this was asked last.
    pub fn changed_receivers(&mut self) -> Option<OpenReceivers> {
        self.applications.changed_receivers()
    }

    /// The next line for the operator.
    pub fn poll_log_event(&mut self) -> Option<LogEvent> {
        self.log_events.pop_front()
    }

    fn note(&mut self, text: String) {
        self.log_events.push_back(LogEvent::Info(text));
    }

    fn warn(&mut self, text: String) {
        self.log_events.push_back(LogEvent::Warning(text));
    }

    /// Passes all events on: whoever acted before it knew of one could take a message for another. True if there were any.
    fn take_events(&mut self, now: Instant) -> bool {
        let mut any = false;
        while let Some(unread) = self.engine.as_mut().and_then(Engine::poll_unread) {
            self.report_slow(&unread, now);
            self.applications.on_unread(&unread);
            any = true;
        }
        while let Some(event) = self.engine.as_mut().and_then(Engine::poll_event) {
            any = true;
            self.report(&event, now);
            let serving = Serving {
                engine: self.engine.as_mut(),
                host: self.host,
                groups: self.plan.as_ref().map(|plan| &plan.groups),
                now,
            };
            self.applications.on_event(&event, &serving);
        }
        any
    }
}

#[cfg(test)]
mod tests;
