//! Wormhole mode on the switches' own pipeline: trains, waiting, deadlock and the ways out of it.

use wormcast_fabric_tests::figure_3::figure_3;
use wormcast_fabric_tests::random::Random;
use wormcast_fabric_tests::switch::{self, SOURCE_REFUSED};
use wormcast_fabric_tests::trains::{Received, STEP_US, Scheme, Trains};
use wormcast_planner::Guard;
use wormcast_routing::generate;
use wormcast_routing::routes::{Algorithm, Routes};
use wormcast_routing::topology::Topology;
use wormcast_wire::tree_route::encode_tree;
use wormcast_wire::{HostId, SwitchId};

const LONG_US: u64 = 10_000_000;
const QUIET_US: u64 = 50_000;
const NEVER_US: u64 = 100_000_000;

/// The multicast from A to b and c, and the unicast from C to b over the cross link or the tree.
fn meet(scheme: Scheme, over_tree: bool, silent_us: u64) -> (Trains, bool) {
    let mut network = Trains::new(figure_3(), scheme, silent_us, 1);
    let ways = [(HostId(1), vec![1u8, 2, 0]), (HostId(2), vec![2, 2, 0])];
    let tree = encode_tree(&ways).expect("a route").remove(0).bytes;
    network.send(0, 0, true, &tree, 60);
    let unicast: &[u8] = if over_tree { &[1, 1, 2, 0] } else { &[2, 2, 0] };
    network.send(3, 2 * STEP_US, false, unicast, 60);
    let ended = network.run(QUIET_US, LONG_US);
    (network, ended)
}

#[test]
fn fig_3_is_stuck_where_worms_wait() {
    let (network, ended) = meet(Scheme::Plain, false, NEVER_US);
    assert!(!ended);
    let circle = network.circle().expect("a circle");
    assert!(
        circle.contains("worm 1 of host 0") && circle.contains("worm 1 of host 3"),
        "{circle}"
    );
}

#[test]
fn fig_3_goes_on_along_the_tree_alone() {
    let (network, ended) = meet(Scheme::Plain, true, NEVER_US);
    assert!(ended, "{:?}", network.circle());
    for key in [(1, 0, 1), (2, 0, 1), (1, 3, 1)] {
        assert_eq!(network.received[&key], Received::whole(60), "{key:?}");
    }
}

#[test]
fn fig_3_goes_on_where_unicast_is_flushed() {
    let (network, ended) = meet(Scheme::Flush, false, NEVER_US);
    assert!(ended, "{:?}", network.circle());
    assert_eq!(network.received[&(1, 0, 1)], Received::whole(60));
    assert_eq!(network.received[&(2, 0, 1)], Received::whole(60));
    assert!(network.resets(3) >= 1);
    let again = network.resets(3) as u16 + 1;
    assert_eq!(
        network.received[&(1, 3, again)],
        Received::whole(60),
        "the unicast comes whole in the end"
    );
}

/// A reservation whose worm has gone silent ends; what comes of it later is reset.
#[test]
fn what_is_stuck_ends_after_the_longest_silence() {
    let (mut network, ended) = meet(Scheme::Plain, false, 20_000);
    let _ = network.run(QUIET_US, LONG_US);
    assert!(ended, "{:?}", network.circle());
    assert!(network.events("EXPIRED") >= 1 && network.resets(0) >= 1);
    let again = network.resets(0) as u16 + 1;
    for member in [1, 2] {
        assert_eq!(
            network.received[&(member, 0, again)],
            Received::whole(60),
            "sent again, whole"
        );
    }
    assert_eq!(network.received[&(1, 3, 1)], Received::whole(60));
}

