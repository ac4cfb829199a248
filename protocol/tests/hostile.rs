//! Frames nobody should send: the engine takes or refuses them, and goes on.

use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::Arc;
use wormcast_protocol::{
    Choice, Edge, Engine, EngineConfig, GroupPlan, Instant, Reject, Role, Structures,
};
use wormcast_wire::ack::{Ack, Echo, FailedMember, FailedSet, List, SETS_MAX, SeqRange};
use wormcast_wire::pdu::{self, Body, Common, Data, Nack, Repair, Status};
use wormcast_wire::worm::{self, Header, Kind};
use wormcast_wire::{BufferClass, FailReason, GroupId, HostId, Replication, Seq};

const HOST: HostId = HostId(2);
const MEMBERS: [HostId; 4] = [HostId(1), HostId(2), HostId(3), HostId(4)];

/// A chain from the origin round through all members.
struct Chain;

impl Structures for Chain {
    fn role(&self, origin: HostId, _choice: u8) -> Option<Role> {
        let at = MEMBERS.iter().position(|member| *member == origin)?;
        let order: Vec<HostId> = (0..4).map(|step| MEMBERS[(at + step) % 4]).collect();
        let edges: Vec<Edge> = order
            .windows(2)
            .map(|pair| Edge {
                from: pair[0],
                to: pair[1],
                class: BufferClass::One,
            })
            .collect();
        Role::from_edges(HOST, origin, &edges)
    }
}

