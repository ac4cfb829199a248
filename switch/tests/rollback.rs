//! Control operations that are taken back, and entries that age.

use std::fmt::Write;
use std::sync::Arc;

use proptest::prelude::*;
use wormcast_switch_jit::COMPILER;
use wormcast_switch_pipeline::LoadedProgram;
use wormcast_switch_pipeline::{
    ActionSet, Backups, CloneSession, ColourCounts, ControlError, CounterValue, EntryAction,
    Expired, GroupMember, Idle, MeterRates, Pipeline, PipelineConfig, PortId, Replica, TableEntry,
    WeightedCall,
};
use wormcast_switch_program::{ActionCall, Bits, FieldMatch};

use crate::wire;

use wire::{Wire, forward};

/// `externs.p4`, with entries that age in each table.
fn pipeline() -> Pipeline {
    let text = include_str!("programs/externs.json")
        .replace("\"support_timeout\": false", "\"support_timeout\": true");
    let program = LoadedProgram::from_json(&text).expect("the program");
    Pipeline::new(
        Arc::new(program),
        PipelineConfig {
            compiler: Some(COMPILER),
            ..PipelineConfig::default()
        },
    )
}

fn call(pipeline: &Pipeline, table: &str, action: &str, arguments: &[u64]) -> ActionCall {
    let program = pipeline.program();
    let table = program.table(table).expect("a table");
    ActionCall {
        action: program.table_action(table, action).expect("an action"),
        arguments: arguments.iter().map(|&value| value.into()).collect(),
    }
}

/// All that a control plane can read.
fn dump(pipeline: &Pipeline) -> String {
    let program = pipeline.program();
    let mut text = String::new();
    for info in program.tables() {
        let table = program.table(&info.name).expect("a table");
        writeln!(
            text,
            "{} {:?} {:?} {:?} {:?}",
            info.name,
            pipeline.default_action(table),
            pipeline.read_default_counter(table).ok(),
            pipeline.default_meter(table).ok(),
            pipeline.direct_meter_counts(table, None).ok(),
        )
        .unwrap();
        for entry in pipeline.entries(table) {
            let (key, priority) = (&entry.key, entry.priority);
            writeln!(
                text,
                "  {entry:?} {:?} {:?} {:?} {:?}",
                pipeline.read_direct_counter(table, key, priority).ok(),
                pipeline.direct_meter(table, key, priority).ok(),
                pipeline
                    .direct_meter_counts(table, Some((key, priority)))
                    .ok(),
                pipeline.idle(table, key, priority).ok(),
            )
            .unwrap();
        }
    }
    for info in program.action_profiles() {
        let profile = program.action_profile(&info.name).expect("a profile");
        writeln!(text, "{:?}", pipeline.members(profile).collect::<Vec<_>>()).unwrap();
        writeln!(text, "{:?}", pipeline.groups(profile).collect::<Vec<_>>()).unwrap();
    }
    writeln!(
        text,
        "{:?}",
        pipeline.multicast_groups().collect::<Vec<_>>()
    )
    .unwrap();
    for (id, _) in pipeline.multicast_groups() {
        writeln!(text, "{:?}", pipeline.multicast_group(id)).unwrap();
    }
    for info in program.value_sets() {
        let set = program.value_set(&info.name).expect("a value set");
        writeln!(text, "{:?}", pipeline.value_set(set)).unwrap();
    }
    writeln!(text, "{:?}", pipeline.clone_sessions().collect::<Vec<_>>()).unwrap();
    let seen = program.counter("ingress.seen").expect("a counter");
    let memory = program.register("ingress.memory").expect("a register");
    let limiter = program.meter("ingress.limiter").expect("a meter");
    writeln!(text, "{:?}", pipeline.counter_cells(seen)).unwrap();
    for index in 0..4 {
        writeln!(text, "{:?}", pipeline.read_register(memory, index)).unwrap();
        writeln!(text, "{:?}", pipeline.meter(limiter, index).ok()).unwrap();
        writeln!(text, "{:?}", pipeline.meter_counts(limiter, index).ok()).unwrap();
    }
    text
}

