//! The same transfers through the P4 program itself.

use wormcast_fabric_tests::link::Damage;
use wormcast_fabric_tests::planner::GroupWish;
use wormcast_fabric_tests::scenario::{GROUP, Scenario, engine_config, link};
use wormcast_routing::generate;
use wormcast_wire::Scheme;

const SECOND_US: u64 = 1_000_000;

fn run(shape: &str, scheme: Scheme, damage: Damage, by_program: bool) -> (u64, String) {
    let mut scenario = Scenario::new(shape, scheme, damage, 3);
    if by_program {
        scenario.fabric.use_program();
    }
    scenario.write(1, &[400_000, 16, 30_000]);
    let took_us = scenario.finish(1, 60 * SECOND_US);
    scenario.check_delivered(1, 3, &[]);
    (took_us, scenario.report())
}

#[test]
fn the_program_and_the_model_forward_alike() {
    for shape in ["testbed", "irregular:4:1"] {
        for scheme in Scheme::ALL {
            for damage in [Damage::default(), Damage::rough()] {
                // To the microsecond and to the last counter.
                assert_eq!(
                    run(shape, scheme, damage, true),
                    run(shape, scheme, damage, false),
                    "{shape} {scheme:?}"
                );
            }
        }
    }
}

#[test]
fn congestion_marks_of_the_program_keep_queues_short_and_links_full() {
    for scheme in [Scheme::Circuit, Scheme::Switch] {
        let topology = generate::from_spec("testbed").expect("known");
        let groups = vec![GroupWish::new(GROUP, scheme, 0..8)];
        let mut config = link(Damage::default());
        // The threshold is the program's; this only says that queues are seen.
        config.mark_bytes = Some(0);
        let mut scenario = Scenario::with(topology, groups, config, engine_config(1), 1);
        // Hosts send faster than the links between switches take: queues are in switches.
        for (place, link) in &mut scenario.fabric.links {
            if matches!(place, wormcast_fabric_tests::fabric::Place::Host(_)) {
                link.config.rate_bps *= 2;
            }
        }
        scenario.fabric.use_program();
        scenario.write(0, &[4_000_000]);
        let took_us = scenario.finish(0, 60 * SECOND_US);
        scenario.check_delivered(0, 1, &[]);
        let marks: u64 = scenario
            .fabric
            .hosts
            .values()
            .filter_map(|host| host.engine.as_ref())
            .flat_map(|engine| engine.statistics().map(|(_, _, s)| s.congestion_marks))
            .sum();
        println!("{scheme:?}: {took_us} µs, {marks} marks");
        assert!(marks > 0, "{scheme:?}: no marks");
        assert!(took_us < 400_000, "{scheme:?}: {took_us} µs");
    }
}
