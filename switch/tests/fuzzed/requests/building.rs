//! Requests that suit a P4Info: what a controller would write first.

use wormcast_switch::p4rt::proto::p4::config::v1::{
    self as config, P4Info, match_field::MatchType,
};
use wormcast_switch::p4rt::proto::p4::v1::{
    self as p4, Entity, FieldMatch, TableAction, TableEntry, action, entity, field_match,
    table_action,
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
            mask: value.clone(),
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

/// One entity of every table, profile, digest and value set: members and groups first.
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
    for table in &info.tables {
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
        entities.push(of(entity::Entity::TableEntry(TableEntry {
            table_id: id(&table.preamble),
            r#match: table.match_fields.iter().filter_map(field).collect(),
            action: Some(TableAction {
                r#type: Some(action),
            }),
            priority: i32::from(prioritized),
            metadata: vec![1],
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
