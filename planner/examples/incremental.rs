//! Milliseconds that one lost link takes, and one that is back, against a plan from scratch.
//!
//! `cargo run --release -p wormcast-routing --example incremental [SWITCHES LINKS [CHANGES]]`

#![allow(
    clippy::disallowed_macros,
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "it measures and prints"
)]

use std::time::Instant;

use rand_chacha::ChaCha8Rng;
use rand_core::{RngCore, SeedableRng};
use wormcast_planner::change::Incremental;
use wormcast_routing::generate::{Irregular, irregular};
use wormcast_routing::routes::{Algorithm, Routes};

fn main() {
    let numbers: Vec<usize> = std::env::args()
        .skip(1)
        .map(|text| {
            text.parse()
                .expect("SWITCHES, LINKS and CHANGES are numbers")
        })
        .collect();
    match numbers[..] {
        [] => {
            measure(1024, 8, 100);
            measure(2048, 16, 100);
        }
        [switches, links] => measure(switches, links, 100),
        [switches, links, changes] => measure(switches, links, changes),
        _ => panic!("give SWITCHES LINKS [CHANGES]"),
    }
}

fn measure(switches: usize, links: usize, changes: usize) {
    let hosts = 4;
    let parameters = Irregular {
        switches,
        ports: links + hosts,
        hosts,
        links,
        seed: 1,
    };
    let topology = irregular(&parameters).expect("a network");
    let start = Instant::now();
    let routes = Routes::plan(&topology, Algorithm::Osud, None).expect("routes");
    let full = start.elapsed();
    let start = Instant::now();
    let mut kept = Incremental::new(&routes).expect("OSUD");
    let taken_over = start.elapsed();
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let (mut lost, mut back, mut entries, mut cut) = (Vec::new(), Vec::new(), 0, 0);
    for _ in 0..changes {
        let all = topology.links();
        let link = all[rng.next_u64() as usize % all.len()];
        let start = Instant::now();
        let touched = kept.lose(link.a, link.a_port).expect("it is there");
        lost.push(start.elapsed().as_secs_f64() * 1e3);
        entries += touched.entries.len();
        cut += usize::from(!touched.lost.is_empty());
        let start = Instant::now();
        kept.gain(link.a, link.a_port).expect("it is lost");
        back.push(start.elapsed().as_secs_f64() * 1e3);
    }
    println!(
        "{switches} switches, {links} links each: plan from scratch {:.0} ms, taken over in {:.0} ms",
        full.as_secs_f64() * 1e3,
        taken_over.as_secs_f64() * 1e3
    );
    for (what, times) in [("lost", &mut lost), ("back", &mut back)] {
        times.sort_by(f64::total_cmp);
        let median = times[times.len() / 2];
        let most = times.last().expect("one change at least");
        println!("  link {what}: median {median:.3} ms, max {most:.3} ms over {changes}");
    }
    println!(
        "  next hops changed per lost link: {:.1} of {}; {cut} left pairs without a legal path",
        entries as f64 / changes as f64,
        switches * (switches - 1)
    );
}
