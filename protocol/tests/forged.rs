//! PDUs made by hand: those that no honest peer sends are dropped and counted, and no message is lost by them.

use std::collections::BTreeMap;
use std::sync::Arc;
use wormcast_protocol::{
    Choice, Edge, Engine, EngineConfig, Event, GroupPlan, Instant, Reject, Role, Structures,
};
use wormcast_wire::ack::{Ack, FailedMember, List, SeqRange};
use wormcast_wire::pdu::{self, Body, Common, Data, Nack, Repair, Status};
use wormcast_wire::worm::{self, Header, Kind};
use wormcast_wire::{BufferClass, FailReason, GroupId, HostId, Replication, Seq};

const GROUP: GroupId = GroupId(3);
const ORIGIN: HostId = HostId(1);
const PARENT: HostId = HostId(2);
const MEMBER: HostId = HostId(3);
/// In the group, but neither the origin nor a parent of the member.
const OTHER: HostId = HostId(4);
/// Identities of the hosts' first lives.
const STREAM: u32 = 100;

/// 1 → 2 → 3 → 4.
struct Chain(HostId);

impl Structures for Chain {
    fn role(&self, origin: HostId, _choice: u8) -> Option<Role> {
        let edges: Vec<Edge> = (0..3)
            .map(|step| Edge {
                from: HostId((origin.0 - 1 + step) % 4 + 1),
                to: HostId((origin.0 + step) % 4 + 1),
                class: BufferClass::One,
            })
            .collect();
        Role::from_edges(self.0, origin, &edges)
    }
}

struct Net {
    engines: BTreeMap<HostId, Engine>,
    now: Instant,
    got: Vec<Vec<u8>>,
    reading: Vec<u8>,
    lost: usize,
}

fn engine(host: HostId) -> Engine {
    let mut config = EngineConfig::new(host, [2; 6], 600, 5, STREAM);
    config.first_seq = Some(Seq(1_000));
    let mut engine = Engine::new(config).expect("valid");
    let routes = [ORIGIN, PARENT, MEMBER, OTHER]
        .into_iter()
        .filter(|other| *other != host)
        .map(|other| (other, vec![other.0 as u8]))
        .collect();
    engine.set_routes(routes, Instant::ZERO).expect("routes");
    let plan = GroupPlan {
        id: GROUP,
        epoch: 1,
        choices: Choice::only(Replication::Hosts),
        members: vec![ORIGIN, PARENT, MEMBER, OTHER],
        mtu: None,
        structures: Arc::new(Chain(host)),
        reports_begin: false,
        gathered: None,
    };
    engine.set_group(plan, Instant::ZERO).expect("a plan");
    engine
}

impl Net {
    fn new() -> Net {
        let hosts = [ORIGIN, PARENT, MEMBER, OTHER];
        Net {
            engines: hosts.map(|host| (host, engine(host))).into(),
            now: Instant::from_micros(1_000),
            got: Vec::new(),
            reading: Vec::new(),
            lost: 0,
        }
    }

    fn engine(&mut self, host: HostId) -> &mut Engine {
        self.engines.get_mut(&host).expect("a host")
    }

    fn forge(&mut self, to: HostId, source: HostId, common: Common, body: &Body<'_>) -> Reject {
        let now = self.now;
        let engine = self.engine(to);
        let result = engine.handle_frame(&frame(source, &common, body), now);
        let reject = result.expect_err("dropped");
        assert!(engine.counters().rejected(reject) > 0);
        reject
    }

    fn write(&mut self, bytes: &[u8], end: bool) {
        let now = self.now;
        let accepted = self.engine(ORIGIN).write(GROUP, bytes, end, now);
        assert_eq!(accepted, Ok(bytes.len()));
    }

