//! Whole transfers, and what must hold after each.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::controller::{self, Controller};
use crate::fabric::{Fabric, LEFT_US};
use crate::link::{Damage, LinkConfig};
use crate::random::Random;
use wormcast_planner::{AgentPlan, FabricState, Group, GroupScheme, Stage, SwitchState};
use wormcast_protocol::EngineConfig;
use wormcast_routing::generate;
use wormcast_routing::group::Scheme;
use wormcast_routing::routes::Algorithm;
use wormcast_routing::topology::{Link, Parts, Topology};
use wormcast_wire::{BufferClass, HostId, PortId, SwitchId};

/// Rate of every link by default.
pub const RATE_BPS: u64 = 100_000_000;
/// The group of most tests.
pub const GROUP: u16 = 7;

/// 100 Mb/s, 20 µs, a queue of 50 ms.
pub fn link(damage: Damage) -> LinkConfig {
    LinkConfig {
        rate_bps: RATE_BPS,
        delay_ns: 20_000,
        queue_bytes: RATE_BPS / 8 / 20,
        damage,
    }
}

/// A topology with so many links in the place of each, at switches that have as many more ports.
pub fn with_parallel_links(topology: &Topology, times: usize) -> Topology {
    let mut parts = Parts {
        switches: topology.switches().to_vec(),
        hosts: topology.hosts().to_vec(),
        grid: topology.grid().cloned(),
        ..Parts::default()
    };
    let mut port_of_next = |switch: SwitchId| {
        let at = parts
            .switches
            .iter_mut()
            .find(|own| own.id == switch)
            .expect("of the topology");
        at.ports += 1;
        u8::try_from(at.ports - 1)
            .ok()
            .and_then(PortId::new)
            .expect("a port")
    };
    for link in topology.links() {
        parts.links.push(*link);
        for _ in 1..times {
            let (a_port, b_port) = (port_of_next(link.a), port_of_next(link.b));
            parts.links.push(Link {
                a_port,
                b_port,
                ..*link
            });
        }
    }
    Topology::new(parts).expect("more links leave it whole")
}

/// The configuration of all engines.
pub fn engine_config(seed: u64) -> EngineConfig {
    EngineConfig::new(HostId(0), [0; 6], 1_500, seed, 0)
}

/// A fabric with its controller, plans applied.
pub struct Scenario {
    pub fabric: Fabric,
    pub controller: Controller,
    /// For the message of a failure.
    pub seed: u64,
    /// Whether the program of each member reads its groups.
    pub programs_read: bool,
}

/// A network of 256 hosts, some of which are members; the origin is one.
pub struct Large {
    pub scheme: Scheme,
    /// How many members there are.
    pub members: u64,
    /// A host takes the ACKs of so many others at most; none: as planned, by the costs.
    pub fan_in: Option<u32>,
    /// Whether switches gather ACKs.
    pub gather: bool,
    /// Of all links.
    pub damage: Damage,
    /// Who is a member, too.
    pub seed: u64,
}

impl Large {
    /// Who writes.
    pub const ORIGIN: u16 = 3;

    /// One whose hosts acknowledge as planned.
    pub fn new(scheme: Scheme, members: u64, damage: Damage, seed: u64) -> Large {
        Large {
            scheme,
            members,
            fan_in: None,
            gather: false,
            damage,
            seed,
        }
    }

    /// The network, planned.
    pub fn scenario(self) -> Scenario {
        let topology = generate::from_spec("irregular:64:1:4:4").expect("a known shape");
        let mut rest: Vec<u16> = topology.hosts().iter().map(|host| host.id.0).collect();
        rest.retain(|host| *host != Large::ORIGIN);
        let mut random = Random::new(self.seed);
        let mut chosen = vec![Large::ORIGIN];
        for _ in 1..self.members {
            chosen.push(rest.swap_remove(random.below(rest.len() as u64) as usize));
        }
        chosen.sort_unstable();
        let mut group = controller::group(GROUP, self.scheme, chosen);
        group.gather = self.gather;
        let mut controller = Controller::new(vec![group], Algorithm::Osud);
        controller.ack_fan_in = self.fan_in;
        let config = engine_config(self.seed);
        Scenario::with(topology, controller, link(self.damage), config, self.seed)
    }
}

impl Scenario {
    /// A fabric of that shape whose hosts are all in group [`GROUP`].
    pub fn new(shape: &str, scheme: impl Into<GroupScheme>, damage: Damage, seed: u64) -> Scenario {
        Scenario::routed(shape, Algorithm::Osud, scheme, damage, seed)
    }