/// Does one of all operations; some of them are refused.
fn operate(pipeline: &mut Pipeline, kind: u8, id: u32, value: u64) -> Result<(), ControlError> {
    let program = Arc::clone(pipeline.program());
    let names = ["ingress.counted_table", "ingress.metered_table"];
    let actions = ["ingress.counted", "ingress.metered"];
    let which = (value % 2) as usize;
    let table = program.table(names[which]).expect("a table");
    let chosen = program.table("ingress.chosen_table").expect("a table");
    let profile = program
        .action_profile("ingress.choices")
        .expect("a profile");
    let key = vec![FieldMatch::Exact(u64::from(id).into())];
    let action = if value < 4 {
        actions[which]
    } else {
        "NoAction"
    };
    let entry = |action| TableEntry {
        key: key.clone(),
        priority: 0,
        action,
    };
    let plain = EntryAction::Call(call(pipeline, names[which], action, &[]));
    let choose = call(pipeline, "ingress.chosen_table", "ingress.choose", &[value]);
    let rates = (value < 6).then_some(MeterRates {
        committed_rate: value,
        committed_burst: value,
        peak_rate: value + 1,
        peak_burst: value + 1,
        ..rates_of_two()
    });
    let replicas: Vec<Replica> = (0..value as u16 % 4)
        .map(|instance| Replica {
            port: PortId(id as u16),
            instance,
        })
        .collect();
    let session = CloneSession {
        replicas: replicas.clone(),
        packet_length_bytes: value as u16,
        ..session_of_none()
    };
    let count = CounterValue {
        packets: value,
        bytes: value * 64,
    };
    let counts = ColourCounts {
        red: count,
        ..ColourCounts::default()
    };
    let one = WeightedCall {
        call: choose.clone(),
        weight: 1,
        watch_port: None,
    };
    let set = ActionSet {
        actions: vec![one; value as usize],
        ..ActionSet::default()
    };
    match kind {
        0 => pipeline.insert_entry(table, entry(plain)),
        1 => pipeline.modify_entry(table, entry(plain)),
        2 => pipeline.delete_entry(table, &key, 0),
        3 if value < 4 => pipeline.insert_entry(chosen, entry(EntryAction::Member(id))),
        3 => pipeline.insert_entry(chosen, entry(EntryAction::Group(id))),
        4 => pipeline.delete_entry(chosen, &key, 0),
        5 if value < 2 => pipeline.set_default(table, None),
        5 => {
            let call = call(pipeline, names[which], action, &[]);
            pipeline.set_default(table, Some(&call))
        }
        6 => pipeline.insert_member(profile, id, &choose),
        7 => pipeline.modify_member(profile, id, &choose),
        8 => pipeline.delete_member(profile, id),
        9 => pipeline.insert_group(profile, id, &[value as u32, id].map(GroupMember::new), 9),
        10 => pipeline.modify_group(profile, id, &[GroupMember::new(value as u32)], 9),
        11 => pipeline.delete_group(profile, id),
        12 => pipeline.insert_multicast_group(id as _, &replicas),
        13 => pipeline.modify_multicast_group(id as _, &replicas),
        14 => pipeline.delete_multicast_group(id as _),
        15 => pipeline.insert_clone_session(id as _, &session),
        16 => pipeline.modify_clone_session(id as _, &session),
        17 => pipeline.delete_clone_session(id as _),
        18 => {
            let seen = program.counter("ingress.seen").expect("a counter");
            pipeline.write_counter(seen, id as usize, count)
        }
        19 => {
            let memory = program.register("ingress.memory").expect("a register");
            pipeline.write_register(memory, id as usize, &Bits::from_u64(value << 40))
        }
        20 => {
            let limiter = program.meter("ingress.limiter").expect("a meter");
            pipeline.set_meter(limiter, id as usize, rates)
        }
        21 => pipeline.write_direct_counter(table, &key, 0, count),
        22 => pipeline.set_direct_meter(table, &key, 0, rates),
        23 => pipeline.set_idle_timeout(table, &key, 0, value * 1_000_000),
        24 => pipeline.insert_entry(chosen, entry(EntryAction::Set(set))),
        25 => pipeline.modify_entry(chosen, entry(EntryAction::Set(set))),
        26 => {
            let backups = replicas.first().map(|&first| {
                let instance = first.instance;
                let port = PortId(100);
                (first, vec![Replica { port, instance }])
            });
            let backups: Backups = backups.into_iter().collect();
            pipeline.modify_multicast_group_with(id, &replicas, &backups)
        }
        27 => {
            let of_parser = program.value_set(&program.value_sets()[0].name);
            let member = vec![FieldMatch::Exact(value.into())];
            pipeline.set_value_set(of_parser.expect("a value set"), &[member])
        }
        28 => pipeline.write_default_counter(table, count),
        29 => pipeline.set_default_meter(table, rates),
        30 => {
            let limiter = program.meter("ingress.limiter").expect("a meter");
            pipeline.set_meter_counts(limiter, id as usize, counts)
        }
        31 => pipeline.set_direct_meter_counts(table, None, counts),
        _ => pipeline.set_direct_meter_counts(table, Some((&key, 0)), counts),
    }
}

