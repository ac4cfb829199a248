//! Packets a second that a pipeline forwards on one core, without ports or queues,
//! compiled and interpreted. Counted against the processor time of the thread,
//! so that other work on the machine does not count.
//!
//!     cargo run --release --example pipeline_rate [-- --seconds N] [--case NAME] [--json]
//!
//! Cases: l2 is `switch/bench/programs/l2.json`; the others are worms of the data plane of
//! this repository, `tree` one that leaves by seven ports, `unicast-guarded` one that the guard
//! judges. `--packets N` runs so many and ends, for counting instructions. `--queued` takes
//! every packet through a queue.

#[path = "../tests/worms/mod.rs"]
mod worms;

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use wormcast_switch_jit::compiler_of;
use wormcast_switch_pipeline::LoadedProgram;
use wormcast_switch_pipeline::{DequeueInfo, Execution, Pipeline, PipelineConfig, PortId};
use worms::{Sink, insert, set_up, worm};

/// Rounds a measurement is cut into; the spread is that of the rounds.
const ROUNDS: usize = 10;
const PACKETS_PER_ROUND_CHECK: u64 = 1000;

/// Time this thread has been on a processor; proc_pid_schedstat(5).
fn processor_time() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let time_ns = text
        .split_whitespace()
        .next()
        .and_then(|word| word.parse().ok());
    Duration::from_nanos(time_ns.expect("a kernel with scheduler statistics"))
}

/// What is measured: a packet, and how many leave for each that comes in.
struct Case {
    name: &'static str,
    program: &'static str,
    packet: Vec<u8>,
    copies: u64,
    /// Worms come by a port of a host that the guard knows.
    guarded: bool,
}

fn cases() -> Vec<Case> {
    let of_worms = |name, packet, copies| Case {
        name,
        program: "p4src/compiled/wormcast.json",
        packet,
        copies,
        guarded: false,
    };
    let tree = [1, 2, 0, 0, 4, 0, 6, 2, 1, 0, 0xff];
    let wide_tree: Vec<u8> = (1..8).flat_map(|port| [port, 0]).chain([0xff]).collect();
    let mut long = vec![5];
    long.extend_from_slice(&[7; 31]);
    let mut frame = vec![2, 0, 0, 0, 0, 7, 2, 0, 0, 0, 0, 1, 0x08, 0x00];
    frame.resize(64, 0xa5);
    vec![
        Case {
            name: "l2",
            program: "switch/bench/programs/l2.json",
            packet: frame,
            copies: 1,
            guarded: false,
        },
        of_worms("unicast", worm(0, &[5, 3, 1], 64), 1),
        Case {
            guarded: true,
            ..of_worms("unicast-guarded", worm(0, &[5, 3, 1], 64), 1)
        },
        of_worms("unicast-1500", worm(0, &[5, 3, 1], 1500), 1),
        of_worms("unicast-32-hops", worm(0, &long, 256), 1),
        of_worms("tree-3", worm(1, &tree, 256), 3),
        of_worms("tree", worm(1, &wide_tree, 256), 7),
    ]
}

fn load(path: &str, execution: Execution) -> (Pipeline, Duration) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path);
    let text = std::fs::read_to_string(&path)
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let program =
        Arc::new(LoadedProgram::from_json(&text).unwrap_or_else(|error| panic!("{error}")));
    let start = processor_time();
    let config = PipelineConfig {
        compiler: compiler_of(execution),
        ..PipelineConfig::default()
    };
    let mut pipeline = Pipeline::new(program, config);
    let made = processor_time() - start;
    assert_eq!(
        pipeline.execution(),
        execution,
        "{:?}",
        pipeline.refusal_to_compile()
    );
    if path.ends_with("l2.json") {
        for address in 0..256 {
            let key = 0x0200_0000_0000 + address;
            insert(
                &mut pipeline,
                "ingress.addresses",
                "ingress.forward",
                key,
                &[5],
            );
        }
    } else {
        set_up(&mut pipeline);
    }
    (pipeline, made)
}

/// Sends one packet through, and what the sink has queued of it.
fn forward(pipeline: &mut Pipeline, packet: &[u8], now_us: u64, sink: &mut Sink) {
    pipeline.ingress(packet, PortId(0), now_us, sink);
    while let Some(queued) = sink.queue.pop_front() {
        let info = DequeueInfo {
            enqueued_us: now_us,
            dequeued_us: now_us,
            ..DequeueInfo::default()
        };
        pipeline.egress(queued, &info, sink);
    }
}

