//! How long the deadlock check takes.
//!
//!     cargo run --release -p wormcast-routing --example verify -- irregular:1024:1
//!
//! Takes topologies (a file, or a kind such as `torus:8:8`), prints one line of JSON each:
//! sizes, `plan_ms` (routes of osud), `graph_ms` (all dependencies), `check_ms` (order or
//! cycle) and `peak_kib` so far (0 where the system does not say).

#![allow(
    clippy::disallowed_macros,
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "it measures and prints"
)]

use std::time::Instant;

use wormcast_routing::deadlock::{Branching, ChannelGraph};
use wormcast_routing::generate::from_spec;
use wormcast_routing::routes::{Algorithm, Routes};
use wormcast_routing::topology::Topology;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    for name in std::env::args().skip(1) {
        let topology = match std::fs::read_to_string(&name) {
            Ok(text) => Topology::from_json_split(&text)?,
            Err(_) => from_spec(&name)?,
        };
        let start = Instant::now();
        let routes = Routes::plan(&topology, Algorithm::Osud, None)?;
        let planned = Instant::now();
        let mut graph = ChannelGraph::new(&topology, Branching::Independent);
        graph.add_routes(&routes);
        let added = Instant::now();
        let free = graph.check().is_deadlock_free();
        let checked = Instant::now();
        let ms = |from: Instant, to: Instant| (to - from).as_secs_f64() * 1e3;
        println!(
            "{{\"topology\":\"{name}\",\"switches\":{},\"hosts\":{},\"links\":{},\
             \"plan_ms\":{:.1},\"graph_ms\":{:.1},\"check_ms\":{:.1},\"peak_kib\":{},\
             \"deadlock_free\":{free}}}",
            topology.switches().len(),
            topology.hosts().len(),
            topology.links().len(),
            ms(start, planned),
            ms(planned, added),
            ms(added, checked),
            peak_kib()
        );
    }
    Ok(())
}

fn peak_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
    kib.unwrap_or(0)
}
