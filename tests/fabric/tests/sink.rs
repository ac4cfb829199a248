//! Groups in which agents take messages that nobody receives: fabrics are measured with them.

use wormcast_agent_core::figures::Figures;
use wormcast_fabric_tests::controller::{self, Controller};
use wormcast_fabric_tests::link::Damage;
use wormcast_fabric_tests::scenario::{GROUP, Scenario, engine_config, link};
use wormcast_planner::Group;
use wormcast_protocol::Instant;
use wormcast_routing::generate;
use wormcast_routing::routes::Algorithm;

const SIZES: [u64; 5] = [64, 20_000, 300_000, 64, 1_444];

/// A fabric with one group of all hosts, in which nobody opens a receiver.
fn unread(shape: &str, group: Group, damage: Damage, seed: u64) -> Scenario {
    let topology = generate::from_spec(shape).expect("a known shape");
    let controller = Controller::new(vec![group], Algorithm::Osud);
    Scenario::with(
        topology,
        controller,
        link(damage),
        engine_config(seed),
        seed,
    )
}

/// Messages that the agent of a host has taken by itself.
fn figures(scenario: &mut Scenario, host: u16) -> u64 {
    let agent = scenario.fabric.host(host).agent.as_ref();
    let mut figures = Figures::default();
    agent
        .expect("it runs")
        .fill(&mut figures, false, Instant::ZERO);
    let mut counters = figures.figures.iter();
    let found = counters.find(|one| one.name == "applications.sunk_messages");
    found.expect("agents count them").value
}

#[test]
fn members_confirm_whole_messages_that_nobody_receives() {
    for scheme in controller::schemes() {
        for (seed, damage) in [(1, Damage::default()), (2, Damage::rough())] {
            let group = Group {
                sink: true,
                ..controller::group(GROUP, scheme, 0..8)
            };
            let mut scenario = unread("testbed", group, damage, seed);
            scenario.write(0, &SIZES);
            let us = scenario.finish(0, 60_000_000);
            let outcomes = scenario.outcomes(0);
            assert_eq!(outcomes.len(), SIZES.len());
            assert!(
                outcomes.iter().all(|(_, failed)| failed.is_empty()),
                "{outcomes:?}"
            );
            if seed == 1 {
                // Two copies over one link would take 54 ms a copy; a second is far below the wait for a receiver.
                assert!(us < 1_000_000, "{scheme:?}: {us}");
            }
            for member in 1..8 {
                assert_eq!(figures(&mut scenario, member), SIZES.len() as u64);
            }
            assert_eq!(figures(&mut scenario, 0), 0);
            scenario.check_pools();
        }
    }
}

/// A receiver gets them as in any group.
#[test]
fn where_a_receiver_is_open_it_gets_the_messages() {
    let group = Group {
        sink: true,
        ..controller::group(GROUP, controller::schemes()[0], 0..8)
    };
    let mut scenario = unread("testbed", group, Damage::default(), 1);
    let program = &mut scenario.fabric.host(3).program;
    program.groups.insert(GROUP);
    program.on_plan();
    scenario.fabric.run_host(3);
    scenario.write(0, &SIZES);
    scenario.finish(0, 60_000_000);
    let count = SIZES.len() as u64;
    assert_eq!(scenario.delivered(3, 0).len() as u64, count);
    assert_eq!(figures(&mut scenario, 3), 0);
    assert_eq!(figures(&mut scenario, 4), count);
    assert!(
        scenario
            .outcomes(0)
            .iter()
            .all(|(_, failed)| failed.is_empty())
    );
}
