//! Multicast groups and clone sessions: messages to what the pipeline holds, and back.

use std::collections::BTreeSet;

use super::cookies::{Cookie, CookieKey};
use super::kind::Kind;
use super::proto::p4::v1::{
    BackupReplica, CloneSessionEntry, Entity, MulticastGroupEntry, PacketReplicationEngineEntry,
    Replica as Message, entity, packet_replication_engine_entry as pre, replica,
};
use super::rejection::Rejection;
use super::schema::Schema;
use super::source::{Source, of};
use super::target::Target;
use wormcast_switch_pipeline::{Backups, CloneSession, PortId, Replica};
use wormcast_switch_program::Bits;

/// Highest instance: `standard_metadata.egress_rid` has sixteen bits.
const INSTANCE_MAX: u32 = 65_535;

/// The replicas of a message.
#[derive(Debug, Default)]
struct Parsed {
    replicas: Vec<Replica>,
    backups: Backups,
    /// They use the deprecated field `egress_port`.
    by_number: bool,
}

/// Writes a multicast group or clone session.
pub fn write_replication(
    target: &mut Target<'_>,
    kind: Kind,
    entry: &PacketReplicationEngineEntry,
) -> Result<(), Rejection> {
    match &entry.r#type {
        Some(pre::Type::MulticastGroupEntry(group)) => write_group(target, kind, group),
        Some(pre::Type::CloneSessionEntry(session)) => write_session(target, kind, session),
        None => Err(no_type()),
    }
}

fn no_type() -> Rejection {
    Rejection::invalid(
        "the packet replication entry has no type: multicast_group_entry or clone_session_entry",
    )
}

fn write_group(
    target: &mut Target<'_>,
    kind: Kind,
    group: &MulticastGroupEntry,
) -> Result<(), Rejection> {
    let id = group.multicast_group_id;
    let greatest = target.pipeline.multicast_group_max();
    check_id("multicast group", id, greatest)?;
    let key = CookieKey::Group(id);
    if kind == Kind::Delete {
        target.pipeline.delete_multicast_group(id)?;
        target.cookies.set(key, Cookie::default());
        return Ok(());
    }
    let what = format!("multicast group {id}");
    let parsed = parse_replicas(target.schema, &what, &group.replicas)?;
    let (replicas, backups) = (&parsed.replicas, &parsed.backups);
    let pipeline = &mut target.pipeline;
    let done = match kind {
        Kind::Insert => pipeline.insert_multicast_group_with(id, replicas, backups),
        Kind::Modify | Kind::Delete => pipeline.modify_multicast_group_with(id, replicas, backups),
    };
    done.map_err(|error| in_context(error, &what))?;
    let cookie = Cookie {
        bytes: group.metadata.clone(),
        ports_by_number: parsed.by_number,
        ..Cookie::default()
    };
    target.cookies.set(key, cookie);
    Ok(())
}

/// Errors about the list of replicas do not say whose it is.
fn in_context(error: wormcast_switch_pipeline::ControlError, what: &str) -> Rejection {
    use wormcast_switch_pipeline::ControlError::{InvalidArgument, ResourceExhausted};
    let names_nothing = matches!(error, InvalidArgument { .. } | ResourceExhausted { .. });
    let rejection = Rejection::from(error);
    if names_nothing {
        rejection.within(what)
    } else {
        rejection
    }
}

fn write_session(
    target: &mut Target<'_>,
    kind: Kind,
    entry: &CloneSessionEntry,
) -> Result<(), Rejection> {
    let id = entry.session_id;
    check_id("clone session", id, u32::MAX)?;
    let key = CookieKey::Session(id);
    if kind == Kind::Delete {
        target.pipeline.delete_clone_session(id)?;
        target.cookies.set(key, Cookie::default());
        return Ok(());
    }
    let what = format!("clone session {id}");
    let greatest = target.pipeline.class_of_service_max();
    let class_of_service = match u8::try_from(entry.class_of_service) {
        Ok(class) if class <= greatest => class,
        _ => {
            return Err(Rejection::invalid(format!(
                "{what}: class of service {} is not valid: 0 to {greatest}",
                entry.class_of_service
            )));
        }
    };
    let packet_length_bytes = u16::try_from(entry.packet_length_bytes).map_err(|_| {
        Rejection::invalid(format!(
            "{what}: packet length {} is not valid: 0 to 65535 bytes",
            entry.packet_length_bytes
        ))
    })?;
    let parsed = parse_replicas(target.schema, &what, &entry.replicas)?;
    let session = CloneSession {
        replicas: parsed.replicas,
        backups: parsed.backups,
        group: None,
        class_of_service,
        packet_length_bytes,
    };
    let done = match kind {
        Kind::Insert => target.pipeline.insert_clone_session(id, &session),
        Kind::Modify | Kind::Delete => target.pipeline.modify_clone_session(id, &session),
    };
    done.map_err(|error| in_context(error, &what))?;
    let cookie = Cookie {
        ports_by_number: parsed.by_number,
        ..Cookie::default()
    };
    target.cookies.set(key, cookie);
    Ok(())
}

