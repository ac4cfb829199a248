//! ACKs that switches gather (`wire/SPEC.md` §3.2), on virtual time: switches with the P4 program,
//! members that acknowledge, links that lose, repeat and reorder, switches that restart, plans and streams
//! that change under way. The origin must never believe what a member has not said.

use crate::gathered::{Announcement, GROUP, Op, before, flags, frame_of, read};
use crate::random::Random;
use crate::switch::Switch;
use std::collections::{BTreeMap, BTreeSet};
use wormcast_wire::{HostId, Seq};

const UP: u8 = 0;
/// Sources: members and switches are numbered from here.
const MEMBERS: u16 = 1000;
const SWITCHES: u16 = 2000;
/// Where a cell of the counter `drops` says that an ACK was of another plan or stream.
pub const STALE: usize = 26;
/// And that there is no entry.
pub const UNKNOWN: usize = 25;
const DELAY_US_MAX: u64 = 3_000;

#[derive(Clone, Copy, Debug, Default)]
pub struct Faults {
    /// Worms that a link loses, of 1.
    pub loss: f64,
    /// Worms that come twice.
    pub twice: f64,
    /// Worms that come to a switch by another port, as if a cable had been moved.
    pub misled: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum End {
    Switch(usize, u8),
    Origin(usize),
    Member,
}

/// How far something has got.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Held before this.
    pub cumulative: u32,
    /// Confirmed before this.
    pub stable: u32,
}

#[derive(Debug, Clone)]
struct Plan {
    members: BTreeSet<usize>,
    rows: BTreeMap<(usize, u8), Row>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct Row {
    slot: u32,
    branch: u32,
    last: u32,
    epoch: u32,
}

/// A stream from an origin to members, and the tree by which its ACKs are gathered.
pub struct Tree {
    /// Its plans, by epoch.
    plans: BTreeMap<u32, Plan>,
    /// What the origin goes by.
    pub epoch: u32,
    /// The life of its stream.
    pub stream: u32,
    /// What the origin believes of its plan and stream.
    pub believed: Option<Progress>,
    /// What each member has said, by its number and stream.
    truth: BTreeMap<(usize, u32), Progress>,
    /// Plan and stream of each member.
    at: Vec<(u32, u32)>,
    /// Rows that are in the switches.
    rows: BTreeMap<(usize, u8), Row>,
}

/// Switches, members and the trees of several origins.
pub struct Network {
    /// The switches; the origins are at the first one.
    pub switches: Vec<Switch>,
    parents: Vec<(usize, u8)>,
    /// Where members are: switch and port.
    pub homes: Vec<(usize, u8)>,
    ports: Vec<u8>,
    /// By number of the origin.
    pub trees: Vec<Tree>,
    flying: BTreeMap<(u64, u64), (End, Vec<u8>)>,
    next: u64,
    now_us: u64,
    random: Random,
    /// What may go wrong now.
    pub faults: Faults,
    /// How many of the members a plan has, of 1.
    pub share: f64,
    slots: Vec<u32>,
    /// ACKs that came to origins and were true.
    pub claims: u64,
    pub answers: Vec<Announcement>,
    /// Worms dropped by switches that have restarted since, by reason.
    pub dropped: BTreeMap<usize, u64>,
}

impl Network {
    /// A tree of switches with members, and plans of all of them.
    pub fn new(seed: u64, switches: usize, members: usize, origins: usize) -> Network {
        let mut random = Random::new(seed);
        let mut ports = vec![1 + origins as u8; switches];
        let mut take = |at: usize| {
            ports[at] += 1;
            ports[at] - 1
        };
        let mut parents = vec![(0, 0)];
        for number in 1..switches {
            let parent = random.below(number as u64) as usize;
            parents.push((parent, take(parent)));
        }
        let mut homes = Vec::new();
        for _ in 0..members {
            let at = random.below(switches as u64) as usize;
            homes.push((at, take(at)));
        }
        let mut network = Network {
            switches: Vec::new(),
            parents,
            homes,
            ports,
            trees: Vec::new(),
            flying: BTreeMap::new(),
            next: 0,
            now_us: 0,
            random,
            faults: Faults::default(),
            share: 0.7,
            slots: vec![0; origins],
            claims: 0,
            answers: Vec::new(),
            dropped: BTreeMap::new(),
        };
        for number in 0..switches {
            network.switches.push(Switch::new(seed));
            network.start(number);
        }
        for tree in 0..origins {
            let stream = network.random.below(1 << 32) as u32;
            network.trees.push(Tree {
                plans: BTreeMap::new(),
                epoch: 0,
                stream,
                believed: None,
                truth: BTreeMap::new(),
                at: vec![(0, stream); members],
                rows: BTreeMap::new(),
            });
            network.plan(tree);
            network.enter_all(tree);
            network.begin(tree, stream);
            for member in 0..members {
                network.learn(tree, member);
            }
        }
        network
    }

