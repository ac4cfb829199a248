//! Links, hosts, agents and disks fail in the middle of a transfer; the surviving
//! members get every message once and in order.

use wormcast_fabric_tests::controller::{CIRCUIT, RETURN, schemes};
use wormcast_fabric_tests::link::Damage;
use wormcast_fabric_tests::program::ReaderPolicy;
use wormcast_fabric_tests::scenario::{GROUP, Scenario};
use wormcast_wire::{FailReason, HostId, PortId, SwitchId};

const SIZE: u64 = 3_000_000;
const SECOND_US: u64 = 1_000_000;

fn scenarios(damage: Damage) -> impl Iterator<Item = Scenario> {
    schemes()
        .into_iter()
        .flat_map(move |scheme| [1, 2].map(|seed| Scenario::new("testbed", scheme, damage, seed)))
}

#[test]
fn a_cut_link_and_a_new_plan_lose_and_repeat_nothing() {
    for mut scenario in scenarios(Damage::default()).chain(scenarios(Damage::rough())) {
        scenario.write(1, &[SIZE, 5_000, SIZE]);
        scenario.run_for(100_000);
        // A link of the ring: the routes go the other way round now.
        scenario.fabric.set_link_down(0, 4, true);
        scenario.run_for(400_000);
        scenario
            .controller
            .damage
            .links
            .insert((SwitchId(0), PortId::new(4).expect("a port")));
        scenario.replan();
        let took_us = scenario.finish(1, 60 * SECOND_US);
        println!(
            "{:?} seed {}: {} ms",
            scenario.controller.groups[0].scheme,
            scenario.seed,
            took_us / 1000
        );
        scenario.check_delivered(1, 3, &[]);
        scenario.check_pools();
        assert!(
            scenario
                .outcomes(1)
                .iter()
                .all(|(_, failed)| failed.is_empty())
        );
    }
}

#[test]
fn a_link_that_heals_lets_the_transfer_go_on_without_any_controller() {
    for mut scenario in scenarios(Damage::default()) {
        scenario.write(1, &[SIZE]);
        scenario.run_for(100_000);
        scenario.fabric.set_link_down(0, 4, true);
        scenario.run_for(3 * SECOND_US);
        scenario.fabric.set_link_down(0, 4, false);
        let before = scenario.fabric.now_us();
        let took_us = scenario.finish(1, 60 * SECOND_US);
        println!(
            "{:?}: {} ms",
            scenario.controller.groups[0].scheme,
            took_us / 1000
        );
        scenario.check_delivered(1, 1, &[]);
        let progress_us = scenario.fabric.now_us() - before;
        assert!(
            progress_us < 5 * SECOND_US,
            "resumed too slowly: {progress_us} µs"
        );
    }
}

#[test]
fn a_member_silent_for_most_of_a_minute_is_reported_and_lost_by_nobody() {
    for mut scenario in scenarios(Damage::default()) {
        let scheme = scenario.controller.groups[0].scheme;
        scenario.write(1, &[SIZE]);
        scenario.run_for(100_000);
        scenario.fabric.set_link_down(0, 4, true);
        scenario.fabric.set_link_down(0, 5, true);
        scenario.run_for(50 * SECOND_US);
        scenario.fabric.set_link_down(0, 4, false);
        scenario.fabric.set_link_down(0, 5, false);
        scenario.finish(1, 60 * SECOND_US);
        scenario.check_delivered(1, 1, &[]);
        assert_eq!(scenario.outcomes(1), vec![(0, vec![])], "{scheme:?}");
        assert!(!scenario.reported(true).is_empty(), "{scheme:?}");
        assert!(scenario.reported(false).is_empty(), "{scheme:?}");
    }
}

#[test]
fn a_dead_member_is_reported_and_the_others_finish_by_the_new_plan() {
    for mut scenario in scenarios(Damage::default()).chain(scenarios(Damage::rough())) {
        let scheme = scenario.controller.groups[0].scheme;
        scenario.write(0, &[SIZE, 50_000]);
        scenario.run_for(100_000);
        let victim = 4;
        scenario.fabric.stop_agent(victim);
        let start_us = scenario.fabric.now_us();
        let reported = scenario
            .fabric
            .run_until(start_us + 10 * SECOND_US, |fabric| {
                let mut reports = fabric.hosts.values().flat_map(|host| &host.reports);
                reports.any(|(_, report)| report.host.0 == victim)
            });
        assert!(
            reported,
            "{scheme:?} seed {}: nobody noticed",
            scenario.seed
        );
        let silent = scenario.reported(true);
        assert!(
            silent.iter().all(|host| *host == victim),
            "{scheme:?}: {silent:?} taken for dead\n{}",
            scenario.report()
        );
        scenario.controller.damage.hosts.insert(HostId(victim));
        scenario.replan();
        let took_us = scenario.finish(0, 60 * SECOND_US);
        println!(
            "{scheme:?} seed {}: {} ms after the plan",
            scenario.seed,
            took_us / 1000
        );
        scenario.check_delivered(0, 2, &[victim]);
        let outcomes = scenario.outcomes(0);
        assert_eq!(outcomes.len(), 2, "{scheme:?}");
        for (message, failed) in outcomes {
            let hosts: Vec<u16> = failed.iter().map(|(host, _)| *host).collect();
            assert_eq!(hosts, [victim], "{scheme:?}: message {message}");
        }
    }
}

