//! Gathered ACKs are true, whatever happens, and all is known in the end.
//!
//!     SEEDS=100000 cargo test --release -p wormcast-fabric-tests --test all gather::

use std::collections::BTreeSet;
use wormcast_fabric_tests::gather::{Faults, Network, Progress, STALE, UNKNOWN};
use wormcast_fabric_tests::gathered::{Announcement, Op, flags::KNOWN};
use wormcast_wire::SWITCHES_CROSSED_MAX;

const SEEDS: u64 = 2_000;
const STEPS: u64 = 250;
const STEP_US: u64 = 700;
const REPEAT_US: u64 = 50_000;

/// What a run had, so that the test means something.
#[derive(Default)]
struct Seen {
    claims: u64,
    stale: u64,
    unknown: u64,
    changes: u64,
    restarts: u64,
    streams: u64,
}

fn step(network: &mut Network, seen: &mut Seen) {
    let trees = network.trees.len() as u64;
    let tree = network.random().below(trees) as usize;
    let members = network.homes.len() as u64;
    let member = network.random().below(members) as usize;
    match network.random().below(100) {
        0..=49 => {
            let packets = network.random().below(6) as u32;
            network.advance(tree, member, packets);
            network.acknowledge(tree, member, false);
        }
        50..=74 => network.acknowledge(tree, member, true),
        75..=84 => network.learn(tree, member),
        85..=90 => {
            network.enter_one(tree);
        }
        91..=93 => network.origin_learns(tree),
        94..=95 => {
            network.plan(tree);
            seen.changes += 1;
        }
        96..=97 => {
            let stream = network.trees[tree]
                .stream
                .wrapping_add(1 + network.random().below(3) as u32);
            network.begin(tree, stream);
            seen.streams += 1;
        }
        _ => {
            let switches = network.switches.len() as u64;
            let number = network.random().below(switches) as usize;
            network.restart(number);
            seen.restarts += 1;
        }
    }
    let until_us = network.now_us() + network.random().below(STEP_US);
    network.run(until_us);
}

/// Nothing goes wrong any more: all learn the newest plan and stream, get to the end, and repeat their ACKs.
fn come_to_the_end(network: &mut Network, seed: u64) {
    network.faults = Faults::default();
    for tree in 0..network.trees.len() {
        network.enter_all(tree);
        let all = 0..network.homes.len();
        for member in all.clone() {
            network.learn(tree, member);
        }
        let furthest = all
            .clone()
            .map(|member| network.truth(tree, member).cumulative);
        // Streams here are far shorter than half of all numbers.
        let start = network.truth(tree, 0).cumulative;
        let ahead = furthest
            .map(|number| number.wrapping_sub(start) as i32)
            .max();
        let end = start
            .wrapping_add(ahead.expect("a member") as u32)
            .wrapping_add(3);
        for member in all {
            network.finish(tree, member, end);
        }
    }
    let rounds = network.switches.len() as u64 + 1;
    for _ in 0..rounds {
        for tree in 0..network.trees.len() {
            for member in 0..network.homes.len() {
                network.acknowledge(tree, member, true);
            }
        }
        let until_us = network.now_us() + REPEAT_US;
        network.run(until_us);
    }
    for tree in 0..network.trees.len() {
        let end = network.truth(tree, 0);
        let believed = network.trees[tree].believed;
        assert_eq!(believed, Some(end), "seed {seed}, tree {tree}");
    }
}

fn seeds() -> u64 {
    let named = std::env::var("SEEDS").ok();
    named.map_or(SEEDS, |text| text.parse().expect("a number of seeds"))
}

#[test]
fn the_origin_believes_what_is_true_and_knows_all_in_the_end() {
    let mut seen = Seen::default();
    for seed in 0..seeds() {
        let switches = 1 + seed as usize % 6;
        let members = 1 + seed as usize % 9;
        let mut network = Network::new(seed, switches, members, 1 + seed as usize % 2);
        network.faults = Faults {
            loss: [0.0, 0.1, 0.4][seed as usize % 3],
            twice: 0.1,
            misled: 0.1,
        };
        for _ in 0..STEPS {
            step(&mut network, &mut seen);
        }
        come_to_the_end(&mut network, seed);
        for number in 0..network.switches.len() {
            network.restart(number); // counts what its switch has dropped
        }
        seen.claims += network.claims;
        seen.stale += network.dropped[&STALE];
        seen.unknown += network.dropped[&UNKNOWN];
    }
    let runs = seeds();
    assert!(seen.claims > 20 * runs, "{} claims", seen.claims);
    assert!(seen.stale > 10 * runs, "{} stale", seen.stale);
    assert!(seen.unknown > runs, "{} unknown", seen.unknown);
    let (changes, streams, restarts) = (seen.changes, seen.streams, seen.restarts);
    assert!(changes > runs && streams > runs && restarts > runs);
}