/// Packets a second of each round, in thousands, ascending.
fn rates(pipeline: &mut Pipeline, case: &Case, settings: &Settings) -> Vec<f64> {
    let mut sink = Sink {
        passes: !settings.queued,
        ..Sink::default()
    };
    let mut rates = Vec::new();
    let mut now_us = 0;
    for _ in 0..ROUNDS {
        let start = Instant::now();
        let start_time = processor_time();
        let mut packets = 0;
        let elapsed = loop {
            for _ in 0..PACKETS_PER_ROUND_CHECK {
                now_us += 1;
                forward(pipeline, &case.packet, now_us, &mut sink);
                packets += 1;
            }
            let done = match settings.packets {
                Some(wanted) => packets >= wanted / ROUNDS as u64,
                None => start.elapsed() >= settings.length / ROUNDS as u32,
            };
            if done {
                break processor_time() - start_time;
            }
        };
        let copies = case.copies;
        assert_eq!(sink.frames, packets * copies, "{:?}", pipeline.statistics());
        sink.frames = 0;
        rates.push(packets as f64 / elapsed.as_secs_f64() / 1000.0);
    }
    rates.sort_by(f64::total_cmp);
    rates
}

struct Settings {
    length: Duration,
    packets: Option<u64>,
    queued: bool,
    json: bool,
    executions: Vec<Execution>,
    case: Option<String>,
}

fn settings() -> Settings {
    let mut settings = Settings {
        length: Duration::from_secs(1),
        packets: None,
        queued: false,
        json: false,
        executions: vec![Execution::Compiled, Execution::Interpreted],
        case: None,
    };
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().unwrap_or_default();
        match argument.as_str() {
            "--seconds" => {
                let seconds = value().parse().expect("--seconds takes a number");
                settings.length = Duration::from_secs_f64(seconds);
            }
            "--packets" => {
                settings.packets = Some(value().parse().expect("--packets takes a number"));
            }
            "--case" => settings.case = Some(value()),
            "--engine" => {
                settings.executions = match value().as_str() {
                    "compiled" => vec![Execution::Compiled],
                    "interpreted" => vec![Execution::Interpreted],
                    other => panic!("--engine {other}: compiled or interpreted"),
                }
            }
            "--queued" => settings.queued = true,
            "--json" => settings.json = true,
            other => panic!(
                "{other}: --seconds N, --packets N, --case NAME, --engine compiled|interpreted, \
                 --queued, --json"
            ),
        }
    }
    settings
}

fn main() {
    let settings = settings();
    for case in cases() {
        if settings.case.as_ref().is_some_and(|name| name != case.name) {
            continue;
        }
        for &execution in &settings.executions {
            let (mut pipeline, made) = load(case.program, execution);
            if case.guarded {
                let admitted = [5, 1, 0, 64, 0];
                insert(
                    &mut pipeline,
                    "ingress.guard",
                    "ingress.admit_host",
                    0,
                    &admitted,
                );
            }
            let rates = rates(&mut pipeline, &case, &settings);
            let (median, least, most) = (rates[ROUNDS / 2], rates[0], rates[ROUNDS - 1]);
            let name = case.name;
            let execution = format!("{execution:?}").to_lowercase();
            let (nanoseconds, made_ms) = (1e6 / median, made.as_secs_f64() * 1e3);
            if settings.json {
                println!(
                    "{{\"case\": \"{name}\", \"engine\": \"{execution}\", \"queued\": {}, \
                     \"copies\": {}, \"kpps_median\": {median:.1}, \"kpps_least\": {least:.1}, \
                     \"kpps_most\": {most:.1}, \"ns_per_packet\": {nanoseconds:.1}, \
                     \"load_ms\": {made_ms:.2}}}",
                    settings.queued, case.copies
                );
            } else {
                println!(
                    "{name:<16} {execution:<11} {median:>7.0} kpps median, {least:.0} to {most:.0} \
                     ({nanoseconds:.0} ns a packet; made in {made_ms:.1} ms)"
                );
            }
        }
    }
}
