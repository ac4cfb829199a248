//! Options of the command line.

use std::fmt::Write;
use std::str::FromStr;

use wormcast_routing::routes::Algorithm::{Osud, Rmit, Rrmit, RrmitMin};

use crate::cases::{CASES, Case};
use crate::network::Paths;

pub struct Options {
    pub switches: Vec<usize>,
    pub networks: u64,
    pub seed: u64,
    pub loads: Vec<f64>,
    pub algorithms: Vec<Paths>,
    pub cases: Vec<&'static Case>,
    pub lengths: u64,
}

/// Networks of the paper have 16, 32 and 64.
const SWITCHES_MAX: usize = 256;
const NETWORKS_MAX: u64 = 100;
const LENGTHS_MAX: u64 = 100_000;

/// The text of `--help`.
pub fn help() -> String {
    let mut text = String::from(
        "Traffic that irregular networks accept, by routing algorithm, where links block and where they queue.

usage: accepted [OPTION VALUE…] …

  --switches N…     switches of a network, 4 hosts and 4 links each (16)
  --networks N      networks of each size; the seeds are SEED and those that follow (5)
  --seed SEED       of the first network and its traffic (1)
  --loads L…        offered by each host, of its link (0.04 to 0.8)
  --algorithms A…   ratios are to the first of them (osud rmit rrmit rrmit-min); also omit, and first, which is
                    osud without its load spread: the first found of equally short paths
  --cases C…        of those below (all)
  --lengths N       time measured, in message lengths; a quarter of it comes before (256)

Printed by load: bytes a cycle and host that arrive, and mean latency in cycles. Below, with ratios to the
first algorithm, mean (least-most of the networks): the most that arrives at any load; the load of which 95 %
arrives; and what the fullest channel lets pass if the destinations of a host get equal parts.

cases:
",
    );
    for case in &CASES {
        writeln!(text, "  {:<13} {}", case.name, case.meaning).expect("a string takes all");
    }
    text
}

/// Reads `--name value value …`.
pub fn read(words: impl Iterator<Item = String>) -> Result<Options, String> {
    let mut options = Options {
        switches: vec![16],
        networks: 5,
        seed: 1,
        loads: vec![
            0.04, 0.06, 0.08, 0.1, 0.12, 0.14, 0.16, 0.18, 0.2, 0.25, 0.3, 0.4, 0.5, 0.8,
        ],
        algorithms: [Osud, Rmit, Rrmit, RrmitMin].map(Paths::Planned).into(),
        cases: CASES.iter().collect(),
        lengths: 256,
    };
    let mut words = words.peekable();
    while let Some(name) = words.next() {
        let mut values = Vec::new();
        while let Some(value) = words.next_if(|word| !word.starts_with("--")) {
            values.push(value);
        }
        match name.as_str() {
            "--switches" => options.switches = numbers(&name, &values, 2, SWITCHES_MAX)?,
            "--networks" => options.networks = number(&name, &values, 1, NETWORKS_MAX)?,
            "--seed" => options.seed = number(&name, &values, 0, u64::MAX - NETWORKS_MAX)?,
            "--loads" => options.loads = ascending(&name, numbers(&name, &values, 0.001, 1.0)?)?,
            "--lengths" => options.lengths = number(&name, &values, 4, LENGTHS_MAX)?,
            "--algorithms" => options.algorithms = each(&name, &values, algorithm)?,
            "--cases" => options.cases = each(&name, &values, case)?,
            _ => return Err(format!("there is no {name}; --help names the options")),
        }
    }
    Ok(options)
}

fn each<T>(
    name: &str,
    values: &[String],
    read: impl Fn(&str) -> Result<T, String>,
) -> Result<Vec<T>, String> {
    if values.is_empty() {
        return Err(format!("{name} needs a value"));
    }
    let read = values.iter().map(|value| read(value));
    read.collect::<Result<_, _>>()
        .map_err(|reason| format!("{name}: {reason}"))
}

fn numbers<T: FromStr + PartialOrd + std::fmt::Display>(
    name: &str,
    values: &[String],
    least: T,
    most: T,
) -> Result<Vec<T>, String> {
    each(name, values, |value| match value.parse() {
        Ok(number) if number >= least && number <= most => Ok(number),
        _ => Err(format!("{value} is no number from {least} to {most}")),
    })
}

fn number(name: &str, values: &[String], least: u64, most: u64) -> Result<u64, String> {
    match numbers(name, values, least, most)?[..] {
        [one] => Ok(one),
        _ => Err(format!("{name} takes one value, not {}", values.len())),
    }
}

fn ascending(name: &str, values: Vec<f64>) -> Result<Vec<f64>, String> {
    if values.is_sorted_by(|a, b| a < b) {
        Ok(values)
    } else {
        Err(format!("{name}: each load must be above the one before"))
    }
}

fn algorithm(name: &str) -> Result<Paths, String> {
    let found = Paths::ALL.into_iter().find(|paths| paths.name() == name);
    found.ok_or_else(|| {
        let names = Paths::ALL.map(Paths::name).join(", ");
        format!("there is no algorithm {name}; there are {names}")
    })
}

fn case(name: &str) -> Result<&'static Case, String> {
    let found = CASES.iter().find(|case| case.name == name);
    found.ok_or_else(|| {
        let names = CASES.each_ref().map(|case| case.name).join(", ");
        format!("there is no case {name}; there are {names}")
    })
}
