//! Scheme B of WORM §3 on the switches' own pipeline: multicasts from the root that are interrupted where they are
//! blocked.

use std::collections::BTreeSet;
use wormcast_fabric_tests::figure_3::figure_3;
use wormcast_fabric_tests::random::Random;
use wormcast_fabric_tests::switch::Copy;
use wormcast_fabric_tests::trains::{
    ABORT, Received, STEP_US, Scheme, Trains, Worm, frame_of, rooted,
};
use wormcast_routing::generate;
use wormcast_routing::routes::{Algorithm, Routes};
use wormcast_wire::HostId;
use wormcast_wire::worm::{Header, Kind, checksum};
use wormcast_wire::wormhole::signal::{self, NEXT_CONTROL, Signal, encode_signal};

const LONG_US: u64 = 10_000_000;
const QUIET_US: u64 = 50_000;
const NEVER_US: u64 = 100_000_000;

/// At every receiver multicasts come one after the other, in the order of the numbers that the root gave them.
fn check_order(network: &Trains) {
    for (receiver, seen) in &network.sequence {
        let distinct: BTreeSet<_> = seen.iter().collect();
        assert_eq!(
            distinct.len(),
            seen.len(),
            "fragments of two multicasts mixed at host {receiver}: {seen:?}"
        );
        let orders = seen
            .iter()
            .filter_map(|&(source, sequence)| network.orders.get(&(*receiver, source, sequence)));
        let orders: Vec<u16> = orders.copied().collect();
        assert!(
            orders.iter().all(|&order| order > 0) && orders.is_sorted_by(|a, b| a < b),
            "numbers at host {receiver}: {orders:?}"
        );
    }
}

#[test]
fn fig_3_goes_on_where_the_multicast_is_interrupted() {
    let topology = figure_3();
    let mut network = Trains::new(topology.clone(), Scheme::Interrupt, NEVER_US, 1);
    let tree = rooted(&topology, HostId(0), &[HostId(1), HostId(2)]);
    network.send(0, 0, true, &tree, 60);
    network.send(3, 2 * STEP_US, false, &[2, 2, 0], 60);
    assert!(network.run(QUIET_US, LONG_US), "{:?}", network.circle());
    for key in [(1, 0, 1), (2, 0, 1), (1, 3, 1)] {
        assert_eq!(network.received[&key], Received::whole(60), "{key:?}");
    }
    assert!(network.events("INTERRUPTED") >= 1);
    assert_eq!(network.events("RESET_SENT"), 0);
    check_order(&network);
}

/// The two that wait for each other for ever under the first scheme.
#[test]
fn two_multicasts_with_two_common_members_come_in_one_order() {
    let topology = figure_3();
    let mut network = Trains::new(topology.clone(), Scheme::Interrupt, NEVER_US, 1);
    let members = [HostId(1), HostId(2)];
    for source in [0, 3] {
        let tree = rooted(&topology, HostId(source), &members);
        network.send(source, 0, true, &tree, 60);
    }
    assert!(network.run(QUIET_US, LONG_US), "{:?}", network.circle());
    for member in [1, 2] {
        for source in [0, 3] {
            assert_eq!(network.received[&(member, source, 1)], Received::whole(60));
        }
    }
    check_order(&network);
    assert_eq!(network.sequence[&1], network.sequence[&2]);
}

const HEAD: u8 = 0x02;
const TAIL: u8 = 0x04;
const RESUMED: u8 = 0x08;
const TRAIN: u8 = 0x40;
/// Of `drop_reason_t`.
const TRAIN_RESET: usize = 16;
/// Ethernet, worm and train headers.
const HEADERS: usize = 14 + 12 + 20;

/// Sums a worm without a route up again.
fn seal(mut frame: Vec<u8>) -> Vec<u8> {
    frame[24..26].fill(0);
    let sum = checksum(&frame[14..HEADERS]);
    frame[24..26].copy_from_slice(&sum.to_be_bytes());
    frame
}

