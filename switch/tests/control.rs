//! The control path of the pipeline, and externs that depend on it, time or chance.

use crate::wire;

use std::path::Path;
use std::sync::Arc;

use wire::{Wire, forward};
use wormcast_switch_jit::COMPILER;
use wormcast_switch_pipeline::LoadedProgram;
use wormcast_switch_pipeline::{
    CloneSession, ControlError, CounterValue, DropCause, EntryAction, Event, GroupMember,
    MeterRates, Pipeline, PipelineConfig, PortId, Replica, TableEntry, limits,
};
use wormcast_switch_program::{ActionCall, Bits, FieldMatch};

fn pipeline(name: &str) -> Pipeline {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/programs")
        .join(name)
        .with_extension("json");
    let text = std::fs::read_to_string(&path)
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let program = LoadedProgram::from_json(&text).unwrap_or_else(|error| panic!("{error}"));
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

fn exact(value: u64) -> FieldMatch {
    FieldMatch::Exact(value.into())
}

fn entry(key: Vec<FieldMatch>, priority: i32, call: ActionCall) -> TableEntry {
    TableEntry {
        key,
        priority,
        action: EntryAction::Call(call),
    }
}

/// A packet for `externs.p4`.
fn command(operation: u8, index: u8) -> Vec<u8> {
    let mut packet = vec![0; 33];
    packet[0] = operation;
    packet[1] = index;
    packet
}

fn send(pipeline: &mut Pipeline, packet: &[u8], now_us: u64) -> Vec<u8> {
    let mut wire = Wire::default();
    forward(pipeline, &mut wire, 0, packet, now_us, 0);
    wire.sent.pop().map(|(_, frame)| frame).unwrap_or_default()
}

const RANDOM: usize = 30;
const COLOUR: usize = 31;
const MEMBER: usize = 32;

#[test]
fn entries_are_inserted_changed_read_and_removed() {
    let mut pipeline = pipeline("tables");
    let table = pipeline
        .program()
        .table("ingress.exact_table")
        .expect("a table");
    let set = call(&pipeline, "ingress.exact_table", "ingress.exact_set", &[1]);
    let double = call(
        &pipeline,
        "ingress.exact_table",
        "ingress.exact_double",
        &[2],
    );
    let first = entry(vec![exact(7)], 0, set.clone());
    pipeline.insert_entry(table, &first).expect("a new entry");
    assert!(matches!(
        pipeline.insert_entry(table, &first),
        Err(ControlError::AlreadyExists { .. })
    ));
    let changed = entry(vec![exact(7)], 0, double);
    pipeline.modify_entry(table, &changed).expect("an entry");
    assert_eq!(pipeline.entry(table, &[exact(7)], 0), Ok(changed.clone()));
    assert_eq!(pipeline.entries(table), [changed]);
    for key in 8..11 {
        let entry = entry(vec![exact(key)], 0, set.clone());
        pipeline.insert_entry(table, &entry).expect("room for four");
    }
    assert_eq!(
        pipeline.insert_entry(table, entry(vec![exact(11)], 0, set)),
        Err(ControlError::ResourceExhausted {
            what: "table ingress.exact_table".to_string(),
            limit: 4
        })
    );
    pipeline
        .delete_entry(table, &[exact(7)], 0)
        .expect("an entry");
    assert!(matches!(
        pipeline.delete_entry(table, &[exact(7)], 0),
        Err(ControlError::NotFound { .. })
    ));
    assert_eq!(pipeline.entries(table).len(), 3);
}

#[test]
fn wrong_arguments_are_named_with_what_is_valid() {
    let mut pipeline = pipeline("tables");
    let program = Arc::clone(pipeline.program());
    let exact_table = program.table("ingress.exact_table").expect("a table");
    let lpm_table = program.table("ingress.lpm_table").expect("a table");
    let ternary = program.table("ingress.ternary_table").expect("a table");
    let set = call(&pipeline, "ingress.exact_table", "ingress.exact_set", &[1]);
    let lpm = call(&pipeline, "ingress.lpm_table", "ingress.lpm_set", &[1]);
    let mut message = |table, entry: TableEntry| {
        let error = pipeline.insert_entry(table, &entry);
        error.expect_err("an invalid entry").to_string()
    };
    assert_eq!(
        message(exact_table, entry(vec![exact(256)], 0, set.clone())),
        "0x100 is not a valid match field hdr.key.exact_key of table ingress.exact_table; \
         valid: values of at most 8 bits"
    );
    assert_eq!(
        message(exact_table, entry(vec![], 0, set.clone())),
        "0 is not a valid number of match fields of table ingress.exact_table; valid: 1"
    );
    assert_eq!(
        message(exact_table, entry(vec![exact(1)], 3, set.clone())),
        "3 is not a valid priority in table ingress.exact_table; valid: 0: the table has no \
         ternary, range or optional field"
    );
    assert_eq!(
        message(exact_table, entry(vec![exact(1)], 0, lpm.clone())),
        "ingress.lpm_set is not a valid action of table ingress.exact_table; valid: \
         ingress.exact_set, ingress.exact_double, NoAction"
    );
    let wide = ActionCall {
        arguments: vec![Bits::from_u64(0x1ff)],
        ..set.clone()
    };
    assert_eq!(
        message(exact_table, entry(vec![exact(1)], 0, wide)),
        "0x1ff is not a valid argument value of action ingress.exact_set; valid: values of at \
         most 8 bits"
    );
    let prefix = FieldMatch::Lpm {
        value: 0x0a00_0001.into(),
        prefix_len: 8,
    };
    assert_eq!(
        message(lpm_table, entry(vec![prefix, exact(1)], 0, lpm)),
        "0xa000001/8 is not a valid match field hdr.key.lpm_key of table ingress.lpm_table; \
         valid: values whose bits past the prefix are 0"
    );
    assert_eq!(
        message(ternary, entry(vec![FieldMatch::Any], 1, set)),
        "fixed by the program: the entries of table ingress.ternary_table"
    );
}

#[test]
fn default_actions_are_set_and_reset() {
    let mut pipeline = pipeline("tables");
    let table = pipeline
        .program()
        .table("ingress.exact_table")
        .expect("a table");
    let initial = pipeline.default_action(table).expect("a default");
    assert_eq!(initial.arguments, [Bits::from_u64(0xe0)]);
    let packet = {
        let mut packet = vec![0; 27];
        packet[0] = 99;
        packet
    };
    assert_eq!(send(&mut pipeline, &packet, 0)[0], 0xe0);
    let other = call(
        &pipeline,
        "ingress.exact_table",
        "ingress.exact_double",
        &[0x21],
    );
    pipeline
        .set_default(table, Some(&other))
        .expect("a default");
    assert_eq!(send(&mut pipeline, &packet, 0)[0], 0x42);
    pipeline.set_default(table, None).expect("a default");
    assert_eq!(pipeline.default_action(table), Some(initial));
    assert_eq!(send(&mut pipeline, &packet, 0)[0], 0xe0);
}

#[test]
fn higher_priority_wins() {
    let text = include_str!("programs/tables.json").replace("\"entries\"", "\"entries_left_out\"");
    let program = LoadedProgram::from_json(&text).expect("the program without constant entries");
    let mut pipeline = Pipeline::new(
        Arc::new(program),
        PipelineConfig {
            compiler: Some(COMPILER),
            ..PipelineConfig::default()
        },
    );
    let table = pipeline
        .program()
        .table("ingress.ternary_table")
        .expect("a table");
    for (priority, mask, value) in [(10, 0xff00, 1), (20, 0xf000, 2), (5, 0xffff, 3)] {
        let key = FieldMatch::Ternary {
            value: (0x1234 & mask).into(),
            mask: mask.into(),
        };
        let set = call(
            &pipeline,
            "ingress.ternary_table",
            "ingress.ternary_set",
            &[value],
        );
        pipeline
            .insert_entry(table, entry(vec![key], priority, set))
            .expect("a valid entry");
    }
    let mut packet = vec![0; 27];
    packet[5..7].copy_from_slice(&[0x12, 0x34]);
    assert_eq!(send(&mut pipeline, &packet, 0)[2], 2);
    let key = FieldMatch::Ternary {
        value: 0x1000.into(),
        mask: 0xf000.into(),
    };
    pipeline.delete_entry(table, &[key], 20).expect("an entry");
    assert_eq!(send(&mut pipeline, &packet, 0)[2], 1);
}

#[test]
fn counters_count_packets_and_bytes() {
    let mut pipeline = pipeline("externs");
    let program = Arc::clone(pipeline.program());
    let seen = program.counter("ingress.seen").expect("a counter");
    let table = program.table("ingress.counted_table").expect("a table");
    let counted = call(&pipeline, "ingress.counted_table", "ingress.counted", &[]);
    pipeline
        .insert_entry(table, entry(vec![exact(2)], 0, counted))
        .expect("an entry");
    for _ in 0..3 {
        send(&mut pipeline, &command(0, 2), 0);
    }
    let expected = CounterValue {
        packets: 3,
        bytes: 99,
    };
    assert_eq!(pipeline.read_counter(seen, 2), Ok(expected));
    assert_eq!(
        pipeline.read_direct_counter(table, &[exact(2)], 0),
        Ok(expected)
    );
    assert!(matches!(
        pipeline.read_counter(seen, 4),
        Err(ControlError::InvalidArgument { .. })
    ));
    send(&mut pipeline, &command(0, 200), 0);
    assert_eq!(pipeline.statistics().event(Event::CellIndexOutOfBounds), 1);
    pipeline
        .write_counter(seen, 2, CounterValue::default())
        .expect("a cell");
    assert_eq!(pipeline.read_counter(seen, 2), Ok(CounterValue::default()));
}

#[test]
fn registers_are_shared_with_the_data_plane() {
    let mut pipeline = pipeline("externs");
    let memory = pipeline
        .program()
        .register("ingress.memory")
        .expect("a register");
    let value = Bits::from_bytes(&[0xab; 12]);
    pipeline.write_register(memory, 1, &value).expect("a cell");
    assert_eq!(send(&mut pipeline, &command(2, 1), 0)[2..14], [0xab; 12]);
    let mut packet = command(1, 3);
    packet[13] = 9;
    send(&mut pipeline, &packet, 0);
    assert_eq!(pipeline.read_register(memory, 3), Ok(Bits::from_u64(9)));
    assert!(pipeline.write_register(memory, 0, &Bits::ones(97)).is_err());
}

#[test]
fn meters_colour_packets() {
    let mut pipeline = pipeline("externs");
    let limiter = pipeline
        .program()
        .meter("ingress.limiter")
        .expect("a meter");
    let rates = MeterRates {
        committed_rate: 1,
        committed_burst: 1,
        peak_rate: 1,
        peak_burst: 2,
        excess_burst: None,
    };
    assert_eq!(send(&mut pipeline, &command(5, 1), 0)[COLOUR], 0);
    pipeline
        .set_meter(limiter, 1, Some(rates))
        .expect("a meter");
    let colours: Vec<u8> = (0..3)
        .map(|_| send(&mut pipeline, &command(5, 1), 10)[COLOUR])
        .collect();
    assert_eq!(colours, [0, 1, 2]);
    assert_eq!(send(&mut pipeline, &command(5, 1), 1_000_010)[COLOUR], 0);

    let program = Arc::clone(pipeline.program());
    let table = program.table("ingress.metered_table").expect("a table");
    let metered = call(&pipeline, "ingress.metered_table", "ingress.metered", &[]);
    let key = [exact(3)];
    pipeline
        .insert_entry(table, entry(key.to_vec(), 0, metered))
        .expect("an entry");
    let rates = MeterRates {
        committed_rate: 33,
        committed_burst: 33,
        peak_rate: 33,
        peak_burst: 33,
        excess_burst: None,
    };
    pipeline
        .set_direct_meter(table, &key, 0, Some(rates))
        .expect("a meter");
    let colours: Vec<u8> = (0..2)
        .map(|_| send(&mut pipeline, &command(7, 3), 10)[COLOUR])
        .collect();
    assert_eq!(colours, [0, 2]);
}

#[test]
fn random_numbers_stay_in_range_and_follow_the_seed() {
    let draw = || {
        let mut pipeline = pipeline("externs");
        (0..200)
            .map(|_| send(&mut pipeline, &command(4, 0), 0)[RANDOM])
            .collect::<Vec<u8>>()
    };
    let numbers = draw();
    let mut seen = numbers.clone();
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(seen, [10, 11, 12, 13]);
    assert_eq!(numbers, draw());
}

#[test]
fn digests_reach_the_sink() {
    let mut pipeline = pipeline("externs");
    let mut wire = Wire::default();
    let mut packet = command(6, 3);
    packet[2..14].fill(0x5a);
    forward(&mut pipeline, &mut wire, 0, &packet, 0, 0);
    assert_eq!(wire.digests.len(), 1);
    let (digest, fields) = &wire.digests[0];
    let info = &pipeline.program().digests()[digest.index()];
    assert_eq!(
        (info.name.as_str(), info.fields_bits.as_slice()),
        ("digest_t", &[8, 96][..])
    );
    assert_eq!(fields, &[Bits::from_u64(3), Bits::from_bytes(&[0x5a; 12])]);
    assert_eq!(pipeline.statistics().event(Event::LogMessage), 1);
}

#[test]
fn a_failed_assertion_drops_the_packet() {
    let mut pipeline = pipeline("externs");
    assert!(send(&mut pipeline, &command(7, 9), 0).is_empty());
    assert_eq!(pipeline.statistics().dropped(DropCause::AssertionFailed), 1);
}

#[test]
fn selectors_choose_among_members_by_hash() {
    let mut pipeline = pipeline("externs");
    let program = Arc::clone(pipeline.program());
    let profile = program
        .action_profile("ingress.choices")
        .expect("a profile");
    let table = program.table("ingress.chosen_table").expect("a table");
    for member in 1..=3u32 {
        let choose = call(
            &pipeline,
            "ingress.chosen_table",
            "ingress.choose",
            &[u64::from(member) + 40],
        );
        pipeline
            .insert_member(profile, member, &choose)
            .expect("a member");
    }
    pipeline
        .insert_group(profile, 1, &[1, 2, 3].map(GroupMember::new), 0)
        .expect("a group");
    let grouped = TableEntry {
        key: vec![exact(1)],
        priority: 0,
        action: EntryAction::Group(1),
    };
    let single = TableEntry {
        key: vec![exact(2)],
        priority: 0,
        action: EntryAction::Member(2),
    };
    pipeline.insert_entry(table, &grouped).expect("an entry");
    pipeline.insert_entry(table, &single).expect("an entry");
    assert_eq!(send(&mut pipeline, &command(10, 2), 0)[MEMBER], 42);
    let mut chosen: Vec<u8> = (0..60)
        .map(|value| {
            let mut packet = command(10, 1);
            packet[13] = value;
            let first = send(&mut pipeline, &packet, 0)[MEMBER];
            assert_eq!(first, send(&mut pipeline, &packet, 1)[MEMBER]);
            first
        })
        .collect();
    chosen.sort_unstable();
    chosen.dedup();
    assert_eq!(chosen, [41, 42, 43]);
    assert!(pipeline.delete_member(profile, 2).is_err());
    assert!(pipeline.delete_group(profile, 1).is_err());
    pipeline.modify_group(profile, 1, &[], 0).expect("a group");
    assert_eq!(send(&mut pipeline, &command(10, 1), 0)[MEMBER], 0);
    assert_eq!(pipeline.statistics().event(Event::EmptyGroup), 1);
}

#[test]
fn value_sets_steer_the_parser() {
    let mut pipeline = pipeline("externs");
    let set = pipeline.program().value_sets()[0].name.clone();
    let set = pipeline.program().value_set(&set).expect("a value set");
    let mut packet = command(0x77, 0);
    packet.extend_from_slice(&[1, 2]);
    assert_eq!(send(&mut pipeline, &packet, 0)[MEMBER], 0);
    pipeline
        .set_value_set(
            set,
            &[vec![FieldMatch::Ternary {
                value: 0x70.into(),
                mask: 0xf0.into(),
            }]],
        )
        .expect("a member");
    assert_eq!(send(&mut pipeline, &packet, 0)[MEMBER], 0xff);
    let too_wide = [vec![FieldMatch::Exact(Bits::from_u64(0x100))]];
    assert!(pipeline.set_value_set(set, &too_wide).is_err());
}

#[test]
fn groups_and_sessions_are_checked() {
    let mut pipeline = pipeline("copies");
    let replica = |port, instance| Replica {
        port: PortId(port),
        instance,
    };
    assert!(pipeline.insert_multicast_group(0, &[]).is_err());
    assert!(pipeline.insert_multicast_group(0x1_0000, &[]).is_err());
    let twice = [replica(1, 1), replica(1, 1)];
    assert!(pipeline.insert_multicast_group(1, &twice).is_err());
    let many: Vec<Replica> = (0..=limits::REPLICAS_MAX as u16)
        .map(|index| replica(1, index))
        .collect();
    assert!(matches!(
        pipeline.insert_multicast_group(1, &many),
        Err(ControlError::ResourceExhausted { .. })
    ));
    pipeline
        .insert_multicast_group(1, &twice[..1])
        .expect("a group");
    assert!(matches!(
        pipeline.insert_multicast_group(1, &[]),
        Err(ControlError::AlreadyExists { .. })
    ));
    pipeline.modify_multicast_group(1, &[]).expect("a group");
    pipeline.delete_multicast_group(1).expect("a group");
    assert!(matches!(
        pipeline.delete_multicast_group(1),
        Err(ControlError::NotFound { .. })
    ));
    let session = CloneSession {
        replicas: vec![replica(3, 1)],
        packet_length_bytes: 20,
        ..CloneSession::default()
    };
    pipeline
        .insert_clone_session(9, &session)
        .expect("a session");
    assert_eq!(
        pipeline.clone_sessions().collect::<Vec<_>>(),
        [(9, &session)]
    );
    pipeline.delete_clone_session(9).expect("a session");
}

#[test]
fn a_session_cuts_its_clones() {
    let mut pipeline = pipeline("copies");
    let session = CloneSession {
        replicas: vec![Replica {
            port: PortId(6),
            instance: 2,
        }],
        packet_length_bytes: 20,
        ..CloneSession::default()
    };
    pipeline
        .insert_clone_session(5, &session)
        .expect("a session");
    let mut wire = Wire::default();
    let mut packet = vec![2, 3];
    packet.resize(100, 0);
    forward(&mut pipeline, &mut wire, 0, &packet, 0, 0);
    let lengths: Vec<(u16, usize)> = wire
        .sent
        .iter()
        .map(|(port, frame)| (port.0, frame.len()))
        .collect();
    assert_eq!(lengths, [(6, 20), (3, 100)]);
}

#[test]
fn a_full_traffic_manager_is_counted() {
    let mut pipeline = pipeline("copies");
    let mut wire = Wire {
        capacity: Some(0),
        ..Wire::default()
    };
    forward(
        &mut pipeline,
        &mut wire,
        0,
        &[0, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
        0,
        0,
    );
    assert_eq!(pipeline.statistics().dropped(DropCause::QueueFull), 1);
    let long = vec![0; limits::PACKET_BYTES_MAX + 1];
    forward(&mut pipeline, &mut wire, 0, &long, 0, 0);
    assert_eq!(pipeline.statistics().dropped(DropCause::TooLong), 1);
}
