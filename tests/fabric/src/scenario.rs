//! Whole transfers, and what must hold after each.

use crate::application::Writer;
use crate::fabric::Fabric;
use crate::link::{Damage, LinkConfig};
use crate::planner::{self, GroupWish};
use wormcast_protocol::{EngineConfig, Event};
use wormcast_routing::generate;
use wormcast_routing::routes::Algorithm;
use wormcast_routing::topology::{Damage as TopologyDamage, Topology};
use wormcast_wire::{FailReason, HostId, Scheme};

/// Rate of every link unless said otherwise.
pub const RATE_BPS: u64 = 100_000_000;
/// The group of most tests.
pub const GROUP: u16 = 7;

/// 100 Mb/s, 20 µs, a queue of 50 ms.
pub fn link(damage: Damage) -> LinkConfig {
    LinkConfig {
        rate_bps: RATE_BPS,
        delay_ns: 20_000,
        queue_bytes: RATE_BPS / 8 / 20,
        mark_bytes: None,
        damage,
    }
}

/// The configuration of all engines.
pub fn engine_config(seed: u64) -> EngineConfig {
    EngineConfig::new(HostId(0), [0; 6], 1_500, seed, 0)
}

/// A fabric with one group, plans applied.
pub struct Scenario {
    /// The fabric.
    pub fabric: Fabric,
    /// What the users want.
    pub groups: Vec<GroupWish>,
    /// How unicast worms travel.
    pub unicast: Algorithm,
    /// The last epoch planned.
    pub epoch: u32,
    /// What has failed.
    pub damage: TopologyDamage,
    /// For the message of a failure.
    pub seed: u64,
}

impl Scenario {
    /// A fabric of that shape whose hosts are all in group [`GROUP`].
    pub fn new(shape: &str, scheme: Scheme, damage: Damage, seed: u64) -> Scenario {
        let topology = generate::from_spec(shape).expect("a known shape");
        let members: Vec<u16> = topology.hosts().iter().map(|host| host.id.0).collect();
        let wish = GroupWish::new(GROUP, scheme, members);
        Scenario::with(
            topology,
            vec![wish],
            link(damage),
            engine_config(seed),
            seed,
        )
    }

    /// A fabric as given.
    pub fn with(
        topology: Topology,
        groups: Vec<GroupWish>,
        link: LinkConfig,
        config: EngineConfig,
        seed: u64,
    ) -> Scenario {
        let fabric = Fabric::new(topology, link, config, seed);
        let mut scenario = Scenario {
            fabric,
            groups,
            unicast: Algorithm::Osud,
            epoch: 0,
            damage: TopologyDamage::default(),
            seed,
        };
        scenario.replan();
        scenario
    }

    /// The controller plans anew, from what is left, and tells every agent.
    pub fn replan(&mut self) {
        self.replan_without(&[]);
    }

    /// The controller plans anew; the plan does not reach these agents.
    pub fn replan_without(&mut self, unreached: &[u16]) {
        self.epoch += 1;
        let topology = self
            .fabric
            .topology
            .without(&self.damage)
            .expect("something is left");
        let mut groups = self.groups.clone();
        for group in &mut groups {
            group
                .members
                .retain(|member| topology.hosts().iter().any(|host| host.id.0 == *member));
        }
        let mut plans = planner::plan(&topology, self.unicast, &groups, self.epoch);
        plans.retain(|host, _| !unreached.contains(host));
        self.fabric.apply(&plans);
    }

    /// `origin` writes messages of these sizes to [`GROUP`].
    pub fn write(&mut self, origin: u16, sizes: &[u64]) {
        let writer = Writer::new(sizes.iter().copied());
        self.fabric
            .host(origin)
            .applications
            .writers
            .insert(GROUP, writer);
        self.fabric.run_host(origin);
    }

    /// `origin` writes further messages to [`GROUP`].
    pub fn write_more(&mut self, origin: u16, sizes: &[u64]) {
        let writers = &mut self.fabric.host(origin).applications.writers;
        let writer = writers.get_mut(&GROUP).expect("it has written");
        writer.go_on(sizes);
        self.fabric.run_host(origin);
    }

