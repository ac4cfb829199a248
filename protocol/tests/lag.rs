//! Who lags: an origin asks switches about branches, knows answers by the number of the request, and tells how far its
//! stream and its children are.

use std::collections::BTreeMap;
use std::sync::Arc;
use wormcast_protocol::{
    ANSWERS_MAX, AskError, AskedBranch, BRANCHES_ASKED_MAX, BranchAnswer, BranchQuestion, ChildLag,
    Choice, Edge, Engine, EngineConfig, Gathered, GroupPlan, Instant, Reject, Role, StreamLag,
    Structures,
};
use wormcast_wire::gather::{self, Announcement, Op, flags};
use wormcast_wire::worm::{self, Kind};
use wormcast_wire::{BufferClass, GroupId, HostId, Replication, Seq};

const GROUP: GroupId = GroupId(3);
const ORIGIN: HostId = HostId(1);
const CHILD: HostId = HostId(2);
const SWITCH: HostId = HostId(0xF007);
const EPOCH: u32 = 9;
/// Of the first stream that an engine begins: its incarnation.
const STREAM: u32 = 50;
const NOW: Instant = Instant::from_micros(9);

struct Pair(HostId);

impl Structures for Pair {
    fn role(&self, origin: HostId, _choice: u8) -> Option<Role> {
        let to = if origin == ORIGIN { CHILD } else { ORIGIN };
        let edge = Edge {
            from: origin,
            to,
            class: BufferClass::One,
        };
        Role::from_edges(self.0, origin, &[edge])
    }
}

fn engine(gathers: bool) -> Engine {
    let mut config = EngineConfig::new(ORIGIN, [2; 6], 1_500, 1, STREAM);
    config.first_seq = Some(Seq(100));
    let mut engine = Engine::new(config).expect("valid");
    let routes = BTreeMap::from([(CHILD, vec![2])]);
    engine.set_routes(routes.clone(), NOW).expect("routes");
    engine.set_tree_routes(routes, NOW).expect("routes");
    let gathered = Gathered {
        epoch: EPOCH,
        origins: BTreeMap::from([(ORIGIN, SWITCH)]),
    };
    let plan = GroupPlan {
        id: GROUP,
        epoch: 1,
        choices: Choice::only(Replication::Switches),
        members: vec![ORIGIN, CHILD],
        mtu: None,
        structures: Arc::new(Pair(ORIGIN)),
        reports_begin: false,
        gathered: gathers.then_some(gathered),
    };
    engine.set_group(plan, NOW).expect("a plan");
    engine
}

/// An origin that has sent three packets.
fn origin() -> Engine {
    let mut engine = engine(true);
    for _ in 0..3 {
        engine.write(GROUP, b"one", true, NOW).expect("written");
    }
    sent(&mut engine);
    engine
}

fn sent(engine: &mut Engine) -> Vec<Vec<u8>> {
    let mut buf = vec![0; engine.frame_length_max()];
    let mut frames = Vec::new();
    for step in 0..200 {
        let now = NOW.plus_us(100 * step);
        while let Some(sent) = engine.poll_transmit(now, &mut buf) {
            frames.push(buf[..sent.length].to_vec());
        }
    }
    frames
}

fn question(number: u32, branches: &[(u32, &[u8], u8)]) -> BranchQuestion {
    let asked = |&(number, route, port): &(u32, &[u8], u8)| AskedBranch {
        number,
        route: route.to_vec(),
        port,
    };
    BranchQuestion {
        number,
        group: GROUP,
        epoch: EPOCH,
        branches: branches.iter().map(asked).collect(),
    }
}

/// Requests that leave: number of the worm, route, what they say.
fn requests(engine: &mut Engine) -> Vec<(u16, Vec<u8>, Announcement)> {
    let read = |frame: &Vec<u8>| {
        let worm = worm::decode(frame).expect("its own frame");
        (worm.header.kind == Kind::Gather).then(|| {
            let announced = gather::decode(&worm).expect("it says something");
            (worm.header.sequence, worm.route.to_vec(), announced)
        })
    };
    sent(engine).iter().filter_map(read).collect()
}

