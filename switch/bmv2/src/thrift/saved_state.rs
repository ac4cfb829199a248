//! The state of a pipeline as text: what `serialize_state` gives and `--restore-state`
//! takes. The format is this switch's own, not BMv2's.
//!
//! Values are hexadecimal text, actions and objects go by name. One-shot action sets, idle
//! timeouts and the counts of meters are not kept.

use std::sync::Arc;

use md5::{Digest, Md5};
use serde_json::{Map, Value as Json, json};

use super::arguments::Arguments;
use super::context::Context;
use super::failure::{Failure, Outcome};
use super::state_entries::{Reading, action_json, bits_json, key_json};
use super::wire::Value;
use wormcast_switch_pipeline::{
    CloneSession, CounterValue, EntryAction, GroupMember, MeterRates, Pipeline, PortId, Replica,
    TableEntry,
};
use wormcast_switch_program::Program;

/// What the text begins with, so that another format is told apart.
const FORMAT: &str = "wormcast-switch state 1";

/// `bm_serialize_state`.
pub fn serialize(context: &mut Context<'_>, _: &Arguments) -> Outcome {
    Ok(Some(Value::text(&save(context.pipeline()?))))
}

fn digest(program: &Program) -> String {
    let digest = Md5::digest(program.text());
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The state of a pipeline.
pub fn save(pipeline: &Pipeline) -> String {
    let program = Arc::clone(pipeline.program());
    let mut tables = Map::new();
    for info in program.tables() {
        let Some(id) = program.table(&info.name) else {
            continue;
        };
        let entries = pipeline.entries_by_number(id).map(|(_, entry)| {
            let counter = pipeline.read_direct_counter(id, &entry.key, entry.priority);
            let meter = pipeline.direct_meter(id, &entry.key, entry.priority);
            json!({
                "key": key_json(&entry.key),
                "priority": entry.priority,
                "action": entry_action(&program, &entry.action),
                "counter": counter.ok().map(counter_json),
                "meter": meter.ok().flatten().map(meter_json),
            })
        });
        let entries: Vec<Json> = entries.collect();
        let default = pipeline.default_action(id);
        let default = default.map(|call| action_json(&program, &call));
        tables.insert(
            info.name.clone(),
            json!({ "entries": entries, "default": default }),
        );
    }
    let mut profiles = Map::new();
    for info in program.action_profiles() {
        let Some(id) = program.action_profile(&info.name) else {
            continue;
        };
        let members = pipeline.members(id);
        let members =
            members.map(|(id, call)| json!({ "id": id, "action": action_json(&program, call) }));
        let members: Vec<Json> = members.collect();
        let groups = pipeline.groups(id).map(|(id, members, max_size)| {
            let members = members.iter().map(|member| {
                let port = member.watch_port.map(|port| port.0);
                json!({ "id": member.member, "weight": member.weight, "watch_port": port })
            });
            let members: Vec<Json> = members.collect();
            json!({ "id": id, "members": members, "max_size": max_size })
        });
        let groups: Vec<Json> = groups.collect();
        profiles.insert(
            info.name.clone(),
            json!({ "members": members, "groups": groups }),
        );
    }
    let groups = pipeline.multicast_groups();
    let groups: Vec<Json> = groups
        .map(|(id, replicas)| json!({ "id": id, "replicas": replicas_json(replicas) }))
        .collect();
    let sessions = pipeline.clone_sessions().map(|(id, session)| {
        json!({
            "id": id,
            "replicas": replicas_json(&session.replicas),
            "group": session.group,
            "class_of_service": session.class_of_service,
            "packet_length_bytes": session.packet_length_bytes,
        })
    });
    let sessions: Vec<Json> = sessions.collect();
    json!({
        "format": FORMAT,
        "program_md5": digest(&program),
        "action_profiles": profiles,
        "tables": tables,
        "multicast_groups": groups,
        "clone_sessions": sessions,
        "registers": registers(pipeline, &program),
        "counters": counters(pipeline, &program),
        "meters": meters(pipeline, &program),
    })
    .to_string()
}

fn entry_action(program: &Program, action: &EntryAction) -> Json {
    match action {
        EntryAction::Call(call) => json!({ "call": action_json(program, call) }),
        EntryAction::Member(id) => json!({ "member": id }),
        EntryAction::Group(id) => json!({ "group": id }),
        EntryAction::Set(_) => json!({ "set": null }),
    }
}

fn replicas_json(replicas: &[Replica]) -> Json {
    let pairs = replicas.iter();
    pairs
        .map(|replica| json!([replica.port.0, replica.instance]))
        .collect()
}

fn counter_json(value: CounterValue) -> Json {
    json!([value.packets, value.bytes])
}

fn meter_json(rates: MeterRates) -> Json {
    json!([
        rates.committed_rate,
        rates.committed_burst,
        rates.peak_rate,
        rates.peak_burst,
        rates.excess_burst
    ])
}

fn registers(pipeline: &Pipeline, program: &Program) -> Map<String, Json> {
    let mut all = Map::new();
    for info in program.registers() {
        let Some(id) = program.register(&info.name) else {
            continue;
        };
        let cells = (0..info.size).map(|index| pipeline.read_register(id, index));
        let cells = cells.map(|cell| cell.map_or(Json::Null, |bits| bits_json(&bits)));
        all.insert(info.name.clone(), cells.collect());
    }
    all
}

fn counters(pipeline: &Pipeline, program: &Program) -> Map<String, Json> {
    let mut all = Map::new();
    for info in program
        .counters()
        .iter()
        .filter(|info| info.table.is_none())
    {
        let Some(id) = program.counter(&info.name) else {
            continue;
        };
        let cells = pipeline.counter_cells(id).iter();
        all.insert(
            info.name.clone(),
            cells.map(|cell| counter_json(*cell)).collect(),
        );
    }
    all
}

fn meters(pipeline: &Pipeline, program: &Program) -> Map<String, Json> {
    let mut all = Map::new();
    for info in program.meters().iter().filter(|info| info.table.is_none()) {
        let Some(id) = program.meter(&info.name) else {
            continue;
        };
        let cells = (0..info.size).map(|index| pipeline.meter(id, index).ok().flatten());
        let cells = cells.map(|rates| rates.map_or(Json::Null, meter_json));
        all.insert(info.name.clone(), cells.collect());
    }
    all
}

/// Brings a state back into a pipeline that has its initial one.
///
/// # Errors
/// Text of another format, a state of another program, or one that the program refuses;
/// says what. The pipeline is then of no use.
pub fn restore(pipeline: &mut Pipeline, text: &str) -> Result<(), String> {
    let state: Json = serde_json::from_str(text)
        .map_err(|error| format!("not a state that serialize_state has saved: {error}"))?;
    if state["format"] != FORMAT {
        return Err(format!(
            "not a state of this switch: \"format\" is {}; valid: \"{FORMAT}\" (BMv2's own \
             format is another)",
            state["format"]
        ));
    }
    let program = Arc::clone(pipeline.program());
    if state["program_md5"] != digest(&program).as_str() {
        return Err("the state of another program".to_owned());
    }
    put_back(pipeline, &Reading { program: &program }, &state).map_err(|failure| match failure {
        Failure::Declared { why, .. } | Failure::Application { why, .. } => why,
    })
}

fn put_back(pipeline: &mut Pipeline, read: &Reading<'_>, state: &Json) -> Result<(), Failure> {
    let program = read.program;
    for (name, profile) in read.object(&state["action_profiles"])? {
        let id = program.action_profile(name).ok_or_else(|| missing(name))?;
        for member in read.list(&profile["members"])? {
            let call = read.profile_call(id, &member["action"])?;
            pipeline.insert_member(id, read.number(&member["id"])?, &call)?;
        }
        for group in read.list(&profile["groups"])? {
            let mut members = Vec::new();
            for member in read.list(&group["members"])? {
                members.push(GroupMember {
                    member: read.number(&member["id"])?,
                    weight: read.number(&member["weight"])?,
                    watch_port: read.option(&member["watch_port"])?.map(PortId),
                });
            }
            let max_size = read.number(&group["max_size"])?;
            pipeline.insert_group(id, read.number(&group["id"])?, &members, max_size)?;
        }
    }
    for group in read.list(&state["multicast_groups"])? {
        let replicas = read.replicas(&group["replicas"])?;
        pipeline.insert_multicast_group(read.number(&group["id"])?, &replicas)?;
    }
    for session in read.list(&state["clone_sessions"])? {
        let described = CloneSession {
            replicas: read.replicas(&session["replicas"])?,
            group: read.option(&session["group"])?,
            class_of_service: read.number(&session["class_of_service"])?,
            packet_length_bytes: read.number(&session["packet_length_bytes"])?,
            ..CloneSession::default()
        };
        pipeline.insert_clone_session(read.number(&session["id"])?, &described)?;
    }
    for (name, table) in read.object(&state["tables"])? {
        let id = program.table(name).ok_or_else(|| missing(name))?;
        let info = &program.tables()[id.index()];
        for entry in read.list(&table["entries"])? {
            let key = read.key(&entry["key"])?;
            let priority = read.number(&entry["priority"])?;
            if !info.const_entries {
                let action = read.entry_action(id, &entry["action"])?;
                let entry = TableEntry {
                    key: key.clone(),
                    priority,
                    action,
                };
                // An entry that the program begins with is there already.
                if pipeline.handle(id, &key, priority).is_ok() {
                    pipeline.modify_entry(id, entry)?;
                } else {
                    pipeline.insert_entry(id, entry)?;
                }
            }
            if let [packets, bytes] = read.counts(&entry["counter"])?[..] {
                let value = CounterValue { packets, bytes };
                pipeline.write_direct_counter(id, &key, priority, value)?;
            }
            if let Some(rates) = read.rates(&entry["meter"])? {
                pipeline.set_direct_meter(id, &key, priority, Some(rates))?;
            }
        }
        if !info.const_default && !table["default"].is_null() {
            let call = read.table_call(id, &table["default"])?;
            pipeline.set_default(id, Some(&call))?;
        }
    }
    for (name, cells) in read.object(&state["registers"])? {
        let id = program.register(name).ok_or_else(|| missing(name))?;
        for (index, cell) in read.list(cells)?.iter().enumerate() {
            pipeline.write_register(id, index, &read.bits(cell)?)?;
        }
    }
    for (name, cells) in read.object(&state["counters"])? {
        let id = program.counter(name).ok_or_else(|| missing(name))?;
        for (index, cell) in read.list(cells)?.iter().enumerate() {
            if let [packets, bytes] = read.counts(cell)?[..] {
                pipeline.write_counter(id, index, CounterValue { packets, bytes })?;
            }
        }
    }
    for (name, cells) in read.object(&state["meters"])? {
        let id = program.meter(name).ok_or_else(|| missing(name))?;
        for (index, cell) in read.list(cells)?.iter().enumerate() {
            pipeline.set_meter(id, index, read.rates(cell)?)?;
        }
    }
    Ok(())
}

fn missing(name: &str) -> Failure {
    Failure::internal(format!("the program has no {name:?}"))
}
