//! What a run begins with: network, groups, limits, programs.

use super::{MS_US, Run, SECOND_US};
use crate::controller::{self, Controller};
use crate::crowd::{Draft, Ending, Habits, Reader};
use crate::link::{Damage, LinkConfig};
use crate::random::Random;
use crate::scenario::{Scenario, engine_config};
use crate::trace::Trace;
use std::collections::{BTreeMap, BTreeSet};
use wormcast_agent_core::clients::Patience;
use wormcast_agent_core::transit::TransitLimits;
use wormcast_protocol::EngineConfig;
use wormcast_routing::generate;
use wormcast_routing::routes::Algorithm;
use wormcast_routing::topology::Topology;

/// How large a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Weight {
    Light,
    Middle,
    /// Hundreds of messages side by side.
    Many,
    /// Dozens of members.
    Wide,
}

fn topology(weight: Weight, random: &mut Random) -> (String, Topology) {
    let spec = match (weight, random.below(6)) {
        (Weight::Wide, 0 | 1) => format!("irregular:8:{}:3:5", random.below(1_000)),
        (Weight::Wide, _) => format!("line:1:{}", 20 + random.below(21)),
        (_, 0 | 1) => format!("line:1:{}", 3 + random.below(5)),
        (_, 2) => format!("line:2:{}", 2 + random.below(3)),
        (_, 3) => format!("ring:3:{}", 1 + random.below(2)),
        (_, 4) => "torus:2x3".to_owned(),
        (_, _) => format!("star:3:{}", 1 + random.below(3)),
    };
    let topology = generate::from_spec(&spec).expect("a known shape");
    (spec, topology)
}

fn some(random: &mut Random, all: &[u16], least: u64, most: u64) -> Vec<u16> {
    let mut rest = all.to_vec();
    let most = most.min(all.len() as u64).max(least);
    let count = least + random.below(most - least + 1);
    let mut chosen: Vec<u16> = (0..count)
        .map(|_| rest.swap_remove(random.below(rest.len() as u64) as usize))
        .collect();
    chosen.sort_unstable();
    chosen
}

fn damage(random: &mut Random) -> Damage {
    match random.below(5) {
        0 => Damage::default(),
        1 => Damage::rough(),
        2 => Damage {
            // ACKs overtake each other and come twice.
            duplication: 0.1,
            reordering: 0.2,
            reorder_ns: 1_000_000 + random.below(80_000_000),
            ..Damage::default()
        },
        _ => Damage {
            loss: random.below(80) as f64 / 1_000.0,
            corruption: random.below(10) as f64 / 1_000.0,
            duplication: random.below(50) as f64 / 1_000.0,
            reordering: random.below(100) as f64 / 1_000.0,
            reorder_ns: 1_000_000 + random.below(20_000_000),
        },
    }
}

fn config(seed: u64, random: &mut Random) -> EngineConfig {
    let mut config = engine_config(seed);
    config.limits.origin_window_packets = *random.pick(&[16, 128, 8_192]);
    let pool = *random.pick(&[64_000, 400_000, 24 << 20]);
    config.limits.pool_class1_bytes = pool;
    config.limits.pool_class2_bytes = pool;
    if random.below(12) == 0 {
        config.limits.events = 16;
    }
    if random.below(12) == 0 {
        config.limits.sessions_kept = 4 + random.below(4) as usize;
    }
    config.timing.member_timeout_us = SECOND_US;
    config.timing.member_exclude_us = *random.pick(&[6, 60]) * SECOND_US;
    config
}

