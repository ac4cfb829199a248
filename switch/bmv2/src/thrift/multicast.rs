//! Calls that make and change multicast groups.

use super::arguments::Arguments;
use super::context::Context;
use super::failure::{Failure, MulticastError, Outcome};
use super::multicast_nodes::{Multicast, Node, Numbers};
use super::wire::Value;
use wormcast_switch_pipeline::Pipeline;

pub const NODES_MAX: usize = 65_536;

/// Most link aggregation groups, as in BMv2.
pub const LAGS_MAX: usize = 256;

/// Highest port of a map.
const PORT_MAX: usize = 511;

/// Changes nodes and groups together, or nothing.
fn change<T>(
    context: &mut Context<'_>,
    change: impl FnOnce(&mut Multicast, &mut Pipeline) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let (pipeline, state) = context.parts()?;
    state.multicast.reconcile(pipeline);
    let mut changed = state.multicast.clone();
    let result = change(&mut changed, pipeline)?;
    changed.apply(pipeline)?;
    state.multicast = changed;
    Ok(result)
}

/// A map of ports or link aggregation groups: a digit for each, the last for number 0.
fn read_map(map: &[u8], most: usize) -> Result<Numbers, Failure> {
    let mut numbers = Numbers::new();
    for (number, digit) in map.iter().rev().enumerate() {
        match digit {
            b'0' => {}
            b'1' if number <= most => {
                numbers.insert(number as u16);
            }
            b'1' => {
                let why = format!("number {number} in a map; valid: 0 to {most}");
                return Err(MulticastError::Error.because(why));
            }
            _ => return Err(MulticastError::Error.because("a map is of zeros and ones")),
        }
    }
    Ok(numbers)
}

/// `bm_mc_mgrp_create`.
pub fn create_group(context: &mut Context<'_>, call: &Arguments) -> Outcome {
    let id = call.integer(1);
    let group = u32::try_from(id);
    let group = group.map_err(|_| {
        MulticastError::InvalidGroup.because(format!("group {id}; valid: 1 to 65535"))
    })?;
    change(context, |multicast, pipeline| {
        if multicast.members.contains_key(&group) {
            return Ok(());
        }
        use wormcast_switch_pipeline::ControlError;
        pipeline
            .insert_multicast_group(group, &[])
            .map_err(|error| {
                match error {
                    ControlError::ResourceExhausted { .. } => MulticastError::Full,
                    _ => MulticastError::InvalidGroup,
                }
                .because(error.to_string())
            })?;
        multicast.members.insert(group, Vec::new());
        Ok(())
    })?;
    Ok(Some(Value::I32(group as i32)))
}

/// `bm_mc_mgrp_destroy`; its nodes are free again. A group that is not there is gone.
pub fn destroy_group(context: &mut Context<'_>, call: &Arguments) -> Outcome {
    change(context, |multicast, pipeline| {
        let Ok(group) = multicast.group(call.integer(1)) else {
            return Ok(());
        };
        for node in multicast.members.remove(&group).into_iter().flatten() {
            if let Some(node) = multicast.nodes.get_mut(&node) {
                node.group = None;
            }
        }
        let gone = pipeline.delete_multicast_group(group);
        gone.map_err(|error| MulticastError::Error.because(error.to_string()))
    })?;
    Ok(None)
}

fn create(context: &mut Context<'_>, call: &Arguments, lags: &[u8]) -> Outcome {
    let instance = call.integer(1);
    let instance = u16::try_from(instance).map_err(|_| {
        let why = format!("replica number {instance}; valid: 0 to 65535");
        MulticastError::Error.because(why)
    })?;
    let node = Node {
        instance,
        ports: read_map(call.bytes(2), PORT_MAX)?,
        lags: read_map(lags, LAGS_MAX - 1)?,
        group: None,
    };
    let handle = change(context, |multicast, _| {
        if multicast.nodes.len() >= NODES_MAX {
            return Err(MulticastError::Full.because(format!("there are {NODES_MAX} nodes")));
        }
        let handle = multicast.unused();
        multicast.nodes.insert(handle, node);
        Ok(handle)
    })?;
    Ok(Some(Value::I32(handle as i32)))
}

/// `bm_mc_node_create` of `simple_pre`.
pub fn create_node(context: &mut Context<'_>, call: &Arguments) -> Outcome {
    create(context, call, &[])
}

