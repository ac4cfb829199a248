//! An origin that serves two members, or a circuit through them that returns, with a channel between them.
#![allow(dead_code)] // each test uses some of it

use std::collections::BTreeMap;
use std::sync::Arc;
use wormcast_protocol::{
    Arrived, ChildRole, Choice, Edge, Engine, EngineConfig, Event, GroupPlan, Instant, Role,
    Structures,
};
use wormcast_wire::pdu::{self, Body, Data};
use wormcast_wire::{
    BufferClass, ETHERNET_LENGTH, FailReason, GroupId, HostId, Replication, Seq, worm,
};

pub const GROUP: GroupId = GroupId(3);
pub const ORIGIN: HostId = HostId(1);
pub const MEMBERS: [HostId; 2] = [HostId(2), HostId(3)];
pub const WIDE: usize = 9_000;
pub const NARROW: u16 = 1_500;

/// Members that missed the message.
pub type Failed = Vec<(HostId, FailReason)>;
/// What members have read.
pub type Read = BTreeMap<HostId, Vec<u8>>;

/// How DATA arrives that returns to the origin, if it does.
pub type Spoil = fn(Data<'_>) -> Option<Data<'_>>;

pub fn intact(data: Data<'_>) -> Option<Data<'_>> {
    Some(data)
}

/// The origin serves both members, or the first one, who serves the second, who serves the origin.
struct Star {
    host: HostId,
    returns: bool,
}

impl Structures for Star {
    fn role(&self, origin: HostId, _choice: u8) -> Option<Role> {
        if self.returns {
            let line = [ORIGIN, MEMBERS[0], MEMBERS[1], ORIGIN];
            let at = line.iter().position(|host| *host == self.host)?;
            let child = ChildRole {
                host: line[at + 1],
                class: BufferClass::One,
                below: line[at + 2..].to_vec(),
            };
            return Some(Role {
                parent: Some(line[(at + 2) % 3]),
                children: vec![child],
            });
        }
        let edge = |to| Edge {
            from: origin,
            to,
            class: BufferClass::One,
        };
        Role::from_edges(self.host, origin, &MEMBERS.map(edge))
    }
}

fn plan(host: HostId, choices: &[Choice], mtu: Option<u16>, returns: bool) -> GroupPlan {
    GroupPlan {
        id: GROUP,
        epoch: 1 + u32::from(returns),
        choices: choices.to_vec(),
        members: vec![ORIGIN, MEMBERS[0], MEMBERS[1]],
        mtu,
        structures: Arc::new(Star { host, returns }),
        reports_begin: false,
        gathered: None,
    }
}

/// Three engines; the link of the second member carries `narrow` bytes after the Ethernet header.
pub struct Fabric {
    engines: BTreeMap<HostId, Engine>,
    choices: Vec<Choice>,
    pub now: Instant,
    /// Frames to and from it are lost.
    pub dead: Option<HostId>,
    pub mtu_limited: usize,
    /// Bytes of the longest frame that left the origin, after the Ethernet header.
    pub longest: usize,
    pub lost: usize,
    /// From the second member.
    pub spoil: Spoil,
}

impl Fabric {
    pub fn new(replication: Replication, mtu: Option<u16>) -> Fabric {
        Fabric::with_choices(Choice::only(replication), mtu)
    }

    pub fn with_choices(choices: Vec<Choice>, mtu: Option<u16>) -> Fabric {
        let all = [ORIGIN, MEMBERS[0], MEMBERS[1]];
        let engine = |host: HostId| {
            let config = EngineConfig::new(host, [2, 0, 0, 0, 0, host.0 as u8], WIDE, 5, 100);
            let mut engine = Engine::new(config).expect("a valid configuration");
            let others = all.into_iter().filter(|other| *other != host);
            let routes: BTreeMap<HostId, Vec<u8>> =
                others.map(|other| (other, vec![other.0 as u8])).collect();
            engine
                .set_routes(routes.clone(), Instant::ZERO)
                .expect("routes");
            engine
                .set_tree_routes(routes, Instant::ZERO)
                .expect("routes");
            let plan = plan(host, &choices, mtu, false);
            engine.set_group(plan, Instant::ZERO).expect("a plan");
            (host, engine)
        };
        Fabric {
            engines: all.into_iter().map(engine).collect(),
            choices,
            dead: None,
            now: Instant::from_micros(1_000),
            mtu_limited: WIDE,
            longest: 0,
            lost: 0,
            spoil: intact,
        }
    }

    pub fn origin(&mut self) -> &mut Engine {
        self.engines.get_mut(&ORIGIN).expect("it is there")
    }

    /// How far the origin's stream has come at a member.
    pub fn arrived(&self, member: HostId) -> Option<Arrived> {
        self.engines[&member].arrived_from(GROUP, ORIGIN)
    }

    /// A member forgets the group and joins it again.
    pub fn join_anew(&mut self, member: HostId) {
        let (now, plan) = (self.now, plan(member, &self.choices, None, false));
        let engine = self.engines.get_mut(&member).expect("it is there");
        engine.remove_group(GROUP, now);
        engine.set_group(plan, now).expect("a plan");
    }

    /// A member asks the origin for a message of its stream.
    pub fn ask(&mut self, member: HostId, stream: u32, start: Seq) {
        let engine = self.engines.get_mut(&member).expect("it is there");
        engine.ask_for_order(GROUP, ORIGIN, (ORIGIN, stream, start));
    }

    pub fn plan_mtu(&mut self, mtu: Option<u16>) {
        let now = self.now;
        for (&host, engine) in &mut self.engines {
            let plan = plan(host, &self.choices, mtu, false);
            engine.set_group(plan, now).expect("a plan");
        }
    }

    pub fn plan_return(&mut self, returns: bool) {
        let now = self.now;
        for (&host, engine) in &mut self.engines {
            let plan = plan(host, &self.choices, None, returns);
            engine.set_group(plan, now).expect("a plan");
        }
    }

    pub fn write(&mut self, bytes: &[u8], end: bool) {
        let now = self.now;
        let taken = self.origin().write(GROUP, bytes, end, now);
        assert_eq!(taken, Ok(bytes.len()));
    }

    /// Sends what there is. Port numbers are those of the hosts; other bytes of TREE routes are no host's.
    pub fn step(&mut self) {
        let mut frames = Vec::new();
        for (&host, engine) in &mut self.engines {
            let mut buf = vec![0; engine.frame_length_max()];
            while let Some(sent) = engine.poll_transmit(self.now, &mut buf) {
                let found = worm::decode(&buf[..sent.length]).expect("a worm");
                if host == ORIGIN {
                    self.longest = self.longest.max(sent.length - ETHERNET_LENGTH);
                }
                let ports = found.route.iter().map(|&port| HostId(port.into()));
                for to in ports {
                    if [Some(to), Some(host)].contains(&self.dead) {
                        continue;
                    }
                    let fits = sent.length - ETHERNET_LENGTH <= self.mtu_limited;
                    if (to == MEMBERS[1] || host == MEMBERS[1]) && !fits {
                        self.lost += 1;
                        continue;
                    }
                    let mut frame = vec![0; ETHERNET_LENGTH + worm::HEADER_LENGTH];
                    frame[..ETHERNET_LENGTH].copy_from_slice(&buf[..ETHERNET_LENGTH]);
                    worm::encode_worm(&mut frame[ETHERNET_LENGTH..], &found.header, &[]);
                    let pdu = pdu::decode(host, found.payload).expect("a PDU");
                    let body = match pdu.body {
                        Body::Data(data) if (host, to) == (MEMBERS[1], ORIGIN) => {
                            (self.spoil)(data).map(Body::Data)
                        }
                        body => Some(body),
                    };
                    let Some(body) = body else { continue };
                    let at = frame.len();
                    frame.resize(at + pdu::length_of(&pdu.common, host, &body), 0);
                    pdu::encode(&mut frame[at..], host, &pdu.common, &body);
                    frames.push((to, frame));
                }
            }
        }
        for (to, frame) in frames {
            if let Some(engine) = self.engines.get_mut(&to) {
                let _ = engine.handle_frame(&frame, self.now);
            }
        }
        self.now = self.now.plus_us(1_000);
        let now = self.now;
        self.engines
            .values_mut()
            .for_each(|engine| engine.handle_timeout(now));
    }

    /// What a member has read to the end of the message, if it has.
    pub fn read(&mut self, member: HostId) -> Option<Vec<u8>> {
        let now = self.now;
        let engine = self.engines.get_mut(&member).expect("it is there");
        let mut message = Vec::new();
        let mut buf = vec![0; 1 << 16];
        while let Ok(read) = engine.read(GROUP, ORIGIN, &mut buf, now) {
            message.extend_from_slice(&buf[..read.length]);
            if read.end_of_message {
                engine
                    .confirm(GROUP, ORIGIN, now)
                    .expect("its end was read");
                return Some(message);
            }
            if read.length == 0 {
                break;
            }
        }
        (!message.is_empty()).then_some(message)
    }

    /// Runs until the message is stable, a millisecond a step: those that missed it, and what was read.
    pub fn run(&mut self, steps: usize) -> (Failed, Read) {
        let mut read = Read::new();
        for _ in 0..steps {
            self.step();
            for member in MEMBERS {
                if let Some(more) = self.read(member) {
                    read.entry(member).or_default().extend(more);
                }
            }
            while let Some(event) = self.origin().poll_event() {
                if let Event::Stable { failed, .. } = event {
                    return (failed, read);
                }
            }
        }
        panic!("not stable after {steps} steps; {} frames lost", self.lost);
    }

    /// What was written arrives, and is acknowledged.
    pub fn run_quietly(&mut self) {
        (0..200).for_each(|_| self.step());
    }
}
