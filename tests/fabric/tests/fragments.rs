//! Agents as they ship send multicasts in trains where switches interrupt them (WORM §3, the second scheme): what comes
//! in fragments is put together, multicasts come to all members in the order of the root, and nobody waits for ever.

use std::collections::BTreeMap;
use wormcast_agent_core::figures::Figures;
use wormcast_fabric_tests::controller::{
    self, CIRCUIT, Controller, OWN_TREES, SWITCH, THROUGH_ROOT,
};
use wormcast_fabric_tests::link::Damage;
use wormcast_fabric_tests::random::Random;
use wormcast_fabric_tests::scenario::{GROUP, Scenario, engine_config, link};
use wormcast_planner::{Group, GroupScheme, Switching, WormholeScheme};
use wormcast_routing::generate;
use wormcast_routing::routes::Algorithm;

const SECOND_US: u64 = 1_000_000;
const PLAIN: Switching = Switching::Wormhole(WormholeScheme::Plain);
const INTERRUPT: Switching = Switching::Wormhole(WormholeScheme::Interrupt);
/// Of `train_event_t`.
const INTERRUPTED: usize = 12;

/// A counter of all agents that run.
fn counted(scenario: &Scenario, name: &str) -> u64 {
    let of = |agent: &wormcast_agent_core::agent::Agent| {
        let mut figures = Figures::default();
        let now = wormcast_protocol::Instant::from_micros(u64::MAX / 2);
        agent.fill(&mut figures, false, now);
        let found = figures.figures.iter().find(|figure| figure.name == name);
        found.unwrap_or_else(|| panic!("no counter {name}")).value
    };
    let agents = scenario.fabric.hosts.values();
    agents.filter_map(|host| host.agent.as_ref().map(of)).sum()
}

fn interrupted(scenario: &Scenario) -> u64 {
    let switches = scenario.fabric.switches.values();
    switches
        .map(|switch| switch.counter("trains", INTERRUPTED))
        .sum()
}

/// A fabric in the mode, agents with trains. Switches say STOP as soon as two frames wait, less than a train has. So worms
/// stretch over several switches, and block each other; plain waiting does not survive that.
fn scenario(spec: &str, groups: Vec<Group>, damage: Damage, seed: u64) -> Scenario {
    let network = generate::from_spec(spec).expect("a known shape");
    let controller = Controller::new(groups, Algorithm::Osud);
    let mut scenario = Scenario::with(network, controller, link(damage), engine_config(seed), seed);
    scenario.controller.switching = INTERRUPT;
    scenario.replan();
    scenario.controller.trains = true;
    scenario.replan();
    for switch in scenario.fabric.switches.values_mut() {
        switch.set_stop_frames(2, 1);
    }
    scenario
}

/// All of them write, one message each, which all other members of the group get.
fn transfer(scenario: &mut Scenario, origins: &[(u16, u16)], bytes: u64) {
    for &(group, origin) in origins {
        scenario.write_to(origin, group, &[bytes]);
    }
    for &(_, origin) in origins {
        scenario.finish(origin, 240 * SECOND_US);
    }
    for &(group, origin) in origins {
        let planned = scenario.controller.groups.iter();
        let members = planned
            .filter(|one| one.id.0 == group)
            .flat_map(|one| &one.members);
        for member in members.filter(|member| member.0 != origin) {
            let readers = &scenario.fabric.hosts[&member.0].program.readers;
            let read = readers
                .get(&(group, origin))
                .map(|reader| &reader.messages[..]);
            let seed = scenario.seed;
            assert_eq!(read, Some(&[0][..]), "seed {seed}: {origin} to {member}");
        }
        let outcomes = &scenario.fabric.hosts[&origin].program.writers[&group].outcomes;
        for outcome in outcomes.values() {
            assert_eq!(outcome.as_deref(), Some(&[][..]), "{}", scenario.report());
        }
    }
}

/// To every host multicasts come one after another, each with a larger number than the one before, and everywhere one
/// number is one multicast.
fn check_one_order(scenario: &Scenario) {
    let mut named: BTreeMap<u16, (u16, u16)> = BTreeMap::new();
    for (host, at) in &scenario.fabric.hosts {
        let numbers = at.multicasts.iter().map(|(number, ..)| *number);
        let numbers: Vec<u16> = numbers.collect();
        assert!(
            numbers.is_sorted_by(|a, b| a < b) && !numbers.contains(&0),
            "seed {}: at host {host} {numbers:?}",
            scenario.seed
        );
        for &(number, source, sequence) in &at.multicasts {
            let of = *named.entry(number).or_insert((source, sequence));
            assert_eq!(of, (source, sequence), "number {number} at host {host}");
        }
    }
}

/// No multicast was broken, and none was out of order.
fn check_whole(scenario: &Scenario) {
    for name in [
        "trains.broken",
        "trains.out_of_order",
        "drops.train_headless",
        "flow.resets",
    ] {
        assert_eq!(counted(scenario, name), 0, "seed {}: {name}", scenario.seed);
    }
    let came = counted(scenario, "trains.multicasts");
    assert_eq!(counted(scenario, "trains.numbered"), came);
    check_one_order(scenario);
}

fn members(spec: &str) -> Vec<u16> {
    let network = generate::from_spec(spec).expect("a known shape");
    network.hosts().iter().map(|host| host.id.0).collect()
}

