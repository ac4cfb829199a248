//! "What is said to have a message has it": of many messages side by side, over agents' local API as it ships,
//! under whatever befalls, on virtual time. A seed draws the run.
//!
//! Each program that receives notes by itself what it took ([`crate::crowd`]). From these notes [`judge`] checks:
//!
//! 1. A member that is said to have a message (`wait_stable`, `message_state`): its receiver confirmed exactly that
//!    message, whole, before. Each message says in its content which it is.
//! 2. Nobody is given a message twice, unless its origin forgot it the first time; none comes mixed with another, out of
//!    the order of its origin, or whole though it was cancelled; members of an ordered group see one order.
//! 3. Who has begun a message sees its end, or is told that it is lost, once nothing befalls any more.
//! 4. Every message that was ended has an outcome then. It names each member.
//! 5. A member is not said to lack a message for no reason: one that was there all the time, and silent for no longer
//!    than the stated limits, has it.
//! 6. In the end, when all are there, all get what is written.
//!
//! What would make it false, and how it is drawn:
//!
//! | what | drawn by |
//! |---|---|
//! | a list of failures that is full, or is lost on its way up | receivers that are absent or give up, as messages by the dozen are on their way; structures with hosts between |
//! | ACKs that overtake each other, come twice or not at all | links that lose, repeat and hold back frames, some of them badly |
//! | a child that was given up, and answers again | hosts that stand still, links that are dark, for longer than the limit after which a child is given up |
//! | a memory that was lost in between | agents, those of origins too, that are killed and start anew at once or later |
//! | another structure, other members, another epoch while failures are on their way | members that join and leave, other schemes, plans that reach agents one after another, a controller that starts anew |
//! | more failures below a child than an ACK names | groups of up to 40 members with receivers at few of them |
//! | a queue of events that is full, streams that make room for others | engines with such limits that this happens |
//! | a structure that a host refuses | not drawn: a host serves as many children as a group has members |
//! | one that joins between the end of a message and its outcome | joins at any time |
//! | several programs that take turns on one stream, one of which ends or cancels in the middle | programs of many connections on a host, each with some messages, one after another or at once |
//! | messages without content, or of many packets | sizes of 0 to some 100,000 bytes |

mod befall;
mod draw;
mod judge;

use crate::controller;
use crate::crowd::{Draft, Ending, Habits};
use crate::random::Random;
use crate::scenario::Scenario;
use crate::trace::Trace;
use std::collections::{BTreeMap, BTreeSet};
use wormcast_agent_core::clients::Patience;
use wormcast_agent_proto as proto;

const SECOND_US: u64 = 1_000_000;
const MS_US: u64 = 1_000;

/// Longest time until everything has an outcome, once nothing befalls any more.
const SETTLE_US: u64 = 600 * SECOND_US;

struct Run {
    scenario: Scenario,
    random: Random,
    trace: Trace,
    /// By group: its members at first, who write to it.
    members: BTreeMap<u16, Vec<u16>>,
    origins: BTreeMap<u16, Vec<u16>>,
    patience: Patience,
    /// Silence after which a child is given up, µs.
    exclude_us: u64,
    /// Time for which hosts were not there, in all; more than half of `exclude_us`, and members below them, or
    /// they themselves, may be given up.
    away_us: u64,
    /// Hosts that left a group, for a while.
    left: BTreeSet<(u16, u16)>,
    /// Hosts whose agents were not running for a while.
    killed: BTreeSet<u16>,
    stopped: BTreeSet<u16>,
    /// Of these, those that plans left out.
    left_out: BTreeSet<u16>,
    dark: BTreeSet<(u16, u8)>,
    /// Of ordered groups: the sequencers there have been.
    sequencers: BTreeMap<u16, BTreeSet<u16>>,
    planned_until_us: u64,
    /// When all was there and written for the last time, µs.
    last_us: u64,
}

/// Runs the scenario of a seed.
///
/// # Panics
/// If something does not hold.
pub fn run(seed: u64, trace: &Trace) {
    let mut run = Run::draw(seed, trace.clone());
    let times = run.random.below(14);
    for _ in 0..times {
        let most_us = *run.random.pick(&[5 * MS_US, 100 * MS_US, 1_500 * MS_US]);
        let pause_us = run.random.below(most_us);
        run.scenario.run_for(pause_us);
        run.befall();
    }
    run.calm_down();
    run.settle();
    run.all_are_there();
    run.settle();
    run.judge();
}