/// How a program takes messages.
pub(super) fn habits(random: &mut Random, members: &[u16], patience: &Patience) -> Habits {
    let mut habits = Habits::default();
    match random.below(8) {
        0 => habits.aborts = 1_000,
        1 => habits.aborts = random.below(500),
        2 => {
            habits.deaths = 50 + random.below(400);
            habits.away_us = random.below(2 * patience.receiver_wait_us);
        }
        3 => {
            let bytes = 1 + random.below(300);
            habits.bytes_per_ms = Some(bytes);
            // Every other one, without another draw: runs that showed a fault stay what they are.
            habits.lag_bytes = (bytes.is_multiple_of(2)).then_some((64 << 10) + 1_000 * bytes);
        }
        4 => {
            habits.rest_us = random.below(2 * patience.receiver_stall_us);
            let says = random.below(2) == 0;
            habits.says_so_us = says.then_some(patience.receiver_stall_us / 3);
        }
        5 => habits.origin = Some(*random.pick(members)),
        _ => habits.rest_us = random.below(100 * MS_US),
    }
    habits
}

pub(super) fn drafts(random: &mut Random, count: u64, largest: u64) -> Vec<Draft> {
    let drafts = std::iter::repeat_with(|| {
        let size = match random.below(8) {
            0 => 0,
            1 | 2 => 1_300 + random.below(3_000),
            3 => random.below(largest),
            _ => random.below(300),
        };
        let size = if size == 0 { 0 } else { size.max(24) };
        Draft {
            size,
            is_announced: random.below(3) == 0,
            ending: match random.below(20) {
                0 => Ending::Cancelled,
                1 => Ending::Killed,
                _ => Ending::Whole,
            },
        }
    });
    drafts.take(count as usize).collect()
}

impl Run {
    pub(super) fn draw(seed: u64, trace: Trace) -> Run {
        let mut random = Random::new(seed);
        let weight = match random.below(64) {
            0 => Weight::Many,
            1..=3 => Weight::Wide,
            4..=20 => Weight::Middle,
            _ => Weight::Light,
        };
        let (spec, network) = topology(weight, &mut random);
        trace.note(format!("{weight:?}, topology {spec}"));
        let hosts: Vec<u16> = network.hosts().iter().map(|host| host.id.0).collect();
        let (mut groups, mut members, mut origins) = (Vec::new(), BTreeMap::new(), BTreeMap::new());
        let most_groups = if weight == Weight::Light { 2 } else { 3 };
        let count = match weight {
            Weight::Wide => 1,
            _ => 1 + random.below(most_groups) / 2 * (1 + random.below(2)),
        };
        for id in 0..count as u16 {
            let least = if weight == Weight::Wide { 18 } else { 2 };
            let of_group = some(&mut random, &hosts, least, 40);
            let scheme = *random.pick(&controller::schemes_of(&network));
            let writing = some(&mut random, &of_group, 1, 3);
            let mut group = controller::group(id, scheme, of_group.clone());
            group.ordered = random.below(3) == 0;
            group.gather = random.below(2) == 0;
            trace.note(format!(
                "group {id} {scheme:?} {of_group:?}, from {writing:?}, ordered {}, gathers {}",
                group.ordered, group.gather
            ));
            groups.push(group);
            members.insert(id, of_group);
            origins.insert(id, writing);
        }
        let rate_bps = *random.pick(&[20_000_000, 100_000_000]);
        let link = LinkConfig {
            rate_bps,
            delay_ns: 1_000 + random.below(200_000),
            queue_bytes: rate_bps / 8 / *random.pick(&[20, 100]),
            damage: damage(&mut random),
        };
        let config = config(seed, &mut random);
        let patience = Patience {
            receiver_wait_us: *random.pick(&[300 * MS_US, 2 * SECOND_US, 10 * SECOND_US]),
            receiver_stall_us: *random.pick(&[SECOND_US, 5 * SECOND_US, 60 * SECOND_US]),
        };
        let (limits, timing) = (&config.limits, &config.timing);
        trace.note(format!("{link:?}\n{limits:?}\n{patience:?}"));
        let exclude_us = timing.member_exclude_us;
        let mut controller = Controller::new(groups, Algorithm::Osud);
        controller.ack_fan_in = match random.below(3) {
            0 => None,
            _ => Some(1 + random.below(3) as u32),
        };
        trace.note(format!("ACK fan-in {:?}", controller.ack_fan_in));
        let mut scenario = Scenario::with(network, controller, link, config, seed);
        scenario.programs_read = false;
        for host in scenario.fabric.hosts.values_mut() {
            host.program.groups.clear();
            host.patience = patience;
            host.crowd.seed(seed);
        }
        // They start anew, by this patience.
        scenario
            .fabric
            .set_memory(TransitLimits::default(), 256 << 10);
        let mut run = Run {
            scenario,
            random,
            trace,
            members,
            origins,
            patience,
            exclude_us,
            away_us: 0,
            left: BTreeSet::new(),
            killed: BTreeSet::new(),
            stopped: BTreeSet::new(),
            left_out: BTreeSet::new(),
            dark: BTreeSet::new(),
            sequencers: BTreeMap::new(),
            planned_until_us: 0,
            last_us: 0,
        };
        run.note_sequencers();
        run.open_receivers(weight);
        run.scenario.run_for(20 * MS_US);
        run.begin_writing(weight);
        run
    }

