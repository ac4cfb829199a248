//! How many steps single failures take in random networks, and how many routes change,
//! against a plan from scratch.
//!
//! `cargo run --release -p wormcast-routing --example change [SWITCHES SEEDS EVERY]`: networks
//! of so many switches with these seeds, every how manieth failure.

#![allow(
    clippy::disallowed_macros,
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "it measures and prints"
)]

use std::collections::{BTreeMap, BTreeSet};

use wormcast_routing::change::{Change, plan};
use wormcast_routing::deadlock::{Branching, ChannelGraph};
use wormcast_routing::generate::{Irregular, irregular};
use wormcast_routing::routes::{Algorithm, Route, Routes};
use wormcast_routing::topology::{Damage, Topology};

fn main() {
    let numbers: Vec<usize> = std::env::args()
        .skip(1)
        .map(|text| text.parse().expect("SWITCHES, SEEDS and EVERY are numbers"))
        .collect();
    match numbers[..] {
        [] => {
            measure(16, 10, 1);
            measure(64, 3, 4);
        }
        [switches, seeds, every] => measure(switches, seeds, every),
        _ => panic!("give SWITCHES SEEDS EVERY"),
    }
}

fn measure(switches: usize, seeds: usize, every: usize) {
    let mut tally: BTreeMap<(&str, usize, &str), usize> = BTreeMap::new();
    let (mut routes, mut broken, mut changed, mut fresh) = (0, 0, 0, 0);
    let (mut unsafe_fresh, mut failures, mut longer) = (0, 0, Vec::new());
    for seed in 0..seeds {
        let parameters = Irregular {
            hosts: 1,
            ..Irregular::of_itb(switches, seed as u64)
        };
        let old = irregular(&parameters).expect("a network");
        let before = Routes::plan(&old, Algorithm::Osud, None).expect("routes");
        for (kind, damage) in damages(&old).into_iter().step_by(every) {
            let new = old.without(&damage).expect("it was there");
            let change = Change {
                old: &old,
                new: &new,
                algorithm: Algorithm::Osud,
                root: None,
                routes: None,
                new_root: None,
                planned: false,
            };
            let made = plan(&change).expect("a plan");
            let method = made
                .steps
                .last()
                .map_or("nothing changes", |step| step.method.name());
            *tally.entry((kind, made.steps.len(), method)).or_default() += 1;
            failures += 1;
            routes += made.routes;
            broken += made.broken;
            changed += made
                .steps
                .iter()
                .map(|step| step.changed.len())
                .sum::<usize>();
            let after = Routes::plan(&new, Algorithm::Osud, None).expect("routes");
            let kept: BTreeSet<Route> = before.iter().collect();
            let again: Vec<Route> = after.iter().collect();
            fresh += again.iter().filter(|route| !kept.contains(route)).count();
            let links: u64 = again
                .iter()
                .map(|route| route.switches.len() as u64 - 1)
                .sum();
            longer.push(made.links_crossed as f64 / links as f64);
            unsafe_fresh += usize::from(!is_safe(&old, &new, &kept, &again));
        }
    }
    println!(
        "{switches} switches of 8 ports, 4 links each: {failures} failures of {seeds} networks"
    );
    for ((kind, steps, method), count) in &tally {
        println!("  {kind}: {steps} steps, {method}: {count}");
    }
    let share = |count: usize| 100.0 * count as f64 / routes as f64;
    println!(
        "  routes broken {:.2} %, changed {:.2} %; from scratch {:.2} % would change",
        share(broken),
        share(changed),
        share(fresh)
    );
    println!(
        "  links crossed, against from scratch: mean {:.4}, most {:.4}",
        longer.iter().sum::<f64>() / longer.len() as f64,
        longer.iter().copied().fold(0.0, f64::max)
    );
    println!(
        "  in one step from scratch would be unsafe after {unsafe_fresh} of {failures}, \
         by the routes that survive alone"
    );
}

fn damages(topology: &Topology) -> Vec<(&'static str, Damage)> {
    let links = topology.links().iter().map(|link| {
        let links = [(link.a, link.a_port)].into();
        (
            "link",
            Damage {
                links,
                ..Damage::default()
            },
        )
    });
    let switches = topology.switches().iter().map(|switch| {
        let switches = [switch.id].into();
        (
            "switch",
            Damage {
                switches,
                ..Damage::default()
            },
        )
    });
    links.chain(switches).collect()
}

/// Whether surviving and new routes can be in the network together.
fn is_safe(old: &Topology, new: &Topology, before: &BTreeSet<Route>, after: &[Route]) -> bool {
    let mut graph = ChannelGraph::new(old, Branching::Independent);
    let mut left = ChannelGraph::new(new, Branching::Independent);
    for route in before
        .iter()
        .filter(|route| left.add_route(route).is_ok())
        .chain(after)
    {
        graph
            .add_route(route)
            .expect("the old topology has all of it");
    }
    graph.check().is_deadlock_free()
}