/// Two multicasts from two sources with two members in common, along the tree alone: each may take one
/// branch and wait for the other. WORM §3 overlooks that; `wormcast verify` names it.
#[test]
fn two_multicasts_along_the_tree_can_wait_for_each_other() {
    let network = |first: bool, second: bool| {
        let mut network = Trains::new(figure_3(), Scheme::Plain, NEVER_US, 1);
        let from_a = [(HostId(1), vec![1u8, 2, 0]), (HostId(2), vec![2, 2, 0])];
        let from_c = [(HostId(1), vec![1u8, 1, 2, 0]), (HostId(2), vec![2, 0])];
        let tree = |ways: &[(HostId, Vec<u8>)]| encode_tree(ways).expect("a route").remove(0).bytes;
        if first {
            network.send(0, 0, true, &tree(&from_a), 60);
        }
        if second {
            network.send(3, 0, true, &tree(&from_c), 60);
        }
        let ended = network.run(QUIET_US, LONG_US);
        (network, ended)
    };
    for (first, second) in [(true, false), (false, true)] {
        assert!(network(first, second).1, "one alone");
    }
    let (network, ended) = network(true, true);
    assert!(!ended);
    let circle = network.circle().expect("a circle");
    assert!(
        circle.contains("worm 1 of host 0") && circle.contains("worm 1 of host 3"),
        "{circle}"
    );
}

/// A train that may not enter takes no place in a channel, so nobody waits for it. Honest ones go on; their
/// frames count against a rate once, however often they go round while they wait for each other.
#[test]
fn what_the_guard_refuses_holds_no_channel() {
    let frames = 200;
    let guard = Guard {
        on: true,
        // What a host may send at once is more than it sends, and less than what goes round.
        rates: [(HostId(0), 1), (HostId(2), 1)].into(),
        ..Guard::default()
    };
    let mut network = Trains::with(figure_3(), Scheme::Plain, NEVER_US, 1, guard);
    network.send_as(3, 0, 0, false, &[1, 1, 2, 0], 60);
    network.send(0, 2 * STEP_US, false, &[1, 2, 0], frames);
    network.send(2, 2 * STEP_US, false, &[2, 0], frames);
    assert!(network.run(QUIET_US, LONG_US), "{:?}", network.circle());
    assert_eq!(network.received[&(1, 0, 1)], Received::whole(frames));
    assert_eq!(network.received[&(1, 2, 1)], Received::whole(frames));
    assert_eq!(network.received.len(), 2);
    assert!(network.events("HELD") > u64::from(10 * frames));
    let refused = network.switches.values().flat_map(switch::Switch::refused);
    assert_eq!(
        refused.collect::<Vec<_>>(),
        [(SOURCE_REFUSED, 60)],
        "every frame of the forged train, and no other"
    );
    // Frames that came by the port of host 3.
    assert_eq!(network.switches[&2].register("channel_came", 0), 0);
}

/// Random unicast along up*/down* routes: every worm whole and alone on its channel, in order.
fn unicast(topology: &Topology, seed: u64, loss: f64) -> Trains {
    let mut random = Random::new(seed);
    let mut network = Trains::new(topology.clone(), Scheme::Plain, 50_000, seed);
    network.loss = loss;
    let routes = Routes::plan(topology, Algorithm::Osud, None).expect("routes");
    let hosts: Vec<HostId> = topology.hosts().iter().map(|host| host.id).collect();
    for _ in 0..60 {
        let (&from, &to) = (random.pick(&hosts), random.pick(&hosts));
        if from == to {
            continue;
        }
        let route = routes.route(from, to).expect("a route");
        let (after_us, frames) = (random.below(3_000), 1 + random.below(30) as u16);
        network.send(from.0, after_us, false, &route.ports, frames);
    }
    assert!(network.run(QUIET_US, LONG_US), "{:?}", network.circle());
    network
}

#[test]
fn unicast_worms_arrive_whole_whatever_they_meet() {
    for seed in 0..20 {
        let topology = generate::from_spec(&format!("irregular:8:{seed}:2:4")).expect("a network");
        let network = unicast(&topology, seed, 0.0);
        for (key, received) in &network.received {
            let frames = received.positions.len() as u16;
            assert_eq!(*received, Received::whole(frames), "seed {seed}, {key:?}");
        }
        assert!(network.waited_max > 0, "nothing ever waited");
        for event in ["TAIL_LOST", "ABORTED", "EXPIRED", "TURN_LOST", "RESET_SENT"] {
            assert_eq!(network.events(event), 0, "seed {seed}: {event}");
        }
        assert!(network.events("STOP_HEARD") > 0);
    }
}