    /// Runs until `origin` has finished; gives the time taken, µs.
    pub fn finish(&mut self, origin: u16, within_us: u64) -> u64 {
        let start_us = self.fabric.now_ns / 1_000;
        let seen = self.finish_events(origin);
        let wakes_before = self.fabric.wakes;
        let done = self.fabric.run_until(start_us + within_us, |fabric| {
            fabric.host(origin).finished_count() > seen
        });
        if !done {
            panic!(
                "seed {}: origin {origin} has not finished after {within_us} µs\n{}",
                self.seed,
                self.report()
            );
        }
        // A timer that finds nothing to do, again and again, would show here.
        let wakes = self.fabric.wakes - wakes_before;
        let hosts_ms = (self.fabric.now_ns / 1_000_000 - start_us / 1_000 + 1)
            * self.fabric.hosts.len() as u64;
        assert!(
            wakes < 30 * hosts_ms,
            "seed {}: {wakes} wakes in {hosts_ms} host ms",
            self.seed
        );
        self.finish_time_us(origin) - start_us
    }

    /// When the origin finished last, µs.
    pub fn finish_time_us(&mut self, origin: u16) -> u64 {
        let events = &self.fabric.host(origin).events;
        let last = events
            .iter()
            .rev()
            .find(|(_, event)| matches!(event, Event::Finished { .. }));
        last.expect("it has finished").0
    }

    /// How often the origin has finished.
    pub fn finish_events(&mut self, origin: u16) -> usize {
        self.fabric.host(origin).finished_count()
    }

    /// Runs for so long.
    pub fn run_for(&mut self, us: u64) {
        let until_us = self.fabric.now_ns / 1_000 + us;
        self.fabric.run_until(until_us, |_| false);
    }

    /// Messages of `origin` that `member` has read: their numbers.
    pub fn delivered(&mut self, member: u16, origin: u16) -> Vec<u32> {
        let readers = &self.fabric.host(member).applications.readers;
        let messages = readers
            .get(&(GROUP, origin))
            .map(|reader| &reader.messages[..]);
        messages
            .unwrap_or_default()
            .iter()
            .map(|message| message.number)
            .collect()
    }

    /// Every member but `except` has read exactly messages 0 to `count`.
    pub fn check_delivered(&mut self, origin: u16, count: u32, except: &[u16]) {
        let members = self.groups[0].members.clone();
        for member in members {
            if member == origin || except.contains(&member) {
                continue;
            }
            let numbers = self.delivered(member, origin);
            let expected: Vec<u32> = (0..count).collect();
            assert_eq!(
                numbers,
                expected,
                "seed {}: member {member}\n{}",
                self.seed,
                self.report()
            );
        }
    }

    /// Failed members in the events [`Event::Stable`] of `origin`, by message.
    pub fn outcomes(&mut self, origin: u16) -> Vec<(u64, Vec<(u16, FailReason)>)> {
        let events = &self.fabric.host(origin).events;
        events
            .iter()
            .filter_map(|(_, event)| match event {
                Event::Stable {
                    message, failed, ..
                } => {
                    let failed = failed
                        .iter()
                        .map(|(host, reason)| (host.0, *reason))
                        .collect();
                    Some((*message, failed))
                }
                _ => None,
            })
            .collect()
    }

    /// Pools stay within their limits, and everything is given back in the end.
    pub fn check_pools(&mut self) {
        let seed = self.seed;
        for host in self.fabric.hosts.values() {
            let Some(engine) = &host.engine else { continue };
            let limits = &engine.config().limits;
            for (class, limit) in [
                (wormcast_wire::BufferClass::One, limits.pool_class1_bytes),
                (wormcast_wire::BufferClass::Two, limits.pool_class2_bytes),
            ] {
                // Each stream may hold a few packets beyond, so that none starves another.
                let beyond = limits.sessions * 4 * (engine.config().mtu + 64);
                let peak = engine.pool_peak_bytes(class);
                assert!(
                    peak <= limit + beyond,
                    "seed {seed}: host {} used {peak}",
                    host.id
                );
            }
        }
    }

    /// What every host counted, for the message of a failure.
    pub fn report(&self) -> String {
        let mut text = String::new();
        for host in self.fabric.hosts.values() {
            let Some(engine) = &host.engine else { continue };
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
                "host {} events: {:?}\n",
                host.id,
                host.events.iter().rev().take(8).collect::<Vec<_>>()
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
