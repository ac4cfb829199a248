//! Two engines and a channel that does what it likes with frames between them.

use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::Arc;
use wormcast_protocol::{
    Choice, Edge, Engine, EngineConfig, Event, GroupPlan, Instant, LossReason, MemberState,
    PlanError, Reject, Role, Structures, UseError,
};
use wormcast_wire::{BufferClass, FailReason, GroupId, HostId, Replication, Seq};

const GROUP: GroupId = GroupId(3);
const ORIGIN: HostId = HostId(1);
const MEMBER: HostId = HostId(2);

struct Direct(HostId);

impl Structures for Direct {
    fn role(&self, origin: HostId, _choice: u8) -> Option<Role> {
        let to = if origin == ORIGIN { MEMBER } else { ORIGIN };
        Role::from_edges(
            self.0,
            origin,
            &[Edge {
                from: origin,
                to,
                class: BufferClass::One,
            }],
        )
    }
}

fn plan(host: HostId) -> GroupPlan {
    GroupPlan {
        id: GROUP,
        epoch: 1,
        choices: Choice::only(Replication::Hosts),
        members: vec![ORIGIN, MEMBER],
        mtu: None,
        structures: Arc::new(Direct(host)),
        reports_begin: false,
        gathered: None,
    }
}

fn engine(host: HostId, first: u32) -> Engine {
    let mut config = EngineConfig::new(host, [2, 0, 0, 0, 0, host.0 as u8], 600, 5, 100);
    config.first_seq = Some(Seq(first));
    let mut engine = Engine::new(config).expect("a valid configuration");
    let peer = if host == ORIGIN { MEMBER } else { ORIGIN };
    engine
        .set_routes(BTreeMap::from([(peer, vec![4])]), Instant::ZERO)
        .expect("a route");
    engine.set_group(plan(host), Instant::ZERO).expect("a plan");
    engine
}

/// Frames of an engine as its peer gets them: the route used up.
fn outgoing(engine: &mut Engine, now: Instant) -> Vec<Vec<u8>> {
    let mut buf = vec![0; engine.frame_length_max()];
    let mut frames = Vec::new();
    while let Some(sent) = engine.poll_transmit(now, &mut buf) {
        let worm = wormcast_wire::worm::decode(&buf[..sent.length]).expect("a worm");
        let mut frame = vec![0; 14 + 12];
        frame[..14].copy_from_slice(&buf[..14]);
        wormcast_wire::worm::encode_worm(&mut frame[14..], &worm.header, &[]);
        frame.extend_from_slice(worm.payload);
        frames.push(frame);
    }
    frames
}

fn read_all(member: &mut Engine, now: Instant) -> Vec<Vec<u8>> {
    let mut messages = vec![Vec::new()];
    let mut buf = [0; 1_000];
    while let Ok(read) = member.read(GROUP, ORIGIN, &mut buf, now) {
        let message = messages.last_mut().expect("one at least");
        message.extend_from_slice(&buf[..read.length]);
        if read.end_of_message {
            member
                .confirm(GROUP, ORIGIN, now)
                .expect("its end was read");
            messages.push(Vec::new());
        } else if read.length == 0 {
            break;
        }
    }
    messages
}

fn message(number: usize, size: usize) -> Vec<u8> {
    (0..size).map(|at| (at * 7 + number * 13) as u8).collect()
}

/// What the channel does with a frame.
#[derive(Clone, Debug)]
enum Fate {
    Arrive,
    Vanish,
    Twice,
    Late(usize),
    Flip(usize),
}

