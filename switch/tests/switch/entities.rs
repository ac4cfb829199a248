//! What is written is read again.

use super::messages::{
    ADDRESSES, COPY_TO_CPU, DROP, FLOOD, FORWARD, FORWARD_ON, SIZES, SPREAD, TYPES, action,
    address, call, counter, delete, group, insert, lpm, member, meter, modify, of, optional,
    profile_group, range, register, session, table, ternary,
};
use super::rig::{Controller, Rig};
use tonic::Code;
use wormcast_switch_p4runtime::proto::p4::v1::{
    ActionProfileGroup, ActionProfileMember, CounterData, DigestEntry, DirectCounterEntry,
    DirectMeterEntry, Entity, ExternEntry, MeterConfig, TableAction, TableEntry, ValueSetEntry,
    entity, table_action,
};

async fn read_entries(controller: &mut Controller, filter: TableEntry) -> Vec<TableEntry> {
    let found = controller.read(vec![table(filter)]).await.unwrap();
    let entry = |entity: Entity| match entity.entity {
        Some(entity::Entity::TableEntry(entry)) => entry,
        other => panic!("{other:?}"),
    };
    found.into_iter().map(entry).collect()
}

fn all_of(table_id: u32) -> TableEntry {
    TableEntry {
        table_id,
        ..TableEntry::default()
    }
}

#[tokio::test]
async fn entries_of_every_kind_come_back_as_they_were() {
    let rig = Rig::start().await;
    let mut controller = rig.controller().await;
    let mut entries = vec![
        address(&[2, 0, 0, 0, 0, 1], action(FORWARD, &[&[1, 0xff]])),
        address(&[0], action(FLOOD, &[&[1, 0]])),
        TableEntry {
            table_id: TYPES,
            r#match: vec![
                ternary(1, &[0x08, 0x00], &[0xff, 0x00]),
                optional(2, &[3]),
                lpm(3, &[2, 0, 0, 0, 0, 0], 24),
            ],
            action: action(COPY_TO_CPU, &[]),
            priority: 10,
            metadata: b"cookie".to_vec(),
            ..TableEntry::default()
        },
        TableEntry {
            table_id: TYPES,
            action: action(COPY_TO_CPU, &[]),
            priority: 1,
            ..TableEntry::default()
        },
        TableEntry {
            table_id: SIZES,
            r#match: vec![range(1, &[100], &[5, 0xdc])],
            action: action(DROP, &[]),
            priority: 2,
            ..TableEntry::default()
        },
    ];
    let updates = entries
        .iter()
        .cloned()
        .map(|entry| insert(table(entry)))
        .collect();
    controller.write(updates).await.unwrap();
    let mut found = read_entries(&mut controller, TableEntry::default()).await;
    let order = |entry: &TableEntry| {
        (
            entry.table_id,
            entry.priority,
            format!("{:?}", entry.r#match),
        )
    };
    entries.sort_by_key(order);
    found.sort_by_key(order);
    assert_eq!(found, entries);

    // Filters: by key, by priority, by action, by cookie.
    let one = TableEntry {
        r#match: entries[0].r#match.clone(),
        ..all_of(ADDRESSES)
    };
    assert_eq!(
        read_entries(&mut controller, one).await,
        [entries[0].clone()]
    );
    let filter = TableEntry {
        priority: 10,
        ..all_of(TYPES)
    };
    assert_eq!(read_entries(&mut controller, filter).await.len(), 1);
    let filter = TableEntry {
        action: action(FLOOD, &[]),
        ..all_of(ADDRESSES)
    };
    assert_eq!(read_entries(&mut controller, filter).await.len(), 1);
    let filter = TableEntry {
        metadata: b"cookie".to_vec(),
        ..all_of(TYPES)
    };
    assert_eq!(read_entries(&mut controller, filter).await.len(), 1);

    // Gone means gone, cookie included.
    let key = entries
        .iter()
        .find(|entry| entry.priority == 10)
        .unwrap()
        .clone();
    controller
        .write(vec![delete(table(key.clone()))])
        .await
        .unwrap();
    let again = TableEntry {
        metadata: Vec::new(),
        ..key
    };
    controller
        .write(vec![insert(table(again.clone()))])
        .await
        .unwrap();
    let filter = TableEntry {
        priority: 10,
        ..all_of(TYPES)
    };
    assert_eq!(read_entries(&mut controller, filter).await, [again]);
}

