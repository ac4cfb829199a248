//! A message that its origin cancels, and what comes behind it.

use wormcast_agent_core::transit::TransitLimits;
use wormcast_fabric_tests::controller;
use wormcast_fabric_tests::crowd::{Draft, Ending, Habits, Reader};
use wormcast_fabric_tests::link::Damage;
use wormcast_fabric_tests::scenario::{GROUP, Scenario, engine_config, link};
use wormcast_routing::group::Scheme;

const SECOND_US: u64 = 1_000_000;
/// More than an agent takes at once, so that some of it is sent before it is cancelled.
const SIZE: u64 = 4_000_000;

/// Members' programs that know what is sent give way to others.
fn read_by_others(scenario: &mut Scenario) {
    scenario.programs_read = false;
    for host in scenario.fabric.hosts.values_mut() {
        host.program.groups.clear();
        let reader = Reader::new(GROUP, Habits::default());
        host.crowd.readers.insert(GROUP, reader);
    }
    // They start anew, so that the receivers of before are closed.
    let limits = TransitLimits::default();
    scenario.fabric.set_memory(limits, 256 << 10);
    scenario.run_for(SECOND_US);
}

/// The word that a message is cancelled and the whole messages behind it may come to a host at once, with nothing after
/// them that would wake it.
#[test]
fn what_comes_behind_a_cancelled_message_is_read() {
    for seed in 0..10 {
        let groups = vec![controller::group(GROUP, Scheme::Repeat, 0..3)];
        let damage = Damage {
            loss: 0.2,
            ..Damage::default()
        };
        let mut scenario = Scenario::testbed(groups, link(damage), engine_config(seed), seed);
        read_by_others(&mut scenario);
        let draft = |size, ending| Draft {
            size,
            is_announced: false,
            ending,
        };
        let drafts = vec![
            draft(SIZE, Ending::Cancelled),
            draft(60, Ending::Whole),
            draft(70, Ending::Whole),
        ];
        scenario.fabric.host(0).crowd.write(GROUP, drafts, true, 0);
        scenario.fabric.run_host(0);
        let until_us = scenario.fabric.now_us() + 30 * SECOND_US;
        let is_settled = scenario
            .fabric
            .run_until(until_us, |fabric| fabric.hosts[&0].crowd.is_settled());
        assert!(is_settled, "seed {seed}\n{}", scenario.report());
    }
}
