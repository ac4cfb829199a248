//! Transfers on a clean fabric: what each scheme costs. Virtual time, so exact.

use std::collections::BTreeMap;
use wormcast_fabric_tests::controller;
use wormcast_fabric_tests::controller::{
    CIRCUIT, K_BINOMIAL, OWN_TABLE, OWN_TREES, SWITCH, TREE, schemes,
};
use wormcast_fabric_tests::fabric::Place;
use wormcast_fabric_tests::link::Damage;
use wormcast_fabric_tests::scenario::{GROUP, RATE_BPS, Scenario, engine_config, link};
use wormcast_routing::group::{Guard, Scheme, SwitchMode, SwitchParameters};
use wormcast_wire::worm::Kind;

const SIZE: u64 = 10_000_000;
const SECOND_US: u64 = 1_000_000;

/// Time for so many bytes at the link rate, without any header, µs.
fn ideal_us(bytes: u64) -> u64 {
    bytes * 8 * 1_000_000 / RATE_BPS
}

fn transfer(scheme: Scheme, members: u16) -> (Scenario, u64) {
    let groups = vec![controller::group(GROUP, scheme, 0..members)];
    let mut scenario = Scenario::testbed(groups, link(Damage::default()), engine_config(1), 1);
    scenario.fabric.count_copies();
    scenario.write(0, &[SIZE]);
    let took_us = scenario.finish(0, 60 * SECOND_US);
    scenario.check_delivered(0, 1, &[]);
    scenario.check_pools();
    println!("{} to {}: {took_us} µs", scheme.name(), members - 1);
    (scenario, took_us)
}

fn retransmissions(scenario: &Scenario) -> u64 {
    let engines = scenario
        .fabric
        .hosts
        .values()
        .filter_map(|host| host.agent.as_ref()?.engine());
    engines
        .flat_map(|engine| engine.statistics().map(|(_, _, s)| s.retransmissions))
        .sum()
}

#[test]
fn every_scheme_delivers_messages_of_every_size() {
    for scheme in schemes() {
        let mut scenario = Scenario::new("testbed", scheme, Damage::default(), 1);
        scenario.write(
            3,
            &[100_000, 16, 1_443, 1_444, 1_445, 1_446, 17, 2_888, 50_000],
        );
        scenario.finish(3, 60 * SECOND_US);
        scenario.check_delivered(3, 9, &[]);
        assert!(
            scenario
                .outcomes(3)
                .iter()
                .all(|(_, failed)| failed.is_empty())
        );
        assert_eq!(retransmissions(&scenario), 0, "{scheme:?}");
    }
}

#[test]
fn one_flow_fills_its_link() {
    for scheme in schemes() {
        let (scenario, took_us) = transfer(scheme, 2);
        // 14 + 12 + route + 24 bytes of headers for 1444 of payload, and the start.
        let share = ideal_us(SIZE * 1_497 / 1_444) as f64 / took_us as f64;
        println!("{}: {share:.3} of the link", scheme.name());
        assert!(share > 0.95, "{scheme:?}: {share}");
        assert_eq!(retransmissions(&scenario), 0, "{scheme:?}");
    }
}

#[test]
fn scheme_switch_sends_the_file_once_and_no_link_carries_a_byte_twice() {
    let (_, alone_us) = transfer(SWITCH, 2);
    let (scenario, took_us) = transfer(SWITCH, 8);
    assert!(took_us < ideal_us(SIZE) * 115 / 100, "{took_us} µs");
    assert!(
        took_us < alone_us * 110 / 100,
        "{took_us} µs to 7, {alone_us} µs to 1"
    );
    assert_eq!(retransmissions(&scenario), 0);
    let at_source = scenario.fabric.links[&Place::Host(0)].statistics.bytes;
    println!(
        "bytes at the source: {:.4} of the file",
        at_source as f64 / SIZE as f64
    );
    assert!(at_source <= SIZE * 105 / 100, "{at_source} bytes");
    for (place, link) in &scenario.fabric.links {
        let bytes = link.statistics.bytes;
        assert!(bytes <= SIZE * 105 / 100, "{place:?} carried {bytes} bytes");
    }
    let mut carried: BTreeMap<Place, u64> = BTreeMap::new();
    for (place, count) in scenario.fabric.data_copies() {
        carried.insert(place, count);
    }
    assert!(
        carried.len() >= 8,
        "the source and seven receivers: {carried:?}"
    );
    for (place, most) in carried {
        assert_eq!(most, 1, "{place:?} carried a packet {most} times");
    }
}

