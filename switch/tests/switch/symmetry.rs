//! What is written is what is read: §"Read-Write Symmetry".

use std::collections::BTreeMap;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use super::entities_program::{action, by_kind, id, start};
use super::messages::{delete, exact, group, insert, modify, session, table};
use super::rig::{Controller, entities};
use wormcast_switch_p4runtime::proto::p4::v1::set_forwarding_pipeline_config_request::Action;
use wormcast_switch_p4runtime::proto::p4::v1::{
    CounterData, CounterEntry, Entity, MeterConfig, MeterEntry, RegisterEntry, TableEntry, Update,
    ValueSetEntry, entity,
};

/// One update of an entry or group: which, what kind, and a value for its contents.
type Step = (u8, u8, u8);

/// What names an entity of a step, and the entity.
fn entity_of(what: u8, value: u8) -> (String, Entity) {
    match what {
        0..=7 => {
            let entry = TableEntry {
                metadata: vec![value; usize::from(value % 3)],
                ..by_kind(
                    "ingress.directed",
                    what,
                    action("ingress.to_port", &[&[value]]),
                )
            };
            (format!("entry {what}"), table(entry))
        }
        8..=10 => {
            let meter_config = value.is_multiple_of(2).then(|| MeterConfig {
                cir: i64::from(value),
                pir: 300,
                ..MeterConfig::default()
            });
            let entry = TableEntry {
                table_id: id("ingress.metered_hops"),
                r#match: vec![exact(1, &[what])],
                action: action("ingress.metered_to", &[&[value]]),
                meter_config,
                ..TableEntry::default()
            };
            (format!("hop {what}"), table(entry))
        }
        11..=13 => {
            let ports: Vec<(u32, u32)> = (0..u32::from(value % 4)).map(|port| (port, 1)).collect();
            (format!("group {what}"), group(u32::from(what), &ports))
        }
        _ => {
            let ports = [(u32::from(value), 0)];
            let entity = session(u32::from(what), &ports, i32::from(value));
            (format!("session {what}"), entity)
        }
    }
}

/// Filters for everything that the steps write.
fn filters() -> Vec<Entity> {
    let of_table = |name| {
        table(TableEntry {
            table_id: id(name),
            meter_config: Some(MeterConfig::default()),
            ..TableEntry::default()
        })
    };
    vec![
        of_table("ingress.directed"),
        of_table("ingress.metered_hops"),
        group(0, &[]),
        session(0, &[], 0),
    ]
}

/// Writes the steps one by one, and keeps a model of what should be there.
async fn follow(controller: &mut Controller, steps: &[Step]) -> BTreeMap<String, Entity> {
    let mut model: BTreeMap<String, Entity> = BTreeMap::new();
    for &(what, kind, value) in steps {
        let (name, entity) = entity_of(what, value);
        let there = model.contains_key(&name);
        let (update, expected): (Update, bool) = match kind {
            0 => (insert(entity.clone()), !there),
            1 => (modify(entity.clone()), there),
            _ => (delete(entity.clone()), there),
        };
        let written = controller.write(vec![update]).await;
        assert_eq!(written.is_ok(), expected, "{name} {kind}: {written:?}");
        if expected && kind < 2 {
            model.insert(name, entity);
        } else if expected {
            model.remove(&name);
        }
    }
    model
}

fn sorted(mut entities: Vec<Entity>) -> Vec<Entity> {
    entities.sort_by_key(|entity| format!("{entity:?}"));
    entities
}

#[test]
fn random_writes_then_reads_equal_a_model() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let mut runner = TestRunner::new(Config::with_cases(24));
    let steps = proptest::collection::vec((0..17u8, 0..3u8, 0..255u8), 0..80);
    let (_rig, controller) = runtime.block_on(start());
    let controller = std::cell::RefCell::new(controller);
    let tested = runner.run(&steps, |steps| {
        let mut controller = controller.borrow_mut();
        runtime.block_on(async {
            let config = entities();
            let set = controller.set_config(Action::VerifyAndCommit, config);
            set.await.unwrap();
            let model = follow(&mut controller, &steps).await;
            let read = sorted(controller.read(filters()).await.unwrap());
            prop_assert_eq!(&read, &sorted(model.into_values().collect()));
            // Written once more, what was read changes nothing.
            let again = read.iter().cloned().map(modify).collect();
            controller.write(again).await.unwrap();
            let found = sorted(controller.read(filters()).await.unwrap());
            prop_assert_eq!(&found, &read);
            // Taken away and inserted as it was read, it is there as it was.
            let gone = read.iter().cloned().map(delete).collect();
            controller.write(gone).await.unwrap();
            prop_assert_eq!(controller.read(filters()).await.unwrap(), vec![]);
            let back = read.iter().cloned().map(insert).collect();
            controller.write(back).await.unwrap();
            let found = sorted(controller.read(filters()).await.unwrap());
            prop_assert_eq!(&found, &read);
            Ok(())
        })
    });
    tested.unwrap();
}

#[tokio::test]
async fn all_cells_written_as_they_were_read_stay() {
    let (_rig, mut controller) = start().await;
    let of = |entity| Entity {
        entity: Some(entity),
    };
    let filters = vec![
        of(entity::Entity::CounterEntry(CounterEntry::default())),
        of(entity::Entity::RegisterEntry(RegisterEntry::default())),
        of(entity::Entity::MeterEntry(MeterEntry::default())),
        of(entity::Entity::ValueSetEntry(ValueSetEntry::default())),
        table(TableEntry {
            table_id: id("ingress.initial"),
            counter_data: None::<CounterData>,
            ..TableEntry::default()
        }),
    ];
    let before = controller.read(filters.clone()).await.unwrap();
    let again = before.iter().cloned().map(modify).collect();
    controller.write(again).await.unwrap();
    assert_eq!(controller.read(filters).await.unwrap(), before);
}
