//! The compiled data plane of this repository against the switch vectors of the protocol
//! (`protocol/vectors/README.md`).

mod hexadecimal;
mod wire;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hexadecimal::hex;
use serde_json::Value;
use wire::{Wire, forward};
use wormcast_switch::pipeline::{
    ActionCall, Bits, CounterValue, EntryAction, FieldMatch, Pipeline, PipelineConfig, PortId,
    Replica, TableEntry,
};
use wormcast_switch::program::{MatchKind, Program, TableId};

const CPU_PORT: u16 = 510;
const RECIRCULATE_PORT: usize = 254;

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn read(path: &str) -> String {
    let path = repository().join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn bytes(text: &str) -> Vec<u8> {
    (0..text.len() / 2)
        .map(|index| u8::from_str_radix(&text[index * 2..index * 2 + 2], 16).expect("hexadecimal"))
        .collect()
}

fn text<'v>(value: &'v Value, member: &str) -> &'v str {
    value[member]
        .as_str()
        .unwrap_or_else(|| panic!("{member} of {value}"))
}

fn number(value: &Value, member: &str) -> u64 {
    value[member]
        .as_u64()
        .unwrap_or_else(|| panic!("{member} of {value}"))
}

/// A number, or hexadecimal text where it does not fit.
fn bits(value: &Value) -> Bits {
    match value {
        Value::Number(number) => Bits::from_u64(number.as_u64().expect("an unsigned number")),
        Value::String(text) => {
            let digits = text.trim_start_matches("0x");
            let even = format!("{}{digits}", if digits.len() % 2 == 0 { "" } else { "0" });
            Bits::from_bytes(&bytes(&even))
        }
        other => panic!("{other} is not a number"),
    }
}

fn call(program: &Program, table: TableId, entry: &Value) -> ActionCall {
    let action = program
        .table_action(table, text(entry, "action"))
        .expect("an action of the table");
    let parameters = &program.actions()[action.index()].parameters;
    ActionCall {
        action,
        arguments: parameters
            .iter()
            .map(|parameter| bits(&entry["parameters"][&parameter.name]))
            .collect(),
    }
}

fn pipeline_in_state(program: &Arc<Program>, state: &Value) -> Pipeline {
    let mut pipeline = Pipeline::new(Arc::clone(program), PipelineConfig::default());
    for group in state["multicast_groups"].as_array().expect("groups") {
        let replicas: Vec<Replica> = group["replicas"]
            .as_array()
            .expect("replicas")
            .iter()
            .map(|replica| Replica {
                port: PortId(number(replica, "port") as u16),
                instance: number(replica, "instance") as u16,
            })
            .collect();
        pipeline
            .insert_multicast_group(number(group, "id") as u32, &replicas)
            .expect("a valid group");
    }
    for entry in state["tables"].as_array().expect("tables") {
        let table = program.table(text(entry, "table")).expect("a table");
        let key = program.tables()[table.index()]
            .key
            .iter()
            .map(|field| {
                let value = &entry["key"][&field.name];
                match field.kind {
                    MatchKind::Exact => FieldMatch::Exact(bits(value)),
                    MatchKind::Ternary => FieldMatch::Ternary {
                        value: bits(&value["value"]),
                        mask: bits(&value["mask"]),
                    },
                    other => panic!("no vectors have {other} keys"),
                }
            })
            .collect();
        let entry = TableEntry {
            key,
            priority: entry["priority"].as_i64().unwrap_or(0) as i32,
            action: EntryAction::Call(call(program, table, entry)),
        };
        pipeline.insert_entry(table, &entry).expect("a valid entry");
    }
    for entry in state["defaults"].as_array().expect("defaults") {
        let table = program.table(text(entry, "table")).expect("a table");
        let call = call(program, table, entry);
        pipeline.set_default(table, Some(&call)).expect("a default");
    }
    pipeline
}

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
        Program::from_json(&read("p4src/compiled/wormcast.json")).expect("the program loads"),
    );
    let vectors: Value =
        serde_json::from_str(&read("protocol/vectors/worm_switch.json")).expect("JSON");
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
        let port = number(vector, "ingress_port") as u16;
        let mut packet = Vec::new();
        if port == CPU_PORT {
            let egress_port = number(&vector["packet_out"], "egress_port") as u16;
            packet.extend_from_slice(&(egress_port << 7).to_be_bytes());
        }
        packet.extend(bytes(text(vector, "frame")));
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