/// GROUP and BROADCAST worms are copied by what the controller wrote into the switches; hosts that are
/// no members get BROADCAST worms too, and take none.
#[test]
fn numbers_and_broadcast_reach_members_by_the_tables_of_switches() {
    let by_switches = |mode| Scheme::Switch(SwitchParameters::new(mode, Guard::A));
    for (scheme, kind) in [
        (by_switches(SwitchMode::Table), Kind::Group),
        (OWN_TABLE, Kind::Group),
        (by_switches(SwitchMode::Broadcast), Kind::Broadcast),
        (SWITCH, Kind::Tree),
        (OWN_TREES, Kind::Tree),
    ] {
        let groups = vec![controller::group(GROUP, scheme, [0, 2, 4, 6])];
        let mut scenario = Scenario::testbed(groups, link(Damage::default()), engine_config(1), 1);
        scenario.fabric.count_copies();
        scenario.write(2, &[300_000, 50, 7_000]);
        scenario.finish(2, 60 * SECOND_US);
        scenario.check_delivered(2, 3, &[]);
        assert_eq!(retransmissions(&scenario), 0, "{scheme:?}");
        assert_eq!(scenario.fabric.data_kinds(2), [kind], "{scheme:?}");
        let filtered = |host: u16| {
            let host = &scenario.fabric.hosts[&host];
            let engine = host.agent.as_ref().and_then(|agent| agent.engine());
            engine.map_or(0, |engine| engine.counters().filtered)
        };
        let others: u64 = [1, 3, 5, 7].into_iter().map(filtered).sum();
        assert_eq!(others > 0, kind == Kind::Broadcast, "{scheme:?}");
        assert_eq!(
            filtered(2) > 0,
            kind == Kind::Broadcast,
            "the sender's own copy"
        );
    }
}

#[test]
fn each_scheme_costs_what_its_structure_says() {
    let (_, alone_us) = transfer(Scheme::Repeat, 2);
    // Copies that leave the busiest host, to seven receivers.
    for (scheme, copies) in [
        (Scheme::Repeat, 7.0),
        (CIRCUIT, 1.0),
        (TREE, 3.0),
        (K_BINOMIAL, 2.0),
        (SWITCH, 1.0),
    ] {
        let (_, took_us) = transfer(scheme, 8);
        let ratio = took_us as f64 / alone_us as f64;
        println!("{}: {ratio:.2} times one receiver", scheme.name());
        assert!(
            ratio > copies * 0.95 && ratio < copies * 1.1,
            "{scheme:?}: {ratio}"
        );
    }
}

#[test]
fn queues_stay_short_however_long_the_transfer() {
    let groups = vec![controller::group(GROUP, CIRCUIT, 0..3)];
    let mut config = link(Damage::default());
    config.rate_bps = 10_000_000;
    config.queue_bytes = 10_000_000 / 8 / 10;
    let mut scenario = Scenario::testbed(groups, config, engine_config(1), 1);
    scenario.write(0, &[60_000_000]);
    // Long enough for the least delay seen to be forgotten several times.
    scenario.run_for(40 * SECOND_US);
    let backlog = scenario.fabric.links[&Place::Host(0)].backlog_bytes(scenario.fabric.now_ns);
    assert!(
        backlog < 10_000_000 / 8 * 15 / 1_000,
        "{backlog} bytes wait, 15 ms are 18750"
    );
    scenario.finish(0, 60 * SECOND_US);
    assert_eq!(retransmissions(&scenario), 0);
    scenario.check_delivered(0, 1, &[]);
}

#[test]
fn an_idle_fabric_is_silent() {
    let (mut scenario, _) = transfer(TREE, 8);
    scenario.run_for(SECOND_US);
    scenario.check_quiet();
    scenario.check_empty();
}
