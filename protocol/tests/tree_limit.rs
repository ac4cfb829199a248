//! Where switches take shorter TREE routes than others, no worm has a longer one: not the copies of a message, not
//! those that repair it, and not probes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use wormcast_protocol::{
    Choice, Edge, Engine, EngineConfig, GroupPlan, Instant, Role, Structures, TraceRequest, Traced,
};
use wormcast_wire::ack::{Ack, List, SeqRange};
use wormcast_wire::pdu::{self, Body, Common};
use wormcast_wire::tree_route::{Branch, branches, decode_tree};
use wormcast_wire::worm::{self, Header, Kind, flags};
use wormcast_wire::{BufferClass, ETHERTYPE_HOST_PDU, GroupId, HostId, Replication, Seq};

const GROUP: GroupId = GroupId(3);
const ORIGIN: HostId = HostId(0);
/// Of the first stream that an engine begins: its incarnation.
const STREAM: u32 = 50;
const MEMBERS: u16 = 120;
const SWITCHES: u64 = 40;
/// TOFINO_MAX_ROUTE of p4src/shared/sizes.p4.
const LIMIT: usize = 127;
const NOW: Instant = Instant::from_micros(9);
const STEP_US: u64 = 100;
/// Shorter than any wait for an answer: nothing is sent twice.
const SENDING_US: u64 = 20_000;

/// The origin has all others as children.
struct Star;

impl Structures for Star {
    fn role(&self, origin: HostId, _choice: u8) -> Option<Role> {
        let edge = |to| Edge {
            from: origin,
            to: HostId(to),
            class: BufferClass::One,
        };
        let edges: Vec<Edge> = (1..MEMBERS).map(edge).collect();
        Role::from_edges(ORIGIN, origin, &edges)
    }
}

/// Paths from the origin along a drawn tree of switches, behind a way of `up` switches to its root. A switch has
/// ports 0 to 9 down to others, and hosts from port 10 on.
fn drawn_paths(seed: u64, up: usize) -> BTreeMap<HostId, Vec<u8>> {
    let mut state = seed;
    let mut draw = |below: u64| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let mut switches = vec![vec![63; up]];
    let mut children = vec![0_u8];
    while (switches.len() as u64) < SWITCHES {
        let parent = draw(switches.len() as u64) as usize;
        if children[parent] < 10 && switches[parent].len() < 40 {
            let path = [&switches[parent][..], &[children[parent]]].concat();
            children[parent] += 1;
            switches.push(path);
            children.push(0);
        }
    }
    let mut hosts = vec![10_u8; switches.len()];
    let mut paths = BTreeMap::new();
    for host in 1..MEMBERS {
        let at = draw(SWITCHES) as usize;
        paths.insert(HostId(host), [&switches[at][..], &[hosts[at]]].concat());
        hosts[at] += 1;
    }
    paths
}

fn origin(paths: &BTreeMap<HostId, Vec<u8>>) -> Engine {
    let mut config = EngineConfig::new(ORIGIN, [2; 6], 1_500, 1, STREAM);
    config.first_seq = Some(Seq(0));
    let mut engine = Engine::new(config).expect("valid");
    let unicast = (1..MEMBERS).map(|host| (HostId(host), vec![1]));
    engine.set_routes(unicast.collect(), NOW).expect("routes");
    engine.set_tree_routes(paths.clone(), NOW).expect("routes");
    let plan = GroupPlan {
        id: GROUP,
        epoch: 1,
        choices: Choice::only(Replication::Switches),
        members: (0..MEMBERS).map(HostId).collect(),
        mtu: None,
        structures: Arc::new(Star),
        reports_begin: false,
        gathered: None,
    };
    engine.set_group(plan, NOW).expect("a plan");
    engine
}

/// Routes of the TREE worms that leave within this time, which goes by.
fn tree_routes(engine: &mut Engine, now: &mut Instant, for_us: u64) -> Vec<Vec<u8>> {
    let mut buf = vec![0; engine.frame_length_max()];
    let mut routes = Vec::new();
    for _ in 0..for_us / STEP_US {
        engine.handle_timeout(*now);
        while let Some(sent) = engine.poll_transmit(*now, &mut buf) {
            let worm = worm::decode(&buf[..sent.length]).expect("its own frame");
            if worm.header.kind == Kind::Tree {
                routes.push(worm.route.to_vec());
            }
        }
        *now = now.plus_us(STEP_US);
    }
    routes
}