fn engine(replication: Replication) -> Engine {
    let mut config = EngineConfig::new(HOST, [2; 6], 1_000, 1, 50);
    config.first_seq = Some(Seq(0));
    config.limits.pool_class1_bytes = 100_000;
    config.limits.pool_class2_bytes = 100_000;
    let mut engine = Engine::new(config).expect("valid");
    let now = Instant::ZERO;
    let routes: BTreeMap<HostId, Vec<u8>> = MEMBERS
        .iter()
        .filter(|host| **host != HOST)
        .map(|host| (*host, vec![host.0 as u8]))
        .collect();
    engine.set_routes(routes.clone(), now).expect("routes");
    engine.set_tree_routes(routes, now).expect("routes");
    let plan = GroupPlan {
        id: GroupId(3),
        epoch: 1,
        choices: Choice::only(replication),
        members: MEMBERS.to_vec(),
        mtu: None,
        structures: Arc::new(Chain),
        reports_begin: false,
        gathered: None,
    };
    engine.set_group(plan, now).expect("a plan");
    engine
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

#[derive(Clone, Debug)]
enum Call {
    Data {
        seq: u32,
        offset: u16,
        flags: u8,
        size: usize,
    },
    Ack {
        fields: [u32; 4],
        ranges: Vec<(u32, u32)>,
        failed: Vec<(u16, u8, u32)>,
        echo: [u32; 3],
    },
    Nack(u32),
    Repair {
        child: u16,
        from: u32,
        to: u32,
    },
    Status(u32, bool),
    Time(u64),
    Read(usize),
    Confirm,
    Abort,
    Write(usize, bool),
    Cancel,
    Replan(u32),
}

/// Sequence numbers near the windows, at their ends, and anywhere.
fn any_seq() -> impl Strategy<Value = u32> {
    prop_oneof![
        4 => 0u32..40,
        1 => (u32::MAX - 20)..=u32::MAX,
        1 => 32_700u32..32_800,
        1 => 65_500u32..65_600,
        1 => any::<u32>(),
    ]
}

fn any_call() -> impl Strategy<Value = Call> {
    let data = (
        any_seq(),
        prop_oneof![Just(0u16), 0u16..50, any::<u16>()],
        any::<u8>(),
        0usize..900,
    );
    let ranges = proptest::collection::vec((any_seq(), any_seq()), 0..5);
    let failed = proptest::collection::vec((any::<u16>(), 0u8..12, any_seq()), 0..4);
    let fields = [
        any_seq().boxed(),
        any_seq().boxed(),
        any_seq().boxed(),
        (45u32..60).boxed(),
    ];
    prop_oneof![
        6 => data.prop_map(|(seq, offset, flags, size)| Call::Data { seq, offset, flags, size }),
        4 => (fields, ranges, failed, any::<[u32; 3]>()).prop_map(|(fields, ranges, failed, echo)| {
            Call::Ack { fields, ranges, failed, echo }
        }),
        1 => any_seq().prop_map(Call::Nack),
        1 => (0u16..6, any_seq(), any_seq()).prop_map(|(child, from, to)| Call::Repair { child, from, to }),
        1 => (any_seq(), any::<bool>()).prop_map(|(stable, ask)| Call::Status(stable, ask)),
        2 => prop_oneof![0u64..5_000, 0u64..30_000_000].prop_map(Call::Time),
        2 => (0usize..3_000).prop_map(Call::Read),
        1 => Just(Call::Confirm),
        1 => Just(Call::Abort),
        2 => (0usize..5_000, any::<bool>()).prop_map(|(size, end)| Call::Write(size, end)),
        1 => Just(Call::Cancel),
        1 => (0u32..3).prop_map(Call::Replan),
    ]
}

fn handle(engine: &mut Engine, call: &Call, source: HostId, origin: HostId, now: Instant) {
    let common = Common {
        group: GroupId(3),
        origin,
        stream: 50,
    };
    let class = BufferClass::One;
    let payload = vec![7; 5_000];
    let mut give = |body: Body<'_>| {
        let _ = engine.handle_frame(&frame(source, &common, &body), now);
    };
    match call {
        Call::Data {
            seq,
            offset,
            flags,
            size,
        } => give(Body::Data(Data {
            seq: Seq(*seq),
            stable_offset: *offset,
            tx_time: *seq,
            first: flags & 1 != 0,
            last: flags & 2 != 0,
            cancel: flags & 6 == 6,
            class: if flags & 8 != 0 {
                BufferClass::Two
            } else {
                class
            },
            ack_now: flags & 16 != 0,
            choice: 0,
            payload: &payload[..*size],
        })),
        Call::Ack {
            fields,
            ranges,
            failed,
            echo,
        } => {
            let ranges: Vec<SeqRange> = ranges
                .iter()
                .map(|(start, end)| SeqRange {
                    start: Seq(*start),
                    end: Seq(*end),
                })
                .collect();
            let failed: Vec<FailedMember> = failed
                .iter()
                .map(|(host, reason, at)| FailedMember {
                    host: HostId(*host),
                    reason: FailReason::from_code(*reason).unwrap_or(FailReason::Late),
                    at: Seq(*at),
                })
                .collect();
            let masks: Vec<[u8; 2]> = failed.iter().map(|one| one.host.0.to_be_bytes()).collect();
            let sets = failed.iter().zip(&masks).map(|(one, mask)| FailedSet {
                reason: one.reason,
                at: one.at,
                members: mask,
            });
            let in_sets = echo[0] & 1 != 0;
            let sets: Vec<FailedSet<'_>> = sets.take(if in_sets { SETS_MAX } else { 0 }).collect();
            give(Body::Ack(Ack {
                epoch: 1,
                receiver: fields[3],
                cumulative: Seq(fields[0]),
                stable: Seq(fields[1]),
                echo: Some(Echo {
                    tx_time: echo[0],
                    delay_us: echo[1],
                    forward_delay_us: echo[2],
                }),
                packets: fields[2],
                duplicates: echo[0],
                congestion: echo[1],
                retransmissions: echo[2],
                ranges: List::Values(&ranges),
                failed: List::Values(&failed),
                sets: List::Values(&sets),
            }));
        }
        Call::Nack(seq) => give(Body::Nack(Nack {
            seq: Seq(*seq),
            class,
        })),
        Call::Repair { child, from, to } => give(Body::Repair(Repair {
            child: HostId(*child),
            class,
            from: Seq(*from),
            to: Seq(*to),
        })),
        Call::Status(stable, ack_now) => {
            give(Body::Status(Status {
                stable: Seq(*stable),
                ack_now: *ack_now,
                choice: 0,
                unclaimed: false,
                slow: false,
                order_wanted: false,
                order_next: false,
            }));
        }
        Call::Time(_) => {}
        Call::Read(size) => {
            let _ = engine.read(GroupId(3), origin, &mut vec![0; *size], now);
        }
        Call::Confirm => {
            let _ = engine.confirm(GroupId(3), origin, now);
        }
        Call::Abort => {
            let _ = engine.abort(GroupId(3), origin, FailReason::Storage, now);
        }
        Call::Write(size, end) => {
            let _ = engine.write(GroupId(3), &payload[..*size], *end, now);
        }
        Call::Cancel => {
            let _ = engine.cancel(GroupId(3), now);
        }
        Call::Replan(epoch) => {
            let plan = GroupPlan {
                epoch: *epoch,
                ..engine.groups().next().expect("one group").clone()
            };
            engine.set_group(plan, now).expect("a plan");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn no_sequence_of_pdus_and_calls_upsets_an_engine(
        calls in proptest::collection::vec((any_call(), 1u16..5, 1u16..5), 1..120),
        switches in any::<bool>(),
    ) {
        let mut engine = engine(if switches { Replication::Switches } else { Replication::Hosts });
        let mut now = Instant::from_micros(10);
        let mut buf = vec![0; engine.frame_length_max()];
        for (call, source, origin) in &calls {
            if let Call::Time(us) = call {
                now = now.plus_us(*us);
                engine.handle_timeout(now);
            }
            handle(&mut engine, call, HostId(*source), HostId(*origin), now);
            let mut frames = 0;
            while engine.poll_transmit(now, &mut buf).is_some() {
                frames += 1;
                prop_assert!(frames < 2_000, "no end of frames at one instant");
            }
            while engine.poll_event().is_some() {}
            let _ = engine.poll_timeout();
            for class in [BufferClass::One, BufferClass::Two] {
                prop_assert!(engine.pool_bytes(class) <= 100_000 + 4 * 4 * 1_064);
            }
        }
    }

    #[test]
    fn random_bytes_are_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let mut engine = engine(Replication::Hosts);
        let now = Instant::from_micros(10);
        prop_assert!(engine.handle_frame(&bytes, now).is_err());
        let mut worm_frame = vec![0; 12];
        worm_frame.extend_from_slice(&[0x88, 0xB5]);
        worm_frame.extend_from_slice(&bytes);
        prop_assert!(engine.handle_frame(&worm_frame, now).is_err());
    }

    #[test]
    fn random_pdus_of_a_good_worm_are_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let mut engine = engine(Replication::Hosts);
        let header = Header {
            kind: Kind::Unicast, flags: 6, hops: 1, source: HostId(1), sequence: 0, next: 0x88B6,
        };
        let mut frame = vec![0; 26];
        worm::encode(&mut frame, [3; 6], &header, &[]);
        frame.extend_from_slice(&bytes);
        let result = engine.handle_frame(&frame, Instant::from_micros(10));
        prop_assert!(matches!(result, Err(Reject::Truncated | Reject::PduChecksum)));
    }
}

