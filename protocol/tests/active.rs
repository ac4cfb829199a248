//! A stream that rests costs nothing, and misses nothing: engines do the same, frame by frame, as such in which no
//! stream ever rests, whatever befalls them.
//!
//! What would make that false: a change of what all streams share that wakes none; a time that no deadline says; a poll
//! that notes something though it sends nothing.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::fmt::Debug;
use std::sync::Arc;
use wormcast_protocol::{
    ChildRole, Choice, Copies, Edge, Engine, EngineConfig, Gathered, GroupPlan, Instant, Role,
    Structures,
};
use wormcast_wire::gather::{self, Announcement};
use wormcast_wire::worm::{self, Kind};
use wormcast_wire::{
    BufferClass, ETHERNET_LENGTH, FailReason, GroupId, HostId, Replication, Seq, tree_route,
};

const HOSTS: u16 = 4;
const TURNS: u64 = 2_500;
/// Turns at the end in which nothing is lost or changed.
const CALM_TURNS: u64 = 1_000;
const SEEDS: u64 = 12;
const SHAPES: [Shape; 6] = [
    Shape::Star,
    Shape::Chain,
    Shape::Returns,
    Shape::Copied,
    Shape::Gathered,
    Shape::Either,
];

/// How a group's messages travel.
#[derive(Clone, Copy, PartialEq)]
enum Shape {
    Star,
    Chain,
    Returns,
    Copied,
    Gathered,
    Either,
}

struct Place {
    host: HostId,
    shape: Shape,
    backwards: bool,
    broadcast: bool,
}

impl Structures for Place {
    fn role(&self, origin: HostId, _choice: u8) -> Option<Role> {
        let at = |step: u16| {
            let step = if self.backwards { HOSTS - step } else { step };
            HostId((origin.0 + step) % HOSTS)
        };
        if self.shape == Shape::Returns {
            let step = (0..HOSTS).find(|step| at(*step) == self.host)?;
            let line: Vec<HostId> = (step + 1..=HOSTS).map(|step| at(step % HOSTS)).collect();
            let child = ChildRole {
                host: line[0],
                class: BufferClass::One,
                below: line[1..].to_vec(),
            };
            return Some(Role {
                parent: Some(at((step + HOSTS - 1) % HOSTS)),
                children: vec![child],
            });
        }
        let is_chain = matches!(self.shape, Shape::Chain | Shape::Gathered);
        let edges: Vec<Edge> = (1..HOSTS)
            .map(|step| Edge {
                from: if is_chain { at(step - 1) } else { origin },
                to: at(step),
                class: BufferClass::One,
            })
            .collect();
        Role::from_edges(self.host, origin, &edges)
    }

    fn copies(&self, _choice: u8) -> Copies<'_> {
        if self.broadcast {
            Copies::Broadcast
        } else {
            Copies::SpanningTree
        }
    }
}

/// A seeded sequence (Vigna's splitmix64).
struct Draws(u64);

impl Draws {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ (mixed >> 31)) % bound
    }

    fn one_in(&mut self, bound: u64) -> bool {
        self.below(bound) == 0
    }
}

/// What all members have said of a stream, for a switch to gather.
type Said = BTreeMap<(GroupId, HostId, u32, u32), BTreeMap<HostId, (Seq, Seq)>>;

/// When a frame arrives, its number, where, and the frame.
type Arrival = (u64, u64, u16, Vec<u8>);

/// Hosts, each with an engine and one in which no stream ever rests; one switch joins them, a port each.
struct Twins {
    engines: Vec<[Engine; 2]>,
    draws: Draws,
    seed: u64,
    now_us: u64,
    under_way: BinaryHeap<Reverse<Arrival>>,
    frames: u64,
    said: Said,
    epoch: u32,
    /// Of so many frames one is lost.
    loses_one_in: u64,
    /// A host that hears nothing.
    deaf: Option<u16>,
    rested: u64,
}