    fn open_receivers(&mut self, weight: Weight) {
        let now_us = self.scenario.fabric.now_us();
        // Of ten members, those who are there and take what comes.
        let good = match weight {
            Weight::Wide => *self.random.pick(&[0, 2, 8]),
            _ => *self.random.pick(&[0, 4, 8, 10]),
        };
        for (group, members) in self.members.clone() {
            for host in members.clone() {
                let habits = if self.random.below(10) < good {
                    Habits::default()
                } else {
                    habits(&mut self.random, &members, &self.patience)
                };
                let mut reader = Reader::new(group, habits);
                if !habits.takes_all(self.rest_us()) {
                    reader.bar(now_us);
                }
                if self.random.below(10) >= good && self.random.below(2) == 0 {
                    let most_us = 2 * self.patience.receiver_wait_us;
                    reader.wanted = self.random.below(3) == 0;
                    reader.not_before_us = now_us + self.random.below(most_us);
                }
                let (is_there, from_ms) = (reader.wanted, reader.not_before_us / 1_000);
                let fabric = &mut self.scenario.fabric;
                fabric.host(host).crowd.readers.insert(group, reader);
                fabric.run_host(host);
                self.trace.note(format!(
                    "host {host} receives group {group}: {is_there}, from {from_ms} ms, {habits:?}"
                ));
            }
        }
    }

    /// Rests of a program that are no failure, µs.
    pub(super) fn rest_us(&self) -> u64 {
        self.patience.receiver_stall_us / 3
    }

    fn begin_writing(&mut self, weight: Weight) {
        let messages = match weight {
            Weight::Light => 1 + self.random.below(12),
            Weight::Middle => 10 + self.random.below(50),
            Weight::Many => 100 + self.random.below(200),
            Weight::Wide => 4 + self.random.below(24),
        };
        let largest = match weight {
            // Some are longer than the window of one that receives.
            Weight::Light => *self
                .random
                .pick(&[5_000, 5_000, 5_000, 60_000, 300_000, 900_000]),
            Weight::Middle => 20_000,
            Weight::Many | Weight::Wide => 4_000,
        };
        self.write_some(messages, largest);
    }

    /// So many messages, of programs on hosts that write.
    pub(super) fn write_some(&mut self, messages: u64, largest: u64) {
        let mut left = messages;
        while left > 0 {
            let groups: Vec<u16> = self.origins.keys().copied().collect();
            let group = *self.random.pick(&groups);
            let origins = self.origins[&group].clone();
            let origin = *self.random.pick(&origins);
            let count = (1 + self.random.below(8)).min(left);
            left -= count;
            let drafts = drafts(&mut self.random, count, largest);
            let in_a_row = self.random.below(2) == 0;
            let most_us = *self.random.pick(&[1, 30 * MS_US, 1_000 * MS_US]);
            let after_us = self.random.below(most_us);
            let sizes: Vec<u64> = drafts.iter().map(|draft| draft.size).collect();
            self.note(&format!(
                "host {origin} writes {sizes:?} to group {group} after {} ms, in a row: {in_a_row}",
                after_us / 1_000
            ));
            self.write(group, origin, drafts, in_a_row, after_us);
        }
    }
}