impl Run {
    fn note(&self, line: &str) {
        let ms = self.scenario.fabric.now_us() / 1_000;
        self.trace.note(format!("{ms:>8} ms  {line}"));
    }

    fn hosts(&self) -> Vec<u16> {
        self.scenario.fabric.hosts.keys().copied().collect()
    }

    /// Messages of one more program.
    fn write(
        &mut self,
        group: u16,
        origin: u16,
        drafts: Vec<Draft>,
        in_a_row: bool,
        after_us: u64,
    ) {
        let starts_us = self.scenario.fabric.now_us() + after_us;
        let host = self.scenario.fabric.host(origin);
        host.crowd.write(group, drafts, in_a_row, starts_us);
        self.scenario.fabric.run_host(origin);
    }

    /// Everything is mended and everybody a member as at first. Who was not there may stay so, and who takes
    /// messages badly does so no more.
    fn calm_down(&mut self) {
        self.note("calm");
        self.brighten();
        while !self.stopped.is_empty() {
            self.start_one();
        }
        for group in &mut self.scenario.controller.groups {
            let members = &self.members[&group.id.0];
            group.members = members.iter().copied().map(wormcast_wire::HostId).collect();
        }
        self.replan();
        let now_us = self.scenario.fabric.now_us();
        for host in self.hosts() {
            for reader in self.scenario.fabric.host(host).crowd.readers.values_mut() {
                reader.habits = Habits::default();
                reader.not_before_us = reader.not_before_us.min(now_us + SECOND_US);
            }
            self.scenario.fabric.run_host(host);
        }
    }

    /// All that was written has an outcome, and all that has begun its end.
    fn settle(&mut self) {
        let until_us = self.scenario.fabric.now_us() + SETTLE_US;
        let is_over = |hosts: &BTreeMap<u16, crate::host::Host>| {
            let mut crowds = hosts.values().map(|host| &host.crowd);
            crowds.all(|crowd| crowd.is_settled() && crowd.record.open == 0)
        };
        let settled = self
            .scenario
            .fabric
            .run_until(until_us, |fabric| is_over(&fabric.hosts));
        self.note(if settled { "settled" } else { "not settled" });
        if !settled {
            self.fail_unsettled();
        }
    }

    /// Everybody receives, and something is written by all who write.
    fn all_are_there(&mut self) {
        let now_us = self.scenario.fabric.now_us();
        for host in self.hosts() {
            for reader in self.scenario.fabric.host(host).crowd.readers.values_mut() {
                reader.wanted = true;
                reader.not_before_us = now_us;
            }
            self.scenario.fabric.run_host(host);
        }
        self.scenario.run_for(3 * SECOND_US);
        let now_us = self.scenario.fabric.now_us();
        self.last_us = now_us;
        for host in self.hosts() {
            for reader in self.scenario.fabric.host(host).crowd.readers.values_mut() {
                reader.unbar(now_us);
            }
        }
        self.note("all are there");
        for (group, origins) in self.origins.clone() {
            for origin in origins {
                let draft = |size| Draft {
                    size,
                    is_announced: false,
                    ending: Ending::Whole,
                };
                let sizes = [24 + self.random.below(3_000), 24 + self.random.below(100)];
                self.write(group, origin, sizes.map(draft).to_vec(), true, 0);
            }
        }
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

    fn replan(&mut self) {
        // One plan after another, as the controller carries them out.
        let now_us = self.scenario.fabric.now_us();
        let rest_us = self.planned_until_us.saturating_sub(now_us);
        self.scenario.run_for(rest_us);
        let most_us = *self.random.pick(&[1, 20 * MS_US, 200 * MS_US]);
        let stage_us = 1 + self.random.below(most_us);
        let took_us = self.scenario.replan_in_stages(&mut self.random, stage_us);
        self.planned_until_us = self.scenario.fabric.now_us() + took_us;
        self.note_sequencers();
        let epoch = self.scenario.controller.epoch;
        self.note(&format!("plan {epoch}, stages of {} ms", stage_us / 1_000));
    }

    fn any_scheme(&mut self) -> wormcast_planner::GroupScheme {
        let all = controller::schemes_of(&self.scenario.fabric.topology);
        *self.random.pick(&all)
    }
}