#[test]
fn without_a_controller_a_dead_member_is_given_up_and_the_others_finish() {
    for scheme in schemes() {
        let mut scenario = Scenario::new("testbed", scheme, Damage::default(), 1);
        scenario.write(0, &[SIZE]);
        scenario.run_for(100_000);
        // The last of the circuit and a leaf of the trees, so that nobody is orphaned.
        let victim = 7;
        scenario.fabric.stop_agent(victim);
        scenario.finish(0, 120 * SECOND_US);
        scenario.check_delivered(0, 1, &[victim]);
        let mut failed = vec![(victim, FailReason::Silent.to_string())];
        if scheme == RETURN {
            failed.insert(0, (0, FailReason::Orphaned.to_string()));
        }
        let expected = vec![(0, failed)];
        assert_eq!(scenario.outcomes(0), expected, "{scheme:?}");
    }
}

#[test]
fn a_dead_inner_member_takes_only_those_below_it_along_when_no_plan_comes() {
    let mut scenario = Scenario::new("testbed", CIRCUIT, Damage::default(), 1);
    scenario.write(0, &[SIZE]);
    scenario.run_for(100_000);
    scenario.fabric.stop_agent(5);
    scenario.finish(0, 120 * SECOND_US);
    scenario.check_delivered(0, 1, &[5, 6, 7]);
    let failed = vec![
        (5, FailReason::Silent.to_string()),
        (6, FailReason::Orphaned.to_string()),
        (7, FailReason::Orphaned.to_string()),
    ];
    assert_eq!(scenario.outcomes(0), vec![(0, failed)]);
}

#[test]
fn a_full_disk_fails_one_member_and_no_other() {
    for mut scenario in scenarios(Damage::default()).chain(scenarios(Damage::rough())) {
        let policy = ReaderPolicy {
            disk_bytes: Some(1_000_000),
            ..ReaderPolicy::default()
        };
        scenario.fabric.host(2).program.policy = policy;
        scenario.write(0, &[SIZE, 200_000, SIZE]);
        scenario.finish(0, 60 * SECOND_US);
        scenario.check_delivered(0, 3, &[2]);
        assert_eq!(scenario.delivered(2, 0), vec![1], "the message that fits");
        let no_space = vec![(2, FailReason::NoSpace.to_string())];
        let expected = vec![(0, no_space.clone()), (1, vec![]), (2, no_space)];
        assert_eq!(scenario.outcomes(0), expected, "{}", scenario.report());
        let given_up = &scenario.fabric.host(0).program.writers[&GROUP].given_up;
        assert_eq!(given_up.iter().filter(|(_, host)| *host == 2).count(), 2);
    }
}

#[test]
fn a_member_whose_agent_starts_anew_gets_the_next_message() {
    for mut scenario in scenarios(Damage::default()).chain(scenarios(Damage::rough())) {
        let scheme = scenario.controller.groups[0].scheme;
        scenario.write(0, &[SIZE, 60_000, 70_000]);
        scenario.run_for(100_000);
        scenario.fabric.stop_agent(2);
        scenario.run_for(300_000);
        scenario.fabric.start_agent(2);
        scenario.finish(0, 60 * SECOND_US);
        scenario.check_delivered(0, 3, &[2]);
        assert_eq!(
            scenario.delivered(2, 0),
            vec![1, 2],
            "{scheme:?}\n{}",
            scenario.report()
        );
        let late = vec![(2, FailReason::Late.to_string())];
        assert_eq!(
            scenario.outcomes(0),
            vec![(0, late), (1, vec![]), (2, vec![])],
            "{scheme:?}"
        );
    }
}

#[test]
fn an_origin_whose_agent_starts_anew_begins_its_message_again() {
    for mut scenario in scenarios(Damage::default()).chain(scenarios(Damage::rough())) {
        // A window far smaller than the message, so that it is still being written.
        scenario.fabric.engine_config.limits.origin_window_packets = 256;
        scenario.fabric.start_agent(0);
        scenario.write(0, &[SIZE, 60_000]);
        scenario.run_for(100_000);
        scenario.fabric.stop_agent(0);
        scenario.run_for(200_000);
        scenario.fabric.start_agent(0);
        scenario.finish(0, 60 * SECOND_US);
        scenario.check_delivered(0, 2, &[]);
        for member in 1..8 {
            let lost = scenario.fabric.host(member).program.readers[&(GROUP, 0)].lost;
            assert_eq!(
                lost, 1,
                "{:?}: the first try broke off",
                scenario.controller.groups[0].scheme
            );
        }
    }
}
