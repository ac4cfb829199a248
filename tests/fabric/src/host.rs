//! A host: the agent that ships, on virtual time, and the program that uses it.

use crate::crowd::{Crowd, Deed};
use crate::program::{self, Program};
use std::collections::VecDeque;
use wormcast_agent_core::agent::{Agent, MemberReport};
use wormcast_agent_core::clients::Patience;
use wormcast_agent_core::clock::LivedClock;
use wormcast_agent_core::plan::AgentPlan;
use wormcast_agent_core::transfers::TransferReport;
use wormcast_agent_core::transit::{NextFrame, TransitLimits};
use wormcast_agent_proto as proto;
use wormcast_protocol::{Engine, EngineConfig, Instant};
use wormcast_wire::HostId;
use wormcast_wire::worm::{self, Kind};
use wormcast_wire::wormhole::train::is_train;

/// Frames that the kernel keeps for an agent that does not run.
const RECEIVE_FRAMES_MAX: usize = 2_048;
/// As the agent's options are by default.
const PATIENCE: Patience = Patience {
    receiver_wait_us: 10_000_000,
    receiver_stall_us: 60_000_000,
};

/// A host of the fabric.
pub struct Host {
    pub id: u16,
    /// Its agent; none while it is not running.
    pub agent: Option<Agent>,
    pub program: Program,
    /// Programs of many connections that run on it, too.
    pub crowd: Crowd,
    /// How long its agents wait for applications.
    pub patience: Patience,
    /// What the agent reported to the controller, with the time, µs.
    pub reports: Vec<(u64, MemberReport)>,
    /// How files that it sent ended, as its agent told the controller.
    pub transfers: Vec<TransferReport>,
    /// Multicasts in trains as they came, one after another: number of the root, source and sequence.
    pub multicasts: Vec<(u16, u16, u16)>,
    /// Next time to act, µs.
    pub wake_us: Option<u64>,
    /// What its agents keep of worms in transit.
    pub transit: TransitLimits,
    incarnation: u32,
    clock: LivedClock,
    /// When the clock was read, and until when it was meant to sleep, µs.
    read_us: u64,
    sleep_until_us: u64,
    /// What has come while it was frozen.
    frozen: Option<VecDeque<Vec<u8>>>,
    plan: Option<proto::Plan>,
    /// The plan that the agent follows.
    followed: Option<proto::Plan>,
    buf: Vec<u8>,
}

impl Host {
    /// A host whose agent is not running.
    pub fn new(id: u16, mtu: usize) -> Host {
        Host {
            id,
            agent: None,
            program: Program::default(),
            crowd: Crowd::new(id),
            patience: PATIENCE,
            reports: Vec::new(),
            transfers: Vec::new(),
            multicasts: Vec::new(),
            wake_us: None,
            transit: TransitLimits::default(),
            incarnation: 1_000,
            clock: LivedClock::default(),
            read_us: 0,
            sleep_until_us: 0,
            frozen: None,
            plan: None,
            followed: None,
            buf: vec![0; mtu + 64],
        }
    }

    /// Starts the agent, which gets its plan anew.
    pub fn start(&mut self, mut config: EngineConfig, now_us: u64) {
        config.host = HostId(self.id);
        config.incarnation = self.incarnation;
        // By more than the streams that one life opens, as the configuration asks for.
        self.incarnation += 1_000;
        let mut agent = Agent::new(self.patience, self.transit);
        agent.start(config).expect("a valid configuration");
        self.agent = Some(agent);
        self.followed = None;
        self.clock = LivedClock::default();
        self.read_us = now_us;
        self.sleep_until_us = now_us;
        self.frozen = None;
        self.program.restart(now_us);
        self.crowd.restart(now_us);
        if let Some(plan) = self.plan.take() {
            self.apply(plan, now_us);
        }
    }

