//! Circuits that return: the origin learns by its own bytes that they went through every member whole.

use wormcast_fabric_tests::controller::{CIRCUIT, RETURN};
use wormcast_fabric_tests::link::Damage;
use wormcast_fabric_tests::scenario::{GROUP, Scenario};
use wormcast_planner::NOT_LIVE;
use wormcast_wire::{FailReason, GroupId, HostId};

const SIZE: u64 = 1_000_000;
const SECOND_US: u64 = 1_000_000;

/// Counted at the origin of its own stream.
fn counted(scenario: &Scenario, origin: u16, name: &str) -> u64 {
    let agent = scenario.fabric.hosts[&origin].agent.as_ref();
    let engine = agent.and_then(|agent| agent.engine()).expect("it runs");
    let mut streams = engine.statistics();
    let own = |stream: &(GroupId, HostId, _)| (stream.0.0, stream.1.0) == (GROUP, origin);
    let (_, _, statistics) = streams.find(own).expect("it writes");
    let mut entries = statistics.entries().into_iter();
    entries.find(|entry| entry.0 == name).expect("a counter").1
}

#[test]
fn every_byte_returns_once_whatever_links_do() {
    for damage in [Damage::default(), Damage::rough()] {
        for seed in 1..4 {
            let mut scenario = Scenario::new("testbed", RETURN, damage, seed);
            scenario.write(3, &[SIZE, 16, 5_000]);
            scenario.finish(3, 60 * SECOND_US);
            scenario.check_delivered(3, 3, &[]);
            let whole = (0..3).map(|message| (message, vec![])).collect::<Vec<_>>();
            assert_eq!(scenario.outcomes(3), whole);
            let returned = counted(&scenario, 3, "data_received_bytes");
            assert_eq!(returned, SIZE + 16 + 5_000, "seed {seed}");
            assert_eq!(counted(&scenario, 3, "differences"), 0);
            scenario.check_quiet();
        }
    }
}

/// The last host spoils what it sends on, past all checksums: only the origin gets that, and says so.
#[test]
fn an_origin_finds_what_checksums_do_not() {
    let spoilt = |scheme| {
        let mut scenario = Scenario::new("testbed", scheme, Damage::default(), 1);
        scenario.write(3, &[SIZE]);
        scenario.finish(3, 60 * SECOND_US);
        scenario.fabric.spoilt = Some(2);
        scenario.write(3, &[SIZE]);
        scenario.finish(3, 60 * SECOND_US);
        scenario.fabric.spoilt = None;
        scenario.write(3, &[SIZE]);
        scenario.finish(3, 60 * SECOND_US);
        scenario.check_delivered(3, 3, &[]);
        scenario
    };
    let scenario = spoilt(RETURN);
    let differs = vec![(3, FailReason::Differs.to_string())];
    let outcomes = vec![(0, vec![]), (1, differs), (2, vec![])];
    assert_eq!(scenario.outcomes(3), outcomes);
    assert_eq!(counted(&scenario, 3, "differences"), SIZE.div_ceil(1_444));
    let unseen = spoilt(CIRCUIT).outcomes(3);
    assert!(unseen.iter().all(|(_, failed)| failed.is_empty()));
}

/// Longer than anybody is waited for without a word, nothing of it is taken for a failure.
#[test]
fn pauses_of_the_origin_and_of_the_last_host_are_no_failures() {
    for host in [3, 2] {
        let mut scenario = Scenario::new("testbed", RETURN, Damage::rough(), 1);
        scenario.write(3, &[SIZE]);
        scenario.run_for(50_000);
        scenario.fabric.freeze(host, 50 * SECOND_US);
        scenario.finish(3, 90 * SECOND_US);
        scenario.check_delivered(3, 1, &[]);
        assert_eq!(scenario.outcomes(3), [(0, vec![])]);
    }
}

/// The last host dies with what it has not sent back; the one before it does.
#[test]
fn the_circuit_closes_around_the_last_host() {
    for damage in [Damage::default(), Damage::rough()] {
        let mut scenario = Scenario::new("testbed", RETURN, damage, 1);
        scenario.write(3, &[SIZE]);
        scenario.run_for(50_000);
        scenario.fabric.stop_agent(2);
        scenario.run_for(5 * SECOND_US);
        scenario.controller.damage.hosts.insert(HostId(2));
        scenario.replan();
        scenario.finish(3, 60 * SECOND_US);
        scenario.check_delivered(3, 1, &[2]);
        let away = vec![(2, NOT_LIVE.to_owned())];
        assert_eq!(scenario.outcomes(3), [(0, away)]);
        assert_eq!(counted(&scenario, 3, "data_received_bytes"), SIZE);
    }
}
