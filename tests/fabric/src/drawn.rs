//! A scenario drawn from a seed: a network, groups, programs and what befalls them.
//!
//! What must hold, whatever befalls: every reader gets each message at most once, whole and in the
//! origin's order; whoever stays a member gets all of them; each message has an outcome that is
//! true; no pool exceeds its bound; in the end nothing is on its way any more; and the guard, which is on in
//! half of the runs, refuses nothing. In a sixth, switches come into wormhole mode and leave it, and agents send trains;
//! where several origins have TREE worms, with interrupted multicasts alone.

mod befall;

use crate::controller::{self, Controller};
use crate::link::{Damage, LinkConfig};
use crate::program::ReaderPolicy;
use crate::random::Random;
use crate::scenario::{Scenario, engine_config, with_parallel_links};
use crate::trace::Trace;
use std::collections::{BTreeMap, BTreeSet};
use wormcast_agent_core::transit::TransitLimits;
use wormcast_agent_proto as proto;
use wormcast_planner::{Group, GroupScheme, WormholeScheme};
use wormcast_routing::generate;
use wormcast_routing::group::{Scheme, SwitchMode};
use wormcast_routing::routes::{Algorithm, Setting};
use wormcast_routing::topology::Topology;
use wormcast_wire::{FailReason, HostId, SwitchId};

const SECOND_US: u64 = 1_000_000;
const ALL_SCHEMES: [WormholeScheme; 3] = [
    WormholeScheme::Plain,
    WormholeScheme::Flush,
    WormholeScheme::Interrupt,
];
/// Longest time until everything has an outcome, once nothing befalls any more.
const SETTLE_US: u64 = 180 * SECOND_US;

struct Run {
    scenario: Scenario,
    random: Random,
    trace: Trace,
    /// Hosts that may lack messages: they left, were given a full disk, or started anew.
    wavering: BTreeSet<u16>,
    /// Hosts whose programs write; they stay.
    origins: BTreeMap<u16, Vec<u16>>,
    stopped: BTreeSet<u16>,
    /// Of ordered groups: the sequencers there have been.
    sequencers: BTreeMap<u16, BTreeSet<u16>>,
    cut: Option<(u16, u8)>,
    planned_until_us: u64,
    /// Whether switches judge what enters; of its own, so that what else is drawn does not depend on it.
    guard: Option<Random>,
    /// Which switches start anew, and whether the controller does; of its own too.
    restarts: Random,
    /// Of runs in which switches may be in wormhole mode: what is asked of them, and what follows; of its own too.
    switching: Option<Random>,
    /// Schemes of wormhole mode in which nobody waits for ever.
    schemes: &'static [WormholeScheme],
    /// Where multicasts are interrupted, switches say STOP when two frames wait.
    stops_soon: bool,
}

/// Runs the scenario of a seed.
///
/// # Panics
/// If something does not hold.
pub fn run(seed: u64, trace: &Trace) {
    let mut run = Run::draw(seed, trace.clone());
    run.write_all();
    for _ in 0..run.random.below(10) {
        let pause_us = run.random.below(600_000);
        run.scenario.run_for(pause_us);
        run.befall();
    }
    run.calm_down();
    run.settle();
    // Everybody is back: the next messages are for all.
    run.scenario.run_for(2 * SECOND_US);
    let before = run.counts();
    run.write_all();
    run.settle();
    run.check(&before);
    run.check_order(&before);
    run.scenario.check_pools();
    run.scenario.check_quiet();
    run.scenario.check_guard();
}

fn topology(random: &mut Random, trace: &Trace) -> Topology {
    let spec = match random.below(8) {
        0 => format!("line:{}", 1 + random.below(6)),
        1 => format!("ring:{}:{}", 3 + random.below(4), 1 + random.below(2)),
        2 => format!("torus:{}x{}", 2 + random.below(3), 3 + random.below(2)),
        3 => format!("mesh:{}x{}", 2 + random.below(2), 2 + random.below(3)),
        4 => format!("star:{}", 3 + random.below(5)),
        5 => "testbed".to_owned(),
        6 => format!("clos2:{}:{}:2", 2 + random.below(3), 2 + random.below(2)),
        _ => {
            let (switches, seed) = (4 + random.below(8), random.below(1_000));
            format!("irregular:{switches}:{seed}:{}:4", 1 + random.below(3))
        }
    };
    let topology = generate::from_spec(&spec).expect("a known shape");
    let times = 1 + random.below(8).saturating_sub(5) as usize;
    trace.note(format!("topology {spec}, links {times} times"));
    with_parallel_links(&topology, times)
}