impl Twins {
    fn new(seed: u64) -> Twins {
        let mut draws = Draws(seed);
        let unclassed = draws.one_in(8);
        let engine = |host: u16| {
            let mut config = EngineConfig::new(HostId(host), [2; 6], 1_500, seed, 1);
            config.limits.pool_class1_bytes = 48_000;
            config.limits.pool_class2_bytes = 48_000;
            config.limits.origin_window_packets = 48;
            config.limits.unclassed = unclassed;
            config.timing.member_timeout_us = 150_000;
            config.timing.member_exclude_us = 700_000;
            Engine::new(config).expect("valid")
        };
        let mut twins = Twins {
            engines: (0..HOSTS)
                .map(|host| [0; 2].map(|_| engine(host)))
                .collect(),
            draws,
            seed,
            now_us: 1_000,
            under_way: BinaryHeap::new(),
            frames: 0,
            said: Said::new(),
            epoch: 0,
            loses_one_in: 20,
            deaf: None,
            rested: 0,
        };
        for host in 0..HOSTS {
            twins.set_routes(host, true);
            for number in 0..SHAPES.len() {
                twins.set_group(host, number, 1, (false, false, None));
            }
        }
        twins.epoch = 1;
        twins
    }

    fn now(&self) -> Instant {
        Instant::from_micros(self.now_us)
    }

    /// Lets both engines of a host do something: it comes to the same.
    fn both<T: PartialEq + Debug>(&mut self, host: u16, work: impl Fn(&mut Engine) -> T) -> T {
        let (seed, at) = (self.seed, self.now_us);
        let [rests, wakes] = &mut self.engines[usize::from(host)];
        wakes.wake_all();
        let (done, expected) = (work(rests), work(wakes));
        assert_eq!(done, expected, "seed {seed}, host {host}, at {at} µs");
        assert_eq!(
            rests.forgotten(),
            None,
            "seed {seed}, host {host}, at {at} µs"
        );
        done
    }

    fn set_routes(&mut self, host: u16, whole: bool) {
        let now = self.now();
        let gap = (!whole).then(|| self.draws.below(HOSTS.into()) as u16);
        let others = (0..HOSTS).filter(|other| *other != host);
        let reached = others.filter(|other| Some(*other) != gap);
        let routes: BTreeMap<HostId, Vec<u8>> = reached
            .map(|other| (HostId(other), vec![other as u8]))
            .collect();
        let whole_tree = whole || self.draws.one_in(2);
        let tree = if whole_tree { 1 } else { 2 };
        let tree: BTreeMap<HostId, Vec<u8>> = (routes.clone().into_iter())
            .filter(|(other, _)| other.0 % tree == 0)
            .collect();
        match self.draws.below(3) {
            0 if !whole => drop(self.both(host, |engine| engine.set_routes(routes.clone(), now))),
            1 if !whole => {
                drop(self.both(host, |engine| engine.set_tree_routes(tree.clone(), now)));
            }
            _ => {
                let unicast = routes.into_iter();
                let unicast: BTreeMap<_, _> = unicast
                    .map(|(other, route)| (other, Arc::new(route.into())))
                    .collect();
                let tree = Arc::new(tree);
                let root = self.draws.one_in(2).then_some(&[9][..]);
                self.both(host, |engine| {
                    engine.set_all_routes(&unicast, &tree, root, now)
                })
                .expect("routes");
            }
        }
    }

    fn set_group(
        &mut self,
        host: u16,
        number: usize,
        epoch: u32,
        (backwards, broadcast, mtu): (bool, bool, Option<u16>),
    ) {
        let (now, shape) = (self.now(), SHAPES[number]);
        let choices = match shape {
            Shape::Star | Shape::Chain | Shape::Returns => Choice::only(Replication::Hosts),
            Shape::Copied | Shape::Gathered => Choice::only(Replication::Switches),
            Shape::Either => vec![
                Choice {
                    bytes_most: 2_000,
                    replication: Replication::Hosts,
                },
                Choice::only(Replication::Switches)[0],
            ],
        };
        let origins = (0..HOSTS).map(|origin| (HostId(origin), HostId((origin + 1) % HOSTS)));
        let gathered = (shape == Shape::Gathered).then(|| Gathered {
            epoch,
            origins: origins.collect(),
        });
        let plan = GroupPlan {
            id: GroupId(number as u16 + 1),
            epoch,
            choices,
            members: (0..HOSTS).map(HostId).collect(),
            mtu,
            structures: Arc::new(Place {
                host: HostId(host),
                shape,
                backwards,
                broadcast,
            }),
            reports_begin: number.is_multiple_of(2),
            gathered,
        };
        self.both(host, |engine| engine.set_group(plan.clone(), now))
            .expect("a plan");
    }