    /// The same with unicast routes by another algorithm.
    pub fn routed(
        shape: &str,
        unicast: Algorithm,
        scheme: impl Into<GroupScheme>,
        damage: Damage,
        seed: u64,
    ) -> Scenario {
        let topology = generate::from_spec(shape).expect("a known shape");
        let members: Vec<u16> = topology.hosts().iter().map(|host| host.id.0).collect();
        let groups = vec![controller::group(GROUP, scheme, members)];
        let controller = Controller::new(groups, unicast);
        let config = engine_config(seed);
        Scenario::with(topology, controller, link(damage), config, seed)
    }

    pub fn testbed(
        groups: Vec<Group>,
        link: LinkConfig,
        config: EngineConfig,
        seed: u64,
    ) -> Scenario {
        let topology = generate::testbed();
        let controller = Controller::new(groups, Algorithm::Osud);
        Scenario::with(topology, controller, link, config, seed)
    }

    pub fn with(
        topology: Topology,
        controller: Controller,
        link: LinkConfig,
        config: EngineConfig,
        seed: u64,
    ) -> Scenario {
        let mut scenario = Scenario {
            fabric: Fabric::new(topology, link, config, seed),
            controller,
            seed,
            programs_read: true,
        };
        scenario.replan();
        scenario
    }

    /// The members of the first group are others now, for the next plan.
    pub fn set_members(&mut self, members: &[u16]) {
        self.controller.groups[0].members = members.iter().copied().map(HostId).collect();
    }

    /// Hosts that are members of a group by the users' wish read it, unless it is a sink.
    fn plan(&mut self) -> FabricState {
        let read = |group: &&Group| self.programs_read && !group.sink;
        for group in self.controller.groups.iter().filter(read) {
            for member in &group.members {
                let program = &mut self.fabric.host(member.0).program;
                program.groups.insert(group.id.0);
            }
        }
        self.controller.plan(&self.fabric.topology)
    }

    /// The controller plans anew, from what is left, and tells every switch and agent.
    pub fn replan(&mut self) {
        self.replan_without(&[]);
    }

    /// The controller plans anew; the plan does not reach these agents.
    pub fn replan_without(&mut self, unreached: &[u16]) {
        let state = self.plan();
        self.fabric.begin_plan();
        self.fabric.revoke_later(switch_states(&state), LEFT_US);
        // What differs at a switch, until something is written to it.
        let mut known = BTreeMap::new();
        for stage in [Stage::Permit, Stage::Shrink, Stage::Grow, Stage::Retire] {
            if stage == Stage::Shrink
                && let Some(bridge) = &state.routes.bridge
            {
                self.send_plans(bridge, unreached);
            }
            if stage == Stage::Grow && state.routes.bridge.is_some() {
                self.controller.settle();
            }
            if stage == Stage::Retire {
                self.send_plans(&state.agents, unreached);
            }
            for (id, desired) in &state.switches {
                let switch = self.fabric.switches.get_mut(&id.0).expect("a switch");
                let differs = known.remove(id);
                let differs = differs.unwrap_or_else(|| switch.difference(desired));
                if differs.iter().all(|update| update.stage != stage) {
                    known.insert(*id, differs);
                    continue;
                }
                for update in differs.iter().filter(|update| update.stage == stage) {
                    switch.write(update);
                }
            }
        }
    }

    fn send_plans(&mut self, plans: &BTreeMap<HostId, Arc<AgentPlan>>, unreached: &[u16]) {
        for (host, plan) in plans {
            if !unreached.contains(&host.0) {
                self.fabric.apply(host.0, self.controller.message(plan));
            }
        }
    }

    /// The controller plans anew. Switches and agents learn of it one after another, in an order
    /// that is drawn, each stage within `stage_us`; gives the time that takes, µs.
    pub fn replan_in_stages(&mut self, random: &mut Random, stage_us: u64) -> u64 {
        let state = self.plan();
        self.fabric.begin_plan();
        for (id, desired) in &state.switches {
            // Before any agent gets it.
            let switch = self.fabric.switches.get_mut(&id.0).expect("a switch");
            for update in switch.difference(desired) {
                if update.stage == Stage::Permit {
                    switch.write(&update);
                }
            }
        }
        let bridge = state.routes.bridge.iter().flatten();
        for (host, plan) in bridge {
            // While switches finish SHRINK.
            let message = self.controller.message(plan);
            self.fabric
                .apply_later(host.0, message, random.below(stage_us));
        }
        if state.routes.bridge.is_some() {
            self.controller.settle();
        }
        for (id, desired) in &state.switches {
            let updates = self.fabric.switches[&id.0].difference(desired);
            for (stage, turn) in [(Stage::Shrink, 0), (Stage::Grow, 1), (Stage::Retire, 3)] {
                let due = updates.iter().filter(|update| update.stage == stage);
                let us = turn * stage_us + random.below(stage_us);
                self.fabric.write_later(id.0, due.cloned().collect(), us);
            }
        }
        for (host, plan) in &state.agents {
            let us = 2 * stage_us + random.below(stage_us);
            let message = self.controller.message(plan);
            self.fabric.apply_later(host.0, message, us);
        }
        let left_us = 4 * stage_us + LEFT_US;
        self.fabric.revoke_later(switch_states(&state), left_us);
        4 * stage_us
    }

