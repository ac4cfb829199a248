//! scratch
use std::time::Instant;
use wormcast_routing::generate::{Irregular, irregular};
use wormcast_routing::routes::{Algorithm, Routes};
use wormcast_routing::updown::UpDown;
#[test]
#[ignore]
fn speed() {
    for (switches, links) in [(1024, 8), (2048, 8), (2048, 16)] {
        let topology = irregular(&Irregular { switches, ports: 24, hosts: 4, links, seed: 1 }).unwrap();
        let start = Instant::now();
        let updown = UpDown::new(&topology, None).unwrap();
        println!("{switches}x{links}: updown {:?}", start.elapsed());
        for algorithm in Algorithm::ALL {
            let start = Instant::now();
            let routes = Routes::plan_along(&topology, algorithm, updown.clone()).unwrap();
            println!("  {} {:?}", algorithm.name(), start.elapsed());
            drop(routes);
        }
    }
}
#[test]
#[ignore]
fn figures() {
    for switches in [16, 32, 64, 256] {
        for seed in 1..=5 {
            let topology = irregular(&Irregular::of_itb(switches, seed)).unwrap();
            for algorithm in Algorithm::ALL {
                let start = Instant::now();
                let s = Routes::plan(&topology, algorithm, None).unwrap().summary();
                println!("{switches} {seed} {:10} links {:.3} crossed {:.3} max {} cuts {:.3} max {} alts {:.2} minimal {:.4} load {:.1}/{:.1} link {:.0}/{:.0} {:?}",
                  algorithm.name(), s.links_mean, s.switches_mean, s.switches_max, s.in_transit_mean, s.in_transit_max, s.alternatives_mean, s.minimal, s.in_transit_load_max, s.in_transit_load_mean, s.link_load_max, s.link_load_mean, start.elapsed());
            }
        }
    }
}