const KINDS: u8 = 33;

fn rates_of_two() -> MeterRates {
    MeterRates {
        committed_rate: 0,
        committed_burst: 0,
        peak_rate: 0,
        peak_burst: 0,
        excess_burst: None,
    }
}

fn session_of_none() -> CloneSession {
    CloneSession {
        replicas: Vec::new(),
        packet_length_bytes: 0,
        ..CloneSession::default()
    }
}

fn operations(most: usize) -> impl Strategy<Value = Vec<(u8, u32, u64)>> {
    proptest::collection::vec((0..KINDS, 1..4u32, 0..8u64), 0..most)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Whatever is done after `begin`, `rollback` brings back all there was.
    #[test]
    fn what_is_taken_back_never_was(before in operations(60), after in operations(60)) {
        let mut pipeline = pipeline();
        for (kind, id, value) in before {
            let _ = operate(&mut pipeline, kind, id, value);
        }
        let old = dump(&pipeline);
        pipeline.begin();
        for &(kind, id, value) in &after {
            let _ = operate(&mut pipeline, kind, id, value);
        }
        let new = dump(&pipeline);
        pipeline.rollback();
        prop_assert_eq!(dump(&pipeline), old);
        // All of it works as it did: the same operations have the same outcome again.
        for &(kind, id, value) in &after {
            let _ = operate(&mut pipeline, kind, id, value);
        }
        prop_assert_eq!(dump(&pipeline), new);
    }
}

#[test]
fn what_is_kept_stays() {
    let mut pipeline = pipeline();
    pipeline.begin();
    operate(&mut pipeline, 0, 1, 0).expect("an entry");
    pipeline.commit();
    let new = dump(&pipeline);
    pipeline.rollback();
    assert_eq!(dump(&pipeline), new);
}

/// A packet finds a taken back deletion, and does not find a taken back insertion.
#[test]
fn packets_see_what_was_brought_back() {
    let mut pipeline = pipeline();
    let seen = |pipeline: &mut Pipeline| {
        let mut packet = vec![0; 33];
        packet[1] = 1;
        forward(pipeline, &mut Wire::default(), 0, &packet, 0, 0);
        let table = pipeline.program().table("ingress.counted_table");
        let key = [FieldMatch::Exact(1.into())];
        let counter = pipeline.read_direct_counter(table.expect("a table"), &key, 0);
        counter.map_or(0, |counter| counter.packets)
    };
    pipeline.begin();
    operate(&mut pipeline, 0, 1, 0).expect("an entry");
    assert_eq!(seen(&mut pipeline), 1);
    pipeline.rollback();
    assert_eq!(seen(&mut pipeline), 0);
    operate(&mut pipeline, 0, 1, 0).expect("an entry");
    assert_eq!(seen(&mut pipeline), 1);
    pipeline.begin();
    operate(&mut pipeline, 2, 1, 0).expect("no entry");
    assert_eq!(seen(&mut pipeline), 0);
    pipeline.rollback();
    assert_eq!(seen(&mut pipeline), 2);
}

const MS: u64 = 1_000;
const NONE: [u64; 0] = [];

fn aged(pipeline: &mut Pipeline, ids: &[u32], timeout_ms: u64) {
    let table = pipeline.program().table("ingress.counted_table");
    for &id in ids {
        operate(pipeline, 0, id, 0).expect("an entry");
        let key = [FieldMatch::Exact(u64::from(id).into())];
        let timeout_ns = timeout_ms * 1_000_000;
        pipeline
            .set_idle_timeout(table.expect("a table"), &key, 0, timeout_ns)
            .expect("an entry");
    }
}

fn expired(pipeline: &mut Pipeline, now_us: u64, budget: usize) -> Vec<u64> {
    pipeline.advance(now_us);
    let expired = pipeline.take_expired(budget);
    let id = |expired: &Expired| match &expired.entry.key[0] {
        FieldMatch::Exact(value) => value.to_u64().expect("a small value"),
        other => panic!("{other:?}"),
    };
    expired.iter().map(id).collect()
}

