//! Loss, corruption, duplication and reordering on every link.

use wormcast_fabric_tests::controller::{K_BINOMIAL, schemes};
use wormcast_fabric_tests::link::Damage;
use wormcast_fabric_tests::scenario::{RATE_BPS, Scenario};
use wormcast_routing::group::Scheme;

const SIZE: u64 = 5_000_000;

/// Time for `copies` of the message at the link rate, without any header, µs.
fn ideal_us(copies: u64) -> u64 {
    copies * SIZE * 8 * 1_000_000 / RATE_BPS
}

/// Copies of the message that leave the busiest host of the testbed.
fn copies(scheme: Scheme) -> u64 {
    match scheme {
        Scheme::Repeat => 7,
        Scheme::Circuit(_) | Scheme::Switch(_) => 1,
        Scheme::Tree { .. } => 3,
        Scheme::Postal { .. } => 4,
        Scheme::KBinomial { .. } => 2,
        Scheme::UTorus | Scheme::STorus | Scheme::MdTorus | Scheme::MuTorus { .. } => {
            unreachable!("the testbed has no coordinates")
        }
    }
}

#[test]
fn goodput_stays_high_with_damage_on_every_link() {
    for scheme in schemes() {
        for seed in [1, 2, 3] {
            let mut scenario = Scenario::new("testbed", scheme, Damage::rough(), seed);
            scenario.write(0, &[SIZE]);
            let took_us = scenario.finish(0, 60_000_000);
            scenario.check_delivered(0, 1, &[]);
            scenario.check_pools();
            let share = ideal_us(copies(scheme)) as f64 / took_us as f64;
            println!(
                "{} seed {seed}: {took_us} µs, {share:.2} of the link",
                scheme.name()
            );
            assert!(
                share > 0.7,
                "{} seed {seed}: {share}\n{}",
                scheme.name(),
                scenario.report()
            );
        }
    }
}

#[test]
fn long_paths_are_mastered_too() {
    for scheme in schemes() {
        let mut scenario = Scenario::new("line:5", scheme, Damage::rough(), 4);
        scenario.write(0, &[SIZE]);
        let took_us = scenario.finish(0, 60_000_000);
        scenario.check_delivered(0, 1, &[]);
        println!("{}: {took_us} µs", scheme.name());
    }
}

#[test]
fn a_very_bad_fabric_is_slow_but_right() {
    let damage = Damage {
        loss: 0.08,
        corruption: 0.02,
        duplication: 0.05,
        reordering: 0.2,
        reorder_ns: 10_000_000,
    };
    for scheme in schemes() {
        for seed in [1, 2] {
            let mut scenario = Scenario::new("testbed", scheme, damage, seed);
            scenario.write(0, &[300_000, 16, 16, 100_000, 1_444]);
            let took_us = scenario.finish(0, 120_000_000);
            scenario.check_delivered(0, 5, &[]);
            println!("{} seed {seed}: {took_us} µs", scheme.name());
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let run = || {
        let mut scenario = Scenario::new("testbed", K_BINOMIAL, Damage::rough(), 9);
        scenario.write(0, &[1_000_000]);
        let took_us = scenario.finish(0, 60_000_000);
        (took_us, scenario.report())
    };
    assert_eq!(run(), run());
}
