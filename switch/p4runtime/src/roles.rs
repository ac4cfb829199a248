//! What a role may see and do (§"Role Config").
//!
//! The specification leaves the scheme of `Role.config` to server and clients. This is the
//! one of Stratum, `stratum.P4RoleConfig`: lists of ids of the P4Info, whether packet-ins
//! are sent and which, whether a pipeline may be set.

use std::collections::BTreeSet;
use std::sync::Arc;

use prost::Message;
use tonic::Code;

use super::proto::google::protobuf::Any;
use super::proto::p4::v1::{Entity, PacketIn, entity};
use super::rejection::Rejection;

/// The only type of `Role.config` that is understood.
pub const ROLE_CONFIG_TYPE: &str = "stratum.P4RoleConfig";

/// Most ids in the two lists of a role config together.
pub const ROLE_IDS_MAX: usize = 65_536;

/// `stratum.P4RoleConfig`.
#[derive(Clone, PartialEq, Message)]
pub struct P4RoleConfig {
    /// Ids of what this role alone writes.
    #[prost(uint32, repeated, tag = "1")]
    pub exclusive_p4_ids: Vec<u32>,
    /// Ids of what this role and others write.
    #[prost(uint32, repeated, tag = "2")]
    pub shared_p4_ids: Vec<u32>,
    /// Which packet-ins are sent; unset: all.
    #[prost(message, optional, tag = "3")]
    pub packet_in_filter: Option<PacketFilter>,
    /// Whether packet-ins are sent at all.
    #[prost(bool, tag = "4")]
    pub receives_packet_ins: bool,
    /// Whether the role may set the forwarding pipeline config.
    #[prost(bool, tag = "5")]
    pub can_push_pipeline: bool,
}

/// `stratum.P4RoleConfig.PacketFilter`: packet-ins with this value of a metadata.
#[derive(Clone, PartialEq, Message)]
pub struct PacketFilter {
    /// Id of the metadata in the P4Info.
    #[prost(uint32, tag = "1")]
    pub metadata_id: u32,
    /// Its value; leading zeros do not count.
    #[prost(bytes = "vec", tag = "2")]
    pub value: Vec<u8>,
}

/// What a role may do.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Access {
    /// Everything: the default role, and roles without a config.
    #[default]
    Full,
    Limited(Arc<Limits>),
}

/// A role config that was found good.
#[derive(Debug, PartialEq)]
pub struct Limits {
    role: String,
    config: P4RoleConfig,
    ids: BTreeSet<u32>,
}

impl Access {
    /// Reads the config of a role.
    pub fn parse(role: &str, config: Option<&Any>) -> Result<Self, Rejection> {
        let Some(any) = config else {
            return Ok(Self::Full);
        };
        if role.is_empty() {
            return Err(Rejection::invalid(
                "role.config must be unset: the default role, which has no name, has full access",
            ));
        }
        let limits = Limits::parse(role, any)
            .map_err(|rejection| rejection.within(format_args!("role `{role}`: role.config")))?;
        Ok(Self::Limited(Arc::new(limits)))
    }

    /// Refuses a write of an entity that is not the role's.
    pub fn check_write(&self, entity: &entity::Entity) -> Result<(), Rejection> {
        let Self::Limited(limits) = self else {
            return Ok(());
        };
        let (what, id) = identify(entity);
        let allowed = id.is_some_and(|id| limits.ids.contains(&id));
        if allowed {
            return Ok(());
        }
        let message = match id {
            Some(id) => format!(
                "role `{}` may not write {what} {id}: it is not among its exclusive or shared ids",
                limits.role
            ),
            None => format!(
                "role `{}` may not write {what}: they have no id that a role config could list",
                limits.role
            ),
        };
        Err(Rejection::new(Code::PermissionDenied, message))
    }

    /// Whether what has this id is the role's.
    pub fn includes(&self, id: u32) -> bool {
        match self {
            Self::Full => true,
            Self::Limited(limits) => limits.ids.contains(&id),
        }
    }

    /// Whether a read under the role shows an entity.
    pub fn shows(&self, entity: &Entity) -> bool {
        match (self, &entity.entity) {
            (Self::Full, _) => true,
            (Self::Limited(limits), Some(entity)) => {
                let (_, id) = identify(entity);
                id.is_some_and(|id| limits.ids.contains(&id))
            }
            (Self::Limited(_), None) => false,
        }
    }

    /// Whether a packet-in is for the role.
    pub fn takes_packet(&self, packet: &PacketIn) -> bool {
        let Self::Limited(limits) = self else {
            return true;
        };
        let passes = |filter: &PacketFilter| {
            let mut metadata = packet.metadata.iter();
            metadata.any(|given| {
                given.metadata_id == filter.metadata_id
                    && without_zeros(&given.value) == without_zeros(&filter.value)
            })
        };
        limits.config.receives_packet_ins
            && limits.config.packet_in_filter.as_ref().is_none_or(passes)
    }

