//! Requests that suit a P4Info: what a controller would write first.

use super::super::messages;
use wormcast_switch_p4runtime::proto::p4::config::v1 as config;
use wormcast_switch_p4runtime::proto::p4::config::v1::P4Info;
use wormcast_switch_p4runtime::proto::p4::config::v1::match_field::MatchType;
use wormcast_switch_p4runtime::proto::p4::v1 as p4;
use wormcast_switch_p4runtime::proto::p4::v1::{
    Entity, FieldMatch, TableAction, TableEntry, Update, action, entity, field_match, table_action,
};

fn of(entity: entity::Entity) -> Entity {
    Entity {
        entity: Some(entity),
    }
}

fn value(width: i32, ones: bool) -> Vec<u8> {
    let mut value = vec![u8::from(ones)];
    if ones && width > 8 {
        value = vec![1, 2];
    }
    value
}

fn ones(width: i32) -> Vec<u8> {
    let width = usize::try_from(width).unwrap_or(0).min(1 << 16);
    let mut ones = vec![0xff; width.div_ceil(8).max(1)];
    if !width.is_multiple_of(8) {
        ones[0] = (1 << (width % 8)) - 1;
    }
    ones
}

fn field(info: &config::MatchField) -> Option<FieldMatch> {
    use field_match::FieldMatchType as Kind;
    let Some(config::match_field::Match::MatchType(kind)) = info.r#match else {
        return None;
    };
    let value = value(info.bitwidth, true);
    let kind = match MatchType::try_from(kind).ok()? {
        MatchType::Exact => Kind::Exact(field_match::Exact { value }),
        MatchType::Lpm => Kind::Lpm(field_match::Lpm {
            value,
            prefix_len: info.bitwidth,
        }),
        MatchType::Ternary => Kind::Ternary(field_match::Ternary {
            // Of values that are translated a mask must leave nothing out.
            mask: ones(info.bitwidth),
            value,
        }),
        MatchType::Range => Kind::Range(field_match::Range {
            low: vec![0],
            high: value,
        }),
        MatchType::Optional => Kind::Optional(field_match::Optional { value }),
        MatchType::Unspecified => return None,
    };
    Some(FieldMatch {
        field_id: info.id,
        field_match_type: Some(kind),
    })
}

fn call(info: &P4Info, id: u32) -> p4::Action {
    let found = info.actions.iter().find(|action| {
        action
            .preamble
            .as_ref()
            .is_some_and(|preamble| preamble.id == id)
    });
    let params = found
        .map(|action| action.params.as_slice())
        .unwrap_or_default();
    p4::Action {
        action_id: id,
        params: params
            .iter()
            .map(|param| action::Param {
                param_id: param.id,
                value: value(param.bitwidth, false),
            })
            .collect(),
    }
}

fn id(preamble: &Option<config::Preamble>) -> u32 {
    preamble.as_ref().map_or(0, |preamble| preamble.id)
}

/// One entity of every table that takes any, profile, digest and value set: members and groups first.
pub fn entities(info: &P4Info) -> Vec<Entity> {
    let mut entities = Vec::new();
    for profile in &info.action_profiles {
        let profile_id = id(&profile.preamble);
        let table = profile.table_ids.first().and_then(|wanted| {
            info.tables
                .iter()
                .find(|table| id(&table.preamble) == *wanted)
        });
        let Some(action) = table.and_then(|table| table.action_refs.first()) else {
            continue;
        };
        entities.push(of(entity::Entity::ActionProfileMember(
            p4::ActionProfileMember {
                action_profile_id: profile_id,
                member_id: 1,
                action: Some(call(info, action.id)),
            },
        )));
        if profile.with_selector {
            entities.push(of(entity::Entity::ActionProfileGroup(
                p4::ActionProfileGroup {
                    action_profile_id: profile_id,
                    group_id: 1,
                    members: vec![p4::action_profile_group::Member {
                        member_id: 1,
                        weight: 1,
                        watch_kind: None,
                    }],
                    max_size: 0,
                },
            )));
        }
    }
    for table in info.tables.iter().filter(|table| !table.is_const_table) {
        let Some(action) = table.action_refs.first() else {
            continue;
        };
        let action = match table.implementation_id {
            0 => table_action::Type::Action(call(info, action.id)),
            _ => table_action::Type::ActionProfileMemberId(1),
        };
        let prioritized = table.match_fields.iter().any(|field| {
            use config::match_field::Match;
            matches!(field.r#match, Some(Match::MatchType(kind)) if kind > MatchType::Lpm as i32)
        });
        let table_id = id(&table.preamble);
        let counted = info
            .direct_counters
            .iter()
            .any(|counter| counter.direct_table_id == table_id);
        // Meters of one rate want other numbers.
        let metered = info.direct_meters.iter().any(|meter| {
            let kind = meter.spec.as_ref().map(|spec| spec.r#type);
            meter.direct_table_id == table_id && kind == Some(0)
        });
        entities.push(of(entity::Entity::TableEntry(TableEntry {
            table_id,
            r#match: table.match_fields.iter().filter_map(field).collect(),
            action: Some(TableAction {
                r#type: Some(action),
            }),
            priority: i32::from(prioritized),
            metadata: vec![1],
            counter_data: counted.then_some(p4::CounterData {
                byte_count: 60,
                packet_count: 1,
            }),
            meter_config: metered.then_some(p4::MeterConfig {
                cir: 1,
                cburst: 2,
                pir: 3,
                pburst: 4,
                eburst: 0,
            }),
            idle_timeout_ns: i64::from(table.idle_timeout_behavior) * 1_000_000_000,
            ..TableEntry::default()
        })));
    }
    for digest in &info.digests {
        entities.push(of(entity::Entity::DigestEntry(p4::DigestEntry {
            digest_id: id(&digest.preamble),
            config: Some(p4::digest_entry::Config {
                max_timeout_ns: 1_000_000,
                max_list_size: 2,
                ack_timeout_ns: 1_000_000,
            }),
        })));
    }
    for set in &info.value_sets {
        entities.push(of(entity::Entity::ValueSetEntry(p4::ValueSetEntry {
            value_set_id: id(&set.preamble),
            members: vec![p4::ValueSetMember {
                r#match: set.r#match.iter().filter_map(field).collect(),
            }],
        })));
    }
    entities
}

/// The update that brings an entity: cells and value sets are always there.
pub fn written(entity: Entity) -> Update {
    match entity.entity {
        Some(
            entity::Entity::CounterEntry(_)
            | entity::Entity::RegisterEntry(_)
            | entity::Entity::MeterEntry(_)
            | entity::Entity::ValueSetEntry(_),
        ) => messages::modify(entity),
        _ => messages::insert(entity),
    }
}