/// Any algorithm, mostly with alternatives or in-transit hosts; any root, also one that is not there.
fn setting(random: &mut Random, topology: &Topology) -> Setting {
    let algorithm = Algorithm::ALL[random.below(Algorithm::ALL.len() as u64) as usize];
    let switches = topology.switches().len() as u64;
    let root = (random.below(2) == 0).then(|| SwitchId(random.below(switches + 1) as u16));
    let balanced = !algorithm.uses_in_transit_hosts() && random.below(2) == 0;
    Setting {
        algorithm,
        root,
        balanced,
    }
}

fn some(random: &mut Random, all: &[u16], least: u64) -> Vec<u16> {
    let mut rest = all.to_vec();
    let count = least + random.below(all.len() as u64 - least + 1);
    let mut chosen: Vec<u16> = (0..count)
        .map(|_| rest.swap_remove(random.below(rest.len() as u64) as usize))
        .collect();
    chosen.sort_unstable();
    chosen
}

/// How many hosts write to groups whose messages may go in TREE worms.
fn origins_of_branches(groups: &[Group], origins: &BTreeMap<u16, Vec<u16>>) -> usize {
    let branches = |group: &&Group| match group.scheme {
        GroupScheme::One(Scheme::Switch(parameters)) => parameters.mode == SwitchMode::Tree,
        GroupScheme::One(_) => false,
        _ => true,
    };
    let writing = groups.iter().filter(branches);
    writing.map(|group| origins[&group.id.0].len()).sum()
}

impl Run {
    fn draw(seed: u64, trace: Trace) -> Run {
        let mut random = Random::new(seed);
        let mut network = topology(&mut random, &trace);
        while network.hosts().len() < 2 {
            network = topology(&mut random, &trace);
        }
        let hosts: Vec<u16> = network.hosts().iter().map(|host| host.id.0).collect();
        let setting = setting(&mut random, &network);
        let mut origins = BTreeMap::new();
        let mut groups = Vec::new();
        for index in 0..1 + random.below(3) as u16 {
            let members = some(&mut random, &hosts, 2);
            let scheme = *random.pick(&controller::schemes_of(&network));
            let most = members.len().min(3) as u64;
            let mut writing = some(&mut random, &members, 1);
            writing.truncate(1 + random.below(most) as usize);
            trace.note(format!(
                "group {index} {scheme:?} {members:?}, from {writing:?}"
            ));
            let mut group = controller::group(index, scheme, members);
            // Of its own, so that what else is drawn does not depend on it.
            group.ordered = Random::new(seed ^ u64::from(index) << 40).below(3) == 0;
            if group.ordered {
                trace.note(format!("group {index} is ordered"));
            }
            group.gather = Random::new(seed ^ u64::from(index) << 44).below(2) == 0;
            if group.gather {
                trace.note(format!("switches gather ACKs of group {index}"));
            }
            groups.push(group);
            origins.insert(index, writing);
        }
        let damage = match random.below(3) {
            0 => Damage::default(),
            1 => Damage::rough(),
            _ => Damage {
                loss: random.below(50) as f64 / 1_000.0,
                corruption: random.below(10) as f64 / 1_000.0,
                duplication: random.below(20) as f64 / 1_000.0,
                reordering: random.below(50) as f64 / 1_000.0,
                reorder_ns: 1_000_000 + random.below(4_000_000),
            },
        };
        let rate_bps = [20_000_000, 100_000_000][random.below(2) as usize];
        let link = LinkConfig {
            rate_bps,
            delay_ns: 1_000 + random.below(200_000),
            queue_bytes: rate_bps / 8 / [20, 100][random.below(2) as usize],
            damage,
        };
        let mut config = engine_config(seed);
        config.limits.origin_window_packets = [16, 128, 8_192][random.below(3) as usize];
        let pool = [64_000, 400_000, 24 << 20][random.below(3) as usize];
        config.limits.pool_class1_bytes = pool;
        config.limits.pool_class2_bytes = pool;
        let mut controller = Controller::new(groups, setting.algorithm);
        controller.setting = setting;
        controller.ack_fan_in = match random.below(4) {
            0 => None,
            fan_in => Some(fan_in as u32),
        };
        let fan_in = controller.ack_fan_in;
        trace.note(format!(
            "{setting:?} {link:?}, pools of {pool} bytes, ACK fan-in {fan_in:?}"
        ));
        let mut guard = Random::new(seed ^ 1 << 50);
        let guarded = guard.below(2) == 0;
        controller.guard.on = guarded;
        if guarded {
            trace.note("the guard is on".to_owned());
        }
        let mut switching = Random::new(seed ^ 1 << 52);
        // Multicasts of several origins may wait for each other for ever where they are not interrupted, and until all
        // go by the root (wire/spec/wormhole.md).
        let is_one = origins_of_branches(&controller.groups, &origins) <= 1;
        let schemes: &[WormholeScheme] = if is_one {
            &ALL_SCHEMES
        } else {
            &[WormholeScheme::Interrupt]
        };
        let switching = (switching.below(6) == 0).then_some(switching);
        let stops_soon = is_one && Random::new(seed ^ 1 << 53).below(2) == 0;
        let mut scenario = Scenario::with(network, controller, link, config, seed);
        if random.below(2) == 0 {
            let transit = TransitLimits {
                adapter_bytes: random.below(8_000) as usize,
                spill_bytes: random.below(40_000) as usize,
            };
            let send_buffer_bytes = 3_000 + random.below(30_000);
            trace.note(format!("{transit:?}, {send_buffer_bytes} bytes to send"));
            scenario.fabric.set_memory(transit, send_buffer_bytes);
        }
        let mut run = Run {
            scenario,
            random,
            trace,
            wavering: BTreeSet::new(),
            origins,
            stopped: BTreeSet::new(),
            sequencers: BTreeMap::new(),
            cut: None,
            planned_until_us: 0,
            guard: guarded.then_some(guard),
            restarts: Random::new(seed ^ 1 << 51),
            switching,
            schemes,
            stops_soon,
        };
        if run.switching.is_some() {
            run.replan();
            run.replan();
        }
        run.note_sequencers();
        run
    }

