//! Probes take the very ways of messages, and say what came of them; they touch no stream.

use std::collections::BTreeMap;
use std::sync::Arc;
use wormcast_protocol::{
    Alternative, Alternatives, Choice, Copies, Edge, Engine, EngineConfig, GroupPlan, Instant,
    OBSERVATIONS_MAX, Role, Structures, TraceRequest, Traced, Way,
};
use wormcast_wire::trace::{RECORD_LENGTH, Record};
use wormcast_wire::worm::{self, Kind, flags};
use wormcast_wire::{BufferClass, GroupId, HostId, Replication, SHARES_WHOLE, SwitchId};

const GROUP: GroupId = GroupId(3);
const MEMBERS: [HostId; 3] = [HostId(1), HostId(2), HostId(3)];
const NOW: Instant = Instant::from_micros(9);

/// A chain of hosts in the order of MEMBERS, or copies.
struct Chain {
    host: HostId,
    copies: fn(&Chain) -> Copies<'_>,
    trees: Vec<BTreeMap<HostId, Vec<u8>>>,
}

impl Structures for Chain {
    fn role(&self, origin: HostId, _choice: u8) -> Option<Role> {
        let at = MEMBERS.iter().position(|host| *host == origin)?;
        let order: Vec<HostId> = (0..3).map(|step| MEMBERS[(at + step) % 3]).collect();
        let edges: Vec<Edge> = order
            .windows(2)
            .map(|pair| Edge {
                from: pair[0],
                to: pair[1],
                class: BufferClass::One,
            })
            .collect();
        Role::from_edges(self.host, origin, &edges)
    }

    fn copies(&self, _choice: u8) -> Copies<'_> {
        (self.copies)(self)
    }
}

fn two_routes(to: u8) -> Alternatives {
    let route = |ports: Vec<u8>| Alternative {
        ports,
        share: SHARES_WHOLE / 2,
    };
    Alternatives {
        routes: vec![route(vec![to]), route(vec![7, to])],
        at_random: false,
    }
}

fn engine_with(
    host: HostId,
    mtu: usize,
    replication: Replication,
    copies: fn(&Chain) -> Copies<'_>,
) -> Engine {
    let config = EngineConfig::new(host, [2, 0, 0, 0, 0, host.0 as u8], mtu, 5, 100);
    let mut engine = Engine::new(config).expect("a valid configuration");
    let others = MEMBERS.into_iter().filter(|other| *other != host);
    let others: Vec<HostId> = others.collect();
    let unicast = others
        .iter()
        .map(|other| (*other, Arc::new(two_routes(other.0 as u8))))
        .collect();
    let tree: BTreeMap<HostId, Vec<u8>> = others
        .iter()
        .map(|other| (*other, vec![4, other.0 as u8]))
        .collect();
    let other_tree = others
        .iter()
        .map(|other| (*other, vec![5, other.0 as u8]))
        .collect();
    let trees = vec![tree.clone(), other_tree];
    engine
        .set_all_routes(&unicast, &Arc::new(tree), Some(&[9, 9]), NOW)
        .expect("routes");
    let plan = GroupPlan {
        id: GROUP,
        epoch: 1,
        choices: Choice::only(replication),
        members: MEMBERS.to_vec(),
        mtu: None,
        structures: Arc::new(Chain {
            host,
            copies,
            trees,
        }),
        reports_begin: false,
        gathered: None,
    };
    engine.set_group(plan, NOW).expect("a plan");
    engine
}

fn engine(host: HostId) -> Engine {
    engine_with(host, 1_500, Replication::Hosts, |_| Copies::SpanningTree)
}

fn to_host(to: u16, route: Option<u8>) -> TraceRequest {
    TraceRequest {
        trace: 77,
        attempt: 2,
        of: Traced::ToHost(HostId(to)),
        route,
    }
}

fn in_group(origin: u16) -> TraceRequest {
    let of = Traced::InGroup {
        group: GROUP,
        origin: HostId(origin),
        bytes: None,
    };
    TraceRequest {
        trace: 77,
        attempt: 1,
        of,
        route: None,
    }
}

fn sent(engine: &mut Engine) -> Vec<Vec<u8>> {
    let mut buf = vec![0; engine.frame_length_max()];
    let mut frames = Vec::new();
    while let Some(sent) = engine.poll_transmit(NOW, &mut buf) {
        frames.push(buf[..sent.length].to_vec());
    }
    frames
}

fn kinds_and_routes(ways: &[Way]) -> Vec<(Kind, Vec<u8>)> {
    ways.iter()
        .map(|way| (way.kind, way.route.clone()))
        .collect()
}

/// The frame as a host gets it: no route left, with the records of switches, oldest first.
fn arriving(frame: &[u8], records: &[Record]) -> Vec<u8> {
    let worm = worm::decode(frame).expect("a worm");
    let room = worm.trace.expect("it is traced").room;
    let header = worm::Header {
        hops: records.len() as u8,
        ..worm.header
    };
    let mut out = vec![0; 14 + 12];
    worm::encode(&mut out, [2; 6], &header, &[]);
    out.extend([records.len() as u8, room]);
    records
        .iter()
        .rev()
        .for_each(|record| out.extend(record.to_bytes()));
    out.extend(worm.payload);
    out
}

