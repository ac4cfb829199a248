//! Requests of any bytes: an answer each time, and the switch goes on.

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use prost::Message;
use tonic::{Code, Request, Status};

use super::messages::{
    ADDRESSES, CHOICE, COPY_TO_CPU, DROP, FLOOD, FORWARD, FORWARD_ON, MARKS, NO_ACTION, RATES,
    RECEIVED, SIZES, SPREAD, TO_CPU, TYPES, delete, group, insert, member, meter, modify, of,
    profile_group, register, session,
};
use super::rig::{Controller, DEVICE_ID, Rig, objects};
use wormcast_switch_p4runtime::proto::p4::v1 as p4;
use wormcast_switch_p4runtime::proto::p4::v1::p4_runtime_server::P4Runtime;
use wormcast_switch_p4runtime::proto::p4::v1::{
    Entity, FieldMatch, ForwardingPipelineConfig, ReadRequest, SetForwardingPipelineConfigRequest,
    TableAction, TableEntry, Update, WriteRequest, action, entity, field_match, table_action,
};

const CASES: u32 = 300;

/// No bug of the switch is behind a status.
fn check(status: Result<(), Status>) -> Result<(), TestCaseError> {
    let Err(status) = status else { return Ok(()) };
    let code = status.code();
    let is_bug = matches!(code, Code::Internal | Code::Unavailable | Code::DataLoss)
        || (code == Code::Unknown && status.details().is_empty());
    prop_assert!(!is_bug, "{status:?}");
    Ok(())
}

fn run<S: Strategy>(
    strategy: S,
    test: impl Fn(&tokio::runtime::Runtime, &Rig, &Controller, S::Value) -> Result<(), TestCaseError>,
) {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (rig, controller) = runtime.block_on(async {
        let rig = Rig::start().await;
        let controller = rig.controller().await;
        (rig, controller)
    });
    let config = Config {
        cases: CASES,
        failure_persistence: None,
        ..Config::default()
    };
    let result =
        TestRunner::new(config).run(&strategy, |value| test(&runtime, &rig, &controller, value));
    if let Err(failure) = result {
        panic!("{failure}");
    }
}

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        4 => proptest::collection::vec(any::<u8>(), 0..3),
        2 => proptest::collection::vec(any::<u8>(), 6),
        1 => proptest::collection::vec(any::<u8>(), 0..40),
    ]
}

fn id() -> impl Strategy<Value = u32> {
    let known = [
        ADDRESSES,
        TYPES,
        SIZES,
        SPREAD,
        FORWARD,
        FLOOD,
        DROP,
        TO_CPU,
        COPY_TO_CPU,
        FORWARD_ON,
        NO_ACTION,
        RECEIVED,
        MARKS,
        RATES,
        CHOICE,
    ];
    prop_oneof![9 => proptest::sample::select(known.to_vec()), 1 => any::<u32>()]
}

fn field() -> impl Strategy<Value = FieldMatch> {
    use field_match::FieldMatchType as Kind;
    let kind = prop_oneof![
        bytes().prop_map(|value| Kind::Exact(field_match::Exact { value })),
        (bytes(), bytes())
            .prop_map(|(value, mask)| Kind::Ternary(field_match::Ternary { value, mask })),
        (bytes(), -2..60)
            .prop_map(|(value, prefix_len)| Kind::Lpm(field_match::Lpm { value, prefix_len })),
        (bytes(), bytes()).prop_map(|(low, high)| Kind::Range(field_match::Range { low, high })),
        bytes().prop_map(|value| Kind::Optional(field_match::Optional { value })),
    ];
    (0u32..5, proptest::option::weighted(0.95, kind)).prop_map(|(field_id, field_match_type)| {
        FieldMatch {
            field_id,
            field_match_type,
        }
    })
}

fn call() -> impl Strategy<Value = p4::Action> {
    let param = (0u32..3, bytes()).prop_map(|(param_id, value)| action::Param { param_id, value });
    (id(), proptest::collection::vec(param, 0..3))
        .prop_map(|(action_id, params)| p4::Action { action_id, params })
}

