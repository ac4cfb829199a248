//! Members that are slow, come late, or have no buffer; several origins and groups.

use wormcast_fabric_tests::controller;
use wormcast_fabric_tests::controller::{CIRCUIT, K_BINOMIAL, SWITCH, TREE, schemes};
use wormcast_fabric_tests::link::Damage;
use wormcast_fabric_tests::program::ReaderPolicy;
use wormcast_fabric_tests::scenario::{GROUP, Scenario, engine_config, link};
use wormcast_planner::GroupScheme;
use wormcast_routing::group::Scheme;
use wormcast_wire::FailReason;

const SECOND_US: u64 = 1_000_000;

#[test]
fn a_member_without_buffer_refuses_and_is_served_later() {
    for scheme in schemes() {
        for damage in [Damage::default(), Damage::rough()] {
            let groups = vec![controller::group(GROUP, scheme, 0..8)];
            let mut config = engine_config(3);
            config.limits.pool_class1_bytes = 150_000;
            config.limits.pool_class2_bytes = 150_000;
            let mut scenario = Scenario::testbed(groups, link(damage), config, 3);
            let sleeps = ReaderPolicy {
                asleep_until_us: 700_000,
                ..ReaderPolicy::default()
            };
            scenario.fabric.host(3).program.policy = sleeps;
            scenario.write(0, &[2_000_000, 100_000]);
            scenario.finish(0, 60 * SECOND_US);
            scenario.check_delivered(0, 2, &[]);
            scenario.check_pools();
            let nacks: u64 = nacks_sent(&mut scenario, 3);
            assert!(nacks > 0, "{scheme:?}: host 3 had a full pool");
            assert!(
                scenario
                    .outcomes(0)
                    .iter()
                    .all(|(_, failed)| failed.is_empty())
            );
        }
    }
}

fn nacks_sent(scenario: &mut Scenario, host: u16) -> u64 {
    let engine = scenario
        .fabric
        .host(host)
        .agent
        .as_ref()
        .expect("runs")
        .engine()
        .expect("runs");
    engine
        .statistics()
        .map(|(_, _, statistics)| statistics.nacks_sent)
        .sum()
}

#[test]
fn a_slow_member_slows_the_group_and_loses_nothing() {
    for scheme in schemes() {
        let mut scenario = Scenario::new("testbed", scheme, Damage::default(), 5);
        let slow = ReaderPolicy {
            bytes_per_ms: Some(1_000),
            ..ReaderPolicy::default()
        };
        scenario.fabric.host(6).program.policy = slow;
        scenario.write(0, &[2_000_000]);
        let took_us = scenario.finish(0, 60 * SECOND_US);
        assert!(
            took_us >= 2 * SECOND_US - 10_000,
            "a member reads 1 MB/s: {took_us} µs"
        );
        assert!(took_us <= 3 * SECOND_US, "{scheme:?}: {took_us} µs");
        scenario.check_delivered(0, 1, &[]);
    }
}

#[test]
fn all_members_may_send_at_once() {
    for scheme in schemes() {
        for damage in [Damage::default(), Damage::rough()] {
            let mut scenario = Scenario::new("testbed", scheme, damage, 6);
            for origin in 0..8 {
                scenario.write(origin, &[200_000, 16, 300_000]);
            }
            for origin in 0..8 {
                scenario.finish(origin, 60 * SECOND_US);
            }
            for origin in 0..8 {
                scenario.check_delivered(origin, 3, &[]);
            }
            scenario.check_pools();
        }
    }
}

#[test]
fn two_origins_share_the_fabric_fairly() {
    for scheme in [CIRCUIT, SWITCH, K_BINOMIAL] {
        let mut scenario = Scenario::new("testbed", scheme, Damage::default(), 7);
        scenario.write(0, &[3_000_000]);
        scenario.write(5, &[3_000_000]);
        let first = scenario.finish(0, 60 * SECOND_US);
        scenario.finish(5, 60 * SECOND_US);
        let second = scenario.settled_us(5);
        let ratio = first.max(second) as f64 / first.min(second) as f64;
        println!("{scheme:?}: {first} and {second} µs");
        assert!(ratio < 1.6, "{scheme:?}: {first} and {second} µs");
        scenario.check_delivered(0, 1, &[]);
        scenario.check_delivered(5, 1, &[]);
    }
}

