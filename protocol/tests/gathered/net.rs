//! Hosts at one switch that copies and gathers: an origin, and members below each other in the tree of ACKs.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use wormcast_protocol::{
    Choice, Edge, Engine, EngineConfig, Event, Gathered, GroupPlan, Instant, Role, Structures,
};
use wormcast_wire::gather::{self, Announcement, Op, flags};
use wormcast_wire::pdu::{self, Body};
use wormcast_wire::worm::{self, Header, Kind};
use wormcast_wire::{
    BufferClass, ETHERNET_LENGTH, FailReason, GroupId, HostId, Replication, Seq, tree_route,
};

pub const GROUP: GroupId = GroupId(3);
pub const ORIGIN: HostId = HostId(1);
/// By which the switch calls itself.
pub const SWITCH: HostId = HostId(900);
/// Time a frame is under way, µs.
const WAY_US: u64 = 200;
const STEP_US: u64 = 100;
pub const MTU: usize = 1_500;

/// The origin takes the ACKs of the first member, and of those that the first does not: all others, or with
/// `deep` none.
struct Tree {
    host: HostId,
    members: Vec<HostId>,
    deep: bool,
}

impl Structures for Tree {
    fn role(&self, origin: HostId, _choice: u8) -> Option<Role> {
        let others = self.members.iter().filter(|host| **host != origin);
        let first = *others.clone().next()?;
        let edge = |to: &HostId| Edge {
            from: if self.deep && *to != first {
                first
            } else {
                origin
            },
            to: *to,
            class: BufferClass::One,
        };
        let edges: Vec<Edge> = others.map(edge).collect();
        Role::from_edges(self.host, origin, &edges)
    }
}

/// What a switch remembers of one origin.
#[derive(Default)]
pub struct Slot {
    life: (u32, u32),
    words: BTreeMap<HostId, (u32, u32)>,
    passed_on: Option<(u32, u32)>,
}

pub struct Net {
    pub engines: BTreeMap<HostId, Engine>,
    members: Vec<HostId>,
    deep: bool,
    pub plan_epoch: u32,
    pub gather_epoch: Option<u32>,
    pub now_us: u64,
    under_way: BTreeMap<(u64, u64), (HostId, Vec<u8>)>,
    frames: u64,
    /// Time that an ACK of a host to another is under way, µs.
    pub ack_way_us: u64,
    slots: BTreeMap<HostId, Slot>,
    /// The switch has entries.
    pub gathers: bool,
    /// What it says is lost on its way to the origin.
    pub loses_gathered: bool,
    /// ACKs of these hosts to other hosts are lost.
    pub loses_acks: BTreeSet<HostId>,
    /// DATA to these hosts is lost.
    pub loses_data: BTreeSet<HostId>,
    /// Frames to and from these hosts are lost.
    pub dead: BTreeSet<HostId>,
    /// Whether a member reads and confirms what comes.
    pub asleep: BTreeSet<HostId>,
    incarnation: u32,
    /// ACKs of hosts that came to the origin.
    pub acks_to_origin: u64,
    /// Gathered ACKs that came to the origin.
    pub gathered: u64,
    /// Of a member, what it has read: whole messages.
    pub read: BTreeMap<HostId, Vec<Vec<u8>>>,
    reading: BTreeMap<HostId, Vec<u8>>,
    /// By message: members that lack it.
    pub outcomes: BTreeMap<u64, Vec<(HostId, FailReason)>>,
    pub events: Vec<Event>,
    wakes: u64,
}

impl Net {
    pub fn new(members: u16, deep: bool) -> Net {
        let members: Vec<HostId> = (1..=members).map(HostId).collect();
        let mut net = Net {
            engines: BTreeMap::new(),
            members: members.clone(),
            deep,
            plan_epoch: 1,
            gather_epoch: Some(9),
            now_us: 1_000,
            under_way: BTreeMap::new(),
            frames: 0,
            ack_way_us: WAY_US,
            slots: BTreeMap::new(),
            gathers: true,
            loses_gathered: false,
            loses_acks: BTreeSet::new(),
            loses_data: BTreeSet::new(),
            dead: BTreeSet::new(),
            asleep: BTreeSet::new(),
            incarnation: 100,
            acks_to_origin: 0,
            gathered: 0,
            read: BTreeMap::new(),
            reading: BTreeMap::new(),
            outcomes: BTreeMap::new(),
            events: Vec::new(),
            wakes: 0,
        };
        members.iter().for_each(|host| net.start(*host));
        net
    }

    pub fn now(&self) -> Instant {
        Instant::from_micros(self.now_us)
    }