fn signal(signal: Signal) -> Vec<u8> {
    let header = Header {
        kind: Kind::Control,
        flags: HEAD | TAIL,
        hops: 1,
        source: HostId(0),
        sequence: 0,
        next: NEXT_CONTROL,
    };
    let mut frame = vec![0; 60];
    encode_signal(&mut frame, [2; 6], &header, signal);
    frame
}

/// One switch, the root, with hosts at its ports; a multicast to two of them.
fn one_switch() -> (Trains, Worm) {
    let topology = generate::from_spec("line:1:7").expect("a network");
    let network = Trains::new(topology.clone(), Scheme::Interrupt, NEVER_US, 1);
    let worm = Worm {
        sequence: 1,
        is_tree: true,
        route: rooted(&topology, HostId(0), &[HostId(3), HostId(6)]),
        frames: 9,
        source: 0,
    };
    (network, worm)
}

/// One switch, the root, with hosts at its ports: frame by frame.
#[test]
fn a_switch_ends_a_fragment_and_begins_the_next() {
    let (mut network, worm) = one_switch();
    let frame = |position| frame_of(&worm, position, Scheme::Interrupt);
    let stop_us = 10_000;
    let mut now_us = network.now_us();
    let mut give = |network: &mut Trains, frame: &[u8], port: u8| {
        let switch = network.switches.get_mut(&0).expect("the switch");
        let mut copies = switch.forward(frame, port, now_us, |_| 0);
        for _ in 0..20 {
            now_us += STEP_US;
            copies.extend(switch.go_round(now_us));
        }
        copies.sort_by_key(|copy| copy.port);
        for Copy { port, frame } in copies.iter().filter(|copy| copy.port != 0) {
            assert_eq!(seal(frame.clone()), *frame, "the checksum at port {port}");
        }
        copies
    };
    // Flags, hops, position and number of what left, by port; what is behind the headers.
    let fields_of = |copies: &[Copy]| -> Vec<(u8, u8, u8, u8, u8, usize)> {
        let of = |Copy { port, frame }: &Copy| {
            let behind = frame.len() - HEADERS;
            (*port, frame[15], frame[17], frame[27], frame[30], behind)
        };
        copies.iter().map(of).collect()
    };
    let both = |flags, position, behind| [3, 6].map(|port| (port, flags, 1, position, 1, behind));

    let left = give(&mut network, &frame(0), 0);
    assert_eq!(fields_of(&left), both(TRAIN | HEAD, 0, 40));
    assert_eq!(
        give(&mut network, &signal(Signal::Stop(stop_us)), 3).len(),
        0
    );
    let left = give(&mut network, &frame(1), 0);
    assert_eq!(fields_of(&left), both(TRAIN | TAIL | RESUMED, 1, 0));
    // It has nothing, and takes nothing as long as one stops.
    let outputs = network.switches[&0].register("channel_outputs", 0);
    assert_eq!((outputs, network.events("GIVEN_BACK")), (0, 0));
    let left = give(&mut network, &signal(Signal::Go), 3);
    assert_eq!(fields_of(&left), both(TRAIN | HEAD | RESUMED, 1, 40));
    for copy in &left {
        assert_eq!(
            copy.frame[HEADERS..],
            frame(1)[HEADERS..],
            "another payload"
        );
        assert_eq!(
            (copy.frame[28], copy.frame[45]),
            (1, 0),
            "it came by port 0 alone"
        );
    }
    assert_eq!(
        fields_of(&give(&mut network, &frame(2), 0)),
        both(TRAIN, 2, 40)
    );
    // The end of a fragment before it goes on, whoever stops.
    assert_eq!(
        give(&mut network, &signal(Signal::Stop(stop_us)), 3).len(),
        0
    );
    let mut end = frame(3);
    end.truncate(HEADERS);
    end[15] |= TAIL | RESUMED;
    let left = give(&mut network, &seal(end), 0);
    assert_eq!(fields_of(&left), both(TRAIN | TAIL | RESUMED, 3, 0));
    assert_eq!(network.switches[&0].waiting(), 0);
}

