//! A million groups in a Clos network of 27,648 hosts by TREE routes and by table entries, beside
//! what Elmo reports (Shahbaz et al., SIGCOMM 2019, abstract and §5.1).
//!
//!     cargo run --release -p wormcast-routing --example elmo -- [--groups N] [--placement P] [--seed N]
//!
//! Progress goes to standard error, one line of JSON to standard output.

#![allow(
    clippy::disallowed_macros,
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "it measures and prints"
)]

mod clos;
mod workload;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use clos::{Clos, Group};
use serde_json::json;
use wormcast_wire::tree_route::encode_tree;

/// Entries that `ingress.groups` has room for (p4src/shared/sizes.p4).
const GROUPS_SIZE: u32 = 16_384;

struct Arguments {
    groups: u64,
    placement: u32,
    seed: u64,
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
            _ => {
                let names = "--groups, --placement, --seed";
                return Err(format!("there is no {name}; options are {names}"));
            }
        }
    }
    Ok(arguments)
}

struct Sums {
    members: u64,
    header: u64,
    worms: u64,
    worms_max: usize,
    single: u64,
    links: u64,
    ideal_links: u64,
    /// By leaf: entries of all groups, and of those that take several worms.
    entries_of_all: Vec<u32>,
    entries_of_large: Vec<u32>,
    encoding: Duration,
}

fn run(arguments: &Arguments) -> serde_json::Value {
    let clos = Clos {
        pods: 12,
        leaves: 48,
        hosts: 48,
    };
    let mut source = workload::Workload::new(clos, arguments.placement, arguments.seed);
    let entries = vec![0; clos.leaf_count() as usize];
    let mut sums = Sums {
        members: 0,
        header: 0,
        worms: 0,
        worms_max: 0,
        single: 0,
        links: 0,
        ideal_links: 0,
        entries_of_all: entries.clone(),
        entries_of_large: entries,
        encoding: Duration::ZERO,
    };
    for number in 0..arguments.groups {
        sums.add(clos, &source.draw());
        if (number + 1) % 20_000 == 0 {
            eprint!("\r{} of {} groups", number + 1, arguments.groups);
        }
    }
    eprintln!();
    sums.report(arguments)
}

impl Sums {
    fn add(&mut self, clos: Clos, group: &Group) {
        let begin = Instant::now();
        let worms = encode_tree(&clos.paths(group)).expect("paths are short");
        self.encoding += begin.elapsed();
        self.members += group.members.len() as u64 + 1;
        self.worms += worms.len() as u64;
        self.worms_max = self.worms_max.max(worms.len());
        self.single += u64::from(worms.len() <= 1);
        let longest = worms.iter().map(|worm| worm.bytes.len()).max();
        self.header += longest.unwrap_or(0) as u64;
        for worm in &worms {
            let members: Vec<u32> = worm.hosts.iter().map(|host| host.0.into()).collect();
            self.links += clos.links(group.source, &members);
        }
        self.ideal_links += clos.links(group.source, &group.members);
        for leaf in clos.leaves_with(group) {
            self.entries_of_all[leaf as usize] += 1;
            self.entries_of_large[leaf as usize] += u32::from(worms.len() > 1);
        }
    }

    fn report(self, arguments: &Arguments) -> serde_json::Value {
        let groups = arguments.groups as f64;
        let mean = |entries: &[u32]| {
            entries.iter().map(|held| f64::from(*held)).sum::<f64>() / entries.len() as f64
        };
        let most = |entries: &[u32]| entries.iter().copied().max();
        let full = |entries: &[u32]| entries.iter().filter(|held| **held > GROUPS_SIZE).count();
        json!({
            "groups": arguments.groups,
            "placement": arguments.placement,
            "members_mean": self.members as f64 / groups,
            "route_mean": self.header as f64 / groups,
            "worms_mean": self.worms as f64 / groups,
            "worms_max": self.worms_max,
            "single_percent": 100.0 * self.single as f64 / groups,
            "excess_packets_percent": 100.0 * (self.links as f64 / self.ideal_links as f64 - 1.0),
            "encoding_us_mean": self.encoding.as_secs_f64() * 1e6 / groups,
            "entries_of_all": {
                "mean": mean(&self.entries_of_all),
                "max": most(&self.entries_of_all),
                "leaves_too_small": full(&self.entries_of_all),
            },
            "entries_of_large": {
                "mean": mean(&self.entries_of_large),
                "max": most(&self.entries_of_large),
                "leaves_too_small": full(&self.entries_of_large),
            },
        })
    }
}
