//! What the P4 program does besides forwarding.

use wormcast_fabric_tests::controller;
use wormcast_fabric_tests::controller::{CIRCUIT, SWITCH};
use wormcast_fabric_tests::link::Damage;
use wormcast_fabric_tests::scenario::{GROUP, Scenario, engine_config, link};

const SECOND_US: u64 = 1_000_000;

#[test]
fn congestion_marks_of_the_program_keep_queues_short_and_links_full() {
    for scheme in [CIRCUIT, SWITCH] {
        let groups = vec![controller::group(GROUP, scheme, 0..8)];
        let mut scenario = Scenario::testbed(groups, link(Damage::default()), engine_config(1), 1);
        // Hosts send faster than the links between switches take: queues are in switches.
        for (place, link) in &mut scenario.fabric.links {
            if matches!(place, wormcast_fabric_tests::fabric::Place::Host(_)) {
                link.config.rate_bps *= 2;
            }
        }
        scenario.write(0, &[4_000_000]);
        let took_us = scenario.finish(0, 60 * SECOND_US);
        scenario.check_delivered(0, 1, &[]);
        let marks: u64 = scenario
            .fabric
            .hosts
            .values()
            .filter_map(|host| host.agent.as_ref()?.engine())
            .flat_map(|engine| engine.statistics().map(|(_, _, s)| s.congestion_marks))
            .sum();
        println!("{scheme:?}: {took_us} µs, {marks} marks");
        assert!(marks > 0, "{scheme:?}: no marks");
        assert!(took_us < 400_000, "{scheme:?}: {took_us} µs");
    }
}
