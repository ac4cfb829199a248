//! Frames of a group are as long as its plan says, also when that changes while a message is under way.

use std::collections::BTreeMap;
use std::sync::Arc;
use wormcast_protocol::{
    Choice, Edge, Engine, EngineConfig, Event, GroupPlan, Instant, Role, Structures,
};
use wormcast_wire::{BufferClass, ETHERNET_LENGTH, FailReason, GroupId, HostId, Replication, worm};

const GROUP: GroupId = GroupId(3);
const ORIGIN: HostId = HostId(1);
const MEMBERS: [HostId; 2] = [HostId(2), HostId(3)];
const WIDE: usize = 9_000;
const NARROW: u16 = 1_500;

/// Members that missed the message.
type Failed = Vec<(HostId, FailReason)>;
/// What members have read.
type Read = BTreeMap<HostId, Vec<u8>>;

/// The origin serves both members.
struct Star(HostId);

impl Structures for Star {
    fn role(&self, origin: HostId, _choice: u8) -> Option<Role> {
        let edge = |to| Edge {
            from: origin,
            to,
            class: BufferClass::One,
        };
        Role::from_edges(self.0, origin, &MEMBERS.map(edge))
    }
}

fn plan(host: HostId, replication: Replication, mtu: Option<u16>) -> GroupPlan {
    GroupPlan {
        id: GROUP,
        epoch: 1,
        choices: Choice::only(replication),
        members: vec![ORIGIN, MEMBERS[0], MEMBERS[1]],
        mtu,
        structures: Arc::new(Star(host)),
    }
}

/// Three engines; the link of the second member carries `narrow` bytes after the Ethernet header.
struct Fabric {
    engines: BTreeMap<HostId, Engine>,
    replication: Replication,
    now: Instant,
    narrow: usize,
    /// Bytes of the longest frame that left the origin, after the Ethernet header.
    longest: usize,
    lost: usize,
}

impl Fabric {
    fn new(replication: Replication, mtu: Option<u16>) -> Fabric {
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
            let plan = plan(host, replication, mtu);
            engine.set_group(plan, Instant::ZERO).expect("a plan");
            (host, engine)
        };
        Fabric {
            engines: all.into_iter().map(engine).collect(),
            replication,
            now: Instant::from_micros(1_000),
            narrow: WIDE,
            longest: 0,
            lost: 0,
        }
    }

    fn origin(&mut self) -> &mut Engine {
        self.engines.get_mut(&ORIGIN).expect("it is there")
    }

    fn plan_mtu(&mut self, mtu: Option<u16>) {
        let (replication, now) = (self.replication, self.now);
        for (&host, engine) in &mut self.engines {
            let plan = plan(host, replication, mtu);
            engine.set_group(plan, now).expect("a plan");
        }
    }

    fn write(&mut self, bytes: &[u8], end: bool) {
        let now = self.now;
        let taken = self.origin().write(GROUP, bytes, end, now);
        assert_eq!(taken, Ok(bytes.len()));
    }

    /// Sends what there is. Port numbers are those of the hosts; other bytes of TREE routes are no host's.
    fn step(&mut self) {
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
                    let fits = sent.length - ETHERNET_LENGTH <= self.narrow;
                    if (to == MEMBERS[1] || host == MEMBERS[1]) && !fits {
                        self.lost += 1;
                        continue;
                    }
                    let mut frame = vec![0; ETHERNET_LENGTH + worm::HEADER_LENGTH];
                    frame[..ETHERNET_LENGTH].copy_from_slice(&buf[..ETHERNET_LENGTH]);
                    worm::encode_worm(&mut frame[ETHERNET_LENGTH..], &found.header, &[]);
                    frame.extend_from_slice(found.payload);
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
    fn read(&mut self, member: HostId) -> Option<Vec<u8>> {
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
    fn run(&mut self, steps: usize) -> (Failed, Read) {
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
}

const BOTH: [Replication; 2] = [Replication::Hosts, Replication::Switches];

#[test]
fn packets_are_cut_to_what_the_plan_says() {
    for replication in BOTH {
        for (mtu, most) in [
            (None, WIDE),
            (Some(NARROW), NARROW.into()),
            (Some(9_216), WIDE),
            (Some(1), 576),
        ] {
            let mut fabric = Fabric::new(replication, mtu);
            fabric.narrow = most;
            let message = vec![7; 40_000];
            fabric.write(&message, true);
            let (failed, read) = fabric.run(5_000);
            assert_eq!(failed, []);
            assert!(
                read.values().eq([&message, &message]),
                "every member has it whole"
            );
            assert!(fabric.longest <= most, "{} of {most}", fabric.longest);
            assert!(
                fabric.longest > most * 9 / 10,
                "{} of {most}",
                fabric.longest
            );
            assert_eq!(fabric.lost, 0);
        }
    }
}

#[test]
fn what_is_cut_later_keeps_to_the_new_plan() {
    for replication in BOTH {
        let mut fabric = Fabric::new(replication, None);
        fabric.write(&vec![7; 40_000], false);
        fabric.run_quietly();
        assert!(fabric.longest > 8_000);
        fabric.plan_mtu(Some(NARROW));
        (fabric.narrow, fabric.longest) = (NARROW.into(), 0);
        fabric.write(&vec![7; 40_000], true);
        let (failed, read) = fabric.run(5_000);
        assert_eq!(failed, []);
        assert_eq!(read.len(), 2);
        // The draft that the larger MTU left is cut anew.
        assert!(fabric.longest <= NARROW.into(), "{}", fabric.longest);
        assert_eq!(fabric.lost, 0);
    }
}

impl Fabric {
    /// What was written arrives, and is acknowledged.
    fn run_quietly(&mut self) {
        (0..200).for_each(|_| self.step());
    }
}

/// The member behind the link that became narrow is given up; the others have the message.
#[test]
fn packets_cut_before_hold_nobody_up_for_ever() {
    for replication in BOTH {
        let mut fabric = Fabric::new(replication, None);
        fabric.write(&[7; 100], false);
        let now = fabric.now;
        fabric.origin().flush(GROUP, now).expect("a member");
        fabric.run_quietly();
        fabric.narrow = NARROW.into();
        let message = vec![7; 40_000];
        fabric.write(&message, true);
        fabric.step();
        fabric.plan_mtu(Some(NARROW));
        let (failed, _) = fabric.run(120_000);
        assert!(fabric.lost > 0);
        assert_eq!(failed, [(MEMBERS[1], FailReason::NoRoute)]);
        // The next message is for all again, once there is a plan after it.
        fabric.plan_mtu(Some(NARROW - 1));
        fabric.write(&message, true);
        let (failed, _) = fabric.run(120_000);
        assert_eq!(failed, []);
    }
}

/// Where the link carries them again in time, nothing is missed.
#[test]
fn packets_cut_before_arrive_when_the_link_is_wide_again() {
    let mut fabric = Fabric::new(Replication::Hosts, None);
    fabric.write(&[7; 100], false);
    let now = fabric.now;
    fabric.origin().flush(GROUP, now).expect("a member");
    fabric.run_quietly();
    fabric.narrow = NARROW.into();
    fabric.write(&vec![7; 40_000], true);
    fabric.plan_mtu(Some(NARROW));
    (0..20_000).for_each(|_| fabric.step());
    fabric.narrow = WIDE;
    fabric.plan_mtu(None);
    let (failed, _) = fabric.run(20_000);
    assert_eq!(failed, []);
}