fn record(switch: u16, hop: u8) -> Record {
    Record {
        switch: SwitchId(switch),
        hop,
        ingress_port: 1,
        egress_port: 2,
        stay_us: 30,
        queue: 4,
        left_us: 5,
    }
}

#[test]
fn each_route_to_a_host_is_probed() {
    let mut engine = engine(MEMBERS[0]);
    let ways = engine.trace(&to_host(2, None)).expect("ways");
    assert_eq!(
        kinds_and_routes(&ways),
        [(Kind::Unicast, vec![2]), (Kind::Unicast, vec![7, 2])]
    );
    let places: Vec<_> = ways
        .iter()
        .map(|way| (way.number, way.alternative))
        .collect();
    assert_eq!(places, [(0, Some((0, 6_300))), (1, Some((1, 6_300)))]);
    assert!(
        ways.iter()
            .all(|way| way.to == [HostId(2)] && way.tree.is_none())
    );
    assert_eq!(engine.poll_timeout(), Some(NOW), "at once");
    let frames = sent(&mut engine);
    assert_eq!(frames.len(), 2);
    for (frame, way) in frames.iter().zip(&ways) {
        let worm = worm::decode(frame).expect("a worm");
        assert_eq!(worm.route, way.route);
        assert_eq!(worm.header.flags, flags::HEAD | flags::TAIL | flags::TRACE);
        let trace = worm.trace.expect("it is traced");
        assert_eq!((trace.room, trace.count()), (64, 0));
    }
    let one = engine.trace(&to_host(2, Some(1))).expect("a way");
    assert_eq!(kinds_and_routes(&one), [(Kind::Unicast, vec![7, 2])]);
    assert_eq!(one[0].alternative.map(|(place, _)| place), Some(1));
}

#[test]
fn room_is_what_the_mtu_leaves() {
    let mut engine = engine_with(MEMBERS[0], 576, Replication::Hosts, |_| {
        Copies::SpanningTree
    });
    engine.trace(&to_host(2, Some(0))).expect("a way");
    let frames = sent(&mut engine);
    let room = worm::decode(&frames[0])
        .expect("a worm")
        .trace
        .expect("traced")
        .room;
    let full = frames[0].len() - 14 + usize::from(room) * RECORD_LENGTH;
    assert!(
        (576 - RECORD_LENGTH + 1..=576).contains(&full),
        "{room} records, {full} bytes"
    );
}

#[test]
fn in_a_group_each_host_probes_what_it_sends() {
    let ways = |host: HostId, origin| {
        let ways = engine(host).trace(&in_group(origin)).expect("ways");
        ways.into_iter()
            .map(|way| (way.kind, way.to))
            .collect::<Vec<_>>()
    };
    let chain = |to: HostId| vec![(Kind::Unicast, vec![to]); 2];
    assert_eq!(ways(MEMBERS[0], 1), chain(MEMBERS[1]));
    assert_eq!(ways(MEMBERS[1], 1), chain(MEMBERS[2]));
    assert_eq!(ways(MEMBERS[2], 1), [], "the last sends nothing on");
    assert_eq!(
        ways(MEMBERS[2], 2),
        chain(MEMBERS[0]),
        "other hosts for another origin"
    );
}

#[test]
fn where_switches_copy_the_origin_probes_with_their_worms() {
    let ways = |host: HostId, copies| {
        let mut engine = engine_with(host, 1_500, Replication::Switches, copies);
        engine.trace(&in_group(1)).expect("ways")
    };
    let spanning = ways(MEMBERS[0], |_| Copies::SpanningTree);
    let (kind, route) = kinds_and_routes(&spanning).remove(0);
    assert_eq!(
        (kind, spanning.len(), spanning[0].tree),
        (Kind::Tree, 1, None)
    );
    assert_eq!(
        wormcast_wire::tree_route::decode_tree(&route),
        Ok(vec![vec![4, 2], vec![4, 3]])
    );
    assert_eq!(spanning[0].to, MEMBERS[1..]);
    let two = ways(MEMBERS[0], |chain| Copies::Trees(&chain.trees));
    assert_eq!(
        two.iter().map(|way| way.tree).collect::<Vec<_>>(),
        [Some(0), Some(1)]
    );
    let number = ways(MEMBERS[0], |_| Copies::Number(GroupId(0x0102)));
    assert_eq!(kinds_and_routes(&number), [(Kind::Group, vec![1, 2])]);
    let broadcast = ways(MEMBERS[0], |_| Copies::Broadcast);
    assert_eq!(
        kinds_and_routes(&broadcast),
        [(Kind::Broadcast, vec![9, 9])]
    );
    assert_eq!(ways(MEMBERS[1], |_| Copies::SpanningTree), [], "no origin");
}