/// Tofino takes a TREE route of [`LIMIT`] bytes, and sub-routes of 124 at any switch. Who is reached, each once.
fn check(routes: &[Vec<u8>]) -> BTreeSet<Vec<u8>> {
    let mut reached = BTreeSet::new();
    for route in routes {
        assert!(route.len() <= LIMIT, "{} bytes", route.len());
        let mut open = vec![route.clone()];
        while let Some(at) = open.pop() {
            let below = branches(&at).expect("a route");
            for branch in below.filter(|branch| !branch.sub_route.is_empty()) {
                assert!(branch.sub_route.len() <= LIMIT - 3);
                open.push(Branch::copy_route(&branch));
            }
        }
        for path in decode_tree(route).expect("a route") {
            assert!(reached.insert(path), "twice");
        }
    }
    reached
}

fn all_of(paths: &BTreeMap<HostId, Vec<u8>>) -> BTreeSet<Vec<u8>> {
    paths.values().cloned().collect()
}

#[test]
fn no_worm_of_a_message_or_a_trace_has_a_longer_route() {
    for (seed, up) in [(1, 0), (2, 0), (3, 5), (4, 20)] {
        let paths = drawn_paths(seed, up);
        let mut engine = origin(&paths);
        engine.set_tree_route_max(LIMIT);
        let mut now = NOW;
        engine.write(GROUP, b"all", true, now).expect("written");
        assert_eq!(
            check(&tree_routes(&mut engine, &mut now, SENDING_US)),
            all_of(&paths),
            "seed {seed}"
        );
        let of = Traced::InGroup {
            group: GROUP,
            origin: ORIGIN,
            bytes: None,
        };
        let request = TraceRequest {
            trace: 7,
            attempt: 1,
            of,
            route: None,
        };
        engine.trace(&request).expect("ways");
        assert_eq!(
            check(&tree_routes(&mut engine, &mut now, STEP_US)),
            all_of(&paths),
            "seed {seed}"
        );
    }
}

/// Worms are made anew when the limit changes, while messages are under way too.
#[test]
fn another_limit_counts_from_the_next_packet_on() {
    let paths = drawn_paths(5, 0);
    let mut engine = origin(&paths);
    let mut now = NOW;
    let mut worms = |engine: &mut Engine| {
        engine.write(GROUP, b"all", true, now).expect("written");
        let routes = tree_routes(engine, &mut now, SENDING_US);
        (routes.len(), routes.iter().map(Vec::len).max())
    };
    let (count, longest) = worms(&mut engine);
    assert!(longest > Some(LIMIT));
    engine.set_tree_route_max(LIMIT);
    let (more, shorter) = worms(&mut engine);
    assert!(more > count && shorter <= Some(LIMIT));
    engine.set_tree_route_max(255);
    assert_eq!(worms(&mut engine), (count, longest));
}

/// Every member has the second and third packet, and none the first.
#[test]
fn what_repairs_has_no_longer_route_either() {
    let paths = drawn_paths(6, 0);
    let mut engine = origin(&paths);
    engine.set_tree_route_max(LIMIT);
    let mut now = NOW;
    for _ in 0..3 {
        engine.write(GROUP, b"one", true, now).expect("written");
    }
    assert!(!tree_routes(&mut engine, &mut now, 3 * SENDING_US).is_empty());
    for host in 1..MEMBERS {
        engine.handle_frame(&ack(HostId(host)), now).expect("taken");
    }
    let repaired = tree_routes(&mut engine, &mut now, 200_000);
    assert!(!repaired.is_empty());
    for route in &repaired {
        check(std::slice::from_ref(route));
    }
    let reached = repaired
        .iter()
        .flat_map(|route| decode_tree(route).expect("a route"));
    assert_eq!(reached.collect::<BTreeSet<_>>(), all_of(&paths));
}

fn ack(from: HostId) -> Vec<u8> {
    let range = SeqRange {
        start: Seq(1),
        end: Seq(3),
    };
    let body = Body::Ack(Ack {
        epoch: 1,
        receiver: 1,
        cumulative: Seq(0),
        stable: Seq(0),
        echo: None,
        packets: 2,
        duplicates: 0,
        congestion: 0,
        retransmissions: 0,
        ranges: List::Values(&[range]),
        failed: List::Values(&[]),
        sets: List::Values(&[]),
    });
    let common = Common {
        group: GROUP,
        origin: ORIGIN,
        stream: STREAM,
    };
    let header = Header {
        kind: Kind::Unicast,
        flags: flags::HEAD | flags::TAIL,
        hops: 1,
        source: from,
        sequence: 0,
        next: ETHERTYPE_HOST_PDU,
    };
    let mut frame = vec![0; 14 + worm::HEADER_LENGTH + pdu::length_of(&common, from, &body)];
    let at = worm::encode(&mut frame, [3; 6], &header, &[]);
    pdu::encode(&mut frame[at..], from, &common, &body);
    frame
}