    fn start(&mut self, number: usize) {
        for port in 0..self.ports[number] {
            let key = [("port", port.into())];
            self.switches[number].set_entry("ingress.ports", &key, "ingress.port_known", &[]);
        }
    }

    /// Registers are 0 again, and the entries are there again.
    pub fn restart(&mut self, number: usize) {
        for reason in [STALE, UNKNOWN] {
            *self.dropped.entry(reason).or_default() +=
                self.switches[number].counter("drops", reason);
        }
        self.switches[number] = Switch::new(self.next);
        self.start(number);
        for tree in 0..self.trees.len() {
            let rows = self.trees[tree].rows.clone();
            for (&(at, port), &row) in rows.iter().filter(|((at, _), _)| *at == number) {
                self.write(tree, at, port, row);
            }
        }
    }

    fn source_behind(&self, at: usize, port: u8) -> u16 {
        let member = self.homes.iter().position(|&home| home == (at, port));
        match (member, self.behind(at, port)) {
            (Some(member), _) => MEMBERS + member as u16,
            (None, End::Switch(number, _)) => SWITCHES + number as u16,
            (None, other) => panic!("{other:?} is no branch"),
        }
    }

    fn write(&mut self, tree: usize, at: usize, port: u8, row: Row) {
        let up = if at == 0 { UP + tree as u8 } else { UP };
        let parameters = [
            ("slot", row.slot.into()),
            ("branch", row.branch.into()),
            ("last", row.last.into()),
            ("epoch", row.epoch.into()),
            ("up", up.into()),
            ("from", self.source_behind(at, port).into()),
            ("as", (SWITCHES + at as u16).into()),
        ];
        let key = key_of(tree, port);
        self.switches[at].set_entry("ingress.gather", &key, "ingress.gather_branch", &parameters);
    }

    /// A new plan of a tree: other members, branches in another order, other slots.
    pub fn plan(&mut self, tree: usize) {
        let epoch = self.trees[tree]
            .plans
            .last_key_value()
            .map_or(9, |(epoch, _)| epoch + 1);
        let all = self.homes.len();
        let mut members: BTreeSet<usize> = (0..all)
            .filter(|_| self.random.chance(self.share))
            .collect();
        members.insert(self.random.below(all as u64) as usize);
        let mut ports: BTreeMap<usize, BTreeSet<u8>> = BTreeMap::new();
        for &member in &members {
            let (mut at, port) = self.homes[member];
            ports.entry(at).or_default().insert(port);
            while at != 0 {
                let (parent, port) = self.parents[at];
                ports.entry(parent).or_default().insert(port);
                at = parent;
            }
        }
        // No other tree's newest plan has the slot, but an older one may, which switches still have.
        let taken: Vec<u32> = (0..self.trees.len())
            .filter(|&other| other != tree && !self.trees[other].plans.is_empty())
            .map(|other| self.slots[other])
            .collect();
        let mut free = vec![0, 1, 1023];
        free.retain(|slot| !taken.contains(slot));
        let slot = *self.random.pick(&free);
        self.slots[tree] = slot;
        let mut rows = BTreeMap::new();
        for (at, ports) in ports {
            let turn = self.random.below(ports.len() as u64) as usize;
            for (number, &port) in ports.iter().enumerate() {
                let branch = ((number + turn) % ports.len()) as u32;
                let last = ports.len() as u32 - 1;
                rows.insert(
                    (at, port),
                    Row {
                        slot,
                        branch,
                        last,
                        epoch,
                    },
                );
            }
        }
        self.trees[tree].plans.insert(epoch, Plan { members, rows });
    }

    fn newest(&self, tree: usize) -> u32 {
        *self.trees[tree].plans.last_key_value().expect("a plan").0
    }