    /// `origin` writes further messages of these sizes to [`GROUP`].
    pub fn write(&mut self, origin: u16, sizes: &[u64]) {
        self.write_to(origin, GROUP, sizes);
    }

    /// `origin` writes further messages of these sizes to a group.
    pub fn write_to(&mut self, origin: u16, group: u16, sizes: &[u64]) {
        self.fabric.host(origin).program.write(group, sizes);
        self.fabric.run_host(origin);
    }

    /// Everything that `origin` writes has an outcome.
    pub fn is_finished(&self, origin: u16) -> bool {
        let writers = &self.fabric.hosts[&origin].program.writers;
        writers.values().all(|writer| writer.is_finished())
    }

    /// Runs until all that `origin` writes has an outcome; gives the time taken, µs.
    pub fn finish(&mut self, origin: u16, within_us: u64) -> u64 {
        let start_us = self.fabric.now_us();
        let wakes_before = self.fabric.wakes;
        let done = self.fabric.run_until(start_us + within_us, |fabric| {
            let writers = &fabric.hosts[&origin].program.writers;
            writers.values().all(|writer| writer.is_finished())
        });
        assert!(
            done,
            "seed {}: origin {origin} has not finished after {within_us} µs\n{}",
            self.seed,
            self.report()
        );
        // A timer that finds nothing to do, again and again, would show here.
        let wakes = self.fabric.wakes - wakes_before;
        let hosts_ms =
            ((self.fabric.now_us() - start_us) / 1_000 + 1) * self.fabric.hosts.len() as u64;
        assert!(
            wakes < 30 * hosts_ms,
            "seed {}: {wakes} wakes in {hosts_ms} host ms",
            self.seed
        );
        self.settled_us(origin).saturating_sub(start_us)
    }

    /// When the last outcome of a message of `origin` came, µs.
    pub fn settled_us(&self, origin: u16) -> u64 {
        let writers = self.fabric.hosts[&origin].program.writers.values();
        writers.map(|writer| writer.settled_us).max().unwrap_or(0)
    }

    pub fn run_for(&mut self, us: u64) {
        let until_us = self.fabric.now_us() + us;
        self.fabric.run_until(until_us, |_| false);
    }

    /// Messages of `origin` in [`GROUP`] that `member` has read: their numbers.
    pub fn delivered(&self, member: u16, origin: u16) -> Vec<u32> {
        let readers = &self.fabric.hosts[&member].program.readers;
        let reader = readers.get(&(GROUP, origin));
        reader.map_or_else(Vec::new, |reader| reader.messages.clone())
    }

    /// Every member but `except` has read exactly messages 0 to `count`.
    pub fn check_delivered(&self, origin: u16, count: u32, except: &[u16]) {
        for member in &self.controller.groups[0].members {
            if member.0 == origin || except.contains(&member.0) {
                continue;
            }
            assert_eq!(
                self.delivered(member.0, origin),
                (0..count).collect::<Vec<u32>>(),
                "seed {}: member {member}\n{}",
                self.seed,
                self.report()
            );
        }
    }

    /// A counter of the stream of `origin` at each host that knows the stream.
    pub fn counted(&self, origin: u16, name: &str) -> BTreeMap<u16, u64> {
        let hosts = self.fabric.hosts.values();
        let streams = hosts.filter_map(|host| {
            let engine = host.agent.as_ref()?.engine()?;
            let mut streams = engine.statistics();
            let (_, _, statistics) = streams.find(|(_, from, _)| *from == HostId(origin))?;
            let entries = statistics.entries();
            let (_, value) = entries.into_iter().find(|(entry, _)| *entry == name)?;
            Some((host.id, value))
        });
        streams.collect()
    }

    /// Who does not have a message of `origin` in [`GROUP`], and why, by message.
    pub fn outcomes(&self, origin: u16) -> Vec<(u32, Vec<(u16, String)>)> {
        let outcomes = &self.fabric.hosts[&origin].program.writers[&GROUP].outcomes;
        outcomes
            .iter()
            .filter_map(|(number, outcome)| Some((*number, outcome.clone()?)))
            .collect()
    }

