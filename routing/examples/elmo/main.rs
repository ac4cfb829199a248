//! A million groups in a Clos network of 27,648 hosts: header bytes, table entries, excess
//! traffic and planning time, beside what Elmo reports (Shahbaz et al., SIGCOMM 2019, abstract
//! and §5.1).
//!
//!     cargo run --release -p wormcast-routing --example elmo -- [--groups N] [--placement P]
//!         [--header BYTES] [--worms N] [--entries N] [--seed N]
//!
//! Progress goes to standard error, one line of JSON to standard output.

#![allow(
    clippy::disallowed_macros,
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "it measures and prints"
)]

mod workload;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use serde_json::json;
use wormcast_routing::clos::layered;
use wormcast_routing::clos::plan::{ClosPlanner, Limits};
use wormcast_routing::clos::{Clos, ClosGroup, tree};

/// A packet on an Ethernet link with a payload of 1500 bytes, as in Elmo's figures.
const PACKET_BYTES: u64 = 1500;

struct Arguments {
    groups: u64,
    placement: u32,
    seed: u64,
    limits: Limits,
}

fn main() -> ExitCode {
    match read_arguments(std::env::args().skip(1)) {
        Ok(arguments) => {
            println!("{}", run(&arguments));
            ExitCode::SUCCESS
        }
        Err(reason) => {
            eprintln!("elmo: {reason}");
            ExitCode::from(2)
        }
    }
}

fn read_arguments(mut words: impl Iterator<Item = String>) -> Result<Arguments, String> {
    let mut arguments = Arguments {
        groups: 1_000_000,
        placement: 1,
        seed: 1,
        limits: Limits {
            header_bytes: 255,
            worms: 1,
            entries: 30_000,
        },
    };
    while let Some(name) = words.next() {
        let text = words.next().unwrap_or_default();
        let value: u64 = text
            .parse()
            .map_err(|_| format!("{name} needs a number, not {text:?}"))?;
        match name.as_str() {
            "--groups" => arguments.groups = value.max(1),
            "--placement" => arguments.placement = value.clamp(1, 48) as u32,
            "--seed" => arguments.seed = value,
            "--header" => arguments.limits.header_bytes = value as usize,
            "--worms" => arguments.limits.worms = value as usize,
            "--entries" => arguments.limits.entries = value.min(u64::from(u32::MAX)) as u32,
            _ => {
                let names = "--groups, --placement, --seed, --header, --worms, --entries";
                return Err(format!("there is no {name}; options are {names}"));
            }
        }
    }
    Ok(arguments)
}

#[derive(Default)]
struct Sums {
    members: u64,
    header: Vec<u32>,
    worms: u64,
    worms_max: usize,
    cut: u64,
    looked_up: u64,
    bytes: u64,
    ideal_bytes: u64,
    links: u64,
    ideal_links: u64,
    tree_bytes: u64,
    tree_worms: u64,
    tree_single: u64,
    tree_links: u64,
    planning: Duration,
}

fn run(arguments: &Arguments) -> serde_json::Value {
    let clos = Clos::new(12, 48, 48).expect("within bounds");
    let mut source = workload::Workload::new(clos, arguments.placement, arguments.seed);
    let mut planner = ClosPlanner::new(clos, arguments.limits);
    let mut sums = Sums::default();
    for number in 0..arguments.groups {
        let group = source.draw();
        let begin = Instant::now();
        let plan = planner.add(&group).expect("of this network");
        sums.planning += begin.elapsed();
        sums.add(clos, &group, &plan);
        if (number + 1) % 20_000 == 0 {
            eprint!("\r{} of {} groups", number + 1, arguments.groups);
        }
    }
    eprintln!();
    sums.report(arguments, &planner)
}

impl Sums {
    fn add(
        &mut self,
        clos: Clos,
        group: &ClosGroup,
        plan: &wormcast_routing::clos::plan::PlannedGroup,
    ) {
        self.members += group.members.len() as u64 + 1;
        self.worms += plan.worms.len() as u64;
        self.worms_max = self.worms_max.max(plan.worms.len());
        self.cut += u64::from(plan.worms.len() > 1);
        self.looked_up += u64::from(plan.worms[0].tables != layered::Tables::default());
        let largest = plan.worms.iter().map(|worm| worm.header_bytes()).max();
        self.header.push(largest.unwrap_or(0) as u32);
        let carried: u64 = plan
            .worms
            .iter()
            .map(|worm| {
                let walk = layered::walk(clos, group.source, &worm.route).expect("of this network");
                walk.carried
            })
            .sum();
        self.links += plan.links;
        self.ideal_links += plan.ideal_links;
        self.bytes += plan.links * PACKET_BYTES + carried;
        self.ideal_bytes += plan.ideal_links * PACKET_BYTES;
        let tree = tree::cost(clos, group);
        self.tree_bytes += (tree.bytes / tree.worms.max(1)) as u64;
        self.tree_worms += tree.worms as u64;
        self.tree_single += u64::from(tree.worms <= 1);
        self.tree_links += tree.links;
    }

    fn report(mut self, arguments: &Arguments, planner: &ClosPlanner) -> serde_json::Value {
        let groups = arguments.groups as f64;
        self.header.sort_unstable();
        let share = |count: u64| 100.0 * count as f64 / groups;
        let mean = |entries: &[u32]| {
            entries.iter().map(|held| f64::from(*held)).sum::<f64>() / entries.len() as f64
        };
        let excess = |there: u64, ideal: u64| 100.0 * (there as f64 / ideal as f64 - 1.0);
        let headers: u64 = self.header.iter().map(|bytes| u64::from(*bytes)).sum();
        json!({
            "groups": arguments.groups,
            "placement": arguments.placement,
            "header_limit": arguments.limits.header_bytes,
            "worms_limit": arguments.limits.worms,
            "entries_limit": arguments.limits.entries,
            "members_mean": self.members as f64 / groups,
            "header_mean": headers as f64 / groups,
            "header_median": self.header[self.header.len() / 2],
            "header_max": self.header.last(),
            "worms_mean": self.worms as f64 / groups,
            "worms_max": self.worms_max,
            "groups_cut_percent": share(self.cut),
            "groups_with_entries_percent": share(self.looked_up),
            "leaf_entries_mean": mean(planner.leaf_entries()),
            "leaf_entries_max": planner.leaf_entries().iter().max(),
            "pod_entries_mean": mean(planner.pod_entries()),
            "excess_packets_percent": excess(self.links, self.ideal_links),
            "excess_bytes_percent": excess(self.bytes, self.ideal_bytes),
            "planning_us_mean": self.planning.as_secs_f64() * 1e6 / groups,
            "tree_header_mean": self.tree_bytes as f64 / groups,
            "tree_worms_mean": self.tree_worms as f64 / groups,
            "tree_single_percent": share(self.tree_single),
            "tree_excess_packets_percent": excess(self.tree_links, self.ideal_links),
        })
    }
}
