//! Methods of `simple_switch`: mirroring sessions, egress queues, time; and ports.

use super::arguments::{Arguments, integer};
use super::context::Context;
use super::failure::{Failure, MirrorError, Outcome, PortError};
use super::wire::{Type, Value};
use wormcast_switch_dataplane::Queues;
use wormcast_switch_pipeline::{CloneSession, PortId, Replica};

/// Highest number of a port.
const PORT_MAX: i64 = 511;

fn port(number: i64) -> Result<PortId, String> {
    match number {
        0..=PORT_MAX => Ok(PortId(number as u16)),
        _ => Err(format!("port {number}; valid: 0 to {PORT_MAX}")),
    }
}

fn session_id(call: &Arguments) -> Result<u32, Failure> {
    let id = call.integer(0);
    u32::try_from(id).map_err(|_| {
        let why = format!("mirroring session {id}; it cannot be below 0");
        MirrorError::NotFound.because(why)
    })
}

/// Adds or replaces a session, as BMv2 does.
fn put_session(context: &mut Context<'_>, id: u32, session: &CloneSession) -> Result<(), Failure> {
    let pipeline = context.pipeline()?;
    let known = pipeline.clone_sessions().any(|(known, _)| known == id);
    let put = if known {
        pipeline.modify_clone_session(id, session)
    } else {
        pipeline.insert_clone_session(id, session)
    };
    put.map_err(|error| Failure::internal(error.to_string()))
}

fn session(egress: Option<i64>, group: Option<i64>) -> Result<CloneSession, Failure> {
    let mut session = CloneSession::default();
    if let Some(number) = egress {
        session.replicas.push(Replica {
            port: port(number).map_err(Failure::internal)?,
            instance: 0,
        });
    }
    if let Some(group) = group {
        let valid = u32::try_from(group);
        let valid = valid.map_err(|_| Failure::internal(format!("multicast group {group}")));
        session.group = Some(valid?);
    }
    Ok(session)
}

/// `mirroring_session_add`.
pub fn add_session(context: &mut Context<'_>, call: &Arguments) -> Outcome {
    let id = session_id(call)?;
    let egress = call.field(1, 1).map(integer);
    let group = call.field(1, 2).map(integer);
    put_session(context, id, &session(egress, group)?)?;
    Ok(None)
}

/// `mirroring_mapping_add`, the older form.
pub fn add_mapping(context: &mut Context<'_>, call: &Arguments) -> Outcome {
    let added = session_id(call)
        .and_then(|id| put_session(context, id, &session(Some(call.integer(1)), None)?));
    Ok(Some(Value::I32(if added.is_ok() { 0 } else { 1 })))
}

fn delete(context: &mut Context<'_>, call: &Arguments) -> Result<(), Failure> {
    let id = session_id(call)?;
    let gone = context.pipeline()?.delete_clone_session(id);
    gone.map_err(|error| MirrorError::NotFound.because(error.to_string()))
}

/// `mirroring_session_delete`.
pub fn delete_session(context: &mut Context<'_>, call: &Arguments) -> Outcome {
    delete(context, call).map(|()| None)
}

/// `mirroring_mapping_delete`, the older form: whether there was one.
pub fn delete_mapping(context: &mut Context<'_>, call: &Arguments) -> Outcome {
    let deleted = delete(context, call).is_ok();
    Ok(Some(Value::I32(i32::from(deleted))))
}

fn find(context: &mut Context<'_>, call: &Arguments) -> Result<CloneSession, Failure> {
    let id = session_id(call)?;
    let mut sessions = context.pipeline()?.clone_sessions();
    let found = sessions.find(|(known, _)| *known == id);
    found
        .map(|(_, session)| session.clone())
        .ok_or_else(|| MirrorError::NotFound.because(format!("there is no mirroring session {id}")))
}

fn only_port(session: &CloneSession) -> Option<i32> {
    match session.replicas.as_slice() {
        [replica] => Some(i32::from(replica.port.0)),
        _ => None,
    }
}

/// `mirroring_session_get`.
pub fn get_session(context: &mut Context<'_>, call: &Arguments) -> Outcome {
    let session = find(context, call)?;
    let port = only_port(&session).map(|port| (1, Value::I32(port)));
    let group = session.group.map(|group| (2, Value::I32(group as i32)));
    let fields = port.into_iter().chain(group).collect();
    Ok(Some(Value::Struct(fields)))
}

/// `mirroring_mapping_get_egress_port`, the older form; −1 where there is none.
pub fn get_mapping(context: &mut Context<'_>, call: &Arguments) -> Outcome {
    let session = find(context, call).ok();
    let port = session.as_ref().and_then(only_port);
    Ok(Some(Value::I32(port.unwrap_or(-1))))
}

