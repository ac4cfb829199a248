//! How an entity that was written is found again.

use wormcast_switch_p4runtime::proto::p4::v1 as p4;
use wormcast_switch_p4runtime::proto::p4::v1::{Entity, entity};

/// Bytes of a value without leading zeros (P4Runtime §"Bytestrings").
fn canonical(bytes: &[u8]) -> &[u8] {
    let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
    &bytes[zeros.min(bytes.len().saturating_sub(1))..]
}

pub type IsIt = Box<dyn Fn(&Entity) -> bool>;

/// A filter for the entity, and whether what is found is it.
pub fn found_by(entity: &Entity) -> Option<(Entity, IsIt)> {
    let of = |entity| Entity {
        entity: Some(entity),
    };
    let entity = entity.entity.as_ref()?;
    Some(match entity.clone() {
        entity::Entity::TableEntry(entry) if !entry.is_default_action => {
            let filter = p4::TableEntry {
                table_id: entry.table_id,
                r#match: entry.r#match.clone(),
                priority: entry.priority,
                ..p4::TableEntry::default()
            };
            // Without a key the filter matches all entries of the table.
            let alone = !entry.r#match.is_empty();
            let is_it = move |found: &Entity| match &found.entity {
                Some(entity::Entity::TableEntry(found)) => {
                    found.table_id == entry.table_id
                        && found.priority == entry.priority
                        && (entry.metadata == found.metadata)
                }
                _ => false,
            };
            alone.then_some((
                of(entity::Entity::TableEntry(filter)),
                Box::new(is_it) as IsIt,
            ))?
        }
        entity::Entity::ActionProfileMember(member) => {
            let filter = p4::ActionProfileMember {
                action: None,
                ..member.clone()
            };
            let is_it = move |found: &Entity| match &found.entity {
                Some(entity::Entity::ActionProfileMember(found)) => {
                    let values = |member: &p4::ActionProfileMember| {
                        let action = member.action.clone().unwrap_or_default();
                        let mut values: Vec<(u32, Vec<u8>)> = action
                            .params
                            .iter()
                            .map(|param| (param.param_id, canonical(&param.value).to_vec()))
                            .collect();
                        values.sort();
                        (action.action_id, values)
                    };
                    found.member_id == member.member_id
                        && (member.action.is_none() || values(found) == values(&member))
                }
                _ => false,
            };
            (
                of(entity::Entity::ActionProfileMember(filter)),
                Box::new(is_it),
            )
        }
        entity::Entity::ActionProfileGroup(group) => {
            let filter = p4::ActionProfileGroup {
                members: Vec::new(),
                max_size: 0,
                ..group.clone()
            };
            let is_it = move |found: &Entity| match &found.entity {
                Some(entity::Entity::ActionProfileGroup(found)) => found.group_id == group.group_id,
                _ => false,
            };
            (
                of(entity::Entity::ActionProfileGroup(filter)),
                Box::new(is_it),
            )
        }
        entity::Entity::PacketReplicationEngineEntry(entry) => {
            let is_it = move |found: &Entity| {
                use p4::packet_replication_engine_entry::Type;
                let Some(entity::Entity::PacketReplicationEngineEntry(found)) = &found.entity
                else {
                    return false;
                };
                match (&found.r#type, &entry.r#type) {
                    (
                        Some(Type::MulticastGroupEntry(one)),
                        Some(Type::MulticastGroupEntry(other)),
                    ) => one.multicast_group_id == other.multicast_group_id,
                    (Some(Type::CloneSessionEntry(one)), Some(Type::CloneSessionEntry(other))) => {
                        one.session_id == other.session_id
                    }
                    _ => false,
                }
            };
            (of(entity.clone()), Box::new(is_it))
        }
        _ => return None,
    })
}
