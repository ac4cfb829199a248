//! Groups whose ACKs switches gather, as planned: entries of the planner in switches with the P4 program, agents
//! that send and take gathered ACKs.

use wormcast_fabric_tests::controller::{
    self, BROADCAST, Controller, OWN_TABLE, OWN_TREES, SWITCH, TABLE, THROUGH_ROOT,
};
use wormcast_fabric_tests::link::Damage;
use wormcast_fabric_tests::random::Random;
use wormcast_fabric_tests::scenario::{GROUP, Scenario, engine_config, link, with_parallel_links};
use wormcast_planner::{Group, Guard};
use wormcast_routing::generate;
use wormcast_routing::group::Scheme;
use wormcast_routing::routes::Algorithm;
use wormcast_routing::topology::{Damage as Loss, Topology};

const SECOND_US: u64 = 1_000_000;
const SCHEMES: [Scheme; 6] = [SWITCH, TABLE, BROADCAST, OWN_TREES, OWN_TABLE, THROUGH_ROOT];
const SIZES: [u64; 4] = [64, 400_000, 16, 100_000];

fn gathering(topology: Topology, scheme: Scheme, damage: Damage, seed: u64, on: bool) -> Scenario {
    let members: Vec<u16> = topology.hosts().iter().map(|host| host.id.0).collect();
    let group = Group {
        gather: true,
        ..controller::group(GROUP, scheme, members)
    };
    let mut controller = Controller::new(vec![group], Algorithm::Osud);
    controller.guard = Guard {
        on,
        ..Guard::default()
    };
    Scenario::with(
        topology,
        controller,
        link(damage),
        engine_config(seed),
        seed,
    )
}

/// Gathered ACKs that came to an origin.
fn received(scenario: &mut Scenario, origin: u16) -> u64 {
    let agent = scenario.fabric.host(origin).agent.as_ref().expect("runs");
    let engine = agent.engine().expect("runs");
    engine
        .statistics()
        .map(|(_, _, statistics)| statistics.gathered_received)
        .sum()
}

#[test]
fn acks_come_gathered_to_every_origin() {
    for scheme in SCHEMES {
        for (guard, damage) in [
            (false, Damage::default()),
            (true, Damage::default()),
            (true, Damage::rough()),
        ] {
            let mut scenario = gathering(generate::testbed(), scheme, damage, 11, guard);
            for origin in [0, 5] {
                scenario.write(origin, &SIZES);
            }
            for origin in [0, 5] {
                scenario.finish(origin, 60 * SECOND_US);
                scenario.check_delivered(origin, SIZES.len() as u32, &[]);
                let came = received(&mut scenario, origin);
                // Some for each message at least, and 100 for the large ones.
                assert!(came > 30, "{scheme:?}, guard {guard}: {came} at {origin}");
            }
            scenario.check_pools();
            scenario.check_guard();
        }
    }
}

#[test]
fn no_switch_drops_an_ack_of_a_plan_that_is_out() {
    for scheme in SCHEMES {
        for parallel in [1, 3] {
            let topology = with_parallel_links(&generate::testbed(), parallel);
            let mut scenario = gathering(topology, scheme, Damage::default(), 12, true);
            scenario.write(2, &SIZES);
            scenario.finish(2, 60 * SECOND_US);
            scenario.run_for(2 * SECOND_US);
            // GATHER_UNKNOWN and GATHER_STALE.
            for reason in [25, 26] {
                for (id, switch) in &scenario.fabric.switches {
                    assert_eq!(switch.counter("drops", reason), 0, "{scheme:?}: at {id}");
                }
            }
            assert!(received(&mut scenario, 2) > 30);
        }
    }
}

#[test]
fn changes_under_way_cost_no_message() {
    let mut gathered = 0;
    for seed in 0..24 {
        let mut random = Random::new(seed);
        let scheme = *random.pick(&SCHEMES);
        let damage = if random.chance(0.5) {
            Damage::rough()
        } else {
            Damage::default()
        };
        let topology = generate::from_spec("torus:3").expect("a known shape");
        let links = topology.links().to_vec();
        let mut scenario = gathering(topology, scheme, damage, seed, seed % 2 == 0);
        // Hosts 0 to 5 stay; others come and go.
        let mut written = 0;
        for _ in 0..4 {
            scenario.write(0, &[200_000, 64]);
            written += 2;
            scenario.run_for(random.below(20_000));
            match random.below(3) {
                0 => {
                    let mut members: Vec<u16> = (0..6).collect();
                    members.extend((6..9).filter(|_| random.chance(0.5)));
                    scenario.set_members(&members);
                }
                1 => {
                    let link = *random.pick(&links);
                    scenario.controller.damage = Loss {
                        links: [(link.a, link.a_port)].into(),
                        ..Loss::default()
                    };
                }
                _ => scenario.controller.damage = Loss::default(),
            }
            let us = scenario.replan_in_stages(&mut random, 5_000);
            scenario.run_for(us + random.below(40_000));
        }
        scenario.finish(0, 120 * SECOND_US);
        scenario.set_members(&[0, 1, 2, 3, 4, 5]);
        scenario.check_delivered(0, written, &[]);
        scenario.check_pools();
        gathered += received(&mut scenario, 0);
    }
    assert!(gathered > 1_000, "{gathered}");
}
