//! Ordered groups: all members read the messages of all origins in one order.

use std::collections::BTreeSet;
use wormcast_fabric_tests::controller::{self, Controller, K_BINOMIAL, schemes};
use wormcast_fabric_tests::link::Damage;
use wormcast_fabric_tests::scenario::{GROUP, Scenario, engine_config, link};
use wormcast_planner::GroupScheme;
use wormcast_routing::generate;
use wormcast_routing::routes::Algorithm;

const SECOND_US: u64 = 1_000_000;

fn ordered(scheme: impl Into<GroupScheme>, damage: Damage, seed: u64) -> Scenario {
    let mut group = controller::group(GROUP, scheme, 0..8);
    group.ordered = true;
    let controller = Controller::new(vec![group], Algorithm::Osud);
    let (testbed, config) = (generate::testbed(), engine_config(seed));
    Scenario::with(testbed, controller, link(damage), config, seed)
}

fn read(scenario: &Scenario, host: u16) -> Vec<(u16, u32)> {
    let read = &scenario.fabric.hosts[&host].program.read;
    read.get(&GROUP).cloned().unwrap_or_default()
}

/// What every other has, as one has it.
fn without(read: &[(u16, u32)], origins: [u16; 2]) -> Vec<(u16, u32)> {
    let kept = read.iter().filter(|(origin, _)| !origins.contains(origin));
    kept.copied().collect()
}

fn check_one_order(scenario: &Scenario, hosts: &[u16]) {
    for &one in hosts {
        for &other in hosts {
            let (ours, theirs) = (read(scenario, one), read(scenario, other));
            assert_eq!(
                without(&ours, [one, other]),
                without(&theirs, [one, other]),
                "seed {}: hosts {one} and {other}",
                scenario.seed
            );
        }
    }
}

/// Short and long messages of five origins at once, the sequencer (host 0) among them.
fn write_at_once(scenario: &mut Scenario) {
    for round in 0..6 {
        for origin in [0, 2, 3, 5, 7] {
            scenario.write(origin, &[16, 40_000 + 1_000 * round, 200]);
        }
        scenario.run_for(3_000);
    }
    for origin in [0, 2, 3, 5, 7] {
        scenario.finish(origin, 120 * SECOND_US);
        scenario.check_delivered(origin, 18, &[]);
    }
}

#[test]
fn every_scheme_delivers_in_one_order() {
    for scheme in schemes() {
        let mut scenario = ordered(scheme, Damage::default(), 1);
        write_at_once(&mut scenario);
        check_one_order(&scenario, &[0, 1, 2, 3, 4, 5, 6, 7]);
        let all: BTreeSet<u16> = read(&scenario, 1)
            .iter()
            .map(|(origin, _)| *origin)
            .collect();
        assert_eq!(all, BTreeSet::from([0, 2, 3, 5, 7]), "{scheme:?}");
        scenario.run_for(5 * SECOND_US);
        scenario.check_quiet();
        scenario.check_empty();
    }
}

#[test]
fn without_it_members_read_in_different_orders() {
    let groups = vec![controller::group(GROUP, K_BINOMIAL, 0..8)];
    let mut scenario = Scenario::testbed(groups, link(Damage::rough()), engine_config(1), 1);
    write_at_once(&mut scenario);
    let (ours, theirs) = (read(&scenario, 1), read(&scenario, 6));
    assert_ne!(ours, theirs, "else the tests here find nothing");
}

#[test]
fn loss_and_reordering_leave_one_order() {
    for seed in 0..5 {
        let mut scenario = ordered(GroupScheme::Auto, Damage::rough(), seed);
        write_at_once(&mut scenario);
        check_one_order(&scenario, &[0, 1, 2, 3, 4, 5, 6, 7]);
    }
}

/// The next sequencer goes on where the one before left off: nothing is lost, and what is written
/// afterwards comes in one order.
#[test]
fn another_sequencer_goes_on() {
    for seed in 0..5 {
        let mut scenario = ordered(K_BINOMIAL, Damage::rough(), seed);
        for origin in [2, 3, 5] {
            scenario.write(origin, &[120_000, 16, 120_000]);
        }
        scenario.run_for(5_000 * (1 + seed));
        scenario.fabric.stop_agent(0);
        scenario.run_for(400_000);
        scenario
            .controller
            .damage
            .hosts
            .insert(wormcast_wire::HostId(0));
        scenario.replan();
        for origin in [2, 3, 5] {
            scenario.finish(origin, 120 * SECOND_US);
            scenario.check_delivered(origin, 3, &[0]);
        }
        let before = read(&scenario, 1).len();
        for origin in [2, 3, 5] {
            scenario.write(origin, &[16, 30_000, 16]);
        }
        for origin in [2, 3, 5] {
            scenario.finish(origin, 120 * SECOND_US);
        }
        let after: Vec<_> = [1, 4, 6, 7]
            .map(|host| read(&scenario, host)[before..].to_vec())
            .to_vec();
        assert_eq!(after[0].len(), 9);
        assert!(after.iter().all(|read| *read == after[0]), "{after:?}");
    }
}

/// A member that starts anew in the middle reads on with the others.
#[test]
fn who_starts_anew_reads_on_in_the_order() {
    for host in [0, 4] {
        let mut scenario = ordered(K_BINOMIAL, Damage::default(), 7);
        for origin in [2, 3] {
            scenario.write(origin, &[300_000, 16, 300_000, 16]);
        }
        scenario.run_for(20_000);
        scenario.fabric.stop_agent(host);
        scenario.run_for(300_000);
        scenario.fabric.start_agent(host);
        scenario.replan();
        for origin in [2, 3] {
            scenario.finish(origin, 120 * SECOND_US);
            scenario.check_delivered(origin, 4, &[host]);
        }
        for origin in [2, 3] {
            scenario.write(origin, &[16, 30_000, 16]);
        }
        for origin in [2, 3] {
            scenario.finish(origin, 120 * SECOND_US);
        }
        let last = |host: u16| read(&scenario, host)[read(&scenario, host).len() - 6..].to_vec();
        let ours = last(1);
        for other in [0, 4, 5, 6, 7] {
            assert_eq!(
                last(other),
                ours,
                "host {other} after host {host} started anew"
            );
        }
    }
}
