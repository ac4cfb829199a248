//! The compiled data plane of this repository and the states of the switch vectors
//! (`wire/vectors/README.md`).

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;
use wormcast_switch_jit::compiler_of;
use wormcast_switch_pipeline::LoadedProgram;
use wormcast_switch_pipeline::{
    EntryAction, Execution, MeterRates, Pipeline, PipelineConfig, PortId, Replica, TableEntry,
};
use wormcast_switch_program::{ActionCall, Bits, FieldMatch};
use wormcast_switch_program::{MatchKind, Program, TableId};

/// Port that leads to the controller, in the vectors.
pub const CPU_PORT: u16 = 510;

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

pub fn read(path: &str) -> String {
    let path = repository().join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

pub fn bytes(text: &str) -> Vec<u8> {
    (0..text.len() / 2)
        .map(|index| u8::from_str_radix(&text[index * 2..index * 2 + 2], 16).expect("hexadecimal"))
        .collect()
}

pub fn text<'v>(value: &'v Value, member: &str) -> &'v str {
    value[member]
        .as_str()
        .unwrap_or_else(|| panic!("{member} of {value}"))
}

pub fn number(value: &Value, member: &str) -> u64 {
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

pub fn pipeline_in_state(
    program: &Arc<LoadedProgram>,
    state: &Value,
    execution: Execution,
) -> Pipeline {
    let mut pipeline = Pipeline::new(
        Arc::clone(program),
        PipelineConfig {
            compiler: compiler_of(execution),
            ..PipelineConfig::default()
        },
    );
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
    for cell in state["meters"].as_array().into_iter().flatten() {
        let meter = program.meter(text(cell, "meter")).expect("a meter");
        let (rate, burst) = (number(cell, "rate_bytes"), number(cell, "burst_bytes"));
        let rates = MeterRates {
            committed_rate: rate,
            committed_burst: burst,
            peak_rate: rate,
            peak_burst: burst,
            excess_burst: None,
        };
        pipeline
            .set_meter(meter, number(cell, "index") as usize, Some(rates))
            .expect("a cell");
    }
    pipeline
}

/// Port and frame that a vector sends in; from the controller with a `packet_out` header.
pub fn packet(vector: &Value) -> (u16, Vec<u8>) {
    let port = number(vector, "ingress_port") as u16;
    let mut packet = Vec::new();
    if port == CPU_PORT {
        let egress_port = number(&vector["packet_out"], "egress_port") as u16;
        packet.extend_from_slice(&(egress_port << 7).to_be_bytes());
    }
    packet.extend(bytes(text(vector, "frame")));
    (port, packet)
}