    fn note_sequencers(&mut self) {
        for host in self.scenario.fabric.hosts.values() {
            for group in host.plan().iter().flat_map(|plan| &plan.groups) {
                if let Some(proto::Sequencer {
                    host: sequencer, ..
                }) = group.sequencer
                {
                    let known = self.sequencers.entry(group.id as u16).or_default();
                    known.insert(sequencer as u16);
                }
            }
        }
    }

    fn note(&self, line: &str) {
        let ms = self.scenario.fabric.now_us() / 1_000;
        self.trace.note(format!("{ms:>8} ms  {line}"));
    }

    fn write_all(&mut self) {
        for (group, writing) in self.origins.clone() {
            for origin in writing {
                let sizes: Vec<u64> = (0..1 + self.random.below(3))
                    .map(|_| {
                        let most = [100, 5_000, 120_000][self.random.below(3) as usize];
                        16 + self.random.below(most)
                    })
                    .collect();
                self.note(&format!("host {origin} writes {sizes:?} to group {group}"));
                self.scenario.write_to(origin, group, &sizes);
            }
        }
    }

    /// Everything is mended, everybody is a member as at first and reads.
    fn calm_down(&mut self) {
        self.note("calm");
        if self.cut.is_some() {
            self.cut_or_mend();
        }
        while !self.stopped.is_empty() {
            self.stop_or_start();
        }
        self.replan();
        self.scenario.run_for(8 * SECOND_US);
        let hosts: Vec<u16> = self.scenario.fabric.hosts.keys().copied().collect();
        for host in hosts {
            self.scenario.fabric.host(host).program.policy = ReaderPolicy::default();
            self.scenario.fabric.run_host(host);
        }
    }

    fn settle(&mut self) {
        let writing: BTreeSet<u16> = self.origins.values().flatten().copied().collect();
        for origin in writing {
            self.scenario.finish(origin, SETTLE_US);
        }
        self.note("settled");
    }

    /// Messages written so far, by group and origin.
    fn counts(&self) -> BTreeMap<(u16, u16), u32> {
        let hosts = self.scenario.fabric.hosts.values();
        hosts
            .flat_map(|host| {
                let writers = host.program.writers.iter();
                writers.map(|(group, writer)| ((*group, host.id), writer.count()))
            })
            .collect()
    }