#[test]
fn whoever_gets_a_probe_says_what_it_brought() {
    let mut origin = engine_with(MEMBERS[0], 1_500, Replication::Switches, |_| {
        Copies::Number(GROUP)
    });
    origin.trace(&in_group(1)).expect("ways");
    let frame = sent(&mut origin).remove(0);
    let records = [record(8, 1), record(9, 2)];
    let arrived = arriving(&frame, &records);
    for mut receiver in [engine(MEMBERS[1]), {
        let config = EngineConfig::new(HostId(40), [2; 6], 1_500, 5, 100);
        Engine::new(config).expect("a host that is no member of any group")
    }] {
        receiver.handle_frame(&arrived, NOW).expect("taken");
        let seen = receiver.poll_observation().expect("it came");
        assert_eq!(
            (seen.trace, seen.way, seen.attempt, seen.sender),
            (77, 0, 1, MEMBERS[0])
        );
        assert_eq!(
            (seen.hops, seen.room, seen.count, seen.marked),
            (2, 64, 2, false)
        );
        assert_eq!(seen.records, records);
        assert_eq!(receiver.poll_observation(), None);
        assert_eq!(
            sent(&mut receiver),
            Vec::<Vec<u8>>::new(),
            "nothing is answered"
        );
        assert_eq!(receiver.statistics().count(), 0, "no stream begins");
    }
    origin
        .handle_frame(&arrived, NOW)
        .expect("its own, copied back");
    assert_eq!(origin.poll_observation(), None);
    assert_eq!(origin.counters().filtered, 1);
}

#[test]
fn what_is_damaged_on_the_way_is_not_believed() {
    let mut origin = engine(MEMBERS[0]);
    origin.trace(&to_host(2, Some(0))).expect("a way");
    let frame = sent(&mut origin).remove(0);
    let good = arriving(&frame, &[record(8, 1), record(9, 2)]);
    for at in 14 + 12 + 2..good.len() {
        let mut receiver = engine(MEMBERS[1]);
        let mut bad = good.clone();
        bad[at] ^= 0x10;
        let taken = receiver.handle_frame(&bad, NOW);
        let seen = receiver.poll_observation();
        match (at - 28) / RECORD_LENGTH {
            0 => assert_eq!(
                seen.expect("taken").records,
                [record(8, 1)],
                "newest damaged, byte {at}"
            ),
            1 => assert_eq!(
                seen.expect("taken").records,
                [record(9, 2)],
                "oldest damaged, byte {at}"
            ),
            _ => assert!(
                taken.is_err() && seen.is_none(),
                "the CRC of the PDU, byte {at}"
            ),
        }
    }
    // Another count puts the PDU in the wrong place.
    for count in (0..=255).filter(|count| *count != 2) {
        let mut receiver = engine(MEMBERS[1]);
        let mut bad = good.clone();
        bad[26] = count;
        assert!(receiver.handle_frame(&bad, NOW).is_err(), "count {count}");
        assert_eq!(receiver.poll_observation(), None);
    }
}

#[test]
fn probes_that_nobody_takes_do_not_pile_up() {
    let mut origin = engine(MEMBERS[0]);
    origin.trace(&to_host(2, Some(0))).expect("a way");
    let arrived = arriving(&sent(&mut origin).remove(0), &[]);
    let mut receiver = engine(MEMBERS[1]);
    for _ in 0..OBSERVATIONS_MAX + 3 {
        receiver.handle_frame(&arrived, NOW).expect("taken");
    }
    assert_eq!(receiver.counters().observations_dropped, 3);
    assert_eq!(
        std::iter::from_fn(|| receiver.poll_observation()).count(),
        OBSERVATIONS_MAX
    );
    // A trace that is asked for again replaces what waits of the one before.
    for _ in 0..5 {
        origin.trace(&to_host(2, None)).expect("ways");
    }
    assert_eq!(sent(&mut origin).len(), 2);
}

#[test]
fn what_cannot_be_traced_is_refused_with_the_choices() {
    let refused = |request: TraceRequest| {
        let mut engine = engine(MEMBERS[0]);
        let error = engine.trace(&request).expect_err("refused").to_string();
        assert_eq!(sent(&mut engine).len(), 0);
        error
    };
    assert_eq!(
        refused(to_host(1, None)),
        "host 1 is this host: no worm goes there"
    );
    assert_eq!(
        refused(to_host(9, None)),
        "there is no route to host 9; there are routes to hosts 2, 3"
    );
    assert_eq!(
        refused(to_host(2, Some(2))),
        "there is no route 2 to host 2; its routes are 0 to 1"
    );
    assert_eq!(
        refused(in_group(9)),
        "host 9 sends nothing to group 3; its members are hosts 1, 2, 3"
    );
    let of = Traced::InGroup {
        group: GroupId(5),
        origin: HostId(1),
        bytes: None,
    };
    assert_eq!(
        refused(TraceRequest { of, ..in_group(1) }),
        "this host is no member of group 5; it is one of groups 3"
    );
}
