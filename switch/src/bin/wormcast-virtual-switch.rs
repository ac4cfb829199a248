//! One switch on virtual time: frames with times in, frames with times out. What comes out
//! follows from what goes in alone, on any machine, however busy.
//!
//!     wormcast-virtual-switch PROGRAM.json [--port-rate RATE] [--queue-frames N] [--step-us N] [--until-us N]
//!
//! Standard input has a line for each frame: microseconds, port, hex digits, in the order of
//! their times. Standard output has the same for each frame that leaves, and at the end
//! `drops PORT PRIORITY COUNT` for each queue that turned frames away. Without `--until-us`
//! it ends when nothing waits any more.

use std::collections::BTreeSet;
use std::error::Error;
use std::io::{BufRead, BufWriter, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use clap::Parser;
use wormcast_switch_dataplane::{LinkEnd, SwitchSettings, VirtualFabric};
use wormcast_switch_flow::BitRate;
use wormcast_switch_pipeline::limits::PACKET_BYTES_MAX;
use wormcast_switch_pipeline::{LoadedProgram, Pipeline, PipelineConfig, PortId};

/// What is refused is in the input or on the command line.
const EXIT_REFUSED: u8 = 2;

/// Highest port that is none of the switch's own (drop port, CPU port).
const PORT_MAX: u16 = 509;

/// One switch on virtual time: lines TIME_US PORT HEX in, the same out.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    /// Program, as p4c compiles it for BMv2
    program: PathBuf,
    /// Rate of every port
    #[arg(long)]
    port_rate: Option<BitRate>,
    /// Most packets in an egress queue
    #[arg(long, default_value_t = 1_024)]
    queue_frames: usize,
    /// How far time goes at once
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..))]
    step_us: u64,
    /// When it ends
    #[arg(long)]
    until_us: Option<u64>,
}

struct Arrival {
    time_us: u64,
    port: u16,
    frame: Vec<u8>,
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("wormcast-virtual-switch: {error}");
            ExitCode::from(EXIT_REFUSED)
        }
    }
}

fn run(arguments: &Arguments) -> Result<(), Box<dyn Error>> {
    let path = &arguments.program;
    let json =
        std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let program = Arc::new(LoadedProgram::from_json(&json)?);
    let arrivals = read(std::io::stdin().lock())?;
    let end = |port| LinkEnd {
        switch: 0,
        port: PortId(port),
    };
    // A frame may leave by any port; those that nothing comes in by are there too.
    let ports: BTreeSet<u16> = (0..16).chain(arrivals.iter().map(|at| at.port)).collect();
    let settings = SwitchSettings {
        port_rate: arguments.port_rate,
        ..SwitchSettings::without_ports(0, arguments.queue_frames)
    };
    let hosts: Vec<LinkEnd> = ports.iter().map(|port| end(*port)).collect();
    let mut fabric = VirtualFabric::new(&[settings], &[], &hosts)?;
    fabric
        .switch(0)
        .install(Pipeline::new(program, PipelineConfig::default()));
    let mut out = BufWriter::new(std::io::stdout().lock());
    let mut waiting = arrivals.into_iter().peekable();
    loop {
        let now_us = fabric.now_us();
        while let Some(arrival) = waiting.next_if(|arrival| arrival.time_us <= now_us) {
            if !fabric.send(end(arrival.port), &arrival.frame) {
                return Err(
                    format!("{now_us} us: the link of port {} is full", arrival.port).into(),
                );
            }
        }
        fabric.step(arguments.step_us);
        let now_us = fabric.now_us();
        let mut left = Vec::new();
        for port in &ports {
            fabric.receive(end(*port), |frame| left.push((*port, frame.to_vec())));
        }
        for (port, frame) in left {
            writeln!(out, "{now_us} {port} {}", hex(&frame))?;
        }
        let over = match arguments.until_us {
            Some(until_us) => now_us >= until_us,
            None => waiting.peek().is_none() && is_idle(&mut fabric),
        };
        if over {
            break;
        }
    }
    for port in fabric.switch(0).snapshot().ports {
        let Some(number) = port.port else { continue };
        for queue in port.queues.iter().filter(|queue| queue.tail_drops > 0) {
            let (priority, drops) = (queue.queue, queue.tail_drops);
            writeln!(out, "drops {number} {priority} {drops}")?;
        }
    }
    Ok(out.flush()?)
}

/// Whether no packet waits in a queue.
fn is_idle(fabric: &mut VirtualFabric) -> bool {
    let ports = fabric.switch(0).snapshot().ports;
    ports
        .iter()
        .all(|port| port.queues.iter().all(|queue| queue.depth == 0))
}

fn read(lines: impl BufRead) -> Result<Vec<Arrival>, Box<dyn Error>> {
    let mut arrivals: Vec<Arrival> = Vec::new();
    for (number, line) in lines.lines().enumerate() {
        let line = line?;
        let arrival = parse(&line)
            .ok_or_else(|| {
                let line: String = line.chars().take(60).collect();
                format!(
                    "line {}: `{line}` is not TIME_US PORT HEX with a port from 0 to {PORT_MAX} and 1 to \
                     {PACKET_BYTES_MAX} bytes",
                    number + 1
                )
            })?;
        if arrivals
            .last()
            .is_some_and(|last| last.time_us > arrival.time_us)
        {
            return Err(format!("line {}: time goes back", number + 1).into());
        }
        arrivals.push(arrival);
    }
    Ok(arrivals)
}

fn parse(line: &str) -> Option<Arrival> {
    let mut words = line.split_whitespace();
    let time_us = words.next()?.parse().ok()?;
    let port = words
        .next()?
        .parse()
        .ok()
        .filter(|port| *port <= PORT_MAX)?;
    let digits = words.next()?.as_bytes();
    let pairs = digits.chunks_exact(2);
    let length = 2..=2 * PACKET_BYTES_MAX;
    let whole =
        pairs.remainder().is_empty() && length.contains(&digits.len()) && words.next().is_none();
    let digit = |byte: u8| (byte as char).to_digit(16).map(|digit| digit as u8);
    let frame: Option<Vec<u8>> = pairs
        .map(|pair| Some(digit(pair[0])? << 4 | digit(pair[1])?))
        .collect();
    frame.filter(|_| whole).map(|frame| Arrival {
        time_us,
        port,
        frame,
    })
}

fn hex(frame: &[u8]) -> String {
    frame.iter().map(|byte| format!("{byte:02x}")).collect()
}