/// A worm ended at a switch, since a frame is missing. The switch before it has interrupted it meanwhile, so the next that
/// comes is a head. It goes back, and nothing of the worm goes on.
#[test]
fn the_head_of_a_later_fragment_of_a_worm_that_has_ended_goes_back() {
    let (mut network, worm) = one_switch();
    let frame = |position| frame_of(&worm, position, Scheme::Interrupt);
    let resumed = |position: u8| {
        let mut head = frame(0);
        head[15] |= RESUMED;
        head[27] = position;
        head[24..26].fill(0);
        let sum = checksum(&head[14..HEADERS + worm.route.len()]);
        head[24..26].copy_from_slice(&sum.to_be_bytes());
        head
    };
    let mut now_us = network.now_us();
    let switch = network.switches.get_mut(&0).expect("the switch");
    let mut give = |frame: Vec<u8>| {
        let mut left = switch.forward(&frame, 0, now_us, |_| 0);
        for _ in 0..20 {
            now_us += STEP_US;
            left.extend(switch.go_round(now_us));
        }
        left.sort_by_key(|copy| copy.port);
        left
    };
    let by = |copies: &[Copy]| copies.iter().map(|copy| copy.port).collect::<Vec<u8>>();
    assert_eq!(by(&give(frame(0))), [3, 6]);
    let last = give(frame(2));
    assert_eq!(by(&last), [3, 6], "frame 1 is missing");
    assert!(last.iter().all(|copy| copy.frame[15] & ABORT != 0));
    let back = give(resumed(3));
    assert_eq!(by(&back), [0], "to its source");
    let reset = signal::decode(&back[0].frame).expect("a signal").signal;
    assert_eq!(reset, Signal::Reset(HostId(0), 1));
    // The source knows now.
    for late in [frame(4), resumed(5), frame(8)] {
        assert!(give(late).is_empty());
    }
    assert_eq!(switch.counter("drops", TRAIN_RESET), 3);
    assert_eq!(switch.register("channel_outputs", 0), 0);
    assert_eq!(network.events("RESET_SENT"), 1);
}

/// While the head of a multicast cannot have all its outputs, others have those that are free.
#[test]
fn a_head_that_cannot_have_all_outputs_gives_back_what_it_has() {
    let topology = generate::from_spec("line:1:7").expect("a network");
    let mut network = Trains::new(topology.clone(), Scheme::Interrupt, NEVER_US, 1);
    let tree = rooted(&topology, HostId(0), &[HostId(3), HostId(6)]);
    let worm = |is_tree, route: &[u8], frames, source| Worm {
        sequence: 1,
        is_tree,
        route: route.to_vec(),
        frames,
        source,
    };
    let mut now_us = network.now_us();
    let switch = network.switches.get_mut(&0).expect("the switch");
    let mut give = |frame: Vec<u8>, port: u8| {
        let mut left = switch.forward(&frame, port, now_us, |_| 0);
        for _ in 0..20 {
            now_us += STEP_US;
            left.extend(switch.go_round(now_us));
        }
        left.iter().map(|copy| copy.port).collect::<Vec<u8>>()
    };
    let head = |worm: &Worm| frame_of(worm, 0, Scheme::Interrupt);
    assert_eq!(give(head(&worm(false, &[6], 9, 1)), 1), [6]);
    assert!(give(head(&worm(true, &tree, 9, 0)), 0).is_empty());
    assert_eq!(give(head(&worm(false, &[3], 1, 2)), 2), [3]);
    assert!(network.events("GIVEN_BACK") > 0);
}

/// Random multicasts by way of the root and random unicast along up*/down* routes, all links used.
fn mixed(spec: &str, seed: u64, loss: f64, silent_us: u64) -> Trains {
    let topology = generate::from_spec(spec).expect("a network");
    let mut random = Random::new(seed);
    let mut network = Trains::new(topology.clone(), Scheme::Interrupt, silent_us, seed);
    network.loss = loss;
    let routes = Routes::plan(&topology, Algorithm::Osud, None).expect("routes");
    let hosts: Vec<HostId> = topology.hosts().iter().map(|host| host.id).collect();
    for _ in 0..60 {
        let (&from, &to) = (random.pick(&hosts), random.pick(&hosts));
        let (after_us, frames) = (random.below(3_000), 1 + random.below(60) as u16);
        if random.chance(0.4) {
            let chosen = hosts
                .iter()
                .copied()
                .filter(|&host| host != from && random.chance(0.4));
            let members: Vec<HostId> = chosen.collect();
            if !members.is_empty() {
                let tree = rooted(&topology, from, &members);
                network.send(from.0, after_us, true, &tree, frames);
            }
        } else if from != to {
            let route = routes.route(from, to).expect("a route").ports;
            network.send(from.0, after_us, false, &route, frames);
        }
    }
    assert!(
        network.run(QUIET_US, LONG_US),
        "{spec}, seed {seed}: {:?}\n{}",
        network.circle(),
        network.state()
    );
    assert_eq!(network.circle(), None);
    network
}

