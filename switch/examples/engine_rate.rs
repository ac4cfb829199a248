//! Packets a second that the pure engine forwards on one core: the data plane of this
//! repository, without ports or queues. Counted against the processor time of the thread,
//! so that other work on the machine does not count.
//!
//!     cargo run --release --example engine_rate [-- PROGRAM.json] [--seconds N]

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use wormcast_switch::pipeline::{
    ActionCall, Bits, DequeueInfo, EmitSink, EntryAction, FieldMatch, Pipeline, PipelineConfig,
    PortId, Queued, Replica, TableEntry, TrafficSink,
};
use wormcast_switch::program::{DigestId, Program};

/// Rounds a measurement is cut into; the spread is that of the rounds.
const ROUNDS: usize = 10;
const PACKETS_PER_ROUND_CHECK: u64 = 1000;

#[derive(Default)]
struct Counting {
    queue: VecDeque<Queued>,
    passes: bool,
    frames: u64,
    bytes: u64,
}

impl TrafficSink for Counting {
    fn enqueue(&mut self, packet: Queued) -> Result<(), Queued> {
        self.queue.push_back(packet);
        Ok(())
    }

    fn passes(&mut self, _port: PortId, _priority: u8, _length_bytes: u32) -> bool {
        self.passes && self.queue.is_empty()
    }

    fn digest(&mut self, _digest: DigestId, _fields: &[Bits]) {}
}

impl EmitSink for Counting {
    fn transmit(&mut self, _port: PortId, frame: &[u8]) {
        self.frames += 1;
        self.bytes += frame.len() as u64;
    }
}

/// Time this thread has been on a processor; proc_pid_schedstat(5).
fn processor_time() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let time_ns = text
        .split_whitespace()
        .next()
        .and_then(|word| word.parse().ok());
    Duration::from_nanos(time_ns.expect("a kernel with scheduler statistics"))
}

/// Internet checksum (RFC 1071).
fn checksum(bytes: &[u8]) -> u16 {
    let mut sum: u32 = bytes
        .chunks(2)
        .map(|pair| u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0)))
        .sum();
    while sum >> 16 != 0 {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

/// A worm frame (protocol/SPEC.md §1–2).
fn worm(kind: u8, route: &[u8], frame_bytes: usize) -> Vec<u8> {
    let mut header = vec![
        0x10 | kind,
        0x06,
        route.len() as u8,
        0,
        0,
        5,
        0,
        1,
        0x88,
        0xb6,
        0,
        0,
    ];
    header.extend_from_slice(route);
    let sum = checksum(&header).to_be_bytes();
    header[10..12].copy_from_slice(&sum);
    let mut frame = vec![3, 0x57, 0x4f, 0x52, 0x4d, 0, 2, 0, 0, 0, 0, 1, 0x88, 0xb5];
    frame.extend_from_slice(&header);
    frame.resize(frame_bytes.max(frame.len()), 0xa5);
    frame
}

fn insert(pipeline: &mut Pipeline, table: &str, action: &str, key: u64, arguments: &[u64]) {
    let program = Arc::clone(pipeline.program());
    let table = program.table(table).expect("a table of the data plane");
    let action = program
        .table_action(table, action)
        .expect("an action of the table");
    let entry = TableEntry {
        key: vec![FieldMatch::Exact(Bits::from_u64(key))],
        priority: 0,
        action: EntryAction::Call(ActionCall {
            action,
            arguments: arguments
                .iter()
                .map(|&value| Bits::from_u64(value))
                .collect(),
        }),
    };
    pipeline.insert_entry(table, &entry).expect("a valid entry");
}

fn set_up(pipeline: &mut Pipeline) {
    for port in 0..8u16 {
        insert(
            pipeline,
            "ingress.ports",
            "ingress.port_known",
            u64::from(port),
            &[],
        );
    }
    for set in 1..256u16 {
        let replicas: Vec<Replica> = (0..8)
            .filter(|port| set >> port & 1 == 1)
            .map(|port| Replica {
                port: PortId(port),
                instance: 1,
            })
            .collect();
        pipeline
            .insert_multicast_group(0x100 + u32::from(set), &replicas)
            .expect("a valid group");
        let group = u64::from(0x100 + set);
        insert(
            pipeline,
            "ingress.tree_sets",
            "ingress.replicate",
            u64::from(set),
            &[group],
        );
    }
}

fn measure(pipeline: &mut Pipeline, name: &str, packet: &[u8], copies: u64, length: Duration) {
    let mut sink = Counting {
        passes: true,
        ..Counting::default()
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
                pipeline.ingress(packet, PortId(0), now_us, &mut sink);
                while let Some(queued) = sink.queue.pop_front() {
                    let info = DequeueInfo {
                        enqueued_us: now_us,
                        dequeued_us: now_us,
                        ..DequeueInfo::default()
                    };
                    pipeline.egress(queued, &info, &mut sink);
                }
                packets += 1;
            }
            if start.elapsed() >= length / ROUNDS as u32 {
                break processor_time() - start_time;
            }
        };
        assert_eq!(sink.frames, packets * copies, "{:?}", pipeline.statistics());
        sink.frames = 0;
        rates.push(packets as f64 / elapsed.as_secs_f64() / 1000.0);
    }
    rates.sort_by(f64::total_cmp);
    println!(
        "{name:<34} {:>7.0} kpps median, {:.0} to {:.0} ({:.0} ns a packet)",
        rates[ROUNDS / 2],
        rates[0],
        rates[ROUNDS - 1],
        1e6 / rates[ROUNDS / 2]
    );
}

fn main() {
    let mut path: PathBuf =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../p4src/compiled/wormcast.json");
    let mut seconds = 5.0;
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        if argument == "--seconds" {
            let value = arguments.next().unwrap_or_default();
            seconds = value.parse().expect("--seconds takes a number");
        } else {
            path = argument.into();
        }
    }
    let text = std::fs::read_to_string(&path)
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let program = Arc::new(Program::from_json(&text).unwrap_or_else(|error| panic!("{error}")));
    let mut pipeline = Pipeline::new(program, PipelineConfig::default());
    set_up(&mut pipeline);
    let length = Duration::from_secs_f64(seconds / 4.0);
    let unicast = |bytes| worm(0, &[5, 3, 1], bytes);
    measure(
        &mut pipeline,
        "UNICAST, 3 hops left, 64 bytes",
        &unicast(64),
        1,
        length,
    );
    measure(
        &mut pipeline,
        "UNICAST, 3 hops left, 1500 bytes",
        &unicast(1500),
        1,
        length,
    );
    let tree = [1, 2, 0, 0, 4, 0, 6, 2, 1, 0, 0xff];
    measure(
        &mut pipeline,
        "TREE, 3 branches, 256 bytes",
        &worm(1, &tree, 256),
        3,
        length,
    );
    let mut long = vec![5];
    long.extend_from_slice(&[7; 31]);
    measure(
        &mut pipeline,
        "UNICAST, 32 hops left, 256 bytes",
        &worm(0, &long, 256),
        1,
        length,
    );
}
