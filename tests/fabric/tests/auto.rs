//! Groups in which each message takes the structure that is best for its length.

use wormcast_fabric_tests::controller::{self, Controller};
use wormcast_fabric_tests::link::Damage;
use wormcast_fabric_tests::scenario::{GROUP, Scenario, engine_config, link};
use wormcast_planner::GroupScheme;
use wormcast_routing::generate;
use wormcast_routing::group::Scheme;
use wormcast_routing::routes::Algorithm;
use wormcast_wire::GroupId;

const SIZES: [u64; 6] = [100, 200_000, 20, 20_000, 1_000_000, 64];

/// Messages of a host by the structure that each took.
fn taken(scenario: &mut Scenario, host: u16) -> Vec<u64> {
    let agent = scenario.fabric.host(host).agent.as_ref();
    let engine = agent.and_then(|agent| agent.engine()).expect("it runs");
    let progress = engine.progress(GroupId(GROUP)).expect("it has written");
    progress.messages_by_choice.to_vec()
}

fn structures(scenario: &mut Scenario) -> usize {
    let plan = scenario.fabric.host(0).plan().expect("it has one");
    plan.groups[0].structures.len()
}

#[test]
fn messages_take_different_structures_and_arrive_in_order() {
    for shape in ["testbed", "torus:3x3", "star:7"] {
        for (seed, damage) in [
            (1, Damage::default()),
            (2, Damage::rough()),
            (3, Damage::rough()),
        ] {
            let mut scenario = Scenario::new(shape, GroupScheme::Auto, damage, seed);
            for origin in [0, 3] {
                scenario.write(origin, &SIZES);
            }
            scenario.finish(0, 60_000_000);
            scenario.finish(3, 60_000_000);
            for origin in [0, 3] {
                scenario.check_delivered(origin, SIZES.len() as u32, &[]);
            }
            // With nothing under way.
            scenario.write(0, &[64]);
            scenario.finish(0, 60_000_000);
            scenario.check_delivered(0, SIZES.len() as u32 + 1, &[]);
            scenario.check_pools();
            let count = structures(&mut scenario);
            assert!(count > 1, "{shape}: there is something to choose from");
            let taken = taken(&mut scenario, 0);
            assert_eq!(taken.iter().sum::<u64>(), SIZES.len() as u64 + 1);
            assert!(taken[0] >= 2, "short messages take the first: {taken:?}");
            assert!(taken[count - 1] >= 1, "long ones take the last: {taken:?}");
            assert!(taken[count..].iter().all(|&taken| taken == 0));
        }
    }
}

/// A short and a long message of one group travel by different trees of one order, and all members have both.
#[test]
fn trees_with_a_parameter_go_by_the_length_too() {
    let schemes = [
        Scheme::KBinomial { k: None },
        Scheme::Postal { lambda: None },
    ];
    for scheme in schemes {
        for damage in [Damage::default(), Damage::rough()] {
            let mut scenario = Scenario::new("testbed", scheme, damage, 4);
            for (count, size) in (1..).zip([100, 12_000, 2_000_000, 64]) {
                scenario.write(0, &[size]);
                scenario.finish(0, 60_000_000);
                scenario.check_delivered(0, count, &[]);
            }
            scenario.check_pools();
            let plan = scenario.fabric.host(0).plan().expect("it has one");
            let trees = plan.groups[0].structures.iter();
            let trees: Vec<u32> = trees.map(|one| one.k + one.lambda).collect();
            assert_eq!(trees.len(), 3);
            assert!(trees[0] > trees[2], "{trees:?}");
            let taken = taken(&mut scenario, 0);
            assert!(taken[0] == 2 && taken[2] >= 1, "{scheme:?}: {taken:?}");
        }
    }
}

/// A member whose agent starts anew has no memory of the stream, and is told the choice again.
#[test]
fn a_member_that_starts_anew_learns_the_choice() {
    let mut scenario = Scenario::new("testbed", GroupScheme::Auto, Damage::rough(), 5);
    scenario.write(0, &[100, 3_000_000, 50]);
    scenario.run_for(120_000);
    scenario.fabric.stop_agent(5);
    scenario.fabric.host(5).program.readers.clear();
    scenario.run_for(50_000);
    scenario.fabric.start_agent(5);
    scenario.finish(0, 120_000_000);
    scenario.check_delivered(0, 3, &[5]);
    assert!(scenario.delivered(5, 0).ends_with(&[2]));
}

/// The members change in the middle of a long message, and with them the structures.
#[test]
fn a_new_plan_in_the_middle_of_a_message_changes_its_structure() {
    for seed in 1..6 {
        let topology = generate::from_spec("torus:3x3").expect("a known shape");
        let groups = vec![controller::group(GROUP, GroupScheme::Auto, 0..7)];
        let controller = Controller::new(groups, Algorithm::Osud);
        let config = engine_config(seed);
        let mut scenario =
            Scenario::with(topology, controller, link(Damage::rough()), config, seed);
        scenario.write(0, &[100, 2_000_000, 30, 700_000]);
        scenario.run_for(100_000);
        scenario.set_members(&[0, 1, 2, 3, 4, 5, 6, 8]);
        scenario.replan();
        scenario.finish(0, 120_000_000);
        scenario.check_delivered(0, 4, &[8]);
    }
}