/// A parent may repair in another class than that of the copies. Packets of one class that are read make
/// room although older ones of the other class are held.
#[test]
fn what_is_read_makes_room_whatever_class_the_oldest_is_of() {
    let mut engine = engine(Replication::Hosts);
    let now = Instant::from_micros(10);
    let (group, origin) = (GroupId(3), HostId(3));
    let common = Common {
        group,
        origin,
        stream: 50,
    };
    let mut buffer = vec![0; 1_000_000];
    for seq in 0..300 {
        let data = Data {
            seq: Seq(seq),
            stable_offset: seq as u16,
            tx_time: 0,
            first: seq == 0,
            last: false,
            cancel: false,
            class: match seq {
                0..3 => BufferClass::Two,
                _ => BufferClass::One,
            },
            ack_now: false,
            choice: 0,
            payload: &[7; 900],
        };
        let frame = frame(HostId(1), &common, &Body::Data(data));
        assert_eq!(engine.handle_frame(&frame, now), Ok(()), "packet {seq}");
        engine
            .read(group, origin, &mut buffer, now)
            .expect("it is read");
    }
    assert!(engine.pool_bytes(BufferClass::One) <= 100_000);
}

/// A parent that believes more of this host than is so sends what finds no room, and asks nothing: that it is refused
/// is a sign of life. It has to learn what is here.
#[test]
fn who_refuses_much_says_from_time_to_time_what_it_has() {
    let mut engine = engine(Replication::Hosts);
    let common = Common {
        group: GroupId(3),
        origin: HostId(3),
        stream: 50,
    };
    let mut now = Instant::from_micros(10);
    let mut buf = vec![0; 2_000];
    let (mut seq, mut nacks, mut acks) = (0, 0, Vec::new());
    while nacks < 40 {
        now = now.plus_us(10_000);
        let data = Data {
            seq: Seq(seq),
            stable_offset: seq as u16,
            tx_time: 0,
            first: seq == 0,
            last: false,
            cancel: false,
            class: BufferClass::One,
            ack_now: false,
            choice: 0,
            payload: &[7; 900],
        };
        // Nobody reads: in the end there is no room.
        let taken = engine.handle_frame(&frame(HostId(1), &common, &Body::Data(data)), now);
        seq += u32::from(taken.is_ok());
        engine.handle_timeout(now);
        while let Some(sent) = engine.poll_transmit(now, &mut buf) {
            let worm = worm::decode(&buf[..sent.length]).expect("a worm");
            match pdu::decode(HOST, worm.payload).expect("a PDU").body {
                Body::Nack(_) => nacks += 1,
                Body::Ack(ack) if nacks > 0 => acks.push(ack.cumulative),
                _ => {}
            }
        }
    }
    assert_eq!(acks, [Seq(seq); 5], "with every eighth NACK");
}