/// Links lose frames: trains end early and are reset, but no channel is held for ever, and nothing comes
/// twice or out of order.
#[test]
fn lost_frames_end_trains_and_stop_nobody_else() {
    let mut aborted = 0;
    for seed in 0..20 {
        let topology = generate::from_spec(&format!("irregular:8:{seed}:2:4")).expect("a network");
        let network = unicast(&topology, seed, 0.01);
        for (key, received) in &network.received {
            let positions = &received.positions;
            assert!(
                positions.windows(2).all(|pair| pair[0] < pair[1]),
                "seed {seed}, {key:?}"
            );
        }
        aborted += network.events("ABORTED");
    }
    assert!(aborted > 0);
}

/// Where the last switch of a line misses a frame, RESET goes back by as many switches as a head can name.
#[test]
fn a_reset_finds_its_way_back_over_any_number_of_switches() {
    for switches in 2..=18u16 {
        let topology = generate::from_spec(&format!("line:{switches}:1")).expect("a network");
        let routes = Routes::plan(&topology, Algorithm::Osud, None).expect("routes");
        let (from, to) = (topology.hosts()[0].id, HostId(switches - 1));
        let mut network = Trains::new(topology.clone(), Scheme::Plain, 50_000, 1);
        let route = routes.route(from, to).expect("a route").ports;
        let last = topology.host(to).expect("a host").switch;
        let before = usize::from(switches) - 2;
        network.lost.insert((before as u16, route[before], 3));
        network.send(from.0, 0, false, &route, 20);
        assert!(network.run(QUIET_US, LONG_US));
        assert_eq!(last, SwitchId(switches - 1));
        assert!(network.received[&(to.0, from.0, 1)].aborted, "{switches}");
        let resets = u64::from(switches <= 16);
        assert_eq!(network.resets(from.0), resets, "{switches} switches");
        assert_eq!(network.events("RESET_SENT"), resets);
        let again = network.received.get(&(to.0, from.0, 2));
        assert_eq!(again, (resets == 1).then(|| Received::whole(20)).as_ref());
    }
}

/// One multicast among unicast that takes any legal route comes whole where unicast is flushed.
#[test]
fn a_multicast_comes_whole_among_unicast_that_is_flushed() {
    let mut flushed = 0;
    for seed in 0..20 {
        let topology = generate::from_spec(&format!("irregular:8:{seed}:2:4")).expect("a network");
        let mut random = Random::new(seed);
        let mut network = Trains::new(topology.clone(), Scheme::Flush, NEVER_US, seed);
        let routes = Routes::plan(&topology, Algorithm::Osud, None).expect("routes");
        let hosts: Vec<HostId> = topology.hosts().iter().map(|host| host.id).collect();
        let from = hosts[0];
        let members = hosts[1..].iter().filter(|_| random.chance(0.4));
        let ways = members.map(|&to| (to, routes.route(from, to).expect("a route").ports));
        let ways: Vec<(HostId, Vec<u8>)> = ways.collect();
        let trees = encode_tree(&ways).expect("routes");
        for after_us in [0, 500, 1_000] {
            network.send(from.0, after_us, true, &trees[0].bytes, 60);
        }
        for _ in 0..100 {
            let (&source, &to) = (random.pick(&hosts[1..]), random.pick(&hosts));
            if source != to {
                let route = routes.route(source, to).expect("a route").ports;
                network.send(source.0, random.below(2_000), false, &route, 60);
            }
        }
        assert!(
            network.run(QUIET_US, LONG_US),
            "seed {seed}: {:?}",
            network.circle()
        );
        for member in &trees[0].hosts {
            for worm in 1..=3 {
                assert_eq!(
                    network.received[&(member.0, from.0, worm)],
                    Received::whole(60),
                    "seed {seed}"
                );
            }
        }
        flushed += network.events("FLUSHED");
    }
    assert!(flushed > 0, "no unicast ever had to give way");
}
