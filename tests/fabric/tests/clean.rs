//! Transfers on a clean fabric: what each scheme costs, exactly.

use wormcast_fabric_tests::fabric::Place;
use wormcast_fabric_tests::link::Damage;
use wormcast_fabric_tests::scenario::{GROUP, RATE_BPS, Scenario};
use wormcast_protocol::Scheme;

const SIZE: u64 = 4_000_000;

fn ideal_us(size: u64) -> u64 {
    size * 8 * 1_000_000 / RATE_BPS
}

#[test]
fn every_scheme_delivers_every_message() {
    for scheme in Scheme::ALL {
        let mut scenario = Scenario::new("testbed", scheme, Damage::default(), 1);
        scenario.write(0, &[SIZE, 16, 100_000, 1_444, 1_445, 17]);
        let took_us = scenario.finish(0, 60_000_000);
        println!("{}: {} ms", scheme.name(), took_us / 1000);
        println!("{}", scenario.report());
        scenario.check_delivered(0, 6, &[]);
        scenario.check_pools();
        let _ = (GROUP, Place::Host(0), ideal_us(SIZE));
    }
}