    /// The agent gets a plan.
    pub fn apply(&mut self, message: proto::Plan, now_us: u64) {
        if self.frozen.is_none()
            && let Some(now) = self.read_clock(now_us)
            && let Some(agent) = &mut self.agent
        {
            let refused = match &self.followed {
                // Every other plan is sent as what differs from the one before.
                Some(before)
                    if message.epoch % 2 == 1
                        && before.routes_at_random == message.routes_at_random =>
                {
                    agent.change_plan(change(before, &message), now)
                }
                _ => {
                    let plan = AgentPlan::parse(&message);
                    agent.apply_plan(plan.expect("what the planner plans can be applied"), now)
                }
            };
            let refused = refused.expect("its own plan");
            self.followed = Some(message.clone());
            assert!(refused.is_empty(), "host {} refuses {refused:?}", self.id);
            self.program.on_plan();
            let groups = message.groups.iter().map(|group| group.id as u16);
            self.crowd.on_plan(groups.collect());
        }
        self.plan = Some(message);
    }

    /// Its program that receives a group does this now, if the agent runs.
    pub fn at_reader(&mut self, group: u16, does: Deed, now_us: u64) {
        if self.frozen.is_none()
            && let Some(now) = self.read_clock(now_us)
            && let Some(agent) = &mut self.agent
        {
            self.crowd.at_reader(group, (agent, now, now_us), does);
        }
    }

    /// The plan it was given last.
    pub fn plan(&self) -> Option<&proto::Plan> {
        self.plan.as_ref()
    }

    /// Whether it sends by its last plan, if it sends at all.
    pub fn follows(&self) -> bool {
        let epoch = |plan: &Option<proto::Plan>| plan.as_ref().map(|plan| plan.epoch);
        self.agent.is_none() || self.frozen.is_none() && epoch(&self.followed) == epoch(&self.plan)
    }

    /// Forgets the plan, as an agent does that the controller has not reached.
    pub fn forget_plan(&mut self) {
        self.plan = None;
    }

    /// The machine stops for a while; frames wait in the kernel.
    pub fn freeze(&mut self) {
        self.frozen = Some(VecDeque::new());
    }

    /// It goes on, with the plan that came meanwhile.
    pub fn thaw(&mut self, now_us: u64) {
        let waiting = self.frozen.take().unwrap_or_default();
        for frame in waiting {
            self.receive(frame, now_us);
        }
        if let Some(plan) = self.plan.take() {
            self.apply(plan, now_us);
        }
    }

    /// The time lived by the agent; none if it is not running.
    fn read_clock(&mut self, now_us: u64) -> Option<Instant> {
        self.agent.as_ref()?;
        let planned_us = self.sleep_until_us.saturating_sub(self.read_us);
        let now = self.clock.pass(now_us - self.read_us, planned_us);
        self.read_us = now_us;
        self.sleep_until_us = now_us;
        Some(now)
    }

    pub fn receive(&mut self, frame: Vec<u8>, now_us: u64) {
        if let Some(waiting) = &mut self.frozen {
            if waiting.len() < RECEIVE_FRAMES_MAX {
                waiting.push_back(frame);
            }
        } else if let Some(now) = self.read_clock(now_us)
            && let Some(agent) = &mut self.agent
        {
            let multicast = multicast_of(&frame);
            if multicast.is_some() && multicast.as_ref() != self.multicasts.last() {
                self.multicasts.extend(multicast);
            }
            agent.handle_frame(&frame, now);
        }
    }

