//! Times the whole way from a topology to forwarding tables, phase by phase, on one
//! thread, and prints a line of JSON.
//!
//! `cargo run --release --example forwarding -- irregular:1024:1:4:8`
//! `cargo run --release --example forwarding -- topology.json --algorithm tree-only --root 3`
//!
//! Phases: `parse`, from text to a checked topology (of a kind such as `torus:4`, making
//! it); `updown`, root, levels, directions; `next_hops`, one way on for each pair of
//! switches; `expand`, the first port from every switch to every host, written out.

#![allow(
    clippy::disallowed_macros,
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "it measures and prints"
)]

use std::process::ExitCode;
use std::time::Instant;

use wormcast_routing::generate::{KINDS, from_spec};
use wormcast_routing::routes::{Algorithm, NO_PORT, Routes};
use wormcast_routing::topology::Topology;
use wormcast_routing::updown::UpDown;
use wormcast_wire::SwitchId;

struct Arguments {
    topology: String,
    algorithm: Algorithm,
    root: Option<SwitchId>,
}

fn main() -> ExitCode {
    match read_arguments().and_then(|arguments| measure(&arguments)) {
        Ok(line) => {
            println!("{line}");
            ExitCode::SUCCESS
        }
        Err(reason) => {
            eprintln!("forwarding: {reason}");
            ExitCode::from(2)
        }
    }
}

fn read_arguments() -> Result<Arguments, String> {
    let usage = "usage: forwarding TOPOLOGY.json|KIND [--algorithm NAME] [--root SWITCH]";
    let mut found = Arguments {
        topology: String::new(),
        algorithm: Algorithm::Osud,
        root: None,
    };
    let mut given = std::env::args().skip(1);
    while let Some(argument) = given.next() {
        let mut value = || {
            given
                .next()
                .ok_or(format!("{argument} needs a value; {usage}"))
        };
        match argument.as_str() {
            "--algorithm" => found.algorithm = value()?.parse().map_err(text)?,
            "--root" => found.root = Some(SwitchId(value()?.parse().map_err(text)?)),
            _ if found.topology.is_empty() => found.topology = argument,
            _ => return Err(format!("\"{argument}\" is one too many; {usage}")),
        }
    }
    if found.topology.is_empty() {
        Err(usage.to_owned())
    } else {
        Ok(found)
    }
}

fn measure(arguments: &Arguments) -> Result<String, String> {
    let kind = arguments.topology.split(':').next();
    let is_kind = KINDS.iter().any(|shape| shape.split(':').next() == kind);
    let file = if is_kind {
        String::new()
    } else {
        std::fs::read_to_string(&arguments.topology)
            .map_err(|error| format!("{}: {error}", arguments.topology))?
    };
    let start = Instant::now();
    let topology = if is_kind {
        from_spec(&arguments.topology)
    } else {
        Topology::from_json_split(&file)
    };
    let topology = topology.map_err(text)?;
    let parsed = Instant::now();
    let updown = UpDown::new(&topology, arguments.root).map_err(text)?;
    let directed = Instant::now();
    let routes = Routes::plan_along(&topology, arguments.algorithm, updown).map_err(text)?;
    let planned = Instant::now();
    let tables = routes.forwarding_tables();
    let expanded = Instant::now();
    // Looked at, so that nothing of it can be left out.
    let missing = tables
        .as_bytes()
        .iter()
        .filter(|&&port| port == NO_PORT)
        .count();
    let milliseconds = |from: Instant, to: Instant| (to - from).as_secs_f64() * 1e3;
    Ok(format!(
        "{{\"switches\":{},\"hosts\":{},\"links\":{},\"unreachable\":{missing},\
         \"parse_ms\":{:.3},\"updown_ms\":{:.3},\"next_hops_ms\":{:.3},\"expand_ms\":{:.3},\
         \"cpu_ms\":{},\"peak_kib\":{}}}",
        topology.switches().len(),
        topology.hosts().len(),
        topology.links().len(),
        milliseconds(start, parsed),
        milliseconds(parsed, directed),
        milliseconds(directed, planned),
        milliseconds(planned, expanded),
        cpu_ms().map_or("null".to_owned(), |time| format!("{time:.3}")),
        peak_kib().map_or("null".to_owned(), |peak| peak.to_string()),
    ))
}

/// Time on a processor so far, as Linux counts it: the same on a busy machine.
fn cpu_ms() -> Option<f64> {
    let counted = std::fs::read_to_string("/proc/self/schedstat").ok()?;
    let nanoseconds: f64 = counted.split_whitespace().next()?.parse().ok()?;
    Some(nanoseconds / 1e6)
}

/// Most memory this process has held, as Linux counts it.
fn peak_kib() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}