fn check_id(what: &str, id: u32, greatest: u32) -> Result<(), Rejection> {
    if id == 0 {
        return Err(Rejection::invalid(format!(
            "{what} 0 is not valid: 0 stands for all of them in a read"
        )));
    }
    if id > greatest {
        return Err(Rejection::invalid(format!(
            "{what} {id} is not valid: 1 to {greatest}"
        )));
    }
    Ok(())
}

/// The copies of a group or session.
fn parse_replicas(schema: &Schema, what: &str, replicas: &[Message]) -> Result<Parsed, Rejection> {
    let mut parsed = Parsed::default();
    let mut seen = BTreeSet::new();
    for (place, message) in replicas.iter().enumerate() {
        let (replica, by_number) =
            parse_replica(schema, message).map_err(|rejection| rejection.within(what))?;
        if place == 0 {
            parsed.by_number = by_number;
        }
        let mut backups = Vec::with_capacity(message.backup_replicas.len());
        for backup in &message.backup_replicas {
            let one = parse_backup(schema, replica.port, backup)
                .map_err(|rejection| rejection.within(what))?;
            backups.push(one);
        }
        for one in std::iter::once(&replica).chain(&backups) {
            if !seen.insert(*one) {
                return Err(Rejection::invalid(format!(
                    "{what}: port {} with instance {} is there twice",
                    one.port.0, one.instance
                )));
            }
        }
        parsed.replicas.push(replica);
        if !backups.is_empty() {
            parsed.backups.insert(replica, backups);
        }
    }
    Ok(parsed)
}

fn parse_replica(schema: &Schema, message: &Message) -> Result<(Replica, bool), Rejection> {
    let (port, by_number) = match &message.port_kind {
        #[allow(deprecated, reason = "controllers still set it")]
        Some(replica::PortKind::EgressPort(port)) => (parse_port_number(schema, *port)?, true),
        Some(replica::PortKind::Port(bytes)) => (parse_port(schema, bytes)?, false),
        None => return Err(Rejection::invalid("a replica has no port")),
    };
    let instance = parse_instance(message.instance)?;
    Ok((Replica { port, instance }, by_number))
}

fn parse_backup(
    schema: &Schema,
    primary: PortId,
    message: &BackupReplica,
) -> Result<Replica, Rejection> {
    let backup = Replica {
        port: parse_port(schema, &message.port)
            .map_err(|rejection| rejection.within("a backup replica"))?,
        instance: parse_instance(message.instance)?,
    };
    if backup.port == primary {
        return Err(Rejection::invalid(format!(
            "the backup replica with instance {} has port {}, that of the replica it stands in for",
            backup.instance, primary.0
        )));
    }
    Ok(backup)
}

fn parse_instance(instance: u32) -> Result<u16, Rejection> {
    u16::try_from(instance).map_err(|_| {
        Rejection::invalid(format!(
            "instance {instance} is not valid: 0 to {INSTANCE_MAX}"
        ))
    })
}

/// A port as controllers name it (§"Translation of Port Numbers").
pub fn parse_port(schema: &Schema, bytes: &[u8]) -> Result<PortId, Rejection> {
    let value = match &schema.port_type {
        Some(translation) => translation.parse(bytes)?,
        None if bytes.is_empty() => {
            return Err(Rejection::invalid(format!(
                "the port is empty: 0 to {}",
                schema.port_max
            )));
        }
        None => Bits::from_bytes(bytes),
    };
    let port = value.to_u64().and_then(|port| u16::try_from(port).ok());
    match port {
        Some(port) if port <= schema.port_max => Ok(PortId(port)),
        _ => Err(bad_port(schema, &value)),
    }
}

/// A port in one of the deprecated fields that hold numbers. Where controllers name ports
/// otherwise, the number is the one they use.
pub fn parse_port_number(schema: &Schema, port: u32) -> Result<PortId, Rejection> {
    match &schema.port_type {
        Some(translation) if !translation.is_text() => parse_port(
            schema,
            &Bits::from_u64(u64::from(port)).to_canonical_bytes(),
        ),
        Some(translation) => Err(Rejection::invalid(format!(
            "port {port}: ports have names of type `{}`; use the field of type bytes",
            translation.name()
        ))),
        None => match u16::try_from(port) {
            Ok(number) if number <= schema.port_max => Ok(PortId(number)),
            Ok(_) | Err(_) => Err(bad_port(schema, &port)),
        },
    }
}