    /// Half a millisecond for all; every member but `MEMBER` reads silently.
    fn step(&mut self) {
        self.now = self.now.plus_us(500);
        let now = self.now;
        let mut arriving = Vec::new();
        let mut buf = [0; 2_000];
        for (host, engine) in &mut self.engines {
            engine.handle_timeout(now);
            while let Some(event) = engine.poll_event() {
                if *host == MEMBER && matches!(event, Event::MessageLost { .. }) {
                    self.lost += 1;
                    self.reading.clear();
                }
            }
            while let Ok(read) = engine.read(GROUP, ORIGIN, &mut buf, now) {
                if *host == MEMBER {
                    self.reading.extend_from_slice(&buf[..read.length]);
                }
                if read.end_of_message {
                    engine.confirm(GROUP, ORIGIN, now).expect("read to the end");
                    if *host == MEMBER {
                        self.got.push(std::mem::take(&mut self.reading));
                    }
                } else if read.length == 0 {
                    break;
                }
            }
            while let Some(sent) = engine.poll_transmit(now, &mut buf) {
                let worm = worm::decode(&buf[..sent.length]).expect("a worm");
                let mut frame = vec![0; 14 + 12];
                frame[..14].copy_from_slice(&buf[..14]);
                worm::encode_worm(&mut frame[14..], &worm.header, &[]);
                frame.extend_from_slice(worm.payload);
                arriving.push((HostId(worm.route[0].into()), frame));
            }
        }
        for (to, frame) in arriving {
            let _ = self.engine(to).handle_frame(&frame, now);
        }
    }

    fn run_ms(&mut self, ms: u64) {
        (0..2 * ms).for_each(|_| self.step());
    }

    fn messages_stable(&mut self) -> u64 {
        let progress = self.engine(ORIGIN).progress(GROUP);
        progress.expect("it writes").messages_stable
    }
}

fn common() -> Common {
    Common {
        group: GROUP,
        origin: ORIGIN,
        stream: STREAM,
    }
}

fn frame(source: HostId, common: &Common, body: &Body<'_>) -> Vec<u8> {
    let header = Header {
        kind: Kind::Unicast,
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

fn status(stable: u32) -> Body<'static> {
    Body::Status(Status {
        stable: Seq(stable),
        ack_now: true,
        choice: 0,
        unclaimed: false,
        slow: false,
        order_wanted: false,
        order_next: false,
    })
}

fn data(seq: u32, payload: &[u8]) -> Body<'_> {
    Body::Data(Data {
        seq: Seq(seq),
        stable_offset: 0,
        tx_time: 0,
        first: true,
        last: false,
        cancel: false,
        class: BufferClass::One,
        ack_now: true,
        choice: 0,
        payload,
    })
}

fn ack(receiver: u32, cumulative: u32, stable: u32) -> Ack<'static> {
    Ack {
        epoch: 1,
        receiver,
        cumulative: Seq(cumulative),
        stable: Seq(stable),
        echo: None,
        packets: 0,
        duplicates: 0,
        congestion: 0,
        retransmissions: 0,
        ranges: List::Values(&[]),
        failed: List::Values(&[]),
        sets: List::Values(&[]),
    }
}

/// A message is on its way, half read, when `forge` does its worst.
fn attacked(forge: impl Fn(&mut Net)) {
    let mut net = Net::new();
    let message: Vec<u8> = (0..40_000u32).map(|at| (at * 7) as u8).collect();
    net.write(&message[..20_000], false);
    net.run_ms(20);
    forge(&mut net);
    net.run_ms(20);
    net.write(&message[20_000..], true);
    net.write(b"next", true);
    net.run_ms(4_000);
    assert_eq!(net.messages_stable(), 2, "the stream goes on");
    assert_eq!(net.lost, 0, "nothing broke off");
    assert!(net.got == [message, b"next".to_vec()], "all arrived once");
    let failed: Vec<Event> = std::iter::from_fn(|| net.engine(ORIGIN).poll_event())
        .filter(|event| matches!(event, Event::Stable { failed, .. } if !failed.is_empty()))
        .collect();
    assert_eq!(failed, vec![]);
}

#[test]
fn a_stream_from_the_future_costs_no_message() {
    for (source, reject) in [
        (PARENT, Reject::StreamUnproven),
        (ORIGIN, Reject::StreamUnproven),
        (OTHER, Reject::NotParent),
    ] {
        for stream in [STREAM + 1, STREAM + (1 << 30)] {
            let common = Common { stream, ..common() };
            for body in [status(1_000), status(90_000), data(1_000, b"false")] {
                // Once, and several times at once.
                for times in [1, 20] {
                    attacked(|net| {
                        for _ in 0..times {
                            assert_eq!(net.forge(MEMBER, source, common, &body), reject);
                        }
                    });
                }
            }
        }
    }
}