    /// Refuses to set a forwarding pipeline config.
    pub fn check_push(&self) -> Result<(), Rejection> {
        match self {
            Self::Limited(limits) if !limits.config.can_push_pipeline => Err(Rejection::new(
                Code::PermissionDenied,
                format!(
                    "role `{}` may not set the forwarding pipeline config: can_push_pipeline is \
                     false",
                    limits.role
                ),
            )),
            _ => Ok(()),
        }
    }

    /// Refuses ids that one of both roles has for itself.
    pub fn check_disjoint(&self, other: &Self) -> Result<(), Rejection> {
        let (Self::Limited(limits), Self::Limited(others)) = (self, other) else {
            return Ok(());
        };
        let exclusive = limits.config.exclusive_p4_ids.iter();
        let mine = exclusive.clone().find(|id| others.ids.contains(id));
        let theirs = others.config.exclusive_p4_ids.iter();
        let Some(id) = mine.or_else(|| theirs.clone().find(|id| limits.ids.contains(id))) else {
            return Ok(());
        };
        Err(Rejection::invalid(format!(
            "role `{}`: role.config: id {id} is exclusive, and role `{}` has it too",
            limits.role, others.role
        )))
    }
}

impl Limits {
    fn parse(role: &str, any: &Any) -> Result<Self, Rejection> {
        let kind = any.type_url.rsplit('/').next().unwrap_or_default();
        if kind != ROLE_CONFIG_TYPE {
            return Err(Rejection::invalid(format!(
                "type `{}` is not understood: type.googleapis.com/{ROLE_CONFIG_TYPE}",
                any.type_url
            )));
        }
        let config = P4RoleConfig::decode(any.value.as_slice())
            .map_err(|error| Rejection::invalid(format!("not a {ROLE_CONFIG_TYPE}: {error}")))?;
        let count = config.exclusive_p4_ids.len() + config.shared_p4_ids.len();
        if count > ROLE_IDS_MAX {
            return Err(Rejection::invalid(format!(
                "it lists {count} ids, more than {ROLE_IDS_MAX}"
            )));
        }
        let mut ids = BTreeSet::new();
        for &id in config.exclusive_p4_ids.iter().chain(&config.shared_p4_ids) {
            if id == 0 {
                return Err(Rejection::invalid("0 is not an id"));
            }
            if !ids.insert(id) {
                return Err(Rejection::invalid(format!("id {id} is there twice")));
            }
        }
        if config.packet_in_filter.is_some() && !config.receives_packet_ins {
            return Err(Rejection::invalid(
                "it has a packet_in_filter, but receives_packet_ins is false",
            ));
        }
        Ok(Self {
            role: role.to_owned(),
            config,
            ids,
        })
    }
}

fn without_zeros(bytes: &[u8]) -> &[u8] {
    let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
    &bytes[zeros..]
}

/// What kind of thing an entity is about, and its id in the P4Info if it has one.
fn identify(entity: &entity::Entity) -> (&'static str, Option<u32>) {
    let of_table = |entry: Option<&super::proto::p4::v1::TableEntry>| {
        ("table", Some(entry.map_or(0, |entry| entry.table_id)))
    };
    match entity {
        entity::Entity::TableEntry(entry) => of_table(Some(entry)),
        entity::Entity::DirectCounterEntry(entry) => of_table(entry.table_entry.as_ref()),
        entity::Entity::DirectMeterEntry(entry) => of_table(entry.table_entry.as_ref()),
        entity::Entity::ActionProfileMember(member) => {
            ("action profile", Some(member.action_profile_id))
        }
        entity::Entity::ActionProfileGroup(group) => {
            ("action profile", Some(group.action_profile_id))
        }
        entity::Entity::MeterEntry(entry) => ("meter", Some(entry.meter_id)),
        entity::Entity::CounterEntry(entry) => ("counter", Some(entry.counter_id)),
        entity::Entity::RegisterEntry(entry) => ("register", Some(entry.register_id)),
        entity::Entity::ValueSetEntry(entry) => ("value set", Some(entry.value_set_id)),
        entity::Entity::DigestEntry(entry) => ("digest", Some(entry.digest_id)),
        entity::Entity::ExternEntry(entry) => ("extern", Some(entry.extern_id)),
        entity::Entity::PacketReplicationEngineEntry(_) => ("packet replication entries", None),
    }
}

#[cfg(test)]
mod tests {
    use super::super::proto::p4::v1::{PacketMetadata, TableEntry};
    use super::*;

    fn any(config: &P4RoleConfig) -> Any {
        Any {
            type_url: format!("type.googleapis.com/{ROLE_CONFIG_TYPE}"),
            value: config.encode_to_vec(),
        }
    }

    fn access(config: &P4RoleConfig) -> Access {
        Access::parse("r", Some(&any(config))).unwrap()
    }

    fn refuse(config: &P4RoleConfig) -> String {
        let rejection = Access::parse("r", Some(&any(config))).unwrap_err();
        assert_eq!(rejection.code, Code::InvalidArgument);
        rejection.message
    }

