//! What the engine costs a packet, with windows of 8,192 packets in flight: packets a
//! second on one core. Only the time inside the engine counts, not that of the harness.
//!
//! `cargo test --release -p wormcast-protocol --test all measure:: -- --ignored --nocapture`

#![allow(
    clippy::disallowed_macros,
    clippy::disallowed_types,
    reason = "it measures and prints"
)]

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;
use wormcast_protocol::{Choice, Edge, Engine, EngineConfig, GroupPlan, Instant, Role, Structures};
use wormcast_wire::worm::{self, Kind};
use wormcast_wire::{BufferClass, ETHERNET_LENGTH, GroupId, HostId, SchemeName, tree_route};

/// Time a frame is under way, µs: long, so that the window is full of packets in flight.
const DELAY_US: u64 = 20_000;
/// Time between two turns of the hosts, µs.
const TURN_US: u64 = 100;
/// Turns before the measurement starts: the window has to open.
const WARM_TURNS: u64 = 10_000;
const TURNS: u64 = 10_000;
const GROUP: GroupId = GroupId(1);

/// Stars, from every origin to all others, or chains.
struct Shape {
    host: HostId,
    hosts: u16,
    chain: bool,
}

impl Structures for Shape {
    fn role(&self, origin: HostId, _choice: u8) -> Option<Role> {
        let at = |step: u16| HostId((origin.0 + step) % self.hosts);
        let edges: Vec<Edge> = (1..self.hosts)
            .map(|step| Edge {
                from: if self.chain { at(step - 1) } else { origin },
                to: at(step),
                class: BufferClass::One,
            })
            .collect();
        Role::from_edges(self.host, origin, &edges)
    }
}

struct Host {
    engine: Engine,
    spent: Duration,
}

impl Host {
    fn time<T>(&mut self, work: impl FnOnce(&mut Engine) -> T) -> T {
        let start = std::time::Instant::now();
        let result = work(&mut self.engine);
        self.spent += start.elapsed();
        result
    }
}

struct Case {
    name: &'static str,
    scheme: SchemeName,
    hosts: u16,
    /// Groups beside the one that carries the stream, each with a stream that rests.
    resting: u16,
    /// Of so many DATA frames one is lost.
    loses_one_in: Option<u64>,
}

struct Net {
    hosts: Vec<Host>,
    under_way: VecDeque<(u64, usize, Vec<u8>)>,
    now_us: u64,
    frames: u64,
    loses_one_in: Option<u64>,
}

impl Net {
    fn new(case: &Case) -> Net {
        let hosts = (0..case.hosts)
            .map(|id| {
                let host = HostId(id);
                let mut config = EngineConfig::new(host, [2; 6], 1_500, 1, 1);
                config.limits.groups = 4_096;
                config.limits.sessions = 4_096;
                let mut engine = Engine::new(config).expect("valid");
                let routes: BTreeMap<HostId, Vec<u8>> = (0..case.hosts)
                    .filter(|other| *other != id)
                    .map(|other| (HostId(other), vec![other as u8]))
                    .collect();
                engine
                    .set_routes(routes.clone(), Instant::ZERO)
                    .expect("routes");
                engine
                    .set_tree_routes(routes, Instant::ZERO)
                    .expect("routes");
                for group in 0..=case.resting {
                    let plan = GroupPlan {
                        id: GroupId(if group < 254 { group + 1 } else { group + 2 }),
                        epoch: 1,
                        choices: Choice::only(case.scheme.replication()),
                        members: (0..case.hosts).map(HostId).collect(),
                        mtu: None,
                        structures: Arc::new(Shape {
                            host,
                            hosts: case.hosts,
                            chain: case.scheme == SchemeName::Circuit,
                        }),
                        reports_begin: false,
                        gathered: None,
                    };
                    engine.set_group(plan, Instant::ZERO).expect("a plan");
                }
                Host {
                    engine,
                    spent: Duration::ZERO,
                }
            })
            .collect();
        Net {
            hosts,
            under_way: VecDeque::new(),
            now_us: 1_000,
            frames: 0,
            loses_one_in: case.loses_one_in,
        }
    }

    /// One switch joins all hosts, a port each.
    fn carry(&mut self, frame: &[u8]) {
        let worm = worm::decode(frame).expect("an engine's own frame");
        let ports: Vec<u8> = match worm.header.kind {
            Kind::Tree => tree_route::branches(worm.route)
                .expect("a route")
                .map(|branch| branch.port.get())
                .collect(),
            _ => worm.route.to_vec(),
        };
        let mut arriving = vec![0; ETHERNET_LENGTH + worm::HEADER_LENGTH];
        worm::encode_worm(&mut arriving[ETHERNET_LENGTH..], &worm.header, &[]);
        arriving[..ETHERNET_LENGTH].copy_from_slice(&frame[..ETHERNET_LENGTH]);
        arriving.extend_from_slice(worm.payload);
        for port in ports {
            self.frames += 1;
            // DATA is type 0; what is small is not.
            let lost = self.loses_one_in.is_some_and(|share| {
                worm.payload.len() > 1_000 && self.frames.is_multiple_of(share)
            });
            if !lost {
                let at_us = self.now_us + DELAY_US;
                self.under_way
                    .push_back((at_us, usize::from(port), arriving.clone()));
            }
        }
    }