    /// Writes one row of the newest plan, or takes one away that it does not have; whether there was any.
    pub fn enter_one(&mut self, tree: usize) -> bool {
        let wanted = self.trees[tree].plans[&self.newest(tree)].rows.clone();
        let there = &self.trees[tree].rows;
        let mut open: Vec<(usize, u8)> = wanted.keys().chain(there.keys()).copied().collect();
        open.retain(|key| wanted.get(key) != there.get(key));
        if open.is_empty() {
            return false;
        }
        let (at, port) = *self.random.pick(&open);
        match wanted.get(&(at, port)) {
            Some(&row) => {
                self.write(tree, at, port, row);
                self.trees[tree].rows.insert((at, port), row);
            }
            None => {
                self.switches[at].remove_entry("ingress.gather", &key_of(tree, port));
                self.trees[tree].rows.remove(&(at, port));
            }
        }
        true
    }

    /// All switches and the origin have the newest plan.
    pub fn enter_all(&mut self, tree: usize) {
        while self.enter_one(tree) {}
        let epoch = self.newest(tree);
        self.follow(tree, epoch);
    }

    fn follow(&mut self, tree: usize, epoch: u32) {
        if self.trees[tree].epoch != epoch {
            self.trees[tree].epoch = epoch;
            self.trees[tree].believed = None;
        }
    }

    /// The origin learns its newest plan.
    pub fn origin_learns(&mut self, tree: usize) {
        self.follow(tree, self.newest(tree));
    }

    /// The origin begins a stream. Nothing before its first number has to be acknowledged.
    pub fn begin(&mut self, tree: usize, stream: u32) {
        // Some streams wrap.
        let far = self.random.chance(0.5);
        let first = if far {
            u32::MAX - 20
        } else {
            self.random.below(1 << 32) as u32
        };
        let tree = &mut self.trees[tree];
        tree.stream = stream;
        tree.believed = None;
        let first = Progress {
            cumulative: first,
            stable: first,
        };
        for member in 0..tree.at.len() {
            tree.truth.insert((member, stream), first);
        }
    }

    /// A member learns the newest plan and stream.
    pub fn learn(&mut self, tree: usize, member: usize) {
        self.trees[tree].at[member] = (self.newest(tree), self.trees[tree].stream);
    }

    /// A member gets so much further.
    pub fn advance(&mut self, tree: usize, member: usize, packets: u32) {
        let stream = self.trees[tree].at[member].1;
        let confirmed = self.random.below(u64::from(packets) + 1) as u32;
        let truth = self.trees[tree]
            .truth
            .get_mut(&(member, stream))
            .expect("a stream");
        truth.cumulative = truth.cumulative.wrapping_add(packets);
        let further = truth.stable.wrapping_add(confirmed);
        truth.stable = if before(truth.cumulative, further) {
            truth.cumulative
        } else {
            further
        };
    }

    /// A member gets to the end, and confirms it.
    pub fn finish(&mut self, tree: usize, member: usize, end: u32) {
        let stream = self.trees[tree].at[member].1;
        let end = Progress {
            cumulative: end,
            stable: end,
        };
        self.trees[tree].truth.insert((member, stream), end);
    }

    /// What a member has said in the stream of its origin.
    pub fn truth(&self, tree: usize, member: usize) -> Progress {
        self.trees[tree].truth[&(member, self.trees[tree].stream)]
    }

    /// Members of the plan of the origin.
    pub fn members(&self, tree: usize) -> BTreeSet<usize> {
        self.trees[tree].plans[&self.trees[tree].epoch]
            .members
            .clone()
    }

    pub fn acknowledge(&mut self, tree: usize, member: usize, again: bool) {
        let (epoch, stream) = self.trees[tree].at[member];
        if !self.trees[tree].plans[&epoch].members.contains(&member) {
            return;
        }
        let announced = self.trees[tree].truth[&(member, stream)];
        let announced = Announcement {
            op: Op::Ack,
            flags: if again { flags::REFRESH } else { 0 },
            group: GROUP,
            origin: HostId(100 + tree as u16),
            port: 0,
            epoch,
            stream,
            cumulative: Seq(announced.cumulative),
            stable: Seq(announced.stable),
        };
        let (at, port) = self.homes[member];
        self.fly(
            End::Switch(at, port),
            frame_of(&announced, &[], MEMBERS + member as u16),
        );
    }

    /// The origin asks the switch at the end of a route what the branch behind a port has said.
    pub fn ask(&mut self, tree: usize, route: &[u8], port: u8) {
        let asks = Announcement {
            op: Op::Request,
            flags: 0,
            group: GROUP,
            origin: HostId(100 + tree as u16),
            port,
            epoch: self.trees[tree].epoch,
            stream: self.trees[tree].stream,
            cumulative: Seq(0),
            stable: Seq(0),
        };
        self.fly(
            End::Switch(0, UP + tree as u8),
            frame_of(&asks, route, 100 + tree as u16),
        );
    }