#[test]
fn a_stable_that_nobody_can_have_confirmed_costs_no_message() {
    for (source, status_reject) in [
        (PARENT, Reject::StableUnproven),
        (ORIGIN, Reject::StableUnproven),
        (OTHER, Reject::NotParent),
    ] {
        for stable in [1_100, 9_000, 100_000, 1_000 + (1 << 30)] {
            attacked(|net| {
                let reject = net.forge(MEMBER, source, common(), &status(stable));
                assert_eq!(reject, status_reject);
                net.forge(MEMBER, source, common(), &data(stable + 40_000, b"false"));
            });
        }
    }
}

#[test]
fn a_false_start_is_mended_before_the_first_message() {
    for (stream, stable) in [
        (STREAM, 9_000),
        (STREAM + 5, 1_000),
        (STREAM + (1 << 30), 77),
        (STREAM - 1, 0),
    ] {
        let mut net = Net::new();
        let forged = frame(PARENT, &Common { stream, ..common() }, &status(stable));
        let now = net.now;
        for _ in 0..10 {
            let _ = net.engine(MEMBER).handle_frame(&forged, now);
        }
        net.run_ms(5);
        net.write(b"first", true);
        net.run_ms(6_000);
        assert_eq!(net.messages_stable(), 1, "stream {stream}, stable {stable}");
        assert_eq!(
            net.got,
            vec![b"first".to_vec()],
            "stream {stream}, stable {stable}"
        );
    }
}

#[test]
fn acks_that_cannot_be_count_for_nothing() {
    let far = [SeqRange {
        start: Seq(1_020),
        end: Seq(90_000),
    }];
    let good_then_far = [
        SeqRange {
            start: Seq(1_500),
            end: Seq(1_510),
        },
        SeqRange {
            start: Seq(1_600),
            end: Seq(1_590),
        },
    ];
    let origin_failed = [FailedMember {
        host: ORIGIN,
        reason: FailReason::Silent,
        at: Seq(1_000),
    }];
    let acks = [
        ack(STREAM, 1_600, 1_000),
        ack(STREAM, 1_001, 1_002),
        Ack {
            ranges: List::Values(&far),
            ..ack(STREAM, 1_001, 1_001)
        },
        Ack {
            ranges: List::Values(&good_then_far),
            ..ack(STREAM, 1_001, 1_001)
        },
        Ack {
            failed: List::Values(&origin_failed),
            ..ack(STREAM, 1_001, 1_001)
        },
        // None of it counts, the new memory included.
        ack(STREAM + 7, 1_600, 1_000),
    ];
    for forged in acks {
        attacked(|net| {
            let body = Body::Ack(forged);
            for _ in 0..5 {
                let reject = net.forge(ORIGIN, PARENT, common(), &body);
                assert_eq!(reject, Reject::AckImpossible);
            }
        });
    }
}

#[test]
fn a_memory_of_a_child_from_the_future_does_not_shut_the_child_out() {
    for receiver in [STREAM + 1, STREAM + (1 << 30)] {
        attacked(|net| {
            let body = Body::Ack(ack(receiver, 1_000, 1_000));
            let reject = net.forge(ORIGIN, PARENT, common(), &body);
            assert_eq!(reject, Reject::ReceiverUnproven);
        });
    }
    // As the first answer it is believed, and forgotten when the child itself speaks.
    let mut net = Net::new();
    net.write(b"first", true);
    let body = Body::Ack(ack(STREAM + (1 << 30), 1_000, 1_000));
    let now = net.now;
    let forged = frame(PARENT, &common(), &body);
    let _ = net.engine(ORIGIN).handle_frame(&forged, now);
    net.run_ms(4_000);
    assert_eq!(net.messages_stable(), 1);
}