/// `bm_mc_node_create` of `simple_pre_lag`.
pub fn create_node_with_lags(context: &mut Context<'_>, call: &Arguments) -> Outcome {
    create(context, call, call.bytes(3))
}

/// `bm_mc_node_associate`.
pub fn associate(context: &mut Context<'_>, call: &Arguments) -> Outcome {
    change(context, |multicast, _| {
        let node = multicast.node(call.integer(2))?;
        let group = multicast.group(call.integer(1))?;
        let Some(entry) = multicast.nodes.get_mut(&node) else {
            return Ok(());
        };
        if let Some(group) = entry.group {
            let why = format!("node {node} is in group {group}");
            return Err(MulticastError::Error.because(why));
        }
        entry.group = Some(group);
        multicast.members.entry(group).or_default().push(node);
        Ok(())
    })?;
    Ok(None)
}

/// `bm_mc_node_dissociate`.
pub fn dissociate(context: &mut Context<'_>, call: &Arguments) -> Outcome {
    change(context, |multicast, _| {
        let node = multicast.node(call.integer(2))?;
        let group = multicast.group(call.integer(1))?;
        let entry = multicast.nodes.get_mut(&node);
        let Some(entry) = entry.filter(|entry| entry.group == Some(group)) else {
            let why = format!("node {node} is not in group {group}");
            return Err(MulticastError::Error.because(why));
        };
        entry.group = None;
        leave(multicast, group, node);
        Ok(())
    })?;
    Ok(None)
}

fn leave(multicast: &mut Multicast, group: u32, node: u32) {
    if let Some(members) = multicast.members.get_mut(&group) {
        members.retain(|member| *member != node);
    }
}

/// `bm_mc_node_destroy`; the node leaves its group.
pub fn destroy_node(context: &mut Context<'_>, call: &Arguments) -> Outcome {
    change(context, |multicast, _| {
        let node = multicast.node(call.integer(1))?;
        let removed = multicast.nodes.remove(&node);
        if let Some(group) = removed.and_then(|node| node.group) {
            leave(multicast, group, node);
        }
        Ok(())
    })?;
    Ok(None)
}

fn update(context: &mut Context<'_>, call: &Arguments, lags: Option<&[u8]>) -> Outcome {
    let ports = read_map(call.bytes(2), PORT_MAX)?;
    let lags = lags.map(|lags| read_map(lags, LAGS_MAX - 1)).transpose()?;
    change(context, |multicast, _| {
        let node = multicast.node(call.integer(1))?;
        if let Some(node) = multicast.nodes.get_mut(&node) {
            node.ports = ports;
            if let Some(lags) = lags {
                node.lags = lags;
            }
        }
        Ok(())
    })?;
    Ok(None)
}

/// `bm_mc_node_update` of `simple_pre`.
pub fn update_node(context: &mut Context<'_>, call: &Arguments) -> Outcome {
    update(context, call, None)
}

/// `bm_mc_node_update` of `simple_pre_lag`.
pub fn update_node_with_lags(context: &mut Context<'_>, call: &Arguments) -> Outcome {
    update(context, call, Some(call.bytes(3)))
}

/// `bm_mc_set_lag_membership`.
pub fn set_lag(context: &mut Context<'_>, call: &Arguments) -> Outcome {
    let lag = call.integer(1);
    let valid = u16::try_from(lag).ok();
    let valid = valid.filter(|lag| usize::from(*lag) < LAGS_MAX);
    let valid = valid.ok_or_else(|| {
        let why = format!("link aggregation group {lag}; valid: 0 to {}", LAGS_MAX - 1);
        MulticastError::Error.because(why)
    })?;
    let ports = read_map(call.bytes(2), PORT_MAX)?;
    change(context, |multicast, _| {
        multicast.lags.insert(valid, ports);
        Ok(())
    })?;
    Ok(None)
}

fn dump(context: &mut Context<'_>, with_lags: bool) -> Outcome {
    let (pipeline, state) = context.parts()?;
    state.multicast.reconcile(pipeline);
    let text = state.multicast.to_json(with_lags).to_string();
    Ok(Some(Value::text(&text)))
}

/// `bm_mc_get_entries` of `simple_pre`.
pub fn entries(context: &mut Context<'_>, _: &Arguments) -> Outcome {
    dump(context, false)
}

/// `bm_mc_get_entries` of `simple_pre_lag`.
pub fn entries_with_lags(context: &mut Context<'_>, _: &Arguments) -> Outcome {
    dump(context, true)
}
