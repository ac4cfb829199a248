//! All that a controller can read, and that it can write it back.

use prost::Message;

use super::rig::Rig;
use wormcast_switch_p4runtime::proto::p4::v1 as p4;
use wormcast_switch_p4runtime::proto::p4::v1::{
    Entity, TableEntry, Update, entity, packet_replication_engine_entry as pre, update,
};

fn of(entity: entity::Entity) -> Entity {
    Entity {
        entity: Some(entity),
    }
}

/// Filters that together match all state, in the order in which it can be written.
fn everything() -> Vec<Entity> {
    let replication = |kind| {
        of(entity::Entity::PacketReplicationEngineEntry(
            p4::PacketReplicationEngineEntry { r#type: Some(kind) },
        ))
    };
    let entries = TableEntry {
        counter_data: Some(p4::CounterData::default()),
        meter_config: Some(p4::MeterConfig::default()),
        ..TableEntry::default()
    };
    let defaults = TableEntry {
        is_default_action: true,
        ..entries.clone()
    };
    vec![
        replication(pre::Type::MulticastGroupEntry(Default::default())),
        replication(pre::Type::CloneSessionEntry(Default::default())),
        of(entity::Entity::ActionProfileMember(Default::default())),
        of(entity::Entity::ActionProfileGroup(Default::default())),
        of(entity::Entity::TableEntry(entries)),
        of(entity::Entity::TableEntry(defaults)),
        of(entity::Entity::ValueSetEntry(Default::default())),
        of(entity::Entity::CounterEntry(Default::default())),
        of(entity::Entity::RegisterEntry(Default::default())),
        of(entity::Entity::MeterEntry(Default::default())),
        of(entity::Entity::DigestEntry(Default::default())),
    ]
}

/// Everything there is to read.
pub async fn read_all(rig: &Rig) -> Vec<Entity> {
    let found = rig.read(everything()).await;
    found.unwrap_or_else(|status| panic!("all can be read: {status:?}"))
}

/// Nothing in it has changed.
pub fn assert_same(before: &[Entity], after: &[Entity], what: &str) {
    for (before, after) in before.iter().zip(after) {
        assert_eq!(before, after, "{what}");
    }
    assert_eq!(before.len(), after.len(), "{what}");
}

/// In an order that does not depend on when an entity was written.
fn sorted(mut entities: Vec<Entity>) -> Vec<Entity> {
    entities.sort_by_key(Message::encode_to_vec);
    entities
}

/// How an entity comes and goes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Life {
    /// Comes with the program and stays as it is.
    Constant,
    /// Is always there.
    Permanent,
    /// Is inserted and deleted.
    Inserted,
}

fn life(entity: &Entity) -> Life {
    match entity.entity.as_ref() {
        Some(entity::Entity::TableEntry(entry)) if entry.is_const => Life::Constant,
        Some(entity::Entity::TableEntry(entry)) if entry.is_default_action => Life::Permanent,
        Some(
            entity::Entity::TableEntry(_)
            | entity::Entity::ActionProfileMember(_)
            | entity::Entity::ActionProfileGroup(_)
            | entity::Entity::DigestEntry(_)
            | entity::Entity::PacketReplicationEngineEntry(_),
        ) => Life::Inserted,
        _ => Life::Permanent,
    }
}

fn updates<'a>(entities: impl Iterator<Item = &'a Entity>, kind: update::Type) -> Vec<Update> {
    let update = |entity: &Entity| Update {
        r#type: kind as i32,
        entity: Some(entity.clone()),
    };
    entities.map(update).collect()
}

async fn write(rig: &Rig, updates: Vec<Update>, what: &str) {
    if let Err(status) = rig.write(updates).await {
        panic!("{what}: {:?}: {}", status.code(), status.message());
    }
}

/// What is read can be written as it is, which changes nothing; it can be taken away, and
/// when it is written again everything is as it was.
pub async fn check_read_write_symmetry(rig: &Rig) {
    let before = read_all(rig).await;
    let changeable = || {
        before
            .iter()
            .filter(|entity| life(entity) != Life::Constant)
    };
    let same = updates(
        changeable().filter(|entity| !is_constant_default(entity)),
        update::Type::Modify,
    );
    write(rig, same, "what is read can be written").await;
    assert_same(&before, &read_all(rig).await, "written as it was read");

    let inserted = || {
        before
            .iter()
            .filter(|entity| life(entity) == Life::Inserted)
    };
    // Defaults may refer to members and groups.
    let defaults = || {
        let defaults = changeable().filter(|entity| {
            matches!(&entity.entity, Some(entity::Entity::TableEntry(entry)) if entry.is_default_action)
        });
        defaults.filter(|entity| !is_constant_default(entity))
    };
    let plain: Vec<Entity> = defaults().cloned().map(without_action).collect();
    write(
        rig,
        updates(plain.iter(), update::Type::Modify),
        "defaults go back",
    )
    .await;
    let mut deletions = updates(inserted(), update::Type::Delete);
    deletions.reverse();
    write(rig, deletions, "what is there can be deleted").await;
    let left = read_all(rig).await;
    let left: Vec<&Entity> = left
        .iter()
        .filter(|entity| life(entity) == Life::Inserted)
        .collect();
    assert!(left.is_empty(), "deleted, and still there: {left:?}");

    write(
        rig,
        updates(inserted(), update::Type::Insert),
        "what was there can be inserted",
    )
    .await;
    write(
        rig,
        updates(defaults(), update::Type::Modify),
        "defaults come back",
    )
    .await;
    assert_same(
        &sorted(before),
        &sorted(read_all(rig).await),
        "deleted and inserted again",
    );
}

fn is_constant_default(entity: &Entity) -> bool {
    match &entity.entity {
        Some(entity::Entity::TableEntry(entry)) => entry.is_default_action && entry.is_const,
        _ => false,
    }
}

fn without_action(mut entity: Entity) -> Entity {
    if let Some(entity::Entity::TableEntry(entry)) = &mut entity.entity {
        entry.action = None;
        entry.counter_data = None;
        entry.meter_config = None;
    }
    entity
}
