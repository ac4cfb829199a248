//! Messages of the tests, in few words.

use wormcast_switch_p4runtime::proto::p4::v1 as p4;
use wormcast_switch_p4runtime::proto::p4::v1::{
    ActionProfileGroup, ActionProfileMember, CloneSessionEntry, CounterData, CounterEntry, Entity,
    FieldMatch, Index, MeterConfig, MeterEntry, MulticastGroupEntry, P4Data,
    PacketReplicationEngineEntry, RegisterEntry, Replica, TableAction, TableEntry, Update, action,
    action_profile_group, entity, field_match, p4_data, packet_replication_engine_entry as pre,
    replica, table_action, update,
};

pub const ADDRESSES: u32 = 33_554_433;
pub const TYPES: u32 = 33_554_434;
pub const SIZES: u32 = 33_554_435;
pub const SPREAD: u32 = 33_554_436;
pub const FORWARD: u32 = 16_777_217;
pub const FLOOD: u32 = 16_777_218;
pub const DROP: u32 = 16_777_219;
pub const TO_CPU: u32 = 16_777_220;
pub const COPY_TO_CPU: u32 = 16_777_221;
pub const FORWARD_ON: u32 = 16_777_222;
pub const NO_ACTION: u32 = 21_257_015;
pub const RECEIVED: u32 = 312_563_876;
pub const MARKS: u32 = 377_508_622;
pub const RATES: u32 = 336_362_326;
pub const CHOICE: u32 = 291_610_908;

pub fn of(entity: entity::Entity) -> Entity {
    Entity {
        entity: Some(entity),
    }
}

pub fn insert(entity: Entity) -> Update {
    Update {
        r#type: update::Type::Insert as i32,
        entity: Some(entity),
    }
}

pub fn modify(entity: Entity) -> Update {
    Update {
        r#type: update::Type::Modify as i32,
        entity: Some(entity),
    }
}

pub fn delete(entity: Entity) -> Update {
    Update {
        r#type: update::Type::Delete as i32,
        entity: Some(entity),
    }
}

pub fn exact(field_id: u32, value: &[u8]) -> FieldMatch {
    let exact = field_match::Exact {
        value: value.to_vec(),
    };
    FieldMatch {
        field_id,
        field_match_type: Some(field_match::FieldMatchType::Exact(exact)),
    }
}

pub fn ternary(field_id: u32, value: &[u8], mask: &[u8]) -> FieldMatch {
    let ternary = field_match::Ternary {
        value: value.to_vec(),
        mask: mask.to_vec(),
    };
    FieldMatch {
        field_id,
        field_match_type: Some(field_match::FieldMatchType::Ternary(ternary)),
    }
}

pub fn optional(field_id: u32, value: &[u8]) -> FieldMatch {
    let optional = field_match::Optional {
        value: value.to_vec(),
    };
    FieldMatch {
        field_id,
        field_match_type: Some(field_match::FieldMatchType::Optional(optional)),
    }
}

pub fn lpm(field_id: u32, value: &[u8], prefix_len: i32) -> FieldMatch {
    let lpm = field_match::Lpm {
        value: value.to_vec(),
        prefix_len,
    };
    FieldMatch {
        field_id,
        field_match_type: Some(field_match::FieldMatchType::Lpm(lpm)),
    }
}

pub fn range(field_id: u32, low: &[u8], high: &[u8]) -> FieldMatch {
    let range = field_match::Range {
        low: low.to_vec(),
        high: high.to_vec(),
    };
    FieldMatch {
        field_id,
        field_match_type: Some(field_match::FieldMatchType::Range(range)),
    }
}

pub fn call(action_id: u32, arguments: &[&[u8]]) -> p4::Action {
    let params = (1..).zip(arguments).map(|(param_id, value)| action::Param {
        param_id,
        value: value.to_vec(),
    });
    p4::Action {
        action_id,
        params: params.collect(),
    }
}

pub fn action(action_id: u32, arguments: &[&[u8]]) -> Option<TableAction> {
    let call = call(action_id, arguments);
    Some(TableAction {
        r#type: Some(table_action::Type::Action(call)),
    })
}

pub fn address(dst: &[u8], action: Option<TableAction>) -> TableEntry {
    TableEntry {
        table_id: ADDRESSES,
        r#match: vec![exact(1, dst)],
        action,
        ..TableEntry::default()
    }
}

pub fn table(entry: TableEntry) -> Entity {
    of(entity::Entity::TableEntry(entry))
}

pub fn counter(index: Option<i64>, packets: Option<i64>) -> Entity {
    of(entity::Entity::CounterEntry(CounterEntry {
        counter_id: RECEIVED,
        index: index.map(|index| Index { index }),
        data: packets.map(|packet_count| CounterData {
            packet_count,
            byte_count: 0,
        }),
    }))
}

pub fn register(index: Option<i64>, value: Option<&[u8]>) -> Entity {
    let data = value.map(|value| p4_data::Data::Bitstring(value.to_vec()));
    of(entity::Entity::RegisterEntry(RegisterEntry {
        register_id: MARKS,
        index: index.map(|index| Index { index }),
        data: data.map(|data| P4Data { data: Some(data) }),
    }))
}

pub fn meter(index: Option<i64>, config: Option<MeterConfig>) -> Entity {
    of(entity::Entity::MeterEntry(MeterEntry {
        meter_id: RATES,
        index: index.map(|index| Index { index }),
        config,
        counter_data: None,
    }))
}

pub fn member(member_id: u32, action: Option<p4::Action>) -> Entity {
    of(entity::Entity::ActionProfileMember(ActionProfileMember {
        action_profile_id: CHOICE,
        member_id,
        action,
    }))
}

pub fn profile_group(group_id: u32, members: &[(u32, i32)]) -> Entity {
    let members = members
        .iter()
        .map(|(member_id, weight)| action_profile_group::Member {
            member_id: *member_id,
            weight: *weight,
            watch_kind: None,
        });
    of(entity::Entity::ActionProfileGroup(ActionProfileGroup {
        action_profile_id: CHOICE,
        group_id,
        members: members.collect(),
        max_size: 0,
    }))
}

fn replicas(ports: &[(u32, u32)]) -> Vec<Replica> {
    let replica = |(port, instance): &(u32, u32)| Replica {
        #[allow(deprecated, reason = "what most controllers send")]
        port_kind: Some(replica::PortKind::EgressPort(*port)),
        instance: *instance,
        backup_replicas: Vec::new(),
    };
    ports.iter().map(replica).collect()
}

pub fn group(id: u32, ports: &[(u32, u32)]) -> Entity {
    let group = MulticastGroupEntry {
        multicast_group_id: id,
        replicas: replicas(ports),
        metadata: Vec::new(),
    };
    replication(pre::Type::MulticastGroupEntry(group))
}

pub fn session(id: u32, ports: &[(u32, u32)], packet_length_bytes: i32) -> Entity {
    let session = CloneSessionEntry {
        session_id: id,
        replicas: replicas(ports),
        class_of_service: 0,
        packet_length_bytes,
    };
    replication(pre::Type::CloneSessionEntry(session))
}

pub fn replication(kind: pre::Type) -> Entity {
    let entry = PacketReplicationEngineEntry { r#type: Some(kind) };
    of(entity::Entity::PacketReplicationEngineEntry(entry))
}