fn fates() -> impl Strategy<Value = Vec<Fate>> {
    let fate = prop_oneof![
        6 => Just(Fate::Arrive),
        1 => Just(Fate::Vanish),
        1 => Just(Fate::Twice),
        2 => (1usize..40).prop_map(Fate::Late),
        1 => (0usize..5_000).prop_map(Fate::Flip),
    ];
    // A share of frames always gets through, or there would be no end.
    proptest::collection::vec(fate, 1..60).prop_map(|mut fates| {
        let share = fates.len() / 3 + 1;
        fates.extend(std::iter::repeat_n(Fate::Arrive, share));
        fates
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn messages_arrive_once_in_order_whatever_the_channel_does(
        sizes in proptest::collection::vec(0usize..20_000, 1..6),
        fates in fates(),
        first in prop_oneof![Just(0u32), Just(u32::MAX - 3), any::<u32>()],
    ) {
        let mut origin = engine(ORIGIN, first);
        let mut member = engine(MEMBER, 0);
        let mut now = Instant::from_micros(1_000);
        let expected: Vec<Vec<u8>> =
            sizes.iter().enumerate().map(|(number, size)| message(number, *size)).collect();
        for message in &expected {
            let accepted = origin.write(GROUP, message, true, now).expect("a member");
            prop_assert_eq!(accepted, message.len());
        }
        let mut got: Vec<Vec<u8>> = vec![Vec::new()];
        let mut held: Vec<(usize, bool, Vec<u8>)> = Vec::new();
        // In an order that does not keep step with who sends what.
        let mut drawn = 0u32;
        let mut draw = || {
            drawn = drawn.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            fates[(drawn >> 8) as usize % fates.len()].clone()
        };
        let mut step = 0;
        while origin.progress(GROUP).expect("it writes").messages_stable < sizes.len() as u64 {
            step += 1;
            // Only against no end: where two of three frames are lost, ten simulated seconds may pass.
            prop_assert!(step < 200_000, "no end: {:?}", origin.progress(GROUP));
            now = now.plus_us(500);
            origin.handle_timeout(now);
            member.handle_timeout(now);
            let mut arriving: Vec<(bool, Vec<u8>)> = Vec::new();
            held.retain(|(due, to_member, frame)| {
                if *due <= step {
                    arriving.push((*to_member, frame.clone()));
                }
                *due > step
            });
            for (to_member, frames) in
                [(true, outgoing(&mut origin, now)), (false, outgoing(&mut member, now))]
            {
                for mut frame in frames {
                    match draw() {
                        Fate::Arrive => arriving.push((to_member, frame)),
                        Fate::Vanish => {}
                        Fate::Twice => {
                            arriving.push((to_member, frame.clone()));
                            arriving.push((to_member, frame));
                        }
                        Fate::Late(by) => held.push((step + by, to_member, frame)),
                        Fate::Flip(bit) => {
                            let bit = bit % (frame.len() * 8);
                            frame[bit / 8] ^= 1 << (bit % 8);
                            arriving.push((to_member, frame));
                        }
                    }
                }
            }
            for (to_member, frame) in arriving {
                let engine = if to_member { &mut member } else { &mut origin };
                let _ = engine.handle_frame(&frame, now);
            }
            let mut news = read_all(&mut member, now).into_iter();
            let rest = news.next().expect("one at least");
            got.last_mut().expect("one at least").extend(rest);
            got.extend(news);
        }
        prop_assert_eq!(got.pop(), Some(Vec::new()), "nothing after the last message");
        prop_assert_eq!(got, expected);
    }
}

/// Runs a perfect channel for so many half milliseconds.
fn exchange(origin: &mut Engine, member: &mut Engine, now: &mut Instant, steps: usize) {
    for _ in 0..steps {
        *now = now.plus_us(500);
        origin.handle_timeout(*now);
        member.handle_timeout(*now);
        for frame in outgoing(origin, *now) {
            let _ = member.handle_frame(&frame, *now);
        }
        for frame in outgoing(member, *now) {
            let _ = origin.handle_frame(&frame, *now);
        }
    }
}

/// An origin with a window of 16 packets.
fn small_window_origin() -> Engine {
    window_origin(600, 16, usize::MAX)
}

fn window_origin(mtu: usize, packets: u32, bytes: usize) -> Engine {
    let mut config = EngineConfig::new(ORIGIN, [2; 6], mtu, 5, 100);
    config.limits.origin_window_packets = packets;
    config.limits.origin_window_bytes = bytes;
    let mut origin = Engine::new(config).expect("valid");
    origin
        .set_routes(BTreeMap::from([(MEMBER, vec![4])]), Instant::ZERO)
        .expect("a route");
    origin
        .set_group(plan(ORIGIN), Instant::ZERO)
        .expect("a plan");
    origin
}

#[test]
fn a_window_is_as_many_bytes_whatever_the_length_of_frames() {
    let now = Instant::from_micros(1_000);
    for mtu in [600, 1_500, 9_000] {
        let mut origin = window_origin(mtu, 8_192, 300_000);
        let accepted = origin.write(GROUP, &message(0, 2_000_000), true, now);
        // Each packet has a buffer as long as a frame may be.
        let room = 270_000..300_000 + 2 * mtu;
        assert!(room.contains(&accepted.expect("a member")), "{mtu}");
    }
    // Short packets of large frames take short buffers, others longer ones.
    for (length, packets) in [
        (100, 300_000 / 2_048),
        (3_000, 300_000 / 4_096),
        (5_000, 300_000 / 9_000),
    ] {
        let mut origin = window_origin(9_000, 8_192, 300_000);
        let sent = (0..1_000)
            .take_while(|_| origin.write(GROUP, &message(0, length), true, now) == Ok(length));
        let sent = sent.count();
        assert!((packets..packets + 3).contains(&sent), "{length}: {sent}");
    }
    // As many packets as any window has room for.
    let mut origin = window_origin(9_000, 8_192, 20_000);
    let accepted = origin.write(GROUP, &message(0, 2_000_000), true, now);
    assert!((130_000..160_000).contains(&accepted.expect("a member")));
}

#[test]
fn a_full_window_pushes_back_and_opens_again() {
    let mut origin = small_window_origin();
    let mut member = engine(MEMBER, 0);
    let mut now = Instant::from_micros(1_000);
    let bytes = message(0, 50_000);
    let accepted = origin.write(GROUP, &bytes, true, now).expect("a member");
    assert!(accepted > 5_000 && accepted < 16 * 600, "{accepted}");
    assert_eq!(origin.write(GROUP, &bytes[accepted..], true, now), Ok(0));
    exchange(&mut origin, &mut member, &mut now, 40);
    // The member's application has read nothing: the window stays shut.
    assert_eq!(origin.write(GROUP, &bytes[accepted..], true, now), Ok(0));
    let read = read_all(&mut member, now);
    assert_eq!(read, vec![bytes[..read[0].len()].to_vec()]);
    exchange(&mut origin, &mut member, &mut now, 40);
    let mut events = Vec::new();
    while let Some(event) = origin.poll_event() {
        events.push(event);
    }
    assert!(
        events.contains(&Event::Writable { group: GROUP }),
        "{events:?}"
    );
    assert!(
        origin
            .write(GROUP, &bytes[accepted..], true, now)
            .expect("a member")
            > 0
    );
}

#[test]
fn an_empty_message_after_a_cancelled_one_has_a_number_of_its_own() {
    for cancelled in [true, false] {
        let mut origin = small_window_origin();
        let mut member = engine(MEMBER, 0);
        let mut now = Instant::from_micros(1_000);
        origin
            .write(GROUP, &message(0, 50_000), false, now)
            .expect("a member");
        if cancelled {
            origin.cancel(GROUP, now).expect("a member");
        } else {
            assert_eq!(origin.write(GROUP, &[], true, now), Ok(0));
        }
        // The end of message 0 waits for the window; the end of message 1 cannot be taken.
        let refused = origin.write(GROUP, &[], true, now);
        assert_eq!(refused, Err(UseError::EndWaits { group: GROUP }));
        // Nor is there anything left to cancel.
        origin.cancel(GROUP, now).expect("a member");
        exchange(&mut origin, &mut member, &mut now, 40);
        read_all(&mut member, now);
        exchange(&mut origin, &mut member, &mut now, 40);
        let events: Vec<Event> = std::iter::from_fn(|| origin.poll_event()).collect();
        assert!(
            events.contains(&Event::Writable { group: GROUP }),
            "{events:?}"
        );
        assert_eq!(origin.progress(GROUP).expect("it writes").messages_ended, 1);
        assert_eq!(origin.write(GROUP, &[], true, now), Ok(0));
        assert_eq!(origin.progress(GROUP).expect("it writes").messages_ended, 2);
        for _ in 0..3 {
            exchange(&mut origin, &mut member, &mut now, 40);
            read_all(&mut member, now);
        }
        let stable: Vec<u64> = events
            .into_iter()
            .chain(std::iter::from_fn(|| origin.poll_event()))
            .filter_map(|event| match event {
                Event::Stable { message, .. } => Some(message),
                _ => None,
            })
            .collect();
        let expected = if cancelled { vec![1] } else { vec![0, 1] };
        assert_eq!(stable, expected);
    }
}

struct Alone;

impl Structures for Alone {
    fn role(&self, origin: HostId, _choice: u8) -> Option<Role> {
        Role::from_edges(ORIGIN, origin, &[])
    }
}

/// A message begins with its first byte, or with its end if it has none, whenever it is sent.
#[test]
fn who_leaves_before_a_message_is_sent_is_named() {
    // Too short for a packet; or behind a full window.
    for (before, bytes, end) in [(0, "half", false), (16, "whole", true), (16, "", true)] {
        let mut origin = small_window_origin();
        let now = Instant::from_micros(1_000);
        for _ in 0..before {
            origin.write(GROUP, b"x", true, now).expect("a member");
        }
        origin.write(GROUP, b"not", false, now).expect("a member");
        origin.cancel(GROUP, now).expect("a member");
        origin
            .write(GROUP, bytes.as_bytes(), end, now)
            .expect("a member");
        let at_member = |origin: &Engine| {
            let states = origin.member_states(GROUP, before).expect("it has begun");
            assert_eq!(states.len(), 1, "{bytes:?}");
            states[0]
        };
        assert_eq!(at_member(&origin), (MEMBER, MemberState::Unconfirmed));
        let alone = GroupPlan {
            epoch: 2,
            members: vec![ORIGIN],
            structures: Arc::new(Alone),
            ..plan(ORIGIN)
        };
        origin.set_group(alone, now).expect("a plan");
        if !end {
            let state = MemberState::Failed(FailReason::Removed);
            assert_eq!(at_member(&origin), (MEMBER, state));
            origin.write(GROUP, &[], true, now).expect("a member");
        }
        let events = std::iter::from_fn(|| origin.poll_event());
        let last = events.filter_map(|event| match event {
            Event::Stable {
                message, failed, ..
            } => Some((message, failed)),
            _ => None,
        });
        let failed = vec![(MEMBER, FailReason::Removed)];
        assert_eq!(last.last(), Some((before, failed)), "{bytes:?}");
    }
}

#[test]
fn a_message_counts_as_held_only_when_its_reader_confirms_it() {
    let (mut origin, mut member) = (engine(ORIGIN, 0), engine(MEMBER, 0));
    let mut now = Instant::from_micros(1_000);
    origin
        .write(GROUP, b"precious", true, now)
        .expect("a member");
    exchange(&mut origin, &mut member, &mut now, 100);
    let mut buf = [0; 100];
    let read = member
        .read(GROUP, ORIGIN, &mut buf, now)
        .expect("something came");
    assert!(read.end_of_message && &buf[..read.length] == b"precious");
    assert_eq!(
        member.read(GROUP, ORIGIN, &mut buf, now),
        Err(UseError::NotConfirmed)
    );
    exchange(&mut origin, &mut member, &mut now, 100);
    assert_eq!(origin.progress(GROUP).expect("it wrote").messages_stable, 0);
    member.confirm(GROUP, ORIGIN, now).expect("read to the end");
    assert_eq!(
        member.confirm(GROUP, ORIGIN, now),
        Err(UseError::NothingToConfirm)
    );
    exchange(&mut origin, &mut member, &mut now, 100);
    assert_eq!(origin.progress(GROUP).expect("it wrote").messages_stable, 1);
}

#[test]
fn a_cancelled_message_breaks_off_and_the_next_one_arrives() {
    let (mut origin, mut member) = (engine(ORIGIN, 0), engine(MEMBER, 0));
    let mut now = Instant::from_micros(1_000);
    origin
        .write(GROUP, &message(0, 3_000), false, now)
        .expect("a member");
    exchange(&mut origin, &mut member, &mut now, 50);
    assert!(!read_all(&mut member, now)[0].is_empty());
    origin.cancel(GROUP, now).expect("a member");
    origin.write(GROUP, b"next", true, now).expect("a member");
    exchange(&mut origin, &mut member, &mut now, 50);
    while member.poll_event().is_some() {}
    assert_eq!(
        read_all(&mut member, now),
        vec![Vec::<u8>::new()],
        "the break comes first"
    );
    let (group, origin_id) = (GROUP, ORIGIN);
    let lost = Event::MessageLost {
        group,
        origin: origin_id,
        reason: LossReason::Cancelled,
    };
    let readable = Event::Readable {
        group,
        origin: origin_id,
    };
    let events: Vec<Event> = std::iter::from_fn(|| member.poll_event()).collect();
    assert_eq!(
        events,
        vec![lost, readable],
        "then the next message is announced"
    );
    assert_eq!(read_all(&mut member, now), vec![b"next".to_vec(), vec![]]);
    exchange(&mut origin, &mut member, &mut now, 50);
    let stable: Vec<Event> = std::iter::from_fn(|| origin.poll_event())
        .filter(|event| matches!(event, Event::Stable { .. }))
        .collect();
    assert_eq!(
        stable,
        vec![Event::Stable {
            group: GROUP,
            message: 1,
            confirmed: vec![MEMBER],
            failed: vec![]
        }]
    );
}

#[test]
fn a_message_given_up_is_named_at_the_origin() {
    let (mut origin, mut member) = (engine(ORIGIN, 0), engine(MEMBER, 0));
    let mut now = Instant::from_micros(1_000);
    origin
        .write(GROUP, &message(0, 9_000), true, now)
        .expect("a member");
    origin.write(GROUP, b"small", true, now).expect("a member");
    exchange(&mut origin, &mut member, &mut now, 20);
    let mut buf = [0; 100];
    member
        .read(GROUP, ORIGIN, &mut buf, now)
        .expect("something came");
    member
        .abort(GROUP, ORIGIN, FailReason::NoSpace, now)
        .expect("being read");
    exchange(&mut origin, &mut member, &mut now, 100);
    assert_eq!(read_all(&mut member, now), vec![b"small".to_vec(), vec![]]);
    exchange(&mut origin, &mut member, &mut now, 100);
    let events: Vec<Event> = std::iter::from_fn(|| origin.poll_event()).collect();
    let failed = vec![(MEMBER, FailReason::NoSpace)];
    assert!(
        events.contains(&Event::Stable {
            group: GROUP,
            message: 0,
            confirmed: vec![],
            failed
        }),
        "{events:?}"
    );
    let failed = vec![];
    assert!(
        events.contains(&Event::Stable {
            group: GROUP,
            message: 1,
            confirmed: vec![MEMBER],
            failed
        }),
        "{events:?}"
    );
}

#[test]
fn plans_that_cannot_be_are_refused_and_name_what_is_wrong() {
    let mut engine = engine(ORIGIN, 0);
    let now = Instant::ZERO;
    let texts = [
        engine.set_group(
            GroupPlan {
                id: GroupId(255),
                ..plan(ORIGIN)
            },
            now,
        ),
        engine.set_group(
            GroupPlan {
                members: vec![MEMBER],
                ..plan(ORIGIN)
            },
            now,
        ),
        engine.set_routes(BTreeMap::from([(MEMBER, vec![])]), now),
        engine.set_routes(BTreeMap::from([(MEMBER, vec![255])]), now),
        engine.set_tree_routes(BTreeMap::from([(MEMBER, vec![254])]), now),
    ]
    .map(|result: Result<(), PlanError>| result.expect_err("refused").to_string());
    assert_eq!(
        texts,
        [
            "group 255 is broadcast; groups are 0 to 65535 without 255",
            "host 1 is not among the members of group 3",
            "the route to host 2 has 0 bytes; it must have 1 to 255",
            "the route to host 2 has byte 255; ports are 0 to 253",
            "the route to host 2 has byte 254; ports are 0 to 253",
        ]
    );
    let mut config = EngineConfig::new(ORIGIN, [2; 6], 100, 5, 100);
    let error = Engine::new(config.clone()).err().expect("refused");
    assert_eq!(error.to_string(), "mtu is 100; it must be 576 to 65535");
    config.mtu = 600;
    config.limits.origin_window_packets = 40_000;
    let error = Engine::new(config).err().expect("refused");
    assert_eq!(
        error.to_string(),
        "origin_window_packets is 40000; it must be 16 to 32768"
    );
    let unknown = GroupId(9);
    let error = engine
        .write(unknown, b"x", true, now)
        .expect_err("no member");
    assert_eq!(error.to_string(), "this host is not a member of group 9");
}

#[test]
fn worms_in_transit_are_not_for_an_engine() {
    let mut engine = engine(ORIGIN, 0);
    let now = Instant::from_micros(5);
    let header = wormcast_wire::worm::Header {
        kind: wormcast_wire::worm::Kind::Unicast,
        flags: 7,
        hops: 2,
        source: HostId(40),
        sequence: 9,
        next: 0x0800,
    };
    let mut frame = vec![0; 14 + 12 + 3 + 30];
    wormcast_wire::worm::encode(&mut frame, [3; 6], &header, &[1, 2, 3]);
    assert_eq!(engine.handle_frame(&frame, now), Err(Reject::NotForHosts));
    let mut buf = vec![0; engine.frame_length_max()];
    assert!(engine.poll_transmit(now, &mut buf).is_none());
}

#[test]
fn when_a_message_came_is_told_however_late_it_is_read() {
    let (mut origin, mut member) = (engine(ORIGIN, 0), engine(MEMBER, 0));
    let at = |ms: u64| Instant::from_micros(ms * 1_000);
    let lengths = [3_000_usize, 1, 2_000];
    for (number, &length) in lengths.iter().enumerate() {
        let bytes = message(number, length);
        assert_eq!(origin.write(GROUP, &bytes, true, at(0)), Ok(length));
    }
    // One frame each millisecond: what comes at a time is known by its bytes.
    let mut came = Vec::new();
    let mut waiting = std::collections::VecDeque::new();
    for ms in 1..500 {
        origin.handle_timeout(at(ms));
        waiting.extend(outgoing(&mut origin, at(ms)));
        if let Some(frame) = waiting.pop_front() {
            let before = received_bytes(&member);
            member.handle_frame(&frame, at(ms)).expect("taken");
            came.push((ms, received_bytes(&member) - before));
        }
        member.handle_timeout(at(ms));
        for frame in outgoing(&mut member, at(ms)) {
            origin.handle_frame(&frame, at(ms)).expect("taken");
        }
    }
    came.retain(|&(_, bytes)| bytes > 0);
    let late = at(10_000);
    let mut buf = [0; 100];
    let mut next = came.into_iter();
    for length in lengths {
        let mut packets = Vec::new();
        while packets.iter().map(|&(_, bytes)| bytes).sum::<u64>() < length as u64 {
            packets.push(next.next().expect("all of it came"));
        }
        loop {
            let read = member.read(GROUP, ORIGIN, &mut buf, late).expect("there");
            if read.end_of_message {
                break;
            }
        }
        let arrival = member.message_arrival(GROUP, ORIGIN).expect("it is read");
        let (first, last) = (packets[0], packets[packets.len() - 1]);
        assert_eq!((arrival.first, arrival.last), (at(first.0), at(last.0)));
        assert_eq!(arrival.later_bytes, length as u64 - first.1);
        member
            .confirm(GROUP, ORIGIN, late)
            .expect("its end is read");
    }
}

fn received_bytes(member: &Engine) -> u64 {
    let of_stream = member.statistics().find(|(_, origin, _)| *origin == ORIGIN);
    of_stream.map_or(0, |(_, _, statistics)| statistics.data_received_bytes)
}