    /// Members that anybody reported to the controller: silent ones, or those that failed.
    pub fn reported(&self, silent: bool) -> Vec<u16> {
        let reports = self.fabric.hosts.values().flat_map(|host| &host.reports);
        let failed = reports.filter(|(_, report)| !report.slow);
        let wanted = failed.filter(|(_, report)| report.reason.starts_with("silent") == silent);
        wanted.map(|(_, report)| report.host.0).collect()
    }

    /// The guard has refused nothing: all that agents sent was by a plan of theirs.
    pub fn check_guard(&self) {
        for (id, switch) in &self.fabric.switches {
            let refused = switch.refused();
            assert!(
                refused.is_empty(),
                "seed {}: switch {id} refused (reason, worms) {refused:?}\n{}",
                self.seed,
                self.report()
            );
        }
    }

    /// Pools stay within their limits.
    pub fn check_pools(&self) {
        // A stream for each host and group it writes to. What a host holds most it may have held as
        // a member that it is no longer, so its streams of now tell nothing.
        let hosts = self.fabric.hosts.values();
        let streams: usize = hosts.map(|host| host.program.writers.len()).sum();
        for host in self.fabric.hosts.values() {
            let Some(engine) = host.agent.as_ref().and_then(|agent| agent.engine()) else {
                continue;
            };
            let limits = &engine.config().limits;
            for (class, limit) in [
                (BufferClass::One, limits.pool_class1_bytes),
                (BufferClass::Two, limits.pool_class2_bytes),
            ] {
                // Each stream may hold a few packets beyond, so that none starves another.
                let beyond = streams * 4 * (engine.config().mtu + 64);
                let peak = engine.pool_peak_bytes(class);
                assert!(
                    peak <= limit + beyond,
                    "seed {}: host {} used {peak} of {limit} bytes",
                    self.seed,
                    host.id
                );
            }
        }
    }

    /// Nothing is on its way any more, once members that had not heard that all is stable have asked
    /// again, which they do at ever longer intervals.
    pub fn check_quiet(&mut self) {
        self.run_for(130_000_000);
        let frames = |fabric: &Fabric| -> u64 {
            let links = fabric.links.values();
            links.map(|link| link.statistics.frames).sum()
        };
        let before = frames(&self.fabric);
        self.run_for(10_000_000);
        let after = frames(&self.fabric);
        assert_eq!(
            before,
            after,
            "seed {}: not quiet\n{}",
            self.seed,
            self.report()
        );
    }

    /// Nobody holds what is stable.
    pub fn check_empty(&self) {
        for host in self.fabric.hosts.values() {
            let Some(engine) = host.agent.as_ref().and_then(|agent| agent.engine()) else {
                continue;
            };
            for class in [BufferClass::One, BufferClass::Two] {
                let held = engine.pool_bytes(class);
                assert_eq!(held, 0, "seed {}: host {} holds it", self.seed, host.id);
            }
        }
    }

    /// What every host counted, for the message of a failure.
    pub fn report(&self) -> String {
        let mut text = String::new();
        for host in self.fabric.hosts.values() {
            let Some(engine) = host.agent.as_ref().and_then(|agent| agent.engine()) else {
                continue;
            };
            for (group, origin, statistics) in engine.statistics() {
                let counts: Vec<String> = statistics
                    .entries()
                    .into_iter()
                    .filter(|(_, value)| *value > 0)
                    .map(|(name, value)| format!("{name}={value}"))
                    .collect();
                text += &format!(
                    "host {} group {group} host {origin}: {}\n",
                    host.id,
                    counts.join(" ")
                );
            }
            let drops: Vec<String> = engine
                .counters()
                .entries()
                .into_iter()
                .filter(|(_, value)| *value > 0)
                .map(|(name, value)| format!("{name}={value}"))
                .collect();
            text += &format!("host {}: {}\n", host.id, drops.join(" "));
            text += &format!(
                "host {} reports: {:?}
",
                host.id,
                host.reports.iter().rev().take(8).collect::<Vec<_>>()
            );
        }
        for (place, link) in &self.fabric.links {
            let statistics = link.statistics;
            if statistics.queue_drops > 0 {
                text += &format!("{place:?}: {statistics:?}\n");
            }
        }
        text
    }
}

/// What every switch must have.
fn switch_states(state: &FabricState) -> Vec<(u16, Arc<SwitchState>)> {
    let switches = state.switches.iter();
    switches.map(|(id, state)| (id.0, state.clone())).collect()
}