fn table_entry() -> impl Strategy<Value = Entity> {
    use table_action::Type;
    let kind = prop_oneof![
        6 => call().prop_map(Type::Action),
        1 => (0u32..4).prop_map(Type::ActionProfileMemberId),
        1 => (0u32..4).prop_map(Type::ActionProfileGroupId),
        1 => Just(Type::ActionProfileActionSet(p4::ActionProfileActionSet::default())),
    ];
    let action = proptest::option::of(proptest::option::weighted(0.9, kind));
    let fields = proptest::collection::vec(field(), 0..4);
    (id(), fields, action, -1..4, any::<(bool, bool)>()).prop_map(
        |(table_id, r#match, action, priority, (is_default_action, counted))| {
            of(entity::Entity::TableEntry(TableEntry {
                table_id,
                r#match,
                action: action.map(|r#type| TableAction { r#type }),
                priority,
                is_default_action,
                counter_data: counted.then_some(p4::CounterData {
                    byte_count: 1,
                    packet_count: -1,
                }),
                ..TableEntry::default()
            }))
        },
    )
}

fn any_entity() -> impl Strategy<Value = Entity> {
    let ports = || proptest::collection::vec((0u32..600, 0u32..70_000), 0..4);
    let index = || proptest::option::of(prop_oneof![-2i64..20, any::<i64>()]);
    prop_oneof![
        8 => table_entry(),
        1 => (0u32..40_000, ports()).prop_map(|(id, ports)| group(id, &ports)),
        1 => (0u32..40_000, ports(), any::<i32>()).prop_map(|(id, ports, cut)| session(id, &ports, cut)),
        1 => (index(), any::<Option<i64>>()).prop_map(|(index, packets)| super::messages::counter(index, packets)),
        1 => (index(), proptest::option::of(bytes())).prop_map(|(index, value)| register(index, value.as_deref())),
        1 => (index(), any::<Option<(i64, i64)>>()).prop_map(|(index, rates)| {
            meter(index, rates.map(|(cir, pir)| p4::MeterConfig { cir, pir, ..Default::default() }))
        }),
        1 => (0u32..4, proptest::option::of(call())).prop_map(|(id, call)| member(id, call)),
        1 => (0u32..4, proptest::collection::vec((0u32..4, any::<i32>()), 0..4))
            .prop_map(|(id, members)| profile_group(id, &members)),
    ]
}

#[test]
fn plausible_writes_and_reads() {
    let update = (any_entity(), 0..3).prop_map(|(entity, kind)| match kind {
        0 => insert(entity),
        1 => modify(entity),
        _ => delete(entity),
    });
    let updates = proptest::collection::vec(update, 1..6);
    run(updates, |runtime, rig, controller, updates: Vec<Update>| {
        let filters = updates
            .iter()
            .filter_map(|update| update.entity.clone())
            .collect();
        let write = controller.request(updates);
        let read = ReadRequest {
            device_id: DEVICE_ID,
            entities: filters,
            ..Default::default()
        };
        runtime.block_on(async {
            check(rig.server.write(Request::new(write)).await.map(|_| ()))?;
            check(rig.server.read(Request::new(read)).await.map(|_| ()))
        })
    });
}

#[test]
fn writes_of_any_bytes() {
    let bytes = proptest::collection::vec(any::<u8>(), 0..200);
    run(bytes, |runtime, rig, controller, bytes: Vec<u8>| {
        let mut updates = Vec::new();
        if let Ok(request) = WriteRequest::decode(bytes.as_slice()) {
            updates.extend(request.updates);
        }
        if let Ok(update) = Update::decode(bytes.as_slice()) {
            updates.push(update);
        }
        if let Ok(entity) = Entity::decode(bytes.as_slice()) {
            updates.push(insert(entity));
        }
        let write = controller.request(updates);
        runtime.block_on(async { check(rig.server.write(Request::new(write)).await.map(|_| ())) })
    });
}

/// The config of the tests with some bytes changed.
#[test]
fn configs_with_changed_bytes() {
    let whole = objects();
    let length = whole.encoded_len();
    let changes = proptest::collection::vec((0..length, any::<u8>()), 1..4);
    run(
        changes,
        |runtime, rig, controller, changes: Vec<(usize, u8)>| {
            let mut bytes = objects().encode_to_vec();
            for (position, byte) in changes {
                bytes[position] = byte;
            }
            let Ok(config) = ForwardingPipelineConfig::decode(bytes.as_slice()) else {
                return Ok(());
            };
            let request = SetForwardingPipelineConfigRequest {
                device_id: DEVICE_ID,
                election_id: Some(controller.election_id),
                action: 1,
                config: Some(config),
                ..Default::default()
            };
            runtime.block_on(async {
                let request = Request::new(request);
                check(
                    rig.server
                        .set_forwarding_pipeline_config(request)
                        .await
                        .map(|_| ()),
                )
            })
        },
    );
}