    /// A host starts, or starts anew.
    pub fn start(&mut self, host: HostId) {
        self.incarnation += 10;
        let mac = [2, 0, 0, 0, 0, host.0 as u8];
        let config = EngineConfig::new(host, mac, MTU, 5, self.incarnation);
        let mut engine = Engine::new(config).expect("a valid configuration");
        let others = self.members.iter().filter(|other| **other != host);
        let routes = others.map(|other| (*other, vec![other.0 as u8]));
        let routes: BTreeMap<HostId, Vec<u8>> = routes.collect();
        engine
            .set_routes(routes.clone(), self.now())
            .expect("routes");
        engine.set_tree_routes(routes, self.now()).expect("routes");
        self.engines.insert(host, engine);
        self.reading.remove(&host);
        self.plan_at(host);
    }

    /// A host gets the plan.
    pub fn plan_at(&mut self, host: HostId) {
        let gathered = self.gather_epoch.map(|epoch| Gathered {
            epoch,
            origins: BTreeMap::from([(ORIGIN, SWITCH)]),
        });
        let plan = GroupPlan {
            id: GROUP,
            epoch: self.plan_epoch,
            choices: Choice::only(Replication::Switches),
            members: self.members.clone(),
            mtu: None,
            structures: Arc::new(Tree {
                host,
                members: self.members.clone(),
                deep: self.deep,
            }),
            reports_begin: false,
            gathered,
        };
        let now = self.now();
        let engine = self.engines.get_mut(&host).expect("a host");
        engine.set_group(plan, now).expect("a plan");
    }

    pub fn plan_all(&mut self) {
        let hosts: Vec<HostId> = self.members.clone();
        hosts.into_iter().for_each(|host| self.plan_at(host));
    }

    /// Registers of the switch are 0.
    pub fn restart_switch(&mut self) {
        self.slots.clear();
    }

    pub fn origin(&mut self) -> &mut Engine {
        self.engines.get_mut(&ORIGIN).expect("a host")
    }

    pub fn write(&mut self, bytes: usize) {
        let now = self.now();
        let taken = self.origin().write(GROUP, &vec![7; bytes], true, now);
        assert_eq!(taken, Ok(bytes));
    }

    pub fn run_ms(&mut self, ms: u64) {
        let end = self.now_us + ms * 1_000;
        while self.now_us < end {
            self.step();
        }
    }

    /// Runs until a message has an outcome; how long that took, µs.
    pub fn settle(&mut self, message: u64, ms: u64) -> u64 {
        let start = self.now_us;
        while !self.outcomes.contains_key(&message) {
            self.step();
            let took_us = self.now_us - start;
            assert!(took_us < ms * 1_000, "message {message} after {ms} ms");
        }
        self.now_us - start
    }

    /// A stream's counters at a host.
    pub fn counted(&self, host: HostId, name: &str) -> u64 {
        let mut streams = self.engines[&host].statistics();
        let (_, _, counts) = streams.next().expect("a stream");
        let mut counts = counts.entries().into_iter();
        counts.find(|(own, _)| *own == name).expect("a counter").1
    }

    pub fn arrived(&self, host: HostId) -> (Seq, Seq) {
        let arrived = self.engines[&host].arrived_from(GROUP, ORIGIN);
        let arrived = arrived.expect("a stream");
        (arrived.next, arrived.stable)
    }

    fn step(&mut self) {
        self.now_us += STEP_US;
        while let Some((&(at_us, number), _)) = self.under_way.first_key_value() {
            if at_us > self.now_us {
                break;
            }
            let (to, frame) = self.under_way.remove(&(at_us, number)).expect("a frame");
            let now = self.now();
            let engine = self.engines.get_mut(&to).expect("a host");
            // What is refused is counted.
            let _ = engine.handle_frame(&frame, now);
            self.turn(to);
        }
        let hosts: Vec<HostId> = self.engines.keys().copied().collect();
        for host in hosts {
            self.turn(host);
        }
    }

    fn turn(&mut self, host: HostId) {
        let now = self.now();
        let engine = self.engines.get_mut(&host).expect("a host");
        if engine.poll_timeout().is_some_and(|at| at <= now) {
            engine.handle_timeout(now);
        }
        self.act(host);
        let mut buf = vec![0; MTU + 64];
        let mut sent = 0;
        loop {
            let engine = self.engines.get_mut(&host).expect("a host");
            let Some(frame) = engine.poll_transmit(now, &mut buf) else {
                break;
            };
            sent += 1;
            assert!(sent < 1_000, "host {host} sends without end");
            let frame = buf[..frame.length].to_vec();
            self.carry(host, &frame);
        }
        let engine = &self.engines[&host];
        if engine.poll_timeout().is_some_and(|at| at <= now) {
            // Whatever is due was done.
            self.wakes += 1;
            assert!(self.wakes < 10, "host {host} wakes for nothing");
        } else {
            self.wakes = 0;
        }
    }

