//! A host for lossless fabrics: sends numbered worms at the rate of its link, honours PFC,
//! checks order and loss of what it receives, and sends on what is in transit.
//!
//!     lossless_host eth0 --source 1 --rate 100mbit --send 3,0 --seconds 10

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use clap::Parser;
use wormcast_switch_flow::BitRate;

#[path = "../tests/lossless_lab/mod.rs"]
mod lossless_lab;

use lossless_lab::host::{Flow, Host, Orders, run};

/// A host for lossless fabrics.
#[derive(Parser)]
struct Arguments {
    /// Interface it is on
    interface: String,
    /// Number in the worms it sends
    #[arg(long, default_value_t = 1)]
    source: u16,
    /// Rate of its link
    #[arg(long, default_value = "1gbit")]
    rate: BitRate,
    /// Send worms along these ports, with commas between them; may be repeated
    #[arg(long, value_name = "PORTS")]
    send: Vec<String>,
    /// Send in buffer class 2
    #[arg(long)]
    class2: bool,
    /// Bytes of a frame
    #[arg(long, default_value_t = 1_500, value_parser = clap::value_parser!(u32).range(60..=1_514))]
    length: u32,
    /// Pause this priority of the switch for ever
    #[arg(long, value_name = "PRIORITY", value_parser = clap::value_parser!(u8).range(0..=7))]
    storm: Option<u8>,
    /// How long it sends
    #[arg(long, default_value_t = 10)]
    seconds: u64,
    /// How long it goes on receiving after that
    #[arg(long, default_value_t = 2)]
    drain: u64,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let mut host = Host::new(arguments.source, arguments.rate, 0);
    for ports in &arguments.send {
        let route: Result<Vec<u8>, _> = ports.split(',').map(|port| port.trim().parse()).collect();
        let Ok(route) = route else {
            eprintln!(
                "lossless_host: `{ports}` is no route: ports from 0 to 253 with commas between them"
            );
            return ExitCode::FAILURE;
        };
        host.flows.push(Flow {
            route,
            class2: arguments.class2,
            length: arguments.length as usize,
        });
    }
    let orders = Arc::new(Orders::new(1));
    let timer = Arc::clone(&orders);
    thread::spawn(move || {
        thread::sleep(Duration::from_secs(arguments.seconds));
        timer.quiet.store(true, Ordering::Relaxed);
        thread::sleep(Duration::from_secs(arguments.drain));
        timer.end.store(true, Ordering::Relaxed);
    });
    match run(
        host,
        0,
        &arguments.interface,
        Instant::now(),
        &orders,
        arguments.storm,
    ) {
        Ok(host) => {
            println!(
                "sent {} frames; {} pauses received",
                host.sent,
                host.pauses()
            );
            for ((source, class2), arrived) in &host.arrived {
                let class = 1 + u8::from(*class2);
                println!(
                    "from {source} class {class}: {} frames, {} lost, {} out of order",
                    arrived.frames, arrived.lost, arrived.misordered
                );
            }
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("lossless_host: {error}");
            ExitCode::FAILURE
        }
    }
}
