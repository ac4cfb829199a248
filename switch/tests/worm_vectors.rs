//! The compiled data plane of this repository against the switch vectors of the protocol
//! (`wire/vectors/README.md`).

use crate::hexadecimal;
use crate::wire;
use crate::worm_state;

use std::collections::BTreeMap;
use std::sync::Arc;

use hexadecimal::hex;
use serde_json::Value;
use wire::{Wire, forward};
use worm_state::{number, packet, pipeline_in_state, read, text};
use wormcast_switch_pipeline::LoadedProgram;
use wormcast_switch_pipeline::{CounterValue, Execution, Pipeline};

const RECIRCULATE_PORT: usize = 254;

/// Names of an enum or of constants in a P4 file: `NAME = value`.
fn numbered_names(path: &str, after: &str) -> BTreeMap<String, usize> {
    let source = read(path);
    let body = source
        .split(after)
        .nth(1)
        .expect("the enum")
        .split('}')
        .next()
        .expect("its end");
    body.lines()
        .filter_map(|line| {
            let line = line.split("//").next()?.trim().trim_end_matches(',');
            let (name, value) = line.split_once('=')?;
            Some((name.trim().to_string(), value.trim().parse().ok()?))
        })
        .collect()
}

struct Counters<'p> {
    pipeline: &'p mut Pipeline,
}

impl Counters<'_> {
    /// Cells that are not 0; all cells become 0.
    fn take(&mut self, name: &str) -> BTreeMap<usize, u64> {
        let counter = self.pipeline.program().counter(name).expect("a counter");
        let cells = self.pipeline.counter_cells(counter).to_vec();
        for index in 0..cells.len() {
            self.pipeline
                .write_counter(counter, index, CounterValue::default())
                .expect("a cell");
        }
        cells
            .iter()
            .enumerate()
            .filter(|(_, cell)| cell.packets != 0)
            .map(|(index, cell)| (index, cell.packets))
            .collect()
    }
}

fn expected_cells(value: &Value, names: &BTreeMap<String, usize>) -> BTreeMap<usize, u64> {
    let cells = value.as_object().expect("counts by name");
    cells
        .iter()
        .map(|(name, count)| {
            let index = names.get(name).copied().or_else(|| name.parse().ok());
            (
                index.expect("a known name"),
                count.as_u64().expect("a count"),
            )
        })
        .collect()
}

/// Frames as `(port, hexadecimal)`, sorted.
fn frames_of(vector: &Value) -> Vec<(u16, String)> {
    let mut frames: Vec<(u16, String)> = vector["out"]
        .as_array()
        .expect("frames")
        .iter()
        .map(|out| {
            let header = match out.get("packet_in") {
                Some(metadata) => format!("{:04x}", number(metadata, "ingress_port") << 7),
                None => String::new(),
            };
            (number(out, "port") as u16, header + text(out, "frame"))
        })
        .collect();
    frames.sort();
    frames
}

/// The head of the trace of a worm, if it is traced: where it is, and how many records follow.
fn trace_of(frame: &[u8]) -> Option<(usize, usize)> {
    let is_worm = frame.get(12..14) == Some(&[0x88, 0xB5][..]);
    let is_traced = is_worm && frame.get(15)? & 0x20 != 0 && frame[22..24] == [0x88, 0xB6];
    let at = 26 + usize::from(*frame.get(16)?);
    (is_traced && frame.len() >= at + 2).then(|| (at + 2, usize::from(frame[at])))
}

/// RFC 1071 over whole words.
fn checksum(words: &[u8]) -> u16 {
    let words = words.chunks_exact(2);
    let sum: u32 = words
        .map(|word| u32::from(word[0]) << 8 | u32::from(word[1]))
        .sum();
    let sum = (sum & 0xFFFF) + (sum >> 16);
    !((sum & 0xFFFF) + (sum >> 16)) as u16
}