fn bad_port(schema: &Schema, port: &dyn std::fmt::Display) -> Rejection {
    Rejection::invalid(format!("{port} is not a port: 0 to {}", schema.port_max))
}

/// The bytes for a port.
pub fn write_port(schema: &Schema, port: PortId) -> Vec<u8> {
    let value = Bits::from_u64(u64::from(port.0));
    match &schema.port_type {
        Some(translation) => translation.write(&value),
        None => value.to_canonical_bytes(),
    }
}

/// The number for a port, for the deprecated fields.
pub fn write_port_number(schema: &Schema, port: PortId) -> u32 {
    let value = Bits::from_bytes(&write_port(schema, port));
    let number = value.to_u64().and_then(|number| u32::try_from(number).ok());
    number.unwrap_or_else(|| u32::from(port.0))
}

fn write_replicas(
    schema: &Schema,
    replicas: &[Replica],
    backups: &Backups,
    by_number: bool,
) -> Vec<Message> {
    let write_one = |replica: &Replica| {
        #[allow(deprecated, reason = "given back as it was written")]
        let port = if by_number {
            replica::PortKind::EgressPort(write_port_number(schema, replica.port))
        } else {
            replica::PortKind::Port(write_port(schema, replica.port))
        };
        let backups = backups.get(replica).into_iter().flatten();
        let backups = backups.map(|backup| BackupReplica {
            port: write_port(schema, backup.port),
            instance: u32::from(backup.instance),
        });
        Message {
            port_kind: Some(port),
            instance: u32::from(replica.instance),
            backup_replicas: backups.collect(),
        }
    };
    replicas.iter().map(write_one).collect()
}

/// Groups or sessions that a filter matches: one by its id, or with the id 0 all.
pub fn read_replication(
    source: &Source<'_>,
    filter: &PacketReplicationEngineEntry,
) -> Result<Vec<Entity>, Rejection> {
    match &filter.r#type {
        Some(pre::Type::MulticastGroupEntry(group)) => {
            read_groups(source, group.multicast_group_id)
        }
        Some(pre::Type::CloneSessionEntry(session)) => read_sessions(source, session.session_id),
        None => Err(no_type()),
    }
}

fn replication(entry: pre::Type) -> Entity {
    let entry = PacketReplicationEngineEntry {
        r#type: Some(entry),
    };
    of(entity::Entity::PacketReplicationEngineEntry(entry))
}

fn read_groups(source: &Source<'_>, wanted: u32) -> Result<Vec<Entity>, Rejection> {
    let mut found = Vec::new();
    for (id, _) in source.pipeline.multicast_groups() {
        if wanted != 0 && wanted != id {
            continue;
        }
        if let Some((replicas, backups)) = source.pipeline.multicast_group(id) {
            let cookie = source.cookies.get(&CookieKey::Group(id));
            let by_number = cookie.ports_by_number;
            found.push(replication(pre::Type::MulticastGroupEntry(
                MulticastGroupEntry {
                    multicast_group_id: id,
                    replicas: write_replicas(source.schema, replicas, backups, by_number),
                    metadata: cookie.bytes,
                },
            )));
        }
    }
    existing("multicast group", wanted, found)
}

fn read_sessions(source: &Source<'_>, wanted: u32) -> Result<Vec<Entity>, Rejection> {
    let mut found = Vec::new();
    for (id, session) in source.pipeline.clone_sessions() {
        // Session 0, which other interfaces may make, cannot be told from a wildcard.
        if id == 0 || (wanted != 0 && wanted != id) {
            continue;
        }
        let cookie = source.cookies.get(&CookieKey::Session(id));
        let (replicas, backups) = (&session.replicas, &session.backups);
        let by_number = cookie.ports_by_number;
        found.push(replication(pre::Type::CloneSessionEntry(
            CloneSessionEntry {
                session_id: id,
                replicas: write_replicas(source.schema, replicas, backups, by_number),
                class_of_service: u32::from(session.class_of_service),
                packet_length_bytes: i32::from(session.packet_length_bytes),
            },
        )));
    }
    existing("clone session", wanted, found)
}

fn existing(what: &str, id: u32, found: Vec<Entity>) -> Result<Vec<Entity>, Rejection> {
    if id != 0 && found.is_empty() {
        return Err(Rejection::not_found(format!("{what} {id} does not exist")));
    }
    Ok(found)
}