    /// The field numbers are those that Stratum's clients send.
    #[test]
    fn the_encoding_is_that_of_stratum() {
        let bytes = [
            0x0a, 1, 1, // exclusive_p4_ids: 1
            0x12, 2, 2, 3, // shared_p4_ids: 2, 3
            0x1a, 5, 0x08, 4, 0x12, 1, 5, // packet_in_filter: 4 is 5
            0x20, 1, // receives_packet_ins
            0x28, 1, // can_push_pipeline
        ];
        let config = P4RoleConfig {
            exclusive_p4_ids: vec![1],
            shared_p4_ids: vec![2, 3],
            packet_in_filter: Some(PacketFilter {
                metadata_id: 4,
                value: vec![5],
            }),
            receives_packet_ins: true,
            can_push_pipeline: true,
        };
        assert_eq!(P4RoleConfig::decode(bytes.as_slice()), Ok(config));
    }

    #[test]
    fn configs_that_make_no_sense_are_refused() {
        let ids = |exclusive: &[u32], shared: &[u32]| P4RoleConfig {
            exclusive_p4_ids: exclusive.to_vec(),
            shared_p4_ids: shared.to_vec(),
            ..P4RoleConfig::default()
        };
        assert_eq!(
            refuse(&ids(&[0], &[])),
            "role `r`: role.config: 0 is not an id"
        );
        assert_eq!(
            refuse(&ids(&[1], &[1])),
            "role `r`: role.config: id 1 is there twice"
        );
        let filter = P4RoleConfig {
            packet_in_filter: Some(PacketFilter::default()),
            ..P4RoleConfig::default()
        };
        assert_eq!(
            refuse(&filter),
            "role `r`: role.config: it has a packet_in_filter, but receives_packet_ins is false"
        );
        let other = Any {
            type_url: "type.googleapis.com/x.Y".to_owned(),
            value: Vec::new(),
        };
        assert_eq!(
            Access::parse("r", Some(&other)).unwrap_err().message,
            "role `r`: role.config: type `type.googleapis.com/x.Y` is not understood: \
             type.googleapis.com/stratum.P4RoleConfig"
        );
        let broken = Any {
            value: vec![0x0a, 9],
            ..any(&P4RoleConfig::default())
        };
        let rejection = Access::parse("r", Some(&broken)).unwrap_err();
        assert!(rejection.message.contains("not a stratum.P4RoleConfig"));
    }

    #[test]
    fn a_role_writes_and_sees_what_it_lists() {
        let access = access(&P4RoleConfig {
            exclusive_p4_ids: vec![1],
            shared_p4_ids: vec![2],
            ..P4RoleConfig::default()
        });
        let entry = |table_id| {
            entity::Entity::TableEntry(TableEntry {
                table_id,
                ..TableEntry::default()
            })
        };
        assert_eq!(access.check_write(&entry(1)), Ok(()));
        assert_eq!(access.check_write(&entry(2)), Ok(()));
        let rejection = access.check_write(&entry(3)).unwrap_err();
        assert_eq!(rejection.code, Code::PermissionDenied);
        assert_eq!(
            rejection.message,
            "role `r` may not write table 3: it is not among its exclusive or shared ids"
        );
        let shown = |table_id| {
            access.shows(&Entity {
                entity: Some(entry(table_id)),
            })
        };
        assert!(shown(1) && !shown(3));
        assert!(Access::Full.check_write(&entry(3)).is_ok());
        assert!(access.check_push().is_err());
    }

    #[test]
    fn packet_ins_are_filtered_by_a_value() {
        let packet = |value: &[u8]| PacketIn {
            payload: Vec::new(),
            metadata: vec![PacketMetadata {
                metadata_id: 4,
                value: value.to_vec(),
            }],
        };
        let mut config = P4RoleConfig::default();
        assert!(!access(&config).takes_packet(&packet(&[5])));
        config.receives_packet_ins = true;
        assert!(access(&config).takes_packet(&packet(&[5])));
        config.packet_in_filter = Some(PacketFilter {
            metadata_id: 4,
            value: vec![0, 5],
        });
        assert!(access(&config).takes_packet(&packet(&[5])));
        assert!(!access(&config).takes_packet(&packet(&[6])));
    }

    #[test]
    fn exclusive_ids_are_not_shared() {
        let ids = |exclusive: &[u32], shared: &[u32]| {
            access(&P4RoleConfig {
                exclusive_p4_ids: exclusive.to_vec(),
                shared_p4_ids: shared.to_vec(),
                ..P4RoleConfig::default()
            })
        };
        assert!(ids(&[1], &[2]).check_disjoint(&ids(&[3], &[2])).is_ok());
        assert!(ids(&[1], &[2]).check_disjoint(&ids(&[2], &[])).is_err());
        assert!(ids(&[2], &[]).check_disjoint(&ids(&[1], &[2])).is_err());
        assert!(ids(&[2], &[]).check_disjoint(&Access::Full).is_ok());
    }
}