fn answer(network: &mut Network, route: &[u8], port: u8) -> Announcement {
    network.answers.clear();
    network.ask(0, route, port);
    let until_us = network.now_us() + REPEAT_US;
    network.run(until_us);
    let [announced] = network.answers[..] else {
        panic!("{} answers", network.answers.len());
    };
    assert_eq!((announced.op, announced.port), (Op::Answer, port));
    announced
}

/// The origin walks down: at each switch it asks of each branch, and goes on where least is acknowledged.
fn find(network: &mut Network) -> (usize, u8, Announcement) {
    let mut at = 0;
    for _ in 0..SWITCHES_CROSSED_MAX {
        let route = network.route_to(at);
        let mut worst: Option<(u8, Option<usize>, Announcement)> = None;
        for (port, behind) in network.branches(0, at) {
            let announced = answer(network, &route, port);
            let lags = match &worst {
                None => true,
                Some((_, _, least)) if least.flags & KNOWN == 0 => false,
                Some((_, _, least)) => {
                    announced.flags & KNOWN == 0 || least.stable.is_after(announced.stable)
                }
            };
            if lags {
                worst = Some((port, behind, announced));
            }
        }
        match worst.expect("a branch") {
            (_, Some(below), _) => at = below,
            (port, None, announced) => return (at, port, announced),
        }
    }
    panic!("the way does not end");
}

#[test]
fn a_member_that_lags_is_named_on_request() {
    let mut found = BTreeSet::new();
    for seed in 0..40 {
        let mut network = Network::new(seed, 5, 8, 1);
        let members: Vec<usize> = network.members(0).into_iter().collect();
        let late = *network.random().pick(&members);
        let is_silent = seed % 2 == 0;
        let start = network.truth(0, late).stable;
        for &member in &members {
            let packets = if member == late { 4 } else { 30 };
            network.finish(0, member, start.wrapping_add(packets));
            if member != late || !is_silent {
                network.acknowledge(0, member, false);
            }
        }
        let until_us = network.now_us() + REPEAT_US;
        assert!(!network.run(until_us));
        let (at, port, announced) = find(&mut network);
        assert_eq!((at, port), network.homes[late], "seed {seed}");
        if is_silent {
            assert_eq!((announced.flags, network.trees[0].believed), (0, None));
        } else {
            let reported = start.wrapping_add(4);
            assert_eq!(
                (announced.flags, announced.stable.0),
                (KNOWN, reported),
                "seed {seed}"
            );
            let least = Progress {
                cumulative: reported,
                stable: reported,
            };
            assert_eq!(network.trees[0].believed, Some(least));
        }
        found.insert((at, port));
    }
    assert!(found.len() > 5, "{found:?}");
}

/// Sixteen branches are as many as a switch gathers; each of them counts.
#[test]
fn every_branch_counts() {
    // Which member is which branch differs by seed.
    for seed in 0..256 {
        let late = seed as usize % 16;
        let mut network = Network::new(seed, 1, 16, 1);
        network.share = 1.0;
        network.plan(0);
        network.enter_all(0);
        let start = network.truth(0, 0).stable;
        for member in 0..16 {
            network.learn(0, member);
            let packets = if member == late { 1 } else { 9 };
            network.finish(0, member, start.wrapping_add(packets));
            network.acknowledge(0, member, false);
        }
        let until_us = network.now_us() + REPEAT_US;
        network.run(until_us);
        let least = start.wrapping_add(1);
        let least = Progress {
            cumulative: least,
            stable: least,
        };
        assert_eq!(network.trees[0].believed, Some(least), "seed {seed}");
    }
}