    /// One turn of the agent's loop. `transmit` takes a frame; it says at which time, µs, the link
    /// takes the next one, if that is not now.
    pub fn run(&mut self, now_us: u64, mut transmit: impl FnMut(Vec<u8>) -> Option<u64>) {
        self.wake_us = None;
        if self.frozen.is_some() {
            return;
        }
        let Some(now) = self.read_clock(now_us) else {
            return;
        };
        let Host {
            agent: Some(agent),
            program,
            crowd,
            transfers,
            buf,
            ..
        } = self
        else {
            return;
        };
        agent.begin_turn(now, now_us);
        let mut program_us;
        let mut full_until_us = None;
        loop {
            let crowd_us = crowd.act(agent, now, now_us);
            program_us = [program.act(agent, self.id, now, now_us), crowd_us];
            agent.advance(now, |outgoing| {
                while full_until_us.is_none()
                    && let Some(frame) = outgoing.poll_transmit(now, buf)
                {
                    full_until_us = match frame {
                        NextFrame::Own(length) => transmit(buf[..length].to_vec()),
                        NextFrame::InTransit(worm) => transmit(worm),
                    };
                }
            });
            let mut heard = false;
            while let Some((to, outbound)) = agent.poll_outbound() {
                if to == program::CONNECTION {
                    program.take(agent, outbound, now, now_us)
                } else {
                    crowd.take(agent, to, outbound, now, now_us)
                }
                heard = true;
            }
            while let Some(report) = agent.poll_report() {
                self.reports.push((now_us, report));
            }
            while let Some(report) = agent.poll_transfer() {
                transfers.push(report);
            }
            while agent.poll_log_event().is_some() {}
            if !heard {
                break;
            }
        }
        let forgotten = agent.engine().and_then(Engine::forgotten);
        assert_eq!(forgotten, None, "a stream rests and has something to do");
        let agent_us = agent.poll_timeout().map(|at| now_us + at.since_us(now));
        // As the agent's loop: while the link takes nothing, what is due to be sent wakes nobody.
        let agent_us = agent_us.map(|at| at.max(full_until_us.unwrap_or(0)));
        let [program_us, crowd_us] = program_us;
        let wake = [agent_us, program_us, crowd_us].into_iter().flatten().min();
        self.wake_us = wake.map(|at| at.max(now_us + 1));
        self.sleep_until_us = self.wake_us.unwrap_or(u64::MAX);
    }
}

/// Which multicast a frame of a train is of.
fn multicast_of(frame: &[u8]) -> Option<(u16, u16, u16)> {
    let worm = is_train(frame).then(|| worm::decode(frame).ok())??;
    let header = worm.header;
    let of = (worm.train?.order, header.source.0, header.sequence);
    (header.kind == Kind::Tree).then_some(of)
}

/// What is other in a plan than in the one before.
fn change(before: &proto::Plan, after: &proto::Plan) -> proto::PlanChange {
    let (routes, no_routes) = changed_routes(&before.routes, &after.routes);
    let (tree_routes, no_tree_routes) = changed_routes(&before.tree_routes, &after.tree_routes);
    let new = after.groups.iter();
    let is_there = |group: &&proto::Group| after.groups.iter().any(|new| new.id == group.id);
    proto::PlanChange {
        base: before.epoch,
        epoch: after.epoch,
        routes,
        no_routes,
        tree_routes,
        no_tree_routes,
        root_route: after.root_route.clone(),
        routes_at_random: after.routes_at_random,
        groups: (new.filter(|group| !before.groups.contains(group)).cloned()).collect(),
        no_groups: (before.groups.iter().filter(|group| !is_there(group)))
            .map(|group| group.id)
            .collect(),
        train_frames: after.train_frames,
        unicast_train_frames: after.unicast_train_frames,
        tree_route_max: after.tree_route_max,
        rate_bytes: after.rate_bytes,
    }
}

/// Routes to hosts to which they are other than before, and hosts to which there are none any more.
fn changed_routes(
    before: &[proto::Route],
    after: &[proto::Route],
) -> (Vec<proto::Route>, Vec<u32>) {
    let to = |routes: &[proto::Route], host| -> Vec<proto::Route> {
        let there = routes.iter().filter(|route| route.host == host);
        there.cloned().collect()
    };
    let is_other = |route: &&proto::Route| to(before, route.host) != to(after, route.host);
    let mut gone: Vec<u32> = before.iter().map(|route| route.host).collect();
    gone.dedup();
    gone.retain(|&host| to(after, host).is_empty());
    (after.iter().filter(is_other).cloned().collect(), gone)
}