    /// All hosts take what has come, read, write and send.
    fn turn(&mut self, groups: &[GroupId]) {
        self.now_us += TURN_US;
        let now = Instant::from_micros(self.now_us);
        while self
            .under_way
            .front()
            .is_some_and(|(at, ..)| *at <= self.now_us)
        {
            let (_, host, frame) = self.under_way.pop_front().expect("just seen");
            self.hosts[host]
                .time(|engine| engine.handle_frame(&frame, now))
                .unwrap_or_default();
        }
        let chunk = [7; 65_536];
        let mut buf = [0; 65_536];
        let mut frame = [0; 1_514];
        for id in 0..self.hosts.len() {
            let host = &mut self.hosts[id];
            host.time(|engine| {
                if engine.poll_timeout().is_some_and(|at| at <= now) {
                    engine.handle_timeout(now);
                }
                while engine.poll_event().is_some() {}
            });
            for group in groups {
                if id == 0 {
                    host.time(
                        |engine| {
                            while engine.write(*group, &chunk, false, now) == Ok(chunk.len()) {}
                        },
                    );
                } else {
                    host.time(|engine| {
                        while engine
                            .read(*group, HostId(0), &mut buf, now)
                            .is_ok_and(|read| read.length > 0)
                        {}
                    });
                }
            }
            let mut out = Vec::new();
            while let Some(sent) =
                self.hosts[id].time(|engine| engine.poll_transmit(now, &mut frame))
            {
                out.push(frame[..sent.length].to_vec());
            }
            for frame in out {
                self.carry(&frame);
            }
        }
    }

    /// DATA packets a host has sent for the first time, or received.
    fn packets(&self, host: usize) -> u64 {
        let statistics = self.hosts[host].engine.statistics();
        statistics
            .map(|(_, _, counts)| match host {
                0 => counts.data_sent_packets,
                _ => counts.data_received_packets - counts.duplicates_received,
            })
            .sum()
    }
}

/// Packets a second on one core: at the origin and at the first member.
fn measure(case: &Case) -> [f64; 2] {
    let mut net = Net::new(case);
    if case.resting > 0 {
        for id in 0..=case.resting {
            let group = GroupId(if id < 254 { id + 1 } else { id + 2 });
            let now = Instant::from_micros(net.now_us);
            let engine = &mut net.hosts[0].engine;
            engine.write(group, b"one", false, now).expect("a member");
            engine.flush(group, now).expect("a member");
        }
        let all: Vec<GroupId> = (0..=case.resting)
            .map(|id| GroupId(if id < 254 { id + 1 } else { id + 2 }))
            .collect();
        for _ in 0..3_000 {
            let now = Instant::from_micros(net.now_us);
            for host in 1..net.hosts.len() {
                let mut buf = [0; 100];
                for group in &all {
                    let _ = net.hosts[host]
                        .engine
                        .read(*group, HostId(0), &mut buf, now);
                }
            }
            net.turn(&[]);
        }
    }
    for _ in 0..WARM_TURNS {
        net.turn(&[GROUP]);
    }
    let before = [net.packets(0), net.packets(1)];
    for host in &mut net.hosts {
        host.spent = Duration::ZERO;
    }
    for _ in 0..TURNS {
        net.turn(&[GROUP]);
    }
    [0, 1]
        .map(|host| (net.packets(host) - before[host]) as f64 / net.hosts[host].spent.as_secs_f64())
}

#[test]
#[ignore = "a measurement, to be run by hand on a quiet machine"]
fn packets_a_second_on_one_core() {
    let case = |name, scheme, hosts| Case {
        name,
        scheme,
        hosts,
        resting: 0,
        loses_one_in: None,
    };
    let cases = [
        case("one member", SchemeName::Repeat, 2),
        Case {
            loses_one_in: Some(100),
            ..case("one member, 1 % lost", SchemeName::Repeat, 2)
        },
        case("chain of three", SchemeName::Circuit, 3),
        Case {
            loses_one_in: Some(100),
            ..case("chain of three, 1 % lost", SchemeName::Circuit, 3)
        },
        case("switch, seven members", SchemeName::Switch, 8),
        Case {
            loses_one_in: Some(100),
            ..case("switch, seven members, 1 % lost", SchemeName::Switch, 8)
        },
        Case {
            resting: 1_000,
            ..case("one member, 1,000 streams at rest", SchemeName::Repeat, 2)
        },
        Case {
            resting: 4_000,
            ..case("one member, 4,000 streams at rest", SchemeName::Repeat, 2)
        },
    ];
    println!(
        "{:<36} {:>10} {:>10}",
        "packets/s on one core", "origin", "member"
    );
    for case in &cases {
        let [origin, member] = measure(case);
        println!("{:<36} {origin:>10.0} {member:>10.0}", case.name);
    }
}
