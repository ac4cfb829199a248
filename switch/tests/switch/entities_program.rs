//! What the tests write into and send through `programs/entities.p4`.

use super::messages::{call, exact, insert, modify, of, table};
use super::rig::{Controller, Rig, entities};
use super::wire::{Wire, forward};
use wormcast_switch_p4runtime::proto::p4::config::v1::Preamble;
use wormcast_switch_p4runtime::proto::p4::v1::{
    Entity, FieldMatch, TableAction, TableEntry, ValueSetEntry, ValueSetMember, entity,
    table_action,
};
use wormcast_switch_pipeline::PortId;

/// Type of the frames whose probe is parsed once [`parse_probes`] has been called.
pub const PROBE_TYPE: u16 = 0x1234;

/// Places in a frame with a probe.
pub const PARSED: usize = 15;
pub const INSTANCE: usize = 17;
pub const COLOUR: usize = 22;
pub const CHOSEN: usize = 23;

/// Id of an object by its name in the P4Info.
pub fn id(name: &str) -> u32 {
    let p4info = entities().p4info.unwrap();
    let mut preambles: Vec<Preamble> = Vec::new();
    preambles.extend(p4info.tables.into_iter().filter_map(|one| one.preamble));
    preambles.extend(p4info.actions.into_iter().filter_map(|one| one.preamble));
    preambles.extend(p4info.meters.into_iter().filter_map(|one| one.preamble));
    preambles.extend(p4info.counters.into_iter().filter_map(|one| one.preamble));
    preambles.extend(p4info.registers.into_iter().filter_map(|one| one.preamble));
    preambles.extend(p4info.value_sets.into_iter().filter_map(|one| one.preamble));
    let profiles = p4info.action_profiles.into_iter();
    preambles.extend(profiles.filter_map(|one| one.preamble));
    let mut found = preambles.iter().filter(|preamble| preamble.name == name);
    let preamble = found.next().unwrap_or_else(|| panic!("no {name}"));
    assert!(found.next().is_none(), "two of {name}");
    preamble.id
}

pub fn action(name: &str, arguments: &[&[u8]]) -> Option<TableAction> {
    let call = call(id(name), arguments);
    Some(TableAction {
        r#type: Some(table_action::Type::Action(call)),
    })
}

/// An entry of a table with the key `kind`.
pub fn by_kind(table: &str, kind: u8, action: Option<TableAction>) -> TableEntry {
    TableEntry {
        table_id: id(table),
        r#match: vec![exact(1, &[kind])],
        action,
        ..TableEntry::default()
    }
}

pub fn default_of(table: &str) -> TableEntry {
    TableEntry {
        table_id: id(table),
        is_default_action: true,
        ..TableEntry::default()
    }
}

pub fn value_set(name: &str, members: &[Vec<FieldMatch>]) -> Entity {
    let members = members.iter().map(|fields| ValueSetMember {
        r#match: fields.clone(),
    });
    of(entity::Entity::ValueSetEntry(ValueSetEntry {
        value_set_id: id(name),
        members: members.collect(),
    }))
}

/// A primary controller with the program set, and probes parsed.
pub async fn start() -> (Rig, Controller) {
    let rig = Rig::start().await;
    let mut controller = rig.controller_of(entities()).await;
    let types = value_set("parse.types", &[vec![exact(1, &PROBE_TYPE.to_be_bytes())]]);
    controller.write(vec![modify(types)]).await.unwrap();
    (rig, controller)
}

/// A frame with a probe.
pub fn probe(kind: u8, size: u16, address: u32) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];
    frame.extend(PROBE_TYPE.to_be_bytes());
    frame.extend([kind, 0]);
    frame.extend(size.to_be_bytes());
    frame.extend(address.to_be_bytes());
    frame.extend([0, 0]);
    frame
}

/// Sends a frame into port 1; gives what comes out, where.
pub async fn send(rig: &Rig, frame: &[u8]) -> Vec<(u16, Vec<u8>)> {
    let frame = frame.to_vec();
    let sent = rig.dataplane.run(move |switch| {
        let mut wire = Wire::default();
        forward(switch.pipeline().unwrap(), &mut wire, 1, &frame, 0, 0);
        wire.sent
    });
    let sent = sent.await.unwrap();
    sent.into_iter()
        .map(|(port, frame)| (port.0, frame))
        .collect()
}

/// The only frame that comes out.
pub async fn send_one(rig: &Rig, frame: &[u8]) -> Vec<u8> {
    let mut sent = send(rig, frame).await;
    assert_eq!(sent.len(), 1);
    sent.remove(0).1
}

/// Tells the pipeline that a port went up or down.
pub async fn set_port_up(rig: &Rig, port: u16, up: bool) {
    let told = rig
        .dataplane
        .run(move |switch| switch.pipeline().unwrap().set_port_up(PortId(port), up));
    told.await.unwrap();
}

pub async fn add(controller: &mut Controller, entry: TableEntry) {
    controller.write(vec![insert(table(entry))]).await.unwrap();
}

pub async fn find(controller: &mut Controller, filter: TableEntry) -> Vec<TableEntry> {
    let found = controller.read(vec![table(filter)]).await.unwrap();
    let entry = |entity: Entity| match entity.entity {
        Some(entity::Entity::TableEntry(entry)) => entry,
        other => panic!("{other:?}"),
    };
    found.into_iter().map(entry).collect()
}
