//! A circuit that returns, 1 → 2 → 3 → 1: the origin has its own bytes back before a message is stable.

use std::collections::BTreeMap;
use std::sync::Arc;
use wormcast_protocol::{
    ChildRole, Choice, Engine, EngineConfig, Event, GroupPlan, Instant, Reject, Role, Structures,
};
use wormcast_wire::pdu::{self, Body, Common, Data, Repair};
use wormcast_wire::worm;
use wormcast_wire::{BufferClass, FailReason, GroupId, HostId, Replication, Seq};

const GROUP: GroupId = GroupId(3);
const ORIGIN: HostId = HostId(1);
const MIDDLE: HostId = HostId(2);
const LAST: HostId = HostId(3);
const ALL: [HostId; 3] = [ORIGIN, MIDDLE, LAST];

fn intact(data: Data<'_>) -> Option<Data<'_>> {
    Some(data)
}

struct Circuit {
    host: HostId,
    returns: bool,
    members: Vec<HostId>,
}

impl Structures for Circuit {
    fn role(&self, origin: HostId, _choice: u8) -> Option<Role> {
        let count = self.members.len();
        let place = |host| self.members.iter().position(|member| *member == host);
        let after = |steps: usize| self.members[steps % count];
        let (at, start) = (place(self.host)?, place(origin)?);
        // Hosts from the child on, to the origin or the one before it.
        let offset = (at + count - start) % count;
        let mut below: Vec<HostId> = (offset + 1..count + usize::from(self.returns))
            .map(|step| after(start + step))
            .collect();
        let child = (!below.is_empty()).then(|| below.remove(0));
        let children = child.map(|host| ChildRole {
            host,
            class: BufferClass::One,
            below,
        });
        let has_parent = self.returns || offset > 0;
        Some(Role {
            parent: has_parent.then(|| after(at + count - 1)),
            children: children.into_iter().collect(),
        })
    }
}

struct Net {
    returns: bool,
    engines: BTreeMap<HostId, Engine>,
    now: Instant,
    /// DATA that the last host sends to the origin: how it arrives, if it does.
    spoil: fn(Data<'_>) -> Option<Data<'_>>,
    stable: Vec<Vec<(HostId, FailReason)>>,
    aborted: Vec<(HostId, FailReason)>,
}

impl Net {
    fn new() -> Net {
        let engine = |host: HostId| {
            let mut config = EngineConfig::new(host, [2; 6], 600, 5, 100);
            config.first_seq = Some(Seq(1_000));
            let mut engine = Engine::new(config).expect("valid");
            let others = ALL.into_iter().filter(|other| *other != host);
            let routes = others.map(|other| (other, vec![other.0 as u8])).collect();
            engine.set_routes(routes, Instant::ZERO).expect("routes");
            (host, engine)
        };
        let mut net = Net {
            returns: true,
            engines: ALL.map(engine).into(),
            now: Instant::from_micros(1_000),
            spoil: intact,
            stable: Vec::new(),
            aborted: Vec::new(),
        };
        net.plan(1, &ALL);
        net
    }

    fn plan(&mut self, epoch: u32, members: &[HostId]) {
        for &host in members {
            let plan = GroupPlan {
                id: GROUP,
                epoch,
                choices: Choice::only(Replication::Hosts),
                members: members.to_vec(),
                mtu: None,
                structures: Arc::new(Circuit {
                    host,
                    returns: self.returns,
                    members: members.to_vec(),
                }),
                tells_begun: false,
            };
            let now = self.now;
            self.engine(host).set_group(plan, now).expect("a plan");
        }
    }

    fn engine(&mut self, host: HostId) -> &mut Engine {
        self.engines.get_mut(&host).expect("a host")
    }

    fn write(&mut self, bytes: &[u8]) {
        let now = self.now;
        let accepted = self.engine(ORIGIN).write(GROUP, bytes, true, now);
        assert_eq!(accepted, Ok(bytes.len()));
    }

    fn run_ms(&mut self, ms: u64) {
        (0..2 * ms).for_each(|_| self.step());
    }

    /// Half a millisecond for all; members read and confirm.
    fn step(&mut self) {
        self.now = self.now.plus_us(500);
        let now = self.now;
        let mut arriving = Vec::new();
        let mut buf = [0; 2_000];
        for (&host, engine) in &mut self.engines {
            engine.handle_timeout(now);
            while let Some(event) = engine.poll_event() {
                match event {
                    Event::Stable { failed, .. } => self.stable.push(failed),
                    Event::MemberAborted { host, reason, .. } => self.aborted.push((host, reason)),
                    _ => {}
                }
            }
            while let Ok(read) = engine.read(GROUP, ORIGIN, &mut buf, now) {
                if read.end_of_message {
                    engine.confirm(GROUP, ORIGIN, now).expect("read to the end");
                } else if read.length == 0 {
                    break;
                }
            }
            while let Some(sent) = engine.poll_transmit(now, &mut buf) {
                let worm = worm::decode(&buf[..sent.length]).expect("a worm");
                let pdu = pdu::decode(host, worm.payload).expect("a PDU");
                let to = HostId(worm.route[0].into());
                let body = match pdu.body {
                    Body::Data(data) if (host, to) == (LAST, ORIGIN) => {
                        (self.spoil)(data).map(Body::Data)
                    }
                    body => Some(body),
                };
                arriving.extend(body.map(|body| (to, frame(host, &pdu.common, &body))));
            }
        }
        for (to, frame) in arriving {
            if let Some(engine) = self.engines.get_mut(&to) {
                let _ = engine.handle_frame(&frame, now);
            }
        }
    }

    /// Of the origin's stream at a host.
    fn counted(&mut self, host: HostId, name: &str) -> u64 {
        let mut all = self.engine(host).statistics();
        let (_, _, own) = all.find(|(_, origin, _)| *origin == ORIGIN).expect("it");
        let mut entries = own.entries().into_iter();
        entries.find(|entry| entry.0 == name).expect("a counter").1
    }

    fn hear(&mut self, source: HostId, body: &Body<'_>) -> Result<(), Reject> {
        let common = Common {
            group: GROUP,
            origin: ORIGIN,
            stream: 100,
        };
        let now = self.now;
        let frame = frame(source, &common, body);
        self.engine(ORIGIN).handle_frame(&frame, now)
    }
}

fn frame(source: HostId, common: &Common, body: &Body<'_>) -> Vec<u8> {
    let header = worm::Header {
        kind: worm::Kind::Unicast,
        flags: 6,
        hops: 1,
        source,
        sequence: 0,
        next: 0x88B6,
    };
    let mut frame = vec![0; 14 + 12 + pdu::length_of(common, source, body)];
    let at = worm::encode(&mut frame, [3; 6], &header, &[]);
    pdu::encode(&mut frame[at..], source, common, body);
    frame
}

#[test]
fn a_message_is_stable_when_it_has_returned() {
    let mut net = Net::new();
    net.write(&[7; 10_000]);
    net.run_ms(200);
    assert_eq!(net.stable, [vec![]]);
    let returned = net.counted(ORIGIN, "data_received_bytes");
    assert_eq!(returned, 10_000);
    assert_eq!(
        net.counted(LAST, "acks_received"),
        net.counted(ORIGIN, "acks_sent")
    );
    // Nothing but the return is missing, for less than the time after which the last host gives it up.
    net.spoil = |_| None;
    net.write(&[8; 10_000]);
    net.run_ms(30_000);
    assert_eq!(net.counted(LAST, "delivered_bytes"), 20_000);
    assert_eq!(net.stable.len(), 1);
    net.spoil = intact;
    net.run_ms(5_000);
    assert_eq!(net.stable, [vec![], vec![]]);
    assert_eq!(net.counted(ORIGIN, "differences"), 0);
}

#[test]
fn what_comes_back_changed_fails_its_message_and_no_other() {
    fn eight(data: &Data<'_>) -> bool {
        data.payload[0] == 8
    }
    let spoils: [fn(Data<'_>) -> Option<Data<'_>>; 3] = [
        |mut data| {
            data.payload = if eight(&data) { b"7" } else { data.payload };
            Some(data)
        },
        |mut data| {
            data.first ^= eight(&data);
            Some(data)
        },
        |mut data| {
            data.payload = &data.payload[eight(&data).into()..];
            Some(data)
        },
    ];
    for spoil in spoils {
        let mut net = Net::new();
        net.spoil = spoil;
        for message in [&[7; 100][..], &[8; 2_000], &[9; 100]] {
            net.write(message);
        }
        net.run_ms(200);
        let failed = vec![(ORIGIN, FailReason::Differs)];
        assert_eq!(net.stable, [vec![], failed.clone(), vec![]]);
        assert_eq!(net.aborted, failed, "told once");
        let packets = 2_000_u64.div_ceil(600 - 60);
        assert_eq!(net.counted(ORIGIN, "differences"), packets);
    }
}

#[test]
fn what_does_not_come_back_is_given_up() {
    let mut net = Net::new();
    net.spoil = |_| None;
    net.write(b"one");
    // The last host does not hear of the origin for so long.
    net.run_ms(70_000);
    assert_eq!(net.stable, [vec![(ORIGIN, FailReason::Silent)]]);
    // Heard again, it is served again; the next message may still be told to have failed.
    net.spoil = intact;
    net.run_ms(1_000);
    for message in [b"two", b"3rd"] {
        net.write(message);
        net.run_ms(1_000);
    }
    assert_eq!(net.stable.last(), Some(&vec![]));
    net.spoil = |_| None;
    net.write(b"four");
    net.run_ms(10);
    // It has the packet no more, and says so.
    let ask = |net: &mut Net, source, to| {
        let repair = Repair {
            child: ORIGIN,
            class: BufferClass::One,
            from: Seq(1_003),
            to: Seq(to),
        };
        net.hear(source, &Body::Repair(repair))
    };
    let impossible = Err(Reject::RepairImpossible);
    assert_eq!(ask(&mut net, MIDDLE, 1_004), impossible);
    assert_eq!(ask(&mut net, LAST, 1_005), impossible);
    assert_eq!(ask(&mut net, LAST, 1_004), Ok(()));
    net.run_ms(1_000);
    let orphaned = vec![(ORIGIN, FailReason::Orphaned)];
    assert_eq!(net.stable.last(), Some(&orphaned));
    assert_eq!(net.stable.len(), 4);
    assert_eq!(net.counted(ORIGIN, "differences"), 0);
}

#[test]
fn only_the_last_host_returns_what_was_sent() {
    let mut net = Net::new();
    net.spoil = |_| None;
    net.write(b"one");
    net.run_ms(10);
    let data = |seq| {
        Body::Data(Data {
            seq: Seq(seq),
            stable_offset: 0,
            tx_time: 0,
            first: true,
            last: true,
            cancel: false,
            class: BufferClass::One,
            ack_now: true,
            choice: 0,
            payload: b"one",
        })
    };
    assert_eq!(net.hear(MIDDLE, &data(1_000)), Err(Reject::OwnStream));
    assert_eq!(net.hear(LAST, &data(1_001)), Err(Reject::BeyondWindow));
    assert_eq!(net.hear(LAST, &data(1_000)), Ok(()));
    assert_eq!(net.hear(LAST, &data(1_000)), Ok(()));
    assert_eq!(net.counted(ORIGIN, "duplicates_received"), 1);
    net.run_ms(100);
    assert_eq!(net.stable, [vec![]]);
}

#[test]
fn the_circuit_closes_around_a_host_that_is_gone() {
    let mut net = Net::new();
    net.write(&[1; 5_000]);
    net.run_ms(100);
    net.spoil = |data| (!data.first).then_some(data);
    net.write(&[2; 5_000]);
    net.run_ms(100);
    assert_eq!(net.stable.len(), 1);
    net.engines.remove(&LAST);
    net.plan(2, &[ORIGIN, MIDDLE]);
    net.write(&[3; 5_000]);
    net.run_ms(200);
    let gone = vec![(LAST, FailReason::Removed)];
    assert_eq!(net.stable, [vec![], gone, vec![]]);
    // What had come back by the host that is gone does not come again.
    assert_eq!(net.counted(ORIGIN, "data_received_bytes"), 15_000);
}

#[test]
fn a_plan_says_from_when_on_a_stream_returns() {
    let mut net = Net::new();
    net.returns = false;
    net.plan(2, &ALL);
    net.write(&[1; 5_000]);
    net.run_ms(100);
    assert_eq!(net.counted(ORIGIN, "data_received_bytes"), 0);
    net.returns = true;
    net.plan(3, &ALL);
    net.write(&[2; 5_000]);
    net.run_ms(100);
    assert_eq!(net.counted(ORIGIN, "data_received_bytes"), 5_000);
    net.returns = false;
    net.plan(4, &ALL);
    net.run_ms(1_000);
    let now = net.now;
    let next = net.engine(ORIGIN).poll_timeout();
    assert!(next.is_none_or(|next| next > now), "nothing is left to do");
    assert_eq!(net.stable, [vec![], vec![]]);
}
