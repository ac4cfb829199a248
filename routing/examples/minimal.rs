//! Times minimal routing over in-transit hosts (ITB §III.B), phase by phase, on one thread,
//! and prints a line of JSON.
//!
//! `cargo run --release --example minimal -- irregular:2048:1:4:8`
//! `cargo run --release --example minimal -- topology.json --algorithm rrmit-min --root 3`
//!
//! Phases: `parse`, from text to a checked topology (of a kind such as `torus:4`, making
//! it); `updown`, root, levels, directions; `plan`, all pairs of switches ready: next hops
//! and with them the cuts, or what is left to go from every switch to every other.

#![allow(
    clippy::disallowed_macros,
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "it measures and prints"
)]

use std::process::ExitCode;
use std::time::Instant;

use wormcast_routing::generate::{KINDS, from_spec};
use wormcast_routing::routes::{Algorithm, Routes};
use wormcast_routing::topology::Topology;
use wormcast_routing::updown::UpDown;
use wormcast_wire::SwitchId;

const USAGE: &str = "usage: minimal TOPOLOGY.json|KIND [--algorithm NAME] [--root SWITCH]";

fn main() -> ExitCode {
    match measure() {
        Ok(line) => {
            println!("{line}");
            ExitCode::SUCCESS
        }
        Err(reason) => {
            eprintln!("minimal: {reason}");
            ExitCode::from(2)
        }
    }
}

fn measure() -> Result<String, String> {
    let (mut name, mut algorithm, mut root) = (None, Algorithm::Omit, None);
    let mut given = std::env::args().skip(1);
    while let Some(argument) = given.next() {
        let mut value = || {
            given
                .next()
                .ok_or(format!("{argument} needs a value; {USAGE}"))
        };
        match argument.as_str() {
            "--algorithm" => algorithm = value()?.parse().map_err(text)?,
            "--root" => root = Some(SwitchId(value()?.parse().map_err(text)?)),
            _ if name.is_none() => name = Some(argument),
            _ => return Err(format!("\"{argument}\" is one too many; {USAGE}")),
        }
    }
    let name = name.ok_or(USAGE)?;
    if !algorithm.uses_in_transit_hosts() {
        return Err(format!("{} uses no in-transit hosts", algorithm.name()));
    }
    let kind = name.split(':').next();
    let is_kind = KINDS.iter().any(|shape| shape.split(':').next() == kind);
    let file = if is_kind {
        String::new()
    } else {
        std::fs::read_to_string(&name).map_err(|error| format!("{name}: {error}"))?
    };
    let start = Instant::now();
    let topology = if is_kind {
        from_spec(&name)
    } else {
        Topology::from_json_split(&file)
    };
    let topology = topology.map_err(text)?;
    let parsed = Instant::now();
    let updown = UpDown::new(&topology, root).map_err(text)?;
    let directed = Instant::now();
    let routes = Routes::plan_along(&topology, algorithm, updown).map_err(text)?;
    let planned = Instant::now();
    // Looked at, so that nothing of it can be left out.
    let (first, last) = (topology.hosts().first(), topology.hosts().last());
    let crossed = match (first, last) {
        (Some(first), Some(last)) => routes.distance(first.id, last.id).map_err(text)?,
        _ => None,
    };
    let milliseconds = |from: Instant, to: Instant| (to - from).as_secs_f64() * 1e3;
    Ok(format!(
        "{{\"switches\":{},\"hosts\":{},\"links\":{},\"first_to_last\":{},\
         \"parse_ms\":{:.3},\"updown_ms\":{:.3},\"plan_ms\":{:.3},\"peak_kib\":{}}}",
        topology.switches().len(),
        topology.hosts().len(),
        topology.links().len(),
        crossed.map_or("null".to_owned(), |crossed| crossed.to_string()),
        milliseconds(start, parsed),
        milliseconds(parsed, directed),
        milliseconds(directed, planned),
        peak_kib().map_or("null".to_owned(), |peak| peak.to_string()),
    ))
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