    fn check(&self, before: &BTreeMap<(u16, u16), u32>) {
        for group in &self.scenario.controller.groups {
            for origin in &self.origins[&group.id.0] {
                let writer = &self.scenario.fabric.hosts[origin].program.writers[&group.id.0];
                let numbers: Vec<u32> = writer.outcomes.keys().copied().collect();
                let all: Vec<u32> = (0..writer.count()).collect();
                assert_eq!(
                    numbers, all,
                    "outcomes of host {origin} in group {}",
                    group.id
                );
                let calm = before[&(group.id.0, *origin)];
                self.check_returned(group.id.0, *origin, calm);
                for member in group.members.iter().filter(|member| member.0 != *origin) {
                    self.check_member(group.id.0, *origin, member.0, calm);
                }
            }
        }
    }

    /// In an ordered group any two members have read what both have in the same order: all of it if
    /// both and the sequencer have been members and running all the time, and no other was the
    /// sequencer; else what was written when all was calm.
    fn check_order(&self, before: &BTreeMap<(u16, u16), u32>) {
        let groups = self.scenario.controller.groups.iter();
        for group in groups.filter(|group| group.ordered) {
            let id = group.id.0;
            let sequencers = &self.sequencers[&id];
            let steady = sequencers.len() == 1 && sequencers.is_disjoint(&self.wavering);
            let read = |host: &HostId| -> Vec<(u16, u32)> {
                let all = steady && !self.wavering.contains(&host.0);
                let program = &self.scenario.fabric.hosts[&host.0].program;
                let read = program.read.get(&id).into_iter().flatten();
                let calm = |(origin, number): &&(u16, u32)| *number >= before[&(id, *origin)];
                read.filter(|one| all || calm(one)).copied().collect()
            };
            let places: Vec<BTreeMap<(u16, u32), usize>> = group
                .members
                .iter()
                .map(|host| read(host).into_iter().zip(0..).collect())
                .collect();
            for (place, host) in group.members.iter().enumerate() {
                for (other, theirs) in group.members.iter().zip(&places).take(place) {
                    let common = read(host).into_iter().filter_map(|one| theirs.get(&one));
                    let common: Vec<usize> = common.copied().collect();
                    assert!(
                        common.is_sorted(),
                        "group {id}: host {host} has read {:?}, host {other} {:?}\n{}",
                        read(host),
                        read(other),
                        self.scenario.report()
                    );
                }
            }
        }
    }

    /// What returns to its origin is what it sent, and when all is calm everything returns.
    fn check_returned(&self, group: u16, origin: u16, calm: u32) {
        let program = &self.scenario.fabric.hosts[&origin].program;
        for (&number, outcome) in &program.writers[&group].outcomes {
            let mut failed = outcome.iter().flatten();
            let own = failed.find(|(host, _)| *host == origin);
            let fault = own.is_some_and(|(_, reason)| {
                number >= calm || *reason == FailReason::Differs.to_string()
            });
            assert!(
                !fault,
                "group {group}: of message {number} host {origin} itself {own:?}\n{}",
                self.scenario.report()
            );
        }
    }

    /// A member has what the origin was told that it has; one that stayed has all, and everybody has
    /// what was written when all was calm.
    fn check_member(&self, group: u16, origin: u16, member: u16, calm: u32) {
        let hosts = &self.scenario.fabric.hosts;
        let reader = hosts[&member].program.readers.get(&(group, origin));
        let has: &[u32] = reader.map_or(&[], |reader| &reader.messages);
        for (&number, outcome) in &hosts[&origin].program.writers[&group].outcomes {
            let failed = outcome.as_ref().expect("origins keep their senders");
            let reason = failed.iter().find(|(host, _)| *host == member);
            let wavers = self.wavering.contains(&member);
            let fault = match reason {
                None if !has.contains(&number) => !wavers || number >= calm,
                Some(_) => !wavers || number >= calm,
                None => false,
            };
            assert!(
                !fault,
                "group {group}: message {number} of host {origin} at host {member}, which has {has:?}: \
                 the outcome is {reason:?}\n{}",
                self.scenario.report()
            );
        }
    }
}