/// A frame that left as the vectors have it: the records that the switch added are sound, and have this
/// time; in the vectors it is 0.
fn without_times(came: &[u8], left: &[u8], now_us: u64) -> Vec<u8> {
    let mut frame = left.to_vec();
    let (Some((_, before)), Some((at, after))) = (trace_of(came), trace_of(left)) else {
        return frame;
    };
    for number in 0..after.saturating_sub(before) {
        let record = &mut frame[at + 16 * number..][..16];
        assert_eq!(
            checksum(&record[..14]).to_be_bytes(),
            record[14..],
            "the check"
        );
        assert_eq!(record[5..8], [0; 3], "nothing stays in a queue here");
        assert_eq!(record[10..14], (now_us as u32).to_be_bytes(), "the time");
        record[10..14].fill(0);
        let check = checksum(&record[..14]);
        record[14..].copy_from_slice(&check.to_be_bytes());
    }
    frame
}

#[test]
fn switch_vectors_compiled() {
    switch_vectors(Execution::Compiled);
}

#[test]
fn switch_vectors_interpreted() {
    switch_vectors(Execution::Interpreted);
}

fn switch_vectors(execution: Execution) {
    let program = Arc::new(
        LoadedProgram::from_json(&read("p4src/compiled/wormcast.json")).expect("the program loads"),
    );
    let vectors: Value =
        serde_json::from_str(&read("wire/vectors/worm_switch.json")).expect("JSON");
    let reasons = numbered_names("p4src/shared/ids.p4", "enum bit<8> drop_reason_t {");
    let kinds = BTreeMap::from(
        [
            ("UNICAST", 0),
            ("TREE", 1),
            ("BROADCAST", 2),
            ("GROUP", 3),
            ("CONTROL", 4),
            ("GATHER", 5),
        ]
        .map(|(name, index)| (name.to_string(), index)),
    );
    let mut pipelines: BTreeMap<&str, Pipeline> = vectors["states"]
        .as_object()
        .expect("states")
        .iter()
        .map(|(name, state)| (name.as_str(), pipeline_in_state(&program, state, execution)))
        .collect();
    let list = vectors["vectors"].as_array().expect("vectors");
    let mut failures = Vec::new();
    for (index, vector) in list.iter().enumerate() {
        let name = text(vector, "name");
        let pipeline = pipelines.get_mut(text(vector, "state")).expect("a state");
        let now_us = index as u64 * 1000;
        for earlier in vector["before"].as_array().into_iter().flatten() {
            let (port, packet) = packet(earlier);
            forward(pipeline, &mut Wire::default(), port, &packet, now_us, 0);
            for counter in ["drops", "filtered", "kinds", "egress_ports"] {
                Counters { pipeline }.take(counter);
            }
        }
        let (port, packet) = packet(vector);
        let mut wire = Wire::default();
        let depth = vector["deq_qdepth"].as_u64().unwrap_or(0) as u32;
        forward(pipeline, &mut wire, port, &packet, now_us, depth);
        let mut sent: Vec<(u16, String)> = wire
            .sent
            .iter()
            .map(|(port, frame)| (port.0, hex(&without_times(&packet, frame, now_us))))
            .collect();
        sent.sort();
        let mut counters = Counters { pipeline };
        let counted = [
            ("drops", expected_cells(&vector["drops"], &reasons)),
            ("filtered", expected_cells(&vector["filtered"], &kinds)),
            ("kinds", expected_cells(&vector["kinds"], &kinds)),
        ];
        for (counter, expected) in counted {
            let found = counters.take(counter);
            if found != expected {
                failures.push(format!(
                    "{name}: {counter} {found:?} instead of {expected:?}"
                ));
            }
        }
        let passes = counters.take("egress_ports");
        let recirculated = passes.get(&RECIRCULATE_PORT).copied().unwrap_or(0);
        if recirculated != number(vector, "recirculated") {
            failures.push(format!("{name}: recirculated {recirculated} times"));
        }
        let expected = frames_of(vector);
        if sent != expected {
            failures.push(format!("{name}: {sent:?} instead of {expected:?}"));
        }
    }
    assert!(list.len() > 100, "only {} vectors", list.len());
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    println!("{} vectors", list.len());
}
