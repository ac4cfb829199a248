//! Multicast groups and clone sessions: messages to what the pipeline holds, and back.

use std::collections::BTreeSet;

use super::proto::p4::v1::{CloneSessionEntry, MulticastGroupEntry, Replica as Message, replica};
use super::rejection::Rejection;
use crate::pipeline::{CloneSession, PortId, Replica};

/// Highest egress port: `standard_metadata.egress_port` has nine bits.
const PORT_MAX: u32 = 511;

/// Highest instance: `standard_metadata.egress_rid` has sixteen bits.
const INSTANCE_MAX: u32 = 65_535;

/// Id of a group or session in a write.
pub fn parse_id(what: &str, id: u32) -> Result<u16, Rejection> {
    if id == 0 {
        return Err(Rejection::invalid(format!(
            "{what} 0 is not valid: 0 stands for all of them in a read"
        )));
    }
    u16::try_from(id)
        .map_err(|_| Rejection::invalid(format!("{what} {id} is not valid: 1 to 32767")))
}

/// The copies of a group or session.
pub fn parse_replicas(what: &str, replicas: &[Message]) -> Result<Vec<Replica>, Rejection> {
    let mut seen = BTreeSet::new();
    let mut parsed = Vec::with_capacity(replicas.len());
    for replica in replicas {
        let one = parse_replica(replica).map_err(|rejection| rejection.within(what))?;
        if !seen.insert(one) {
            return Err(Rejection::invalid(format!(
                "{what}: port {} with instance {} is there twice",
                one.port.0, one.instance
            )));
        }
        parsed.push(one);
    }
    Ok(parsed)
}

fn parse_replica(replica: &Message) -> Result<Replica, Rejection> {
    if !replica.backup_replicas.is_empty() {
        return Err(Rejection::unimplemented(
            "backup replicas are not supported",
        ));
    }
    let bad_port = |port: &dyn std::fmt::Display| {
        Rejection::invalid(format!("{port} is not a port: 0 to {PORT_MAX}"))
    };
    let port = match &replica.port_kind {
        #[allow(deprecated, reason = "controllers still set it")]
        Some(replica::PortKind::EgressPort(port)) => {
            if *port > PORT_MAX {
                return Err(bad_port(port));
            }
            *port
        }
        Some(replica::PortKind::Port(bytes)) => {
            let value = crate::pipeline::Bits::from_bytes(bytes);
            let port = value.to_u64().and_then(|port| u32::try_from(port).ok());
            match port {
                Some(port) if port <= PORT_MAX && !bytes.is_empty() => port,
                _ => return Err(bad_port(&value)),
            }
        }
        None => return Err(Rejection::invalid("a replica has no port")),
    };
    if replica.instance > INSTANCE_MAX {
        return Err(Rejection::invalid(format!(
            "instance {} is not valid: 0 to {INSTANCE_MAX}",
            replica.instance
        )));
    }
    Ok(Replica {
        port: PortId(port as u16),
        instance: replica.instance as u16,
    })
}

/// What a clone session's message says.
pub fn parse_session(entry: &CloneSessionEntry) -> Result<CloneSession, Rejection> {
    let what = format!("clone session {}", entry.session_id);
    if entry.class_of_service != 0 {
        return Err(Rejection::invalid(format!(
            "{what}: class of service {} is not valid: 0",
            entry.class_of_service
        )));
    }
    let packet_length_bytes = u16::try_from(entry.packet_length_bytes).map_err(|_| {
        Rejection::invalid(format!(
            "{what}: packet length {} is not valid: 0 to 65535 bytes",
            entry.packet_length_bytes
        ))
    })?;
    Ok(CloneSession {
        replicas: parse_replicas(&what, &entry.replicas)?,
        packet_length_bytes,
    })
}

/// The message for a group.
pub fn write_group(id: u16, replicas: &[Replica], metadata: Vec<u8>) -> MulticastGroupEntry {
    MulticastGroupEntry {
        multicast_group_id: u32::from(id),
        replicas: replicas.iter().map(write_replica).collect(),
        metadata,
    }
}

/// The message for a session.
pub fn write_session(id: u16, session: &CloneSession) -> CloneSessionEntry {
    CloneSessionEntry {
        session_id: u32::from(id),
        replicas: session.replicas.iter().map(write_replica).collect(),
        class_of_service: 0,
        packet_length_bytes: i32::from(session.packet_length_bytes),
    }
}

/// The deprecated field `egress_port` is what every controller reads, the newer one too.
fn write_replica(replica: &Replica) -> Message {
    #[allow(deprecated, reason = "controllers still read it")]
    let port = replica::PortKind::EgressPort(u32::from(replica.port.0));
    Message {
        port_kind: Some(port),
        instance: u32::from(replica.instance),
        backup_replicas: Vec::new(),
    }
}
