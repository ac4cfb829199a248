//! Worms of many frames in networks of the P4 program: how likely a deadlock is, what arrives, how long
//! small worms take beside big ones, and how many frames wait, by load and scheme.
//!
//!     cargo run --release -p wormcast-fabric-tests --example trains -- [--network SPEC] [--loads 0.1,0.3]
//!         [--schemes packet,plain,tree,flush,interrupt] [--seeds N] [--from SEED] [--window-ms N]
//!         [--multicast SHARE] [--multicast-hosts N]
//!
//! On virtual time: a link takes 10 µs for a frame. `{seed}` in SPEC stands for the seed. A line of JSON for
//! each scheme and load. Unicast goes along shortest up*/down* routes, multicast along the spanning tree;
//! under `tree` unicast too (WORM §3, scheme A); under `flush` unicast yields (scheme C); under
//! `interrupt` multicast goes by the root and is interrupted (scheme B); under `packet`
//! each frame has a route of its own, waits in queues of outputs that have no bound, and nothing is held.

use std::process::ExitCode;
use std::str::FromStr;
use wormcast_fabric_tests::random::Random;
use wormcast_fabric_tests::trains::{STEP_US, Scheme, Trains, rooted};
use wormcast_routing::generate;
use wormcast_routing::routes::{Algorithm, Routes};
use wormcast_wire::HostId;
use wormcast_wire::tree_route::encode_tree;

/// Frames of a big worm; half of all worms are small, of one frame.
const BIG: u16 = 60;
/// Members of a multicast.
const MEMBERS: usize = 4;
/// Nothing has moved for so long: it is over, or stuck.
const QUIET_US: u64 = 10_000;
/// Longer than any run: no reservation ends by silence.
const NEVER_US: u64 = 4_000_000_000;
const SCHEMES: [&str; 5] = ["packet", "plain", "tree", "flush", "interrupt"];
const SEEDS_MAX: u64 = 100_000;
const WINDOW_MS_MAX: u64 = 10_000;

struct Options {
    network: String,
    loads: Vec<f64>,
    schemes: Vec<String>,
    seeds: u64,
    from: u64,
    window_ms: u64,
    /// Of the big worms those that are multicast.
    multicast: f64,
    multicast_hosts: usize,
}

fn number<T: FromStr + PartialOrd + ToString>(
    name: &str,
    text: &str,
    least: T,
    most: T,
) -> Result<T, String> {
    let (low, high) = (least.to_string(), most.to_string());
    let value = text.parse().ok();
    value
        .filter(|value| *value >= least && *value <= most)
        .ok_or_else(|| format!("{name} {text}: a number from {low} to {high}"))
}

fn read(mut words: impl Iterator<Item = String>) -> Result<Options, String> {
    let mut options = Options {
        network: "irregular:8:{seed}:2:4".into(),
        loads: vec![0.05, 0.1, 0.2, 0.3, 0.4],
        schemes: SCHEMES.map(String::from).to_vec(),
        seeds: 20,
        from: 1,
        window_ms: 20,
        multicast: 0.2,
        multicast_hosts: usize::MAX,
    };
    while let Some(name) = words.next() {
        let value = words.next().ok_or(format!("{name} takes a value"))?;
        match name.as_str() {
            "--network" => options.network = value,
            "--loads" => {
                let loads = value.split(',').map(|load| number(&name, load, 0.001, 1.0));
                options.loads = loads.collect::<Result<_, _>>()?;
            }
            "--schemes" => {
                options.schemes = value.split(',').map(String::from).collect();
                let known = |scheme: &&String| SCHEMES.contains(&scheme.as_str());
                if let Some(scheme) = options.schemes.iter().find(|scheme| !known(scheme)) {
                    return Err(format!("{name} {scheme}: {}", SCHEMES.join(", ")));
                }
            }
            "--seeds" => options.seeds = number(&name, &value, 1, SEEDS_MAX)?,
            "--from" => options.from = number(&name, &value, 0, u64::MAX - SEEDS_MAX)?,
            "--multicast-hosts" => options.multicast_hosts = number(&name, &value, 0, usize::MAX)?,
            "--multicast" => options.multicast = number(&name, &value, 0.0, 1.0)?,
            "--window-ms" => options.window_ms = number(&name, &value, 1, WINDOW_MS_MAX)?,
            other => {
                return Err(format!(
                    "{other}: --network, --loads, --schemes, --seeds, --from, --window-ms, --multicast, --multicast-hosts"
                ));
            }
        }
    }
    Ok(options)
}

struct Outcome {
    /// Worms wait in a circle.
    stuck: bool,
    /// Some have not left the network, whatever the reason.
    left: bool,
    /// Of what links of hosts could carry while worms were sent.
    arrived: f64,
    small_us: Vec<u64>,
    waited: usize,
    queued: usize,
    resets: u64,
}

