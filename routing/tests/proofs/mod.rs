//! What is promised, on every small graph and on thousands of random ones, against a second,
//! plain working out (`plain.rs`) that shares nothing with the library but the topology.
//!
//! The default run takes every labelled connected graph of up to six switches, those of seven in
//! one or more numberings each, and random ones of up to 256 switches. The labelled graphs of
//! seven are 1,866,256; all of them, and all 10,000 random ones:
//!
//! ```text
//! cargo test --release -p wormcast-routing --test all proofs:: -- --ignored
//! ```

mod members;
mod networks;
mod plain;
mod unicast;

use crate::graphs::connected_graphs;
use networks::random_networks;

/// Random networks in the default run, and in all.
const RANDOM_SOME: u64 = 1_000;
const RANDOM_ALL: u64 = 10_000;

fn small(switches: u16, part: u64, parts: u64, sorted: bool) -> u64 {
    let mut count = 0;
    for (number, topology) in (0..).zip(connected_graphs(switches, sorted)) {
        if number % parts == part {
            unicast::check(&topology, None);
            members::check(&topology, number, 1);
            count += 1;
        }
    }
    count
}

fn random(seeds: std::ops::Range<u64>) {
    for (seed, topology) in random_networks(seeds) {
        unicast::check(&topology, Some(seed));
        members::check(&topology, seed, 2);
    }
}

#[test]
fn every_connected_graph_of_up_to_five_switches() {
    let counts: Vec<u64> = (1..=5)
        .map(|switches| small(switches, 0, 1, false))
        .collect();
    // Connected labelled graphs: OEIS A001187.
    assert_eq!(counts, [1, 1, 4, 38, 728]);
}

#[test]
fn every_connected_graph_of_six_switches_first_half() {
    half_of_six(0);
}

#[test]
fn every_connected_graph_of_six_switches_second_half() {
    half_of_six(1);
}

/// Every second one of the 26,704 (OEIS A001187).
fn half_of_six(part: u64) {
    assert_eq!(small(6, part, 2, false), 26_704 / 2);
}

#[test]
fn every_connected_graph_of_seven_switches_in_one_numbering_or_more() {
    // 853 of them but for the numbering (OEIS A001349).
    assert!(small(7, 0, 1, true) >= 853);
}

#[test]
fn random_networks_of_up_to_256_switches_one() {
    random(0..RANDOM_SOME / 2);
}

#[test]
fn random_networks_of_up_to_256_switches_two() {
    random(RANDOM_SOME / 2..RANDOM_SOME);
}

#[test]
#[ignore = "more than ten minutes of one core"]
fn every_connected_graph_of_seven_switches_in_every_numbering_one() {
    half_of_seven(0);
}

#[test]
#[ignore = "more than ten minutes of one core"]
fn every_connected_graph_of_seven_switches_in_every_numbering_two() {
    half_of_seven(1);
}

/// Every second one of the 1,866,256 (OEIS A001187).
fn half_of_seven(part: u64) {
    assert_eq!(small(7, part, 2, false), 1_866_256 / 2);
}

#[test]
#[ignore = "minutes"]
fn ten_thousand_random_networks_one() {
    random(RANDOM_SOME..RANDOM_ALL / 2);
}

#[test]
#[ignore = "minutes"]
fn ten_thousand_random_networks_two() {
    random(RANDOM_ALL / 2..RANDOM_ALL);
}