#[tokio::test]
async fn padded_values_are_accepted_and_come_back_canonical() {
    let rig = Rig::start().await;
    let mut controller = rig.controller().await;
    let padded = address(&[0, 0, 0, 0, 0, 0, 0, 9], action(FORWARD, &[&[0, 0, 3]]));
    controller.write(vec![insert(table(padded))]).await.unwrap();
    let found = read_entries(&mut controller, all_of(ADDRESSES)).await;
    assert_eq!(found, [address(&[9], action(FORWARD, &[&[3]]))]);
}

#[tokio::test]
async fn modify_without_action_keeps_it() {
    let rig = Rig::start().await;
    let mut controller = rig.controller().await;
    let entry = address(&[9], action(FORWARD, &[&[3]]));
    let counted = TableEntry {
        counter_data: Some(CounterData {
            packet_count: 5,
            byte_count: 500,
        }),
        ..address(&[9], None)
    };
    let updates = vec![insert(table(entry.clone())), modify(table(counted.clone()))];
    controller.write(updates).await.unwrap();
    let filter = TableEntry {
        counter_data: Some(CounterData::default()),
        ..all_of(ADDRESSES)
    };
    let expected = TableEntry {
        counter_data: counted.counter_data,
        ..entry
    };
    assert_eq!(read_entries(&mut controller, filter).await, [expected]);
    let direct = DirectCounterEntry {
        table_entry: Some(address(&[9], None)),
        data: None,
    };
    let found = controller
        .read(vec![of(entity::Entity::DirectCounterEntry(direct))])
        .await
        .unwrap();
    assert!(matches!(
        &found[0].entity,
        Some(entity::Entity::DirectCounterEntry(entry)) if entry.data == counted.counter_data
    ));
}

#[tokio::test]
async fn the_default_action_is_set_and_put_back() {
    let rig = Rig::start().await;
    let mut controller = rig.controller().await;
    let default = |action| TableEntry {
        is_default_action: true,
        action,
        ..all_of(SIZES)
    };
    let original = read_entries(&mut controller, default(None)).await;
    assert_eq!(original.len(), 1);
    controller
        .write(vec![modify(table(default(action(DROP, &[]))))])
        .await
        .unwrap();
    let changed = read_entries(&mut controller, default(None)).await;
    assert_eq!(changed, [default(action(DROP, &[]))]);
    controller
        .write(vec![modify(table(default(None)))])
        .await
        .unwrap();
    assert_eq!(read_entries(&mut controller, default(None)).await, original);
    let constant = TableEntry {
        is_default_action: true,
        ..all_of(ADDRESSES)
    };
    assert!(read_entries(&mut controller, constant).await[0].is_const);
}

#[tokio::test]
async fn groups_and_sessions_come_back() {
    let rig = Rig::start().await;
    let mut controller = rig.controller().await;
    let state = vec![
        group(1, &[(1, 0), (2, 0)]),
        group(0x7fff, &[(3, 9)]),
        session(5, &[(510, 1)], 64),
    ];
    let updates = state.iter().cloned().map(insert).collect();
    controller.write(updates).await.unwrap();
    let found = controller
        .read(vec![group(0, &[]), session(0, &[], 0)])
        .await
        .unwrap();
    assert_eq!(found, state);
    let changed = group(1, &[(4, 4)]);
    controller
        .write(vec![modify(changed.clone()), delete(session(5, &[], 0))])
        .await
        .unwrap();
    assert_eq!(
        controller.read(vec![group(1, &[])]).await.unwrap(),
        [changed]
    );
    assert_eq!(controller.read(vec![session(0, &[], 0)]).await.unwrap(), []);
    let status = controller.read(vec![session(5, &[], 0)]).await.unwrap_err();
    assert_eq!(status.code(), Code::NotFound);
}