/// Two groups of all hosts, one that switches copy for and one that hosts forward in, so that unicast stops multicasts.
#[test]
fn multicasts_of_several_origins_come_whole_and_in_one_order() {
    let (mut ends, mut resumed, mut came) = (0, 0, 0);
    for seed in 0..3 {
        for spec in [
            "torus:3".to_owned(),
            format!("irregular:8:{seed}:2:4"),
            "testbed".to_owned(),
        ] {
            let all = members(&spec);
            let groups = vec![
                controller::group(GROUP, SWITCH, all.clone()),
                controller::group(GROUP + 1, CIRCUIT, all.clone()),
            ];
            let mut scenario = scenario(&spec, groups, Damage::default(), seed);
            let origins = [
                (GROUP, all[0]),
                (GROUP, all[4]),
                (GROUP, all[7]),
                (GROUP + 1, all[2]),
                (GROUP + 1, all[5]),
            ];
            transfer(&mut scenario, &origins, 200_000);
            check_whole(&scenario);
            ends += interrupted(&scenario);
            resumed += counted(&scenario, "trains.resumed");
            came += counted(&scenario, "trains.multicasts");
        }
    }
    println!("{came} multicasts, interrupted {ends} times, {resumed} fragments after the first");
    assert!(ends > 20 && resumed > 20 && came > 1_000);
}

/// The two multicasts that WORM's first and third scheme leave waiting for each other have two members in common.
#[test]
fn two_groups_with_two_common_members() {
    let mut resumed = 0;
    for scheme in [SWITCH, OWN_TREES, THROUGH_ROOT] {
        for seed in 0..3 {
            let groups = vec![
                controller::group(1, scheme, [0, 2, 5, 7]),
                controller::group(2, scheme, [1, 2, 3, 5]),
                // Unicast that stops them.
                controller::group(3, CIRCUIT, [2, 4, 5, 8]),
            ];
            let mut scenario = scenario("torus:3", groups, Damage::default(), seed);
            let origins = [(1, 0), (1, 7), (2, 1), (2, 3), (3, 4), (3, 8)];
            transfer(&mut scenario, &origins, 200_000);
            check_whole(&scenario);
            resumed += counted(&scenario, "trains.resumed");
        }
    }
    println!("{resumed} fragments after the first");
    assert!(resumed > 0);
}

#[test]
fn losses_in_fragments_are_repaired() {
    let (mut broken, mut resumed) = (0, 0);
    for seed in 0..2 {
        for (spec, scheme) in [
            ("torus:3", GroupScheme::One(SWITCH)),
            ("irregular:8:3:2:4", GroupScheme::One(THROUGH_ROOT)),
            ("testbed", GroupScheme::Auto),
        ] {
            let all = members(spec);
            let groups = vec![
                controller::group(GROUP, scheme, all.clone()),
                controller::group(GROUP + 1, CIRCUIT, all.clone()),
            ];
            let mut scenario = scenario(spec, groups, Damage::rough(), seed);
            let origins = [(GROUP, all[0]), (GROUP, all[3]), (GROUP + 1, all[6])];
            transfer(&mut scenario, &origins, 100_000);
            broken += counted(&scenario, "trains.broken");
            resumed += counted(&scenario, "trains.resumed");
        }
    }
    println!("{broken} broken multicasts, {resumed} fragments after the first");
    assert!(broken > 0 && resumed > 0);
}

/// Also while multicasts have their turn at the root, and outputs on their way.
#[test]
fn agents_that_stand_still_delay_and_end_nothing() {
    let groups = vec![
        controller::group(GROUP, SWITCH, 0..9),
        controller::group(GROUP + 1, CIRCUIT, 0..9),
    ];
    let mut scenario = scenario("torus:3", groups, Damage::default(), 1);
    for (group, origin) in [(GROUP, 0), (GROUP, 4), (GROUP + 1, 6)] {
        scenario.write_to(origin, group, &[2_000_000]);
    }
    let mut random = Random::new(9);
    for _ in 0..8 {
        scenario.run_for(10_000 + random.below(5_000));
        let host = [0, 4, 6, 3][random.below(4) as usize];
        scenario.fabric.freeze(host, 1_500_000);
        scenario.run_for(1_600_000);
    }
    transfer(&mut scenario, &[], 0);
    for origin in [0, 4, 6] {
        scenario.finish(origin, 240 * SECOND_US);
    }
    for origin in [0, 4] {
        scenario.check_delivered(origin, 1, &[]);
    }
    assert!(scenario.reported(false).is_empty());
}

/// Switches and agents change one after another, with trains and without.
#[test]
fn the_scheme_comes_and_goes_in_the_middle_of_messages() {
    for seed in [1, 2] {
        let mut random = Random::new(seed);
        let mut config = engine_config(seed);
        // What was cut before leaves no room for train headers.
        config.limits.origin_window_packets = 128;
        let network = generate::from_spec("torus:3").expect("a known shape");
        let groups = vec![controller::group(GROUP, SWITCH, 0..9)];
        let controller = Controller::new(groups, Algorithm::Osud);
        let mut scenario =
            Scenario::with(network, controller, link(Damage::default()), config, seed);
        for origin in [0, 4] {
            scenario.write(origin, &[15_000_000]);
        }
        let mut fragments = Vec::new();
        for (switching, trains) in [
            (INTERRUPT, false),
            (INTERRUPT, true),
            (PLAIN, true),
            (INTERRUPT, true),
            (INTERRUPT, false),
            (Switching::Packet, false),
            (INTERRUPT, false),
            (INTERRUPT, true),
        ] {
            scenario.controller.switching = switching;
            scenario.controller.trains = trains;
            let us = scenario.replan_in_stages(&mut random, 20_000);
            scenario.run_for(us + random.below(50_000));
            assert!(!scenario.is_finished(0), "the message is too short");
            fragments.push(counted(&scenario, "trains.numbered"));
        }
        for origin in [0, 4] {
            scenario.finish(origin, 120 * SECOND_US);
            scenario.check_delivered(origin, 1, &[]);
        }
        assert!(fragments[0] == 0 && fragments[1] > 0 && fragments[3] > fragments[2]);
    }
}