fn queues(given_port: Option<i64>, priority: Option<i64>) -> Result<Queues, String> {
    let priority = priority.map(|priority| {
        u8::try_from(priority).map_err(|_| format!("priority {priority}; valid: 0 to 7"))
    });
    Ok(Queues {
        port: given_port.map(port).transpose()?,
        priority: priority.transpose()?,
    })
}

fn set_depth(
    context: &mut Context<'_>,
    which: Result<Queues, String>,
    frames: i64,
) -> Result<(), String> {
    let depth = usize::try_from(frames).map_err(|_| format!("a depth of {frames}"))?;
    context.switch.set_queue_depth(which?, depth)
}

fn set_rate(
    context: &mut Context<'_>,
    which: Result<Queues, String>,
    rate: i64,
) -> Result<(), String> {
    let rate = u64::try_from(rate).map_err(|_| format!("a rate of {rate}"))?;
    context.switch.set_queue_rate(which?, rate)
}

/// 0 as BMv2 answers; what cannot be done is an error, where BMv2 would say nothing.
fn done(result: Result<(), String>) -> Outcome {
    result
        .map(|()| Some(Value::I32(0)))
        .map_err(Failure::internal)
}

/// `set_egress_priority_queue_depth`.
pub fn set_priority_depth(context: &mut Context<'_>, call: &Arguments) -> Outcome {
    let which = queues(Some(call.integer(0)), Some(call.integer(1)));
    done(set_depth(context, which, call.integer(2)))
}

/// `set_egress_queue_depth`.
pub fn set_port_depth(context: &mut Context<'_>, call: &Arguments) -> Outcome {
    let which = queues(Some(call.integer(0)), None);
    done(set_depth(context, which, call.integer(1)))
}

/// `set_all_egress_queue_depths`.
pub fn set_all_depths(context: &mut Context<'_>, call: &Arguments) -> Outcome {
    done(set_depth(context, queues(None, None), call.integer(0)))
}

/// `set_egress_priority_queue_rate`.
pub fn set_priority_rate(context: &mut Context<'_>, call: &Arguments) -> Outcome {
    let which = queues(Some(call.integer(0)), Some(call.integer(1)));
    done(set_rate(context, which, call.integer(2)))
}

/// `set_egress_queue_rate`.
pub fn set_port_rate(context: &mut Context<'_>, call: &Arguments) -> Outcome {
    let which = queues(Some(call.integer(0)), None);
    done(set_rate(context, which, call.integer(1)))
}

/// `set_all_egress_queue_rates`.
pub fn set_all_rates(context: &mut Context<'_>, call: &Arguments) -> Outcome {
    done(set_rate(context, queues(None, None), call.integer(0)))
}

/// `get_time_elapsed_us`.
pub fn elapsed(context: &mut Context<'_>, _: &Arguments) -> Outcome {
    Ok(Some(Value::I64(context.switch.elapsed_us() as i64)))
}

/// `get_time_since_epoch_us`.
pub fn since_epoch(context: &mut Context<'_>, _: &Arguments) -> Outcome {
    Ok(Some(Value::I64(context.switch.unix_us() as i64)))
}

/// `bm_dev_mgr_add_port`.
pub fn add_port(context: &mut Context<'_>, call: &Arguments) -> Outcome {
    if !call.bytes(2).is_empty() {
        let why = "a capture of a port that is added; start with --pcap";
        return Err(PortError::Error.because(why));
    }
    let added = port(call.integer(1)).and_then(|port| context.switch.add_port(port, call.text(0)));
    added
        .map(|()| None)
        .map_err(|why| PortError::Error.because(why))
}

/// `bm_dev_mgr_remove_port`.
pub fn remove_port(context: &mut Context<'_>, call: &Arguments) -> Outcome {
    let removed = port(call.integer(0)).and_then(|port| context.switch.remove_port(port));
    removed
        .map(|()| None)
        .map_err(|why| PortError::Error.because(why))
}

/// `bm_dev_mgr_show_ports`.
pub fn ports(context: &mut Context<'_>, _: &Arguments) -> Outcome {
    let ports = context.switch.ports().into_iter().map(|port| {
        Value::Struct(vec![
            (1, Value::I32(i32::from(port.number.0))),
            (2, Value::text(&port.interface)),
            (3, Value::Bool(port.up)),
            (4, Value::Map(Type::Binary, Type::Binary, Vec::new())),
        ])
    });
    Ok(Some(Value::List(Type::Struct, ports.collect())))
}