    fn act(&mut self, host: HostId) {
        let now = self.now();
        let engine = self.engines.get_mut(&host).expect("a host");
        while let Some(event) = engine.poll_event() {
            if let Event::Stable {
                message, failed, ..
            } = &event
            {
                self.outcomes.insert(*message, failed.clone());
            }
            if matches!(event, Event::MessageLost { .. }) {
                self.reading.remove(&host);
            }
            self.events.push(event);
        }
        if host == ORIGIN || self.asleep.contains(&host) {
            return;
        }
        let mut buf = [0; 4_096];
        while let Ok(read) = engine.read(GROUP, ORIGIN, &mut buf, now) {
            let reading = self.reading.entry(host).or_default();
            reading.extend(&buf[..read.length]);
            if read.end_of_message {
                engine.confirm(GROUP, ORIGIN, now).expect("an end");
                let whole = core::mem::take(reading);
                self.read.entry(host).or_default().push(whole);
            } else if read.length == 0 {
                break;
            }
        }
    }

    fn carry(&mut self, from: HostId, frame: &[u8]) {
        if self.dead.contains(&from) {
            return;
        }
        let found = worm::decode(frame).expect("a worm");
        if found.header.kind == Kind::Gather {
            assert!(found.route.is_empty() && frame.len() == 60);
            let announced = gather::decode(&found).expect("an ACK");
            return self.gather(from, announced);
        }
        let pdu = pdu::decode(from, found.payload).expect("a PDU");
        let ports: Vec<u8> = match found.header.kind {
            Kind::Tree => tree_route::branches(found.route)
                .expect("a route")
                .map(|branch| branch.port.get())
                .collect(),
            _ => found.route.to_vec(),
        };
        let header: Header = found.header;
        for port in ports {
            let to = HostId(port.into());
            let is_ack = matches!(pdu.body, Body::Ack(_));
            let is_data = matches!(pdu.body, Body::Data(_));
            if self.dead.contains(&to)
                || is_ack && self.loses_acks.contains(&from)
                || is_data && self.loses_data.contains(&to)
            {
                continue;
            }
            self.acks_to_origin += u64::from(is_ack && to == ORIGIN);
            let mut copy = vec![0; ETHERNET_LENGTH + worm::HEADER_LENGTH];
            copy[..ETHERNET_LENGTH].copy_from_slice(&frame[..ETHERNET_LENGTH]);
            worm::encode_worm(&mut copy[ETHERNET_LENGTH..], &header, &[]);
            copy.extend(found.payload);
            let way_us = if is_ack { self.ack_way_us } else { WAY_US };
            self.send(way_us, to, copy);
        }
    }

    /// As a switch does with one branch for each member.
    fn gather(&mut self, from: HostId, announced: Announcement) {
        if !self.gathers || self.gather_epoch != Some(announced.epoch) {
            return;
        }
        let slot = self.slots.entry(announced.origin).or_default();
        if slot.life != (announced.epoch, announced.stream) {
            *slot = Slot {
                life: (announced.epoch, announced.stream),
                ..Slot::default()
            };
        }
        let word = (announced.cumulative.0, announced.stable.0);
        let known = slot.words.entry(from).or_insert(word);
        let later = |a: u32, b: u32| if Seq(b).is_after(Seq(a)) { b } else { a };
        *known = (later(known.0, word.0), later(known.1, word.1));
        let others = self
            .members
            .iter()
            .filter(|host| **host != announced.origin);
        if !others.clone().all(|host| slot.words.contains_key(host)) {
            return;
        }
        let words: Vec<(u32, u32)> = others.map(|host| slot.words[host]).collect();
        let sooner = |a: u32, b: u32| if Seq(b).is_after(Seq(a)) { a } else { b };
        let least = words
            .into_iter()
            .reduce(|a, b| (sooner(a.0, b.0), sooner(a.1, b.1)))
            .expect("a member");
        if slot.passed_on == Some(least) && announced.flags & flags::REFRESH == 0 {
            return;
        }
        slot.passed_on = Some(least);
        let up = Announcement {
            op: Op::Ack,
            cumulative: Seq(least.0),
            stable: Seq(least.1),
            ..announced
        };
        if !self.loses_gathered {
            self.hear(&up, SWITCH);
        }
    }

    /// The origin gets a gathered ACK.
    pub fn hear(&mut self, announced: &Announcement, source: HostId) {
        let mut frame = vec![0; gather::FRAME_LENGTH_MAX];
        let length = gather::encode(&mut frame, [2, 0, 0, 0, 9, 0], (source, 0), &[], announced);
        frame.truncate(length);
        self.gathered += 1;
        self.send(WAY_US, ORIGIN, frame);
    }

    fn send(&mut self, way_us: u64, to: HostId, frame: Vec<u8>) {
        self.frames += 1;
        let at = (self.now_us + way_us, self.frames);
        self.under_way.insert(at, (to, frame));
    }

    /// The ACKs that have come to the origin since the last call: by hosts, gathered.
    pub fn take_acks(&mut self) -> (u64, u64) {
        let taken = (self.acks_to_origin, self.gathered);
        (self.acks_to_origin, self.gathered) = (0, 0);
        taken
    }
}