#[tokio::test]
async fn counters_registers_and_meters() {
    let rig = Rig::start().await;
    let mut controller = rig.controller().await;
    let config = MeterConfig {
        cir: 10,
        cburst: 5,
        pir: 20,
        pburst: 6,
        eburst: 0,
    };
    let updates = vec![
        modify(counter(Some(511), Some(3))),
        modify(register(None, Some(&[7]))),
        modify(meter(Some(2), Some(config))),
    ];
    controller.write(updates).await.unwrap();
    assert_eq!(
        controller
            .read(vec![counter(None, None)])
            .await
            .unwrap()
            .len(),
        512
    );
    let found = controller
        .read(vec![counter(Some(511), None)])
        .await
        .unwrap();
    assert_eq!(found, [counter(Some(511), Some(3))]);
    let found = controller
        .read(vec![register(Some(15), None)])
        .await
        .unwrap();
    assert_eq!(found, [register(Some(15), Some(&[7]))]);
    let found = controller.read(vec![meter(None, None)]).await.unwrap();
    assert_eq!(found.len(), 4);
    assert_eq!(found[2], meter(Some(2), Some(config)));
    assert_eq!(found[3], meter(Some(3), None));
}

#[tokio::test]
async fn members_and_groups_of_an_action_profile() {
    let rig = Rig::start().await;
    let mut controller = rig.controller().await;
    let entry = |kind| TableEntry {
        table_id: SPREAD,
        r#match: vec![super::messages::exact(1, &[8, 0])],
        action: Some(TableAction { r#type: Some(kind) }),
        ..TableEntry::default()
    };
    let state = vec![
        member(1, Some(call(FORWARD_ON, &[&[1]]))),
        member(2, Some(call(FORWARD_ON, &[&[2]]))),
        profile_group(7, &[(1, 1), (2, 3)]),
        table(entry(table_action::Type::ActionProfileGroupId(7))),
    ];
    controller
        .write(state.iter().cloned().map(insert).collect())
        .await
        .unwrap();
    let filters = vec![
        of(entity::Entity::ActionProfileMember(
            ActionProfileMember::default(),
        )),
        of(entity::Entity::ActionProfileGroup(
            ActionProfileGroup::default(),
        )),
        table(all_of(SPREAD)),
    ];
    assert_eq!(controller.read(filters).await.unwrap(), state);
    let status = controller
        .write(vec![delete(member(1, None))])
        .await
        .unwrap_err();
    assert_eq!(status.code(), Code::Unknown);
    let gone = state.into_iter().rev().map(delete).collect();
    controller.write(gone).await.unwrap();
}

#[tokio::test]
async fn a_wildcard_for_what_the_program_does_not_have_finds_nothing() {
    let rig = Rig::start().await;
    let mut controller = rig.controller().await;
    let filters = vec![
        of(entity::Entity::ExternEntry(ExternEntry::default())),
        of(entity::Entity::DirectMeterEntry(DirectMeterEntry::default())),
        of(entity::Entity::ValueSetEntry(ValueSetEntry::default())),
        of(entity::Entity::DigestEntry(DigestEntry::default())),
    ];
    assert_eq!(controller.read(filters).await.unwrap(), []);
}

#[tokio::test]
async fn a_thousand_entries_take_several_responses() {
    let rig = Rig::start().await;
    let mut controller = rig.controller().await;
    let entry = |number: u16| {
        let metadata = vec![7; 2_000];
        TableEntry {
            metadata,
            ..address(&number.to_be_bytes(), action(FORWARD, &[&[1]]))
        }
    };
    let updates = (0..1_024)
        .map(|number| insert(table(entry(number))))
        .collect();
    controller.write(updates).await.unwrap();
    assert_eq!(
        read_entries(&mut controller, all_of(ADDRESSES)).await.len(),
        1_024
    );
    let status = controller
        .write(vec![insert(table(entry(1_024)))])
        .await
        .unwrap_err();
    assert!(
        status.message().contains("RESOURCE_EXHAUSTED"),
        "{}",
        status.message()
    );
}
