//! Traffic that irregular networks accept, by routing algorithm (ITB §IV), where links block as in
//! the paper and where they queue as in the fabric, over the same routes and the same messages.
//!
//!     cargo run --release -p wormcast-routing --example accepted -- --help
//!
//! Time is in cycles, in each of which a link carries a byte. Loads and traffic are of a host's
//! link: bytes a cycle and host.

#![allow(
    clippy::disallowed_macros,
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "it measures and prints"
)]

mod blocking;
mod cases;
mod network;
mod options;
mod outcome;
mod queueing;
mod traffic;

use std::process::ExitCode;

use cases::Case;
use network::Network;
use options::Options;
use outcome::{Outcome, Span};
use traffic::{draw, draw_peers};
use wormcast_routing::generate::{Irregular, irregular};
use wormcast_routing::topology::Topology;

/// The part of what is drawn that arrives, so that a load counts as carried.
const CARRIED: f64 = 0.95;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if words.iter().any(|word| word == "--help" || word == "-h") {
        print!("{}", options::help());
        return ExitCode::SUCCESS;
    }
    match options::read(words.into_iter()).and_then(|options| run(&options)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            eprintln!("accepted: {reason}");
            ExitCode::from(2)
        }
    }
}

fn run(options: &Options) -> Result<(), String> {
    for &switches in &options.switches {
        let networks = (0..options.networks).map(|number| {
            let parameters = Irregular::of_itb(switches, options.seed + number);
            irregular(&parameters).map_err(|error| error.to_string())
        });
        let networks: Vec<Topology> = networks.collect::<Result<_, _>>()?;
        for case in &options.cases {
            println!("\n{switches} switches, {}: {}", case.name, case.meaning);
            compare(options, case, &networks)?;
        }
    }
    Ok(())
}

/// One algorithm in one network.
struct Curve {
    outcomes: Vec<Outcome>,
    /// By load, of a host's link.
    accepted: Vec<f64>,
    drawn: Vec<f64>,
    fullest: f64,
}

impl Curve {
    fn measure(options: &Options, case: &Case, network: &Network, seed: u64) -> Curve {
        let peers = draw_peers(network.hosts, case.peers, seed);
        // Short worms take longer than their bytes.
        let length = u64::from(case.size.max(256));
        let span = Span {
            warm: options.lengths / 4 * length,
            end: (options.lengths / 4 + options.lengths) * length,
        };
        let outcomes = options.loads.iter().map(|&load| {
            let messages = draw(&peers, load, case.size, span.end, seed);
            case.run(network, &messages, span, false)
        });
        let outcomes: Vec<Outcome> = outcomes.collect();
        let cycles = (span.end - span.warm) as f64 * f64::from(network.hosts);
        let rate = |count: u64| count as f64 * f64::from(case.size) / cycles;
        Curve {
            accepted: outcomes.iter().map(|one| rate(one.counted)).collect(),
            drawn: outcomes.iter().map(|one| rate(one.drawn)).collect(),
            outcomes,
            fullest: network.fullest(&peers),
        }
    }

    /// Most that is accepted at any load.
    fn most(&self) -> f64 {
        self.accepted.iter().copied().fold(0.0, f64::max)
    }

    /// The load up to which nearly all arrives, between two loads in proportion.
    fn carried(&self) -> f64 {
        // Where nothing was drawn, nothing is missing.
        let share = |place: usize| match self.drawn[place] {
            0.0 => 1.0,
            drawn => self.accepted[place] / drawn,
        };
        let places = 0..self.drawn.len();
        match places.clone().find(|&place| share(place) < CARRIED) {
            None => self.drawn[places.end - 1],
            Some(0) => self.accepted[0],
            Some(place) => {
                let (before, after) = (share(place - 1), share(place));
                let (low, high) = (self.drawn[place - 1], self.drawn[place]);
                low + (high - low) * (before - CARRIED) / (before - after)
            }
        }
    }
}

/// All algorithms of a case in all networks.
fn compare(options: &Options, case: &Case, networks: &[Topology]) -> Result<(), String> {
    let mut curves: Vec<Vec<Curve>> = Vec::new();
    for &algorithm in &options.algorithms {
        let of_networks = networks.iter().zip(options.seed..).map(|(topology, seed)| {
            let network = Network::plan(topology, algorithm)?;
            Ok(Curve::measure(options, case, &network, seed))
        });
        curves.push(of_networks.collect::<Result<_, String>>()?);
    }
    if curves.iter().flatten().any(|curve| curve.most() == 0.0) {
        return Err("nothing arrived; a run needs more --lengths or --loads".into());
    }
    let names = options.algorithms.iter().map(|algorithm| algorithm.name());
    row("load", names.map(|name| format!("{name:>21}")));
    for (place, load) in options.loads.iter().enumerate() {
        print_load(*load, place, &curves);
    }
    print_ratios("most", Curve::most, &curves);
    print_ratios("carried", Curve::carried, &curves);
    print_ratios("bound of links", |curve| 1.0 / curve.fullest, &curves);
    let all = || curves.iter().flatten().flat_map(|curve| &curve.outcomes);
    let lost: u64 = all().map(|one| one.lost).sum();
    let transit = all().map(|one| one.transit_bytes_max).max().unwrap_or(0);
    println!("frames lost {lost}, most bytes of others at an in-transit host {transit}");
    Ok(())
}

fn row(name: &str, cells: impl Iterator<Item = String>) {
    println!("{name:>14}  {}", cells.collect::<Vec<_>>().join("  "));
}

/// What arrives at a load, and its latency: means over the networks.
fn print_load(load: f64, place: usize, curves: &[Vec<Curve>]) {
    let cells = curves.iter().map(|of_networks| {
        let accepted = of_networks.iter().map(|curve| curve.accepted[place]);
        let outcomes = of_networks.iter().map(|curve| curve.outcomes[place]);
        let latency = mean(outcomes.map(|outcome| outcome.latency));
        format!("{:.3} {latency:>15.0}", mean(accepted))
    });
    row(&format!("{load:.3}"), cells);
}

/// A figure of every algorithm, and its ratio to that of the first in the same network.
fn print_ratios(name: &str, figure: fn(&Curve) -> f64, curves: &[Vec<Curve>]) {
    let cells = curves.iter().map(|of_networks| {
        let pairs = of_networks.iter().zip(&curves[0]);
        let ratios: Vec<f64> = pairs
            .map(|(one, first)| figure(one) / figure(first))
            .collect();
        let least = ratios.iter().copied().fold(f64::INFINITY, f64::min);
        let most = ratios.iter().copied().fold(0.0, f64::max);
        let value = mean(of_networks.iter().map(figure));
        let ratio = mean(ratios.into_iter());
        format!("{value:.3} {ratio:.2}({least:.2}-{most:.2})")
    });
    row(name, cells.map(|cell| format!("{cell:>21}")));
}

fn mean(values: impl ExactSizeIterator<Item = f64>) -> f64 {
    let count = values.len() as f64;
    values.sum::<f64>() / count
}