    fn schedule(&mut self, to: u16, frame: Vec<u8>) {
        let is_lost = self.loses_one_in > 0 && self.draws.one_in(self.loses_one_in);
        if is_lost || self.deaf == Some(to) {
            return;
        }
        self.frames += 1;
        let at_us = self.now_us + 100 + self.draws.below(400);
        let arrival = (at_us, self.frames, to, frame);
        self.under_way.push(Reverse(arrival));
    }

    /// What a switch makes of a frame.
    fn carry(&mut self, frame: &[u8]) {
        let worm = worm::decode(frame).expect("an engine's own frame");
        let source = worm.header.source;
        let ports: Vec<u8> = match worm.header.kind {
            Kind::Gather => {
                if let Ok(announced) = gather::decode(&worm) {
                    self.gather(source, announced);
                }
                return;
            }
            Kind::Tree => tree_route::branches(worm.route)
                .expect("a route")
                .map(|branch| branch.port.get())
                .collect(),
            Kind::Broadcast => (0..HOSTS as u8).collect(),
            _ => worm.route.to_vec(),
        };
        let mut arriving = vec![0; ETHERNET_LENGTH + worm::HEADER_LENGTH];
        worm::encode_worm(&mut arriving[ETHERNET_LENGTH..], &worm.header, &[]);
        arriving[..ETHERNET_LENGTH].copy_from_slice(&frame[..ETHERNET_LENGTH]);
        arriving.extend_from_slice(worm.payload);
        for port in ports {
            self.schedule(port.into(), arriving.clone());
        }
    }

    fn gather(&mut self, source: HostId, announced: Announcement) {
        let origin = announced.origin;
        let key = (announced.group, origin, announced.epoch, announced.stream);
        let said = self.said.entry(key).or_default();
        said.insert(source, (announced.cumulative, announced.stable));
        if said.len() + 1 < usize::from(HOSTS) {
            return;
        }
        let least = |of: fn(&(Seq, Seq)) -> Seq| {
            let all = said.values().map(of);
            all.reduce(|least, seq| if least.is_after(seq) { seq } else { least })
        };
        let all = Announcement {
            cumulative: least(|said| said.0).expect("several"),
            stable: least(|said| said.1).expect("several"),
            ..announced
        };
        let mut frame = vec![0; 200];
        let from = (HostId((origin.0 + 1) % HOSTS), 0);
        let length = gather::encode(&mut frame, [2; 6], from, &[], &all);
        frame.truncate(length);
        self.schedule(origin.0, frame);
    }

    /// What applications do at a host.
    fn apply(&mut self, host: u16) {
        let now = self.now();
        let group = GroupId(self.draws.below(SHAPES.len() as u64) as u16 + 1);
        let length = [0, 1, 300, 6_000, 40_000][self.draws.below(5) as usize];
        let ends = self.draws.one_in(2);
        match self.draws.below(24) {
            0 => drop(self.both(host, |engine| {
                engine.write(group, &vec![7; length], ends, now)
            })),
            1 => drop(self.both(host, |engine| engine.flush(group, now))),
            2 => drop(self.both(host, |engine| engine.finish(group, now))),
            3 if ends => drop(self.both(host, |engine| engine.cancel(group, now))),
            4 => drop(self.both(host, |engine| engine.announce(group, length as u64, now))),
            5..12 => self.read(host, group),
            _ => {}
        }
    }

    fn read(&mut self, host: u16, group: GroupId) {
        let now = self.now();
        let origin = HostId(self.draws.below(HOSTS.into()) as u16);
        let read = self.both(host, |engine| {
            let mut buf = [0; 50_000];
            engine.read(group, origin, &mut buf, now)
        });
        if read.is_ok_and(|read| read.end_of_message) {
            self.both(host, |engine| engine.confirm(group, origin, now))
                .expect("it was read");
        } else if self.draws.one_in(400) && self.loses_one_in > 0 {
            let reason = FailReason::Storage;
            let _ = self.both(host, |engine| engine.abort(group, origin, reason, now));
        }
    }

