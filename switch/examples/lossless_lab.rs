//! Lossless fabrics on virtual interfaces, measured: loss, memory, fairness. Needs root;
//! everything happens in a network namespace of its own, which goes with it.
//!
//!     lossless_lab incast --seconds 60 --rate 1gbit --processes two

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser, ValueEnum};
use serde_json::json;

#[path = "../tests/lossless_lab/mod.rs"]
mod lossless_lab;

use lossless_lab::scenario::Scenario;
use lossless_lab::{Lab, Processes};

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Case {
    /// Seven senders at full rate, one receiver, two switches
    Incast,
    /// Four switches in a ring, routes that wait for one another
    IllegalRing,
    /// The same hosts, legal routes
    LegalRing,
    /// The illegal routes, cut by in-transit ejection
    InTransitRing,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum How {
    /// A process for each switch
    Many,
    /// One process (--fabric)
    One,
}

/// Lossless fabrics on virtual interfaces, measured.
#[derive(Parser)]
struct Arguments {
    /// What is measured
    case: Case,
    /// How long hosts send
    #[arg(long, default_value_t = 5)]
    seconds: u64,
    /// Rate of every link
    #[arg(long, default_value = "1gbit")]
    rate: String,
    /// Bytes of a frame
    #[arg(long, default_value_t = 1_500)]
    length: usize,
    /// How switches run
    #[arg(long, default_value = "many")]
    processes: How,
    /// Option for the switches; may be repeated
    #[arg(long, allow_hyphen_values = true)]
    option: Vec<String>,
    /// The switch; the one beside this program unless given
    #[arg(long)]
    switch: Option<PathBuf>,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let beside = || {
        let this = std::env::current_exe().ok()?;
        Some(this.parent()?.parent()?.join("wormcast-switch"))
    };
    let Some(switch) = arguments
        .switch
        .or_else(beside)
        .filter(|path| path.is_file())
    else {
        eprintln!("lossless_lab: there is no wormcast-switch here; build it, or give --switch");
        return ExitCode::FAILURE;
    };
    // SAFETY: no pointers; it changes the namespace of this process alone.
    if unsafe { libc::unshare(libc::CLONE_NEWNET) } != 0 {
        let error = std::io::Error::last_os_error();
        eprintln!("lossless_lab: no network namespace: {error} (needs root)");
        return ExitCode::FAILURE;
    }
    // Nothing but what hosts send shall be on the links.
    for of in ["all", "default"] {
        let path = format!("/proc/sys/net/ipv6/conf/{of}/disable_ipv6");
        // Without IPv6 there is nothing to disable.
        let _ = std::fs::write(path, "1");
    }
    let lab = Lab {
        switch,
        processes: match arguments.processes {
            How::Many => Processes::Many,
            How::One => Processes::One,
        },
        rate: arguments.rate.clone(),
        length: arguments.length,
        time: Duration::from_secs(arguments.seconds),
        options: arguments.option,
    };
    let outcome = lab.run(&match arguments.case {
        Case::Incast => Scenario::incast(),
        Case::IllegalRing => Scenario::illegal_ring(),
        Case::LegalRing => Scenario::legal_ring(),
        Case::InTransitRing => Scenario::in_transit_ring(),
    });
    let buffer = |count: &str| -> Vec<u64> {
        let of = |switch: &serde_json::Value| switch["lossless"][count].as_u64();
        outcome.switches.iter().filter_map(of).collect()
    };
    let bits = outcome.received as f64 * 8.0 * (arguments.length as f64 + 24.0);
    let report = json!({
        "sent": outcome.sent,
        "received": outcome.received,
        "missing": outcome.sent - outcome.received.min(outcome.sent),
        "out_of_order_or_lost_at_receivers": outcome.wrong,
        "dropped_by_switches": outcome.drops(),
        "seconds": outcome.sending.as_secs_f64(),
        "received_mbit_per_s_on_the_wire": bits / outcome.sending.as_secs_f64() / 1e6,
        "frames_by_source": outcome.shares,
        "furthest_share_from_mean": outcome.unfairness(),
        "pause_frames_sent": outcome.pauses("pauses_sent"),
        "held_back": outcome.pauses("held_back"),
        "storms": outcome.pauses("storms"),
        "buffer_bytes": buffer("buffer_bytes"),
        "buffer_bytes_held_max": buffer("held_bytes_max"),
        "process_memory_max_kib": outcome.memory_kib,
        "in_transit_worms_waiting_max": outcome.in_transit_max,
        "warnings": outcome.log.lines().filter(|line| line.contains("WARN") || line.contains("deadlock")).take(20).collect::<Vec<_>>(),
    });
    println!("{report:#}");
    ExitCode::SUCCESS
}