    /// Ports from the first switch to another.
    pub fn route_to(&self, mut at: usize) -> Vec<u8> {
        let mut route = Vec::new();
        while at != 0 {
            let (parent, port) = self.parents[at];
            route.insert(0, port);
            at = parent;
        }
        route
    }

    /// Ports of a switch that have a branch of a tree, by the plan of the origin; the switch behind each.
    pub fn branches(&self, tree: usize, at: usize) -> Vec<(u8, Option<usize>)> {
        let rows = &self.trees[tree].plans[&self.trees[tree].epoch].rows;
        let here = rows.keys().filter(|(switch, _)| *switch == at);
        let behind = |port| (1..self.parents.len()).find(|&n| self.parents[n] == (at, port));
        here.map(|&(_, port)| (port, behind(port))).collect()
    }

    fn fly(&mut self, to: End, frame: Vec<u8>) {
        if self.random.chance(self.faults.loss) {
            return;
        }
        let copies = 1 + u64::from(self.random.chance(self.faults.twice));
        for _ in 0..copies {
            let at_us = self.now_us + 1 + self.random.below(DELAY_US_MAX);
            self.next += 1;
            self.flying.insert((at_us, self.next), (to, frame.clone()));
        }
    }

    /// What happens before a time; whether anything is still on its way.
    pub fn run(&mut self, until_us: u64) -> bool {
        while let Some((&(at_us, number), _)) = self.flying.first_key_value() {
            if at_us > until_us {
                break;
            }
            self.now_us = at_us;
            let (to, frame) = self.flying.remove(&(at_us, number)).expect("it flies");
            match to {
                End::Origin(tree) => self.hear(tree, &frame),
                End::Switch(at, mut port) => {
                    if self.random.chance(self.faults.misled) {
                        port = self.random.below(self.ports[at].into()) as u8;
                    }
                    let copies = self.switches[at].forward(&frame, port, self.now_us, |_| 0);
                    for copy in copies {
                        let to = self.behind(at, copy.port);
                        self.fly(to, copy.frame);
                    }
                }
                End::Member => {}
            }
        }
        self.now_us = until_us;
        !self.flying.is_empty()
    }

    pub fn now_us(&self) -> u64 {
        self.now_us
    }

    /// The one source of chance.
    pub fn random(&mut self) -> &mut Random {
        &mut self.random
    }

    fn behind(&self, at: usize, port: u8) -> End {
        if at == 0 && port < UP + self.trees.len() as u8 {
            return End::Origin((port - UP).into());
        }
        if port == UP {
            let (parent, port) = self.parents[at];
            return End::Switch(parent, port);
        }
        let child = (1..self.parents.len()).find(|&n| self.parents[n] == (at, port));
        child.map_or(End::Member, |number| End::Switch(number, UP))
    }

    /// The origin must not be told what is not true, of whichever plan and stream.
    fn hear(&mut self, tree: usize, frame: &[u8]) {
        let announced = read(frame);
        assert_eq!(
            usize::from(announced.origin.0) - 100,
            tree,
            "an ACK of another origin"
        );
        if announced.op == Op::Answer {
            self.answers.push(announced);
            return;
        }
        let here = &mut self.trees[tree];
        let members = &here.plans[&announced.epoch].members;
        for &member in members {
            let truth = here.truth[&(member, announced.stream)];
            assert!(
                !before(truth.cumulative, announced.cumulative.0)
                    && !before(truth.stable, announced.stable.0),
                "{announced:?} at the origin, but member {member} has said {truth:?}"
            );
        }
        self.claims += 1;
        if (announced.epoch, announced.stream) == (here.epoch, here.stream) {
            let reported = Progress {
                cumulative: announced.cumulative.0,
                stable: announced.stable.0,
            };
            let known = here.believed.get_or_insert(reported);
            if !before(reported.cumulative, known.cumulative) {
                known.cumulative = reported.cumulative;
            }
            if !before(reported.stable, known.stable) {
                known.stable = reported.stable;
            }
        }
    }
}

fn key_of(tree: usize, port: u8) -> [(&'static str, u128); 3] {
    [
        ("group", GROUP.0.into()),
        ("origin", 100 + tree as u128),
        ("port", port.into()),
    ]
}