fn run(options: &Options, scheme: &str, load: f64, seed: u64) -> Result<Outcome, String> {
    let spec = options.network.replace("{seed}", &seed.to_string());
    let topology = generate::from_spec(&spec).map_err(|error| error.to_string())?;
    let planned = |algorithm| {
        Routes::plan(&topology, algorithm, None).map_err(|error| format!("{spec}: {error}"))
    };
    let (free, tree) = (planned(Algorithm::Osud)?, planned(Algorithm::TreeOnly)?);
    let unicast = if scheme == "tree" { &tree } else { &free };
    let mode = match scheme {
        "packet" => Scheme::Packet,
        "flush" => Scheme::Flush,
        "interrupt" => Scheme::Interrupt,
        _ => Scheme::Plain,
    };
    let hosts: Vec<HostId> = topology.hosts().iter().map(|host| host.id).collect();
    let mut network = Trains::new(topology.clone(), mode, NEVER_US, seed);
    let start_us = network.now_us();
    let mut random = Random::new(seed);
    let window_us = 1_000 * options.window_ms;
    let mean_frames = f64::from(1 + BIG) / 2.0;
    for (place, &from) in hosts.iter().enumerate() {
        let multicasts = place < options.multicast_hosts;
        let mut at_us = 0.0;
        loop {
            let uniform = (random.below(1 << 32) as f64 + 1.0) / 4_294_967_297.0;
            at_us += -uniform.ln() * mean_frames * STEP_US as f64 / load;
            if at_us >= window_us as f64 {
                break;
            }
            let frames = if random.chance(0.5) { 1 } else { BIG };
            let is_tree = frames == BIG && multicasts && random.chance(options.multicast);
            let mut others: Vec<HostId> = hosts.iter().copied().filter(|&to| to != from).collect();
            let wanted = if is_tree { MEMBERS } else { 1 };
            let mut members = Vec::new();
            while members.len() < wanted && !others.is_empty() {
                members.push(others.swap_remove(random.below(others.len() as u64) as usize));
            }
            let routes = if is_tree { &tree } else { unicast };
            let ways = members.iter().map(|&to| {
                let route = routes.route(from, to).map_err(|error| error.to_string())?;
                Ok((to, route.ports))
            });
            let ways: Vec<(HostId, Vec<u8>)> = ways.collect::<Result<_, String>>()?;
            if ways.is_empty() {
                continue;
            }
            let route = if is_tree && mode == Scheme::Interrupt {
                rooted(&topology, from, &members)
            } else if is_tree {
                let trees = encode_tree(&ways).map_err(|error| error.to_string())?;
                trees
                    .into_iter()
                    .next()
                    .map_or(Vec::new(), |tree| tree.bytes)
            } else {
                ways[0].1.clone()
            };
            network.send(from.0, at_us as u64, is_tree, &route, frames);
        }
    }
    let ended = network.run(QUIET_US, 10 * window_us);
    let whole: Vec<_> = network.whole().collect();
    let until_us = start_us + window_us;
    let in_window = whole.iter().filter(|(_, came_us)| *came_us <= until_us);
    let frames: u64 = in_window.map(|(wanted, _)| u64::from(wanted.frames)).sum();
    let capacity = (hosts.len() as u64 * window_us / STEP_US) as f64;
    let small = whole.iter().filter(|(wanted, _)| wanted.frames == 1);
    Ok(Outcome {
        stuck: !ended && network.circle().is_some(),
        left: !ended,
        arrived: frames as f64 / capacity,
        small_us: small
            .map(|(wanted, came_us)| came_us - wanted.at_us)
            .collect(),
        waited: network.waited_max,
        queued: network.queued_max,
        resets: hosts.iter().map(|host| network.resets(host.0)).sum(),
    })
}

fn percentile(sorted: &[u64], share: f64) -> u64 {
    let last = sorted.len().saturating_sub(1);
    sorted
        .get((last as f64 * share) as usize)
        .copied()
        .unwrap_or(0)
}

fn measure(options: &Options) -> Result<(), String> {
    for scheme in &options.schemes {
        for &load in &options.loads {
            let seeds = options.from..options.from + options.seeds;
            let runs: Vec<Outcome> = seeds
                .map(|seed| run(options, scheme, load, seed))
                .collect::<Result<_, _>>()?;
            let mut small: Vec<u64> = runs.iter().flat_map(|run| run.small_us.clone()).collect();
            small.sort_unstable();
            let stuck = runs.iter().filter(|run| run.stuck).count();
            let left = runs.iter().filter(|run| run.left).count();
            let mean = runs.iter().map(|run| run.arrived).sum::<f64>() / runs.len() as f64;
            let most = |of: fn(&Outcome) -> usize| runs.iter().map(of).max().unwrap_or(0);
            println!(
                "{}",
                serde_json::json!({
                    "network": options.network, "scheme": scheme, "load": load, "runs": runs.len(),
                    "stuck": stuck, "left": left, "multicast": options.multicast, "arrived": (mean * 1e4).round() / 1e4,
                    "small_us_p50": percentile(&small, 0.5), "small_us_p99": percentile(&small, 0.99),
                    "waited_max": most(|run| run.waited), "queued_max": most(|run| run.queued),
                    "resets": runs.iter().map(|run| run.resets).sum::<u64>(),
                })
            );
        }
    }
    Ok(())
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if words.iter().any(|word| word == "--help" || word == "-h") {
        println!(
            "trains [--network SPEC] [--loads L,…] [--schemes {}] [--seeds N] [--from SEED] [--window-ms N] [--multicast SHARE] [--multicast-hosts N]",
            SCHEMES.join(",")
        );
        return ExitCode::SUCCESS;
    }
    match read(words.into_iter()).and_then(|options| measure(&options)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
    }
}