#[test]
fn other_requests_that_cannot_be_are_counted_by_reason() {
    let class = BufferClass::One;
    let nack = |seq| {
        Body::Nack(Nack {
            seq: Seq(seq),
            class,
        })
    };
    let repair = |child, from, to| {
        Body::Repair(Repair {
            child,
            class,
            from: Seq(from),
            to: Seq(to),
        })
    };
    attacked(|net| {
        let mut check = |to, source, body, reject| {
            assert_eq!(net.forge(to, source, common(), &body), reject);
        };
        check(ORIGIN, PARENT, nack(9_000), Reject::NackImpossible);
        check(ORIGIN, OTHER, nack(1_001), Reject::NotChild);
        let impossible = Reject::RepairImpossible;
        check(ORIGIN, PARENT, repair(MEMBER, 1_000, 9_000), impossible);
        check(ORIGIN, PARENT, repair(MEMBER, 1_005, 1_005), impossible);
        check(ORIGIN, PARENT, repair(PARENT, 1_000, 1_005), impossible);
        check(ORIGIN, PARENT, repair(ORIGIN, 1_000, 1_005), impossible);
        check(
            ORIGIN,
            PARENT,
            repair(HostId(9), 1_000, 1_005),
            Reject::NotMember,
        );
        check(ORIGIN, PARENT, status(1_000), Reject::OwnStream);
        check(MEMBER, MEMBER, status(1_000), Reject::OwnSource);
        check(MEMBER, OTHER, status(1_000), Reject::NotParent);
    });
}

/// Not forged, only seldom: a child that had another parent is ahead, and its ACK is of the plan
/// before. Nothing has to be sent to it, and yet its word is missing that all is stable.
#[test]
fn a_child_that_is_ahead_is_asked_what_is_stable() {
    let mut parent = engine(PARENT);
    let mut now = Instant::from_micros(1_000);
    let mut buf = vec![0; 2_000];
    let mut asked = false;
    let mut run = |parent: &mut Engine, now: Instant| {
        parent.handle_timeout(now);
        while let Some(sent) = parent.poll_transmit(now, &mut buf) {
            let worm = worm::decode(&buf[..sent.length]).expect("a worm");
            let body = pdu::decode(PARENT, worm.payload).expect("a PDU").body;
            let to_child = worm.route == [MEMBER.0 as u8];
            asked |= to_child && matches!(body, Body::Status(Status { ack_now: true, .. }));
            assert!(
                !(to_child && matches!(body, Body::Data(_))),
                "it has everything"
            );
        }
    };
    let hear = |parent: &mut Engine, source: HostId, body: Body<'_>, now: Instant| {
        let heard = parent.handle_frame(&frame(source, &common(), &body), now);
        heard.expect("an honest PDU");
    };
    hear(&mut parent, ORIGIN, status(1_000), now);
    let ack = Ack {
        epoch: 0,
        ..ack(100, 1_002, 1_002)
    };
    hear(&mut parent, MEMBER, Body::Ack(ack), now);
    for seq in [1_000, 1_001] {
        hear(&mut parent, ORIGIN, data(seq, b"packet"), now);
    }
    for _ in 0..200 {
        now = now.plus_us(1_000);
        run(&mut parent, now);
    }
    assert!(asked, "the child is asked");
}

/// Where more runs are here than an ACK holds, a sender would else not learn of one far up, and send it again for ever.
#[test]
fn what_comes_again_is_acknowledged_however_many_runs_are_here() {
    let mut member = engine(MEMBER);
    let common = Common {
        group: GROUP,
        origin: ORIGIN,
        stream: STREAM,
    };
    let mut first_range = |position: u32, at_us: u64| {
        let now = Instant::from_micros(at_us);
        let body = Body::Data(Data {
            seq: Seq(1_000 + position),
            stable_offset: position as u16,
            tx_time: 0,
            first: false,
            last: false,
            cancel: false,
            class: BufferClass::One,
            ack_now: true,
            choice: 0,
            payload: &[7; 100],
        });
        let taken = member.handle_frame(&frame(PARENT, &common, &body), now);
        assert_eq!(taken, Ok(()));
        let mut buf = [0; 2_000];
        let mut first = None;
        while let Some(sent) = member.poll_transmit(now, &mut buf) {
            let worm = worm::decode(&buf[..sent.length]).expect("a worm");
            let pdu = pdu::decode(MEMBER, worm.payload).expect("a PDU");
            if let Body::Ack(ack) = &pdu.body {
                first = ack.ranges().next();
            }
        }
        first.map(|range| range.start.0 - 1_000)
    };
    // Every other one, from the second on.
    for run in 0..80 {
        let position = 2 * run + 1;
        let said = first_range(position, 2_000 + u64::from(run));
        assert_eq!(said, Some(position));
    }
    assert_eq!(first_range(101, 3_000), Some(101));
}