#[test]
fn every_reject_is_counted_under_its_name() {
    let mut engine = engine(Replication::Hosts);
    let now = Instant::from_micros(10);
    let common = Common {
        group: GroupId(3),
        origin: HostId(1),
        stream: 50,
    };
    let status = Body::Status(Status {
        stable: Seq(0),
        ack_now: true,
        choice: 0,
        unclaimed: false,
        slow: false,
        order_wanted: false,
        order_next: false,
    });
    let cases = [
        (
            frame(
                HostId(1),
                &Common {
                    group: GroupId(4),
                    ..common
                },
                &status,
            ),
            Reject::UnknownGroup,
        ),
        (frame(HostId(9), &common, &status), Reject::NotMember),
        (
            frame(
                HostId(1),
                &Common {
                    origin: HOST,
                    ..common
                },
                &status,
            ),
            Reject::OwnStream,
        ),
        (
            frame(
                HostId(3),
                &common,
                &Body::Nack(Nack {
                    seq: Seq(0),
                    class: BufferClass::One,
                }),
            ),
            Reject::UnknownStream,
        ),
        (vec![0; 13], Reject::Truncated),
        (vec![0; 60], Reject::NotWorm),
    ];
    for (frame, reject) in cases {
        assert_eq!(engine.handle_frame(&frame, now), Err(reject));
        assert_eq!(engine.counters().rejected(reject), 1, "{reject}");
        let name = format!("drops.{reject}");
        assert!(engine.counters().entries().contains(&(name, 1)));
    }
    assert_eq!(
        engine.handle_frame(&frame(HostId(1), &common, &status), now),
        Ok(())
    );
    let old = frame(
        HostId(1),
        &Common {
            stream: 49,
            ..common
        },
        &status,
    );
    assert_eq!(
        engine.handle_frame(&old, now),
        Err(Reject::StaleIncarnation)
    );
}

/// Switches copy GROUP and BROADCAST worms to more hosts than the members: that is no loss.
#[test]
fn copies_meant_for_others_are_counted_and_no_loss() {
    let mut engine = engine(Replication::Switches);
    let now = Instant::from_micros(1_000);
    let counted = |engine: &Engine| {
        let entries = engine.counters().entries();
        let named = entries.iter().find(|(name, _)| name == "filtered");
        let lost: u64 = (entries
            .iter()
            .filter(|(name, _)| name.starts_with("drops.")))
        .map(|(_, value)| value)
        .sum();
        (named.map(|(_, value)| *value), lost)
    };
    assert_eq!(counted(&engine), (Some(0), 0));
    let body = Body::Status(Status {
        stable: Seq(0),
        ack_now: false,
        choice: 0,
        unclaimed: false,
        slow: false,
        order_wanted: false,
        order_next: false,
    });
    for (kind, route, group, source) in [
        (Kind::Group, &[0, 9][..], 9, HostId(1)),
        (Kind::Broadcast, &[], 9, HostId(1)),
        (Kind::Broadcast, &[], 3, HOST),
    ] {
        let common = Common {
            group: GroupId(group),
            origin: source,
            stream: 1,
        };
        let header = Header {
            kind,
            flags: 6,
            hops: 1,
            source,
            sequence: 0,
            next: 0x88B6,
        };
        let length = 14 + 12 + route.len() + pdu::length_of(&common, source, &body);
        let mut frame = vec![0; length];
        let at = worm::encode(&mut frame, [3; 6], &header, route);
        pdu::encode(&mut frame[at..], source, &common, &body);
        assert_eq!(engine.handle_frame(&frame, now), Ok(()));
    }
    assert_eq!(counted(&engine), (Some(3), 0));
}
