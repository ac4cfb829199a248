//! The compiled data plane of this repository against the switch vectors of the protocol
//! (`wire/vectors/README.md`).

mod hexadecimal;
mod wire;
mod worm_state;

use std::collections::BTreeMap;
use std::sync::Arc;

use hexadecimal::hex;
use serde_json::Value;
use wire::{Wire, forward};
use worm_state::{number, packet, pipeline_in_state, read, text};
use wormcast_switch_pipeline::LoadedProgram;
use wormcast_switch_pipeline::{CounterValue, Pipeline};

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

#[test]
fn switch_vectors() {
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
        ]
        .map(|(name, index)| (name.to_string(), index)),
    );
    let mut pipelines: BTreeMap<&str, Pipeline> = vectors["states"]
        .as_object()
        .expect("states")
        .iter()
        .map(|(name, state)| (name.as_str(), pipeline_in_state(&program, state)))
        .collect();
    let list = vectors["vectors"].as_array().expect("vectors");
    let mut failures = Vec::new();
    for (index, vector) in list.iter().enumerate() {
        let name = text(vector, "name");
        let pipeline = pipelines.get_mut(text(vector, "state")).expect("a state");
        let (port, packet) = packet(vector);
        let now_us = index as u64 * 1000;
        let mut wire = Wire::default();
        let depth = vector["deq_qdepth"].as_u64().unwrap_or(0) as u32;
        forward(pipeline, &mut wire, port, &packet, now_us, depth);
        let mut sent: Vec<(u16, String)> = wire
            .sent
            .iter()
            .map(|(port, frame)| (port.0, hex(frame)))
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