/// What a switch makes of a request.
fn answer(sequence: u16, request: &Announcement, known: Option<(u32, u32)>) -> Vec<u8> {
    answer_of(SWITCH, sequence, request, known)
}

fn answer_of(
    source: HostId,
    sequence: u16,
    request: &Announcement,
    known: Option<(u32, u32)>,
) -> Vec<u8> {
    let announced = Announcement {
        op: Op::Answer,
        flags: known.map_or(0, |_| flags::KNOWN),
        cumulative: Seq(known.map_or(0, |known| known.0)),
        stable: Seq(known.map_or(0, |known| known.1)),
        ..*request
    };
    let mut frame = vec![0; gather::FRAME_LENGTH_MAX];
    let length = gather::encode(&mut frame, [3; 6], (source, sequence), &[], &announced);
    frame.truncate(length);
    frame
}

#[test]
fn requests_leave_and_answers_are_known_by_the_number_of_the_worm() {
    let mut engine = origin();
    engine
        .ask_branches(question(7, &[(0, &[], 4), (1, &[4, 5], 6)]))
        .expect("asked");
    assert!(
        engine.poll_timeout() <= Some(NOW.plus_us(30_000)),
        "they are due"
    );
    let asked = requests(&mut engine);
    let says = |port| Announcement {
        op: Op::Request,
        flags: 0,
        group: GROUP,
        origin: ORIGIN,
        port,
        epoch: EPOCH,
        stream: STREAM,
        cumulative: Seq(0),
        stable: Seq(0),
    };
    let shown: Vec<_> = asked.iter().map(|one| (&one.1[..], one.2)).collect();
    assert_eq!(shown, [(&[][..], says(4)), (&[4, 5][..], says(6))]);
    // The second one first, and of the first the switch knows nothing.
    let [(first, _, one), (second, _, other)] = &asked[..] else {
        panic!("{asked:?}");
    };
    let frames = [
        answer(*second, other, Some((102, 101))),
        answer(*first, one, None),
    ];
    for frame in &frames {
        engine.handle_frame(frame, NOW).expect("taken");
    }
    let answers: Vec<_> = std::iter::from_fn(|| engine.poll_branch_answer()).collect();
    let known = |branch, known| BranchAnswer {
        question: 7,
        branch,
        known,
    };
    assert_eq!(
        answers,
        [known(1, Some((Seq(102), Seq(101)))), known(0, None)]
    );
    // Twice, it answers nothing.
    let again = engine.handle_frame(&frames[0], NOW);
    assert_eq!(again, Err(Reject::GatheredUnasked));
}

#[test]
fn answers_that_fit_no_request_are_refused() {
    let mut engine = origin();
    let other = |sequence: u16, request: &Announcement| answer(sequence, request, Some((102, 101)));
    engine
        .ask_branches(question(7, &[(0, &[], 4)]))
        .expect("asked");
    let (sequence, _, request) = requests(&mut engine).remove(0);
    for changed in [
        Announcement { port: 5, ..request },
        Announcement {
            epoch: 8,
            ..request
        },
        Announcement {
            stream: STREAM + 1,
            ..request
        },
    ] {
        let refused = engine.handle_frame(&other(sequence, &changed), NOW);
        assert_eq!(refused, Err(Reject::GatheredUnasked), "{changed:?}");
    }
    let refused = engine.handle_frame(&other(sequence.wrapping_add(1), &request), NOW);
    assert_eq!(refused, Err(Reject::GatheredUnasked), "another worm");
    let forged = answer_of(HostId(SWITCH.0 + 1), sequence, &request, None);
    let refused = engine.handle_frame(&forged, NOW);
    assert_eq!(refused, Err(Reject::GatheredUnasked), "of another switch");
    assert_eq!(engine.poll_branch_answer(), None);
    // What answers says nothing of what is acknowledged.
    engine
        .handle_frame(&other(sequence, &request), NOW)
        .expect("taken");
    let lag = engine.lag(GROUP, ORIGIN).expect("a stream");
    assert_eq!(lag.children[0].held, lag.first);
}