#[test]
fn an_entry_is_told_once_each_timeout_without_packets() {
    let mut pipeline = pipeline();
    pipeline.advance(7 * MS);
    aged(&mut pipeline, &[1, 2], 10);
    assert_eq!(pipeline.next_expiry_us(), Some(17 * MS));
    assert_eq!(expired(&mut pipeline, 17 * MS - 1, 99), NONE);
    assert_eq!(expired(&mut pipeline, 17 * MS, 99), [1, 2]);
    assert_eq!(expired(&mut pipeline, 17 * MS, 99), NONE);
    // A packet puts off the second time for its entry.
    let mut packet = vec![0; 33];
    packet[1] = 2;
    forward(&mut pipeline, &mut Wire::default(), 0, &packet, 20 * MS, 0);
    assert_eq!(expired(&mut pipeline, 27 * MS, 99), [1]);
    let table = pipeline.program().table("ingress.counted_table");
    let idle = pipeline.idle(table.expect("a table"), &[FieldMatch::Exact(2.into())], 0);
    let age = Idle {
        timeout_ns: 10_000_000,
        since_hit_us: 7 * MS,
    };
    assert_eq!(idle, Ok(age));
    assert_eq!(expired(&mut pipeline, 30 * MS, 99), [2]);
    // One that is gone, or no longer ages, is not reported.
    operate(&mut pipeline, 2, 1, 0).expect("an entry");
    let key = [FieldMatch::Exact(2.into())];
    pipeline
        .set_idle_timeout(table.expect("a table"), &key, 0, 0)
        .expect("an entry");
    assert_eq!(expired(&mut pipeline, 900 * MS, 99), NONE);
    assert_eq!(pipeline.next_expiry_us(), None);
}

#[test]
fn a_call_looks_at_no_more_entries_than_it_may() {
    let mut pipeline = pipeline();
    let ids: Vec<u32> = (1..=100).collect();
    aged(&mut pipeline, &ids, 10);
    let mut told = Vec::new();
    for _ in 0..4 {
        let some = expired(&mut pipeline, 10 * MS, 30);
        assert!(some.len() <= 30);
        told.extend(some);
    }
    told.sort_unstable();
    assert_eq!(told, (1..=100).collect::<Vec<u64>>());
}

/// Handles of the idle entries, looked for so many places at a time.
fn idle_now(pipeline: &Pipeline, budget: usize) -> Vec<u32> {
    let table = pipeline.program().table("ingress.counted_table");
    let mut idle = Vec::new();
    let mut from = Some(0);
    while let Some(first) = from {
        let (found, next) = pipeline.idle_entries(table.expect("a table"), first, budget);
        assert!(found.len() <= budget);
        idle.extend(found.iter().map(|handle| handle.to_u32()));
        from = next;
    }
    idle
}

#[test]
fn an_entry_is_idle_until_a_packet_or_a_timeout_comes() {
    let mut pipeline = pipeline();
    aged(&mut pipeline, &[1, 2, 3], 10);
    aged(&mut pipeline, &[4], 0);
    pipeline.advance(10 * MS - 1);
    assert!(idle_now(&pipeline, 99).is_empty());
    // Whether it was reported to P4Runtime does not matter.
    assert_eq!(expired(&mut pipeline, 10 * MS, 99), [1, 2, 3]);
    assert_eq!(idle_now(&pipeline, 99), [0, 1, 2]);
    assert_eq!(idle_now(&pipeline, 1), [0, 1, 2]);
    let mut packet = vec![0; 33];
    packet[1] = 2;
    forward(&mut pipeline, &mut Wire::default(), 0, &packet, 12 * MS, 0);
    assert_eq!(idle_now(&pipeline, 99), [0, 2]);
    // A timeout begins when it is set.
    let table = pipeline.program().table("ingress.counted_table");
    let key = [FieldMatch::Exact(3.into())];
    pipeline
        .set_idle_timeout(table.expect("a table"), &key, 0, 10_000_000)
        .expect("an entry");
    assert_eq!(idle_now(&pipeline, 99), [0]);
    // The next entry with the number has another handle.
    operate(&mut pipeline, 2, 1, 0).expect("an entry");
    assert!(idle_now(&pipeline, 99).is_empty());
    aged(&mut pipeline, &[5], 1);
    pipeline.advance(22 * MS);
    assert_eq!(idle_now(&pipeline, 2), [1 << 24, 1, 2]);
}

#[test]
fn entries_age_only_where_the_program_says_so() {
    let text = include_str!("programs/externs.json");
    let program = LoadedProgram::from_json(text).expect("the program");
    let mut pipeline = Pipeline::new(
        Arc::new(program),
        PipelineConfig {
            compiler: Some(COMPILER),
            ..PipelineConfig::default()
        },
    );
    operate(&mut pipeline, 0, 1, 0).expect("an entry");
    let error = operate(&mut pipeline, 23, 1, 2).unwrap_err();
    assert_eq!(
        error.to_string(),
        "ingress.counted_table is not a valid table with idle timeouts; valid: tables that the \
         program gives support_timeout"
    );
}
