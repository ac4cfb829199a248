//! Groups with a rate, on virtual time: what the plan names bounds all that a host sends to the group.

use wormcast_fabric_tests::controller;
use wormcast_fabric_tests::controller::{CIRCUIT, SWITCH};
use wormcast_fabric_tests::link::Damage;
use wormcast_fabric_tests::scenario::{GROUP, RATE_BPS, Scenario, engine_config, link};
use wormcast_planner::Group;
use wormcast_routing::group::Scheme;

const RATE_BITS: u64 = 8_000_000;
const SIZE: u64 = 1_000_000;
const SECOND_US: u64 = 1_000_000;
/// What is saved up goes at once: 20 ms of the rate.
const SAVED_BYTES: u64 = RATE_BITS / 8 / 50;

fn limited(scheme: Scheme) -> Scenario {
    let group = Group {
        rate_bits: Some(RATE_BITS),
        ..controller::group(GROUP, scheme, 0..4)
    };
    Scenario::testbed(vec![group], link(Damage::default()), engine_config(1), 1)
}

fn us(bytes: u64, bits_per_s: u64) -> u64 {
    bytes * 8 * SECOND_US / bits_per_s
}

fn check_stable(scenario: &Scenario, messages: u32) {
    scenario.check_delivered(0, messages, &[]);
    let outcomes = scenario.outcomes(0);
    assert!(outcomes.iter().all(|(_, failed)| failed.is_empty()));
}

#[test]
fn a_host_sends_to_a_group_as_fast_as_its_plan_says_and_no_faster() {
    for scheme in [CIRCUIT, SWITCH] {
        let mut scenario = limited(scheme);
        scenario.write(0, &[SIZE, SIZE]);
        let took_us = scenario.finish(0, 60 * SECOND_US);
        check_stable(&scenario, 2);
        let least_us = us(2 * SIZE - SAVED_BYTES, RATE_BITS);
        assert!(took_us >= least_us, "{scheme:?}: {took_us} µs");
        assert!(took_us <= us(2 * SIZE, RATE_BITS) * 105 / 100, "{took_us}");
    }
}

#[test]
fn another_rate_holds_for_the_message_that_is_under_way_and_breaks_nothing() {
    for scheme in [CIRCUIT, SWITCH] {
        let mut scenario = limited(scheme);
        scenario.write(0, &[20 * SIZE]);
        scenario.run_for(SECOND_US);
        assert!(!scenario.is_finished(0));
        scenario.controller.groups[0].rate_bits = None;
        scenario.replan();
        let took_us = scenario.finish(0, 60 * SECOND_US);
        check_stable(&scenario, 1);
        let ideal_us = us(19 * SIZE, RATE_BPS);
        assert!(took_us < ideal_us * 125 / 100, "{scheme:?}: {took_us} µs");
    }
}