#[test]
fn what_cannot_be_asked_is_named() {
    let mut engine = origin();
    let of = |count: u32| BranchQuestion {
        branches: (0..count)
            .map(|number| AskedBranch {
                number,
                route: vec![],
                port: 1,
            })
            .collect(),
        ..question(1, &[])
    };
    let most = BRANCHES_ASKED_MAX as u32;
    let refused = |engine: &mut Engine, question| engine.ask_branches(question).unwrap_err();
    assert_eq!(refused(&mut engine, of(most + 1)), AskError::TooMany(65));
    assert_eq!(
        refused(&mut engine, question(1, &[(0, &[254], 1)])),
        AskError::NoPort(254)
    );
    assert_eq!(
        refused(&mut engine, question(1, &[(0, &[1; 65], 1)])),
        AskError::TooFar(65)
    );
    let nothing = BranchQuestion {
        group: GroupId(4),
        ..of(1)
    };
    assert_eq!(
        refused(&mut engine, nothing),
        AskError::NoStream(GroupId(4))
    );
    for _ in 0..4 {
        engine.ask_branches(of(most)).expect("asked");
    }
    assert_eq!(refused(&mut engine, of(1)), AskError::Busy(257));
    assert_eq!(requests(&mut engine).len(), 256);
    engine.ask_branches(of(1)).expect("there is room again");
    let mut by_hosts = crate::lag::engine(false);
    by_hosts.write(GROUP, b"one", true, NOW).expect("written");
    assert_eq!(refused(&mut by_hosts, of(1)), AskError::NotGathered(GROUP));
}

#[test]
fn answers_that_nobody_takes_are_bounded_and_counted() {
    let mut engine = origin();
    for _ in 0..=ANSWERS_MAX {
        engine
            .ask_branches(question(7, &[(0, &[], 4)]))
            .expect("asked");
        let (sequence, _, request) = requests(&mut engine).remove(0);
        engine
            .handle_frame(&answer(sequence, &request, None), NOW)
            .expect("taken");
    }
    assert_eq!(engine.counters().answers_dropped, 1);
    assert_eq!(
        std::iter::from_fn(|| engine.poll_branch_answer()).count(),
        ANSWERS_MAX
    );
}

#[test]
fn an_origin_tells_how_far_its_stream_and_its_children_are() {
    let mut engine = origin();
    let first = Seq(100).first_position();
    let child = |held, confirmed| ChildLag {
        host: CHILD,
        below: 0,
        held,
        confirmed,
        given_up: false,
    };
    let of = |confirmed, child| StreamLag {
        first,
        held: first + 3,
        confirmed,
        children: vec![child],
    };
    assert_eq!(
        engine.lag(GROUP, ORIGIN),
        Some(of(first, child(first, first)))
    );
    let announced = Announcement {
        op: Op::Ack,
        flags: 0,
        group: GROUP,
        origin: ORIGIN,
        port: 0,
        epoch: EPOCH,
        stream: STREAM,
        cumulative: Seq(102),
        stable: Seq(101),
    };
    let mut frame = vec![0; gather::FRAME_LENGTH_MAX];
    let length = gather::encode(&mut frame, [3; 6], (SWITCH, 1), &[], &announced);
    engine.handle_frame(&frame[..length], NOW).expect("taken");
    let told = of(first + 1, child(first + 2, first + 1));
    assert_eq!(engine.lag(GROUP, ORIGIN), Some(told));
    assert_eq!(engine.origins(GROUP).collect::<Vec<_>>(), [ORIGIN]);
    assert_eq!(engine.lag(GROUP, CHILD), None);
}
