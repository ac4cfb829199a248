//! The study of `bench/cost/run`: how good the choice of `auto` is.

#[path = "../tests/study/mod.rs"]
mod study;

use std::time::Instant;
use study::{COSTS, Found, Study};

fn main() {
    let refine = !std::env::args().any(|argument| argument == "--no-refine");
    let study = Study {
        networks: vec![
            ("torus", "torus:4".into()),
            ("one-way torus", "unidirectional-torus:4".into()),
            ("irregular", "irregular:16:1".into()),
            ("fat tree", "fat-tree:4".into()),
        ],
        sizes: vec![2, 5, 16, 48],
        bytes: vec![64, 4 << 10, 64 << 10, 1 << 20],
        costs: COSTS.to_vec(),
        groups: 1,
        families: vec!["all", "hosts"],
        refine,
    };
    println!("{} cases", study.cases());
    let start = Instant::now();
    let mut all: Vec<Found> = Vec::new();
    let debug = std::env::args().any(|argument| argument == "--debug");
    study.run(|found, auto| {
        if debug && found.ratio() > 1.1 {
            println!(
                "== {} {} n={} {}B best {} {}",
                found.network, found.costs, found.members, found.bytes, found.best, found.best_ns
            );
            for one in &auto.estimates {
                println!(
                    "   {} {:.1} {:?}",
                    study::describe(one.scheme, one.order),
                    one.estimate_ns / 1e3,
                    one.refined_ns.map(|ns| ns / 1e3)
                );
            }
        }
        all.push(found)
    });
    println!("{:.1} s", start.elapsed().as_secs_f64());
    all.sort_by(|a, b| b.ratio().total_cmp(&a.ratio()));
    for found in all.iter().take(25) {
        println!(
            "{:.3} {} {} {} n={} {}B: {} {:.1} us (est {:.1}), best {} {:.1}",
            found.ratio(),
            found.network,
            found.costs,
            found.family,
            found.members,
            found.bytes,
            found.picked,
            found.picked_ns / 1e3,
            found.estimate_ns / 1e3,
            found.best,
            found.best_ns / 1e3
        );
    }
    let exact = all.iter().filter(|f| f.ratio() <= 1.0).count();
    let over = all.iter().filter(|f| f.ratio() > 1.1).count();
    let mean = all.iter().map(Found::ratio).sum::<f64>() / all.len() as f64;
    let worst_estimate = all
        .iter()
        .map(|f| (f.estimate_ns / f.picked_ns - 1.0).abs())
        .fold(0.0, f64::max);
    let mean_estimate = all
        .iter()
        .map(|f| (f.estimate_ns / f.picked_ns - 1.0).abs())
        .sum::<f64>()
        / all.len() as f64;
    println!("estimate of the pick off by {mean_estimate:.4} mean, {worst_estimate:.3} worst");
    println!(
        "exact {exact} of {}, over 1.1: {over}, mean {mean:.4}",
        all.len()
    );
}