fn networks() -> impl Iterator<Item = (String, u64)> {
    (0..12).flat_map(|seed| {
        let specs = [format!("irregular:8:{seed}:2:4"), "torus:3".into()];
        specs.into_iter().map(move |spec| (spec, seed))
    })
}

#[test]
fn all_worms_come_whole_and_multicasts_in_one_order() {
    let (mut interrupted, mut given_back) = (0, 0);
    for (spec, seed) in networks() {
        let network = mixed(&spec, seed, 0.0, NEVER_US);
        for (key, received) in &network.received {
            let frames = network.wanted[&(key.1, key.2)].frames;
            assert_eq!(
                *received,
                Received::whole(frames),
                "{spec}, seed {seed}, {key:?}"
            );
        }
        check_order(&network);
        for event in ["TAIL_LOST", "ABORTED", "EXPIRED", "TURN_LOST", "RESET_SENT"] {
            assert_eq!(network.events(event), 0, "{spec}, seed {seed}: {event}");
        }
        interrupted += network.events("INTERRUPTED");
        given_back += network.events("GIVEN_BACK");
    }
    println!("interrupted {interrupted}, given back {given_back}");
    assert!(interrupted > 0 && given_back > 0);
}

/// Hosts of one switch. Two send to 3 and two to 6, one worm after another, so that these two outputs are never free
/// together. The head of the multicast to both takes them all at once for a while, then in line: nobody overtakes it for
/// ever.
#[test]
fn a_multicast_gets_outputs_that_are_never_free_together() {
    let topology = generate::from_spec("line:1:7").expect("a network");
    let mut network = Trains::new(topology.clone(), Scheme::Interrupt, NEVER_US, 1);
    for (from, to) in [(1, 3), (2, 3), (4, 6), (5, 6)] {
        for _ in 0..40 {
            network.send(from, 0, false, &[to], 40);
        }
    }
    let tree = rooted(&topology, HostId(0), &[HostId(3), HostId(6)]);
    network.send(0, 2_000, true, &tree, 60);
    assert!(network.run(QUIET_US, LONG_US), "{}", network.state());
    for host in [3, 6] {
        assert_eq!(network.received[&(host, 0, 1)], Received::whole(60));
    }
    let came_us = network.came_us[&(3, 0, 1)];
    let took_us = came_us - network.wanted[&(0, 1)].at_us;
    // idle_us, worms before it in the lines, and its own frames.
    let most_us = 500 + 5 * 60 * STEP_US;
    assert!(took_us < most_us, "{took_us} µs");
    let others_us = network.came_us[&(3, 1, 40)];
    assert!(others_us > came_us + 5 * most_us, "the others were over");
}

/// Nothing is held for ever, and what comes is in order.
#[test]
fn lost_frames_stop_nobody_else() {
    let (mut aborted, mut interrupted) = (0, 0);
    for (spec, seed) in networks() {
        let network = mixed(&spec, seed, 0.002, 50_000);
        check_order(&network);
        for (key, received) in &network.received {
            let positions = &received.positions;
            assert!(
                positions.windows(2).all(|pair| pair[0] < pair[1]),
                "{spec}, seed {seed}, {key:?}: {positions:?}"
            );
        }
        aborted += network.events("ABORTED");
        interrupted += network.events("INTERRUPTED");
    }
    println!("aborted {aborted}, interrupted {interrupted}");
    assert!(aborted > 0 && interrupted > 0);
}