#[test]
fn groups_whose_structures_cross_do_not_lock_each_other_up() {
    let schemes = [TREE, CIRCUIT, K_BINOMIAL, CIRCUIT];
    let groups: Vec<_> = (0..4)
        .map(|index| controller::group(GROUP + index, schemes[usize::from(index)], 0..8))
        .collect();
    let mut config = engine_config(8);
    config.limits.pool_class1_bytes = 16 * 1_600;
    config.limits.pool_class2_bytes = 16 * 1_600;
    let mut scenario = Scenario::testbed(groups, link(Damage::default()), config, 8);
    for index in 0..4 {
        for origin in [0, 7, 3] {
            scenario.write_to(origin, GROUP + index, &[300_000]);
        }
    }
    for origin in [0, 7, 3] {
        scenario.finish(origin, 120 * SECOND_US);
    }
    for host in scenario.fabric.hosts.values() {
        for ((group, origin), reader) in &host.program.readers {
            assert_eq!(
                reader.messages.len(),
                1,
                "host {} group {group} of {origin}",
                host.id
            );
        }
    }
    scenario.check_pools();
}

#[test]
fn a_member_that_joins_late_starts_at_the_next_message() {
    for scheme in schemes() {
        for damage in [Damage::default(), Damage::rough()] {
            let groups = vec![controller::group(GROUP, scheme, [0, 1, 2, 4, 5, 6, 7])];
            let mut scenario = Scenario::testbed(groups, link(damage), engine_config(9), 9);
            scenario.write(0, &[2_000_000, 300_000, 16]);
            scenario.run_for(100_000);
            scenario.set_members(&[0, 1, 2, 3, 4, 5, 6, 7]);
            scenario.replan();
            scenario.finish(0, 60 * SECOND_US);
            scenario.check_delivered(0, 3, &[3]);
            assert_eq!(scenario.delivered(3, 0), vec![1, 2], "{scheme:?}");
            let late = vec![(3, FailReason::Late.to_string())];
            assert_eq!(
                scenario.outcomes(0),
                vec![(0, late), (1, vec![]), (2, vec![])]
            );
        }
    }
}

/// A plan of fewer members may have fewer structures, or others by the same numbers. Who misses it, or had all packets before,
/// hears of the choice in force by no new packet.
#[test]
fn a_member_that_misses_a_plan_of_fewer_members_follows_those_before_and_after() {
    let by_length: [GroupScheme; 3] = [
        Scheme::KBinomial { k: None }.into(),
        Scheme::Postal { lambda: None }.into(),
        GroupScheme::Auto,
    ];
    let runs = by_length
        .into_iter()
        .flat_map(|scheme| [2, 3].map(|few| (scheme, few)));
    for (scheme, few) in runs {
        for turn in [0, 3, 6, 8, 9, 11] {
            let groups = vec![controller::group(GROUP, scheme, 0..8)];
            let mut scenario =
                Scenario::testbed(groups, link(Damage::default()), engine_config(turn), turn);
            scenario.write(0, &[400_000]);
            scenario.run_for(4_000 * turn);
            scenario.set_members(&(0..few).collect::<Vec<_>>());
            scenario.replan_without(&[1]);
            scenario.run_for(1_000 * turn);
            scenario.set_members(&(0..8).collect::<Vec<_>>());
            scenario.replan();
            scenario.finish(0, 120 * SECOND_US);
            for (message, failed) in scenario.outcomes(0) {
                let stayed = failed.iter().all(|(host, _)| *host >= few);
                assert!(
                    stayed,
                    "{scheme:?}, {few}, turn {turn}, {message}: {failed:?}"
                );
            }
            scenario.check_delivered(0, 1, &(few..8).collect::<Vec<_>>());
        }
    }
}

#[test]
fn sequence_numbers_wrap_in_the_middle_of_a_transfer() {
    for scheme in schemes() {
        let mut config = engine_config(10);
        config.first_seq = Some(wormcast_wire::Seq(u32::MAX - 500));
        let groups = vec![controller::group(GROUP, scheme, 0..8)];
        let mut scenario = Scenario::testbed(groups, link(Damage::rough()), config, 10);
        scenario.write(0, &[1_500_000, 200_000]);
        scenario.finish(0, 60 * SECOND_US);
        scenario.check_delivered(0, 2, &[]);
    }
}

#[test]
fn an_agent_that_gets_its_plan_late_misses_nothing() {
    for scheme in schemes() {
        let mut scenario = Scenario::new("testbed", scheme, Damage::default(), 11);
        // Host 4 knows nothing yet.
        scenario.fabric.stop_agent(4);
        scenario.fabric.start_agent_without_plan(4);
        scenario.write(0, &[500_000, 16]);
        scenario.run_for(300_000);
        scenario.replan();
        scenario.finish(0, 60 * SECOND_US);
        scenario.check_delivered(0, 2, &[]);
        assert!(
            scenario
                .outcomes(0)
                .iter()
                .all(|(_, failed)| failed.is_empty())
        );
    }
}
