//! A member that a plan leaves out is a member that has not got it: senders are told so of every message.

use wormcast_fabric_tests::controller::{self, CIRCUIT, schemes};
use wormcast_fabric_tests::link::Damage;
use wormcast_fabric_tests::scenario::{GROUP, Scenario, engine_config, link};
use wormcast_planner::NOT_LIVE;
use wormcast_wire::{FailReason, HostId};

const SECOND_US: u64 = 1_000_000;
const AWAY: u16 = 4;

fn gone() -> Vec<(u16, String)> {
    vec![(AWAY, NOT_LIVE.to_owned())]
}

/// The host stops, and the controller takes it for gone.
fn lose(scenario: &mut Scenario, host: u16) {
    scenario.fabric.stop_agent(host);
    scenario.controller.damage.hosts.insert(HostId(host));
    scenario.replan();
}

fn bring_back(scenario: &mut Scenario, host: u16) {
    scenario.controller.damage.hosts.remove(&HostId(host));
    scenario.fabric.start_agent(host);
    scenario.replan();
}

#[test]
fn who_is_away_is_named_for_each_message_and_gets_those_after_its_return() {
    let mut all = schemes();
    all.retain(|scheme| *scheme != CIRCUIT);
    for ordered in [false, true] {
        for &scheme in &all {
            let mut group = controller::group(GROUP, scheme, 0..8);
            group.ordered = ordered;
            let config = engine_config(1);
            let mut scenario = Scenario::testbed(vec![group], link(Damage::default()), config, 1);
            lose(&mut scenario, AWAY);
            scenario.write(0, &[200_000, 16]);
            scenario.finish(0, 60 * SECOND_US);
            let expected = vec![(0, gone()), (1, gone())];
            assert_eq!(scenario.outcomes(0), expected, "{scheme:?}");
            scenario.check_delivered(0, 2, &[AWAY]);
            bring_back(&mut scenario, AWAY);
            scenario.write(0, &[100_000]);
            scenario.finish(0, 60 * SECOND_US);
            assert_eq!(scenario.outcomes(0)[2], (2, vec![]), "{scheme:?}");
            assert_eq!(scenario.delivered(AWAY, 0), [2], "{scheme:?}");
        }
    }
}

#[test]
fn where_nobody_else_takes_part_all_are_named() {
    let groups = vec![controller::group(GROUP, CIRCUIT, [0, AWAY])];
    let mut scenario = Scenario::testbed(groups, link(Damage::default()), engine_config(2), 2);
    lose(&mut scenario, AWAY);
    scenario.write(0, &[100_000]);
    scenario.finish(0, 60 * SECOND_US);
    assert_eq!(scenario.outcomes(0), [(0, gone())]);
}

/// Nobody removed it; who is removed is said to be.
#[test]
fn who_leaves_in_the_middle_is_away_unless_it_was_removed() {
    for scheme in schemes() {
        for is_removed in [false, true] {
            let mut scenario = Scenario::new("testbed", scheme, Damage::default(), 3);
            scenario.write(0, &[3_000_000, 16]);
            scenario.run_for(100_000);
            let rest: Vec<u16> = (0..8).filter(|host| *host != AWAY).collect();
            if is_removed {
                scenario.set_members(&rest);
                scenario.replan();
            } else {
                lose(&mut scenario, AWAY)
            }
            scenario.finish(0, 120 * SECOND_US);
            let removed = vec![(AWAY, FailReason::Removed.to_string())];
            let expected = if is_removed { removed } else { gone() };
            let outcomes = scenario.outcomes(0);
            assert_eq!(outcomes[0], (0, expected.clone()), "{scheme:?}");
            // The second may have begun before, or not.
            if is_removed {
                assert!(outcomes[1].1.is_empty() || outcomes[1].1 == expected)
            } else {
                assert_eq!(outcomes[1], (1, expected), "{scheme:?}")
            }
        }
    }
}

/// Who starts anew in that time says so itself; who kept its memory gets what it lacks.
#[test]
fn who_was_away_for_a_while_was_not_removed() {
    for restarts in [true, false] {
        let mut scenario = Scenario::new("testbed", CIRCUIT, Damage::default(), 4);
        scenario.write(0, &[3_000_000]);
        scenario.run_for(100_000);
        let late = vec![(AWAY, FailReason::Late.to_string())];
        let expected = if restarts {
            lose(&mut scenario, AWAY);
            bring_back(&mut scenario, AWAY);
            late
        } else {
            scenario.controller.damage.hosts.insert(HostId(AWAY));
            scenario.replan();
            scenario.controller.damage.hosts.remove(&HostId(AWAY));
            scenario.replan();
            vec![]
        };
        scenario.finish(0, 120 * SECOND_US);
        assert_eq!(scenario.outcomes(0), [(0, expected)]);
        let takes: &[u32] = if restarts { &[] } else { &[0] };
        assert_eq!(scenario.delivered(AWAY, 0), takes);
    }
}