    /// Plans and routes change, hosts hear nothing for a while, more or fewer frames are lost.
    fn befall(&mut self) {
        let host = self.draws.below(HOSTS.into()) as u16;
        let number = self.draws.below(SHAPES.len() as u64) as usize;
        match self.draws.below(400) {
            0 | 1 => self.set_routes(host, false),
            2 | 3 => self.set_routes(host, true),
            4 => {
                self.epoch += 1;
                let mtu = [None, Some(700), Some(1_200)][self.draws.below(3) as usize];
                let how = (self.draws.one_in(2), self.draws.one_in(2), mtu);
                for host in 0..HOSTS {
                    self.set_group(host, number, self.epoch, how);
                }
            }
            5 if self.draws.one_in(4) => {
                let (group, now) = (GroupId(number as u16 + 1), self.now());
                self.both(host, |engine| engine.remove_group(group, now));
                self.set_group(host, number, self.epoch, (false, false, None));
            }
            6 => {
                let most = 2 + self.draws.below(30) as usize;
                self.both(host, |engine| engine.set_tree_route_max(most));
            }
            7 => {
                let leave = self.draws.one_in(2);
                self.both(host, |engine| engine.leave_train_room(leave));
            }
            8 | 9 => self.deaf = Some(host),
            10..16 => self.deaf = None,
            16 => self.loses_one_in = [0, 3, 20, 100][self.draws.below(4) as usize],
            17 => self.now_us += self.draws.below(1_500_000),
            _ => {}
        }
    }

    fn turn(&mut self) {
        self.now_us += match self.draws.below(20) {
            0 => self.draws.below(60_000),
            1..6 => self.draws.below(3_000),
            _ => self.draws.below(200),
        };
        let now = self.now();
        while let Some(Reverse(next)) = self.under_way.peek()
            && next.0 <= self.now_us
        {
            let Some(Reverse((_, _, host, frame))) = self.under_way.pop() else {
                break;
            };
            let _ = self.both(host, |engine| engine.handle_frame(&frame, now));
        }
        for host in 0..HOSTS {
            self.apply(host);
            let [rests, wakes] = &self.engines[usize::from(host)];
            let (early, due) = (rests.poll_timeout(), wakes.poll_timeout());
            // Of times that have come any will do.
            let later =
                |time: Option<Instant>| time.map_or(u64::MAX, |time| time.max(now).as_micros());
            let seed = self.seed;
            assert!(
                later(early) <= later(due),
                "seed {seed}: {early:?}, {due:?}"
            );
            self.rested += rests.resting() as u64;
            if due.is_some_and(|at| at <= now) || self.draws.one_in(3) {
                self.both(host, |engine| engine.handle_timeout(now));
            }
            while self.both(host, Engine::poll_event).is_some() {}
            // Not all shells poll until there is nothing.
            let most = if self.draws.one_in(4) {
                self.draws.below(4)
            } else {
                u64::MAX
            };
            for _ in 0..most {
                let sent = self.both(host, |engine| {
                    let mut buf = [0; 1_514];
                    let sent = engine.poll_transmit(now, &mut buf)?;
                    Some((format!("{sent:?}"), buf[..sent.length].to_vec()))
                });
                let Some((_, frame)) = sent else { break };
                self.carry(&frame);
            }
        }
    }

    /// In the end all engines count the same, and what was written is everywhere.
    fn end(mut self) {
        self.loses_one_in = 0;
        self.deaf = None;
        self.epoch += 1;
        for host in 0..HOSTS {
            self.set_routes(host, true);
            for number in 0..SHAPES.len() {
                self.set_group(host, number, self.epoch, (false, false, None));
            }
        }
        for _ in 0..CALM_TURNS {
            self.turn();
        }
        let seed = self.seed;
        for host in 0..HOSTS {
            self.both(host, |engine| format!("{:?}", engine.counters()));
            self.both(host, |engine| {
                let all = engine.statistics();
                all.map(|counts| format!("{counts:?}")).collect::<Vec<_>>()
            });
        }
        assert!(self.frames > 1_000, "seed {seed}: {} frames", self.frames);
        let looks = (TURNS + CALM_TURNS) * u64::from(HOSTS);
        assert!(
            self.rested > looks,
            "seed {seed}: more than one rests, mostly"
        );
    }
}

#[test]
fn streams_that_rest_miss_nothing() {
    for seed in 0..SEEDS {
        let mut twins = Twins::new(seed);
        for _ in 0..TURNS {
            twins.befall();
            twins.turn();
        }
        twins.end();
    }
}
