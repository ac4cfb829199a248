//! Packets through programs of the repository, with entries, groups and members that are
//! drawn from the input. All ways through the pipeline give the same, byte for byte.
//!
//! Input: the number of a program, the length of what fills its tables and that, then
//! packets: a port, a length, the bytes.

use std::sync::OnceLock;

use super::draws::Draws;
use super::modes::{MODES, Mode};
use super::programs::{self, Case};
use super::wire::{Wire, forward};
use wormcast_switch_dataplane::trace::{trace_channel, write_record};
use wormcast_switch_jit::compiler_of;
use wormcast_switch_pipeline::limits::PACKET_BYTES_MAX;
use wormcast_switch_pipeline::trace::{Filter, Format};
use wormcast_switch_pipeline::{Execution, Pipeline, PipelineConfig};

/// Bytes that entries are drawn from.
const STATE_BYTES_MAX: usize = 4_096;

/// Packets of one input.
const PACKETS_MAX: usize = 16;

/// Copies of a packet that are run.
const COPIES_MAX: usize = 512;

/// Records of a trace that are kept.
const RECORDS_MAX: usize = 64;

fn cases() -> &'static [Case] {
    static CASES: OnceLock<Vec<Case>> = OnceLock::new();
    CASES.get_or_init(programs::cases)
}

pub fn run(data: &[u8]) {
    let mut draws = Draws::new(data);
    let first = draws.byte();
    let case = &cases()[usize::from(first >> 1) % cases().len()];
    let state = draws.block(STATE_BYTES_MAX);
    let mut packets = Vec::new();
    while !draws.is_empty() && packets.len() < PACKETS_MAX {
        let port = u16::from(draws.byte());
        packets.push((port, draws.block(PACKET_BYTES_MAX + 1).to_vec()));
    }
    let run = |mode: Mode| {
        let mode = Mode {
            copies_max: Some(COPIES_MAX),
            ..mode
        };
        mode.run(&case.program, &mut Draws::new(state), &packets)
    };
    let expected = run(MODES[0]);
    for mode in &MODES[1..] {
        // Copies that are thrown away are others when packets take the short way.
        if expected.cut_off == 0 || !mode.passes {
            let what = format!("{}, {mode:?}", case.name);
            super::assert_same(&expected.seen, &run(*mode).seen, &what);
        }
    }
    if first & 1 != 0 {
        traced(case, state, &packets, &expected.seen);
    }
}

/// A trace changes nothing but who looks on.
fn traced(case: &Case, state: &[u8], packets: &[(u16, Vec<u8>)], expected: &[String]) {
    let config = PipelineConfig {
        compiler: compiler_of(Execution::Compiled),
        ..PipelineConfig::default()
    };
    let mut pipeline = Pipeline::new(case.program.clone(), config);
    programs::fill(&mut pipeline, &mut Draws::new(state));
    let (sink, mut reader) = trace_channel(RECORDS_MAX);
    pipeline
        .tracing()
        .add(Filter::default(), sink)
        .expect("the first trace");
    let mut wire = Wire {
        copies_max: Some(COPIES_MAX),
        ..Wire::default()
    };
    for (number, (port, packet)) in packets.iter().enumerate() {
        let now_us = 1_000 + number as u64 * 37;
        forward(&mut pipeline, &mut wire, *port, packet, now_us, 0);
    }
    super::assert_same(
        &expected[1..2],
        &[format!("{:?}", wire.sent)],
        "traced and not",
    );
    drop(pipeline);
    let mut formats = [Format::Text, Format::Json].into_iter().cycle();
    while let Some((record, lost)) = reader.blocking_read() {
        let format = formats.next().expect("a cycle");
        let written = write_record(&record, lost, format);
        assert!(!written.is_empty());
        if format == Format::Json {
            serde_json::from_str::<serde_json::Value>(&written).expect("JSON");
        }
    }
}

pub fn seeds() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for (number, case) in cases().iter().enumerate() {
        for (state, chosen) in [(&[][..], 0), (&[1; 64], 1)] {
            let mut seed = vec![(number as u8) << 1 | chosen];
            seed.extend((state.len() as u16).to_le_bytes());
            seed.extend(state);
            for packet in case.packets.iter().take(PACKETS_MAX) {
                seed.push(1);
                seed.extend((packet.len() as u16).to_le_bytes());
                seed.extend(packet);
            }
            seeds.push(seed);
        }
    }
    seeds
}
