//! Multicast groups as BMv2 makes them: of nodes, each a replica number with its ports and
//! link aggregation groups.
//!
//! The pipeline has the groups; here are the nodes they are made of. Groups that came or
//! changed over P4Runtime get nodes of their own, one for each replica number.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value as Json, json};

use super::arguments::Arguments;
use super::context::Context;
use super::failure::{Failure, MulticastError, Outcome};
use super::wire::Value;
use wormcast_switch_pipeline::{Pipeline, PortId, Replica};

/// Most nodes.
pub const NODES_MAX: usize = 65_536;

/// Most link aggregation groups, as in BMv2.
pub const LAGS_MAX: usize = 256;

/// Highest port of a map.
const PORT_MAX: usize = 511;

/// What BMv2 takes for the hash that chooses the member of a link aggregation group.
const LAG_HASH: usize = 0xff;

/// A set of ports or of link aggregation groups.
type Numbers = BTreeSet<u16>;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Node {
    instance: u16,
    ports: Numbers,
    lags: Numbers,
    group: Option<u32>,
}

/// Nodes and link aggregation groups.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Multicast {
    nodes: BTreeMap<u32, Node>,
    /// Nodes of each group, in the order in which they joined.
    members: BTreeMap<u32, Vec<u32>>,
    lags: BTreeMap<u16, Numbers>,
}

impl Multicast {
    /// The replicas that the nodes of a group make.
    fn replicas(&self, group: u32) -> Vec<Replica> {
        let mut replicas = Vec::new();
        for node in self.members.get(&group).into_iter().flatten() {
            let Some(node) = self.nodes.get(node) else {
                continue;
            };
            let lags = node.lags.iter().filter_map(|lag| {
                let ports = self.lags.get(lag)?;
                let chosen = LAG_HASH.checked_rem(ports.len())?;
                ports.iter().nth(chosen).copied()
            });
            replicas.extend(node.ports.iter().copied().chain(lags).map(|port| Replica {
                port: PortId(port),
                instance: node.instance,
            }));
        }
        replicas
    }

    /// Takes over what has changed in the pipeline since the last call.
    fn reconcile(&mut self, pipeline: &Pipeline) {
        let there: BTreeMap<u32, Vec<Replica>> = pipeline
            .multicast_groups()
            .map(|(id, replicas)| (id, replicas.to_vec()))
            .collect();
        let gone: Vec<u32> = self
            .members
            .keys()
            .copied()
            .filter(|group| !there.contains_key(group))
            .collect();
        for group in gone {
            self.forget(group);
        }
        for (group, replicas) in there {
            if self.members.contains_key(&group) && self.replicas(group) == replicas {
                continue;
            }
            self.forget(group);
            self.members.insert(group, Vec::new());
            for replica in replicas {
                let members = self.members.get(&group).cloned().unwrap_or_default();
                let node = members
                    .into_iter()
                    .find(|node| self.nodes[node].instance == replica.instance);
                let node = node.unwrap_or_else(|| {
                    let handle = self.unused();
                    let node = Node {
                        instance: replica.instance,
                        group: Some(group),
                        ..Node::default()
                    };
                    self.nodes.insert(handle, node);
                    self.members.entry(group).or_default().push(handle);
                    handle
                });
                if let Some(node) = self.nodes.get_mut(&node) {
                    node.ports.insert(replica.port.0);
                }
            }
        }
    }

    /// Forgets a group and its nodes.
    fn forget(&mut self, group: u32) {
        for node in self.members.remove(&group).into_iter().flatten() {
            self.nodes.remove(&node);
        }
    }

    fn unused(&self) -> u32 {
        let mut unused = 0;
        for handle in self.nodes.keys() {
            if *handle != unused {
                break;
            }
            unused += 1;
        }
        unused
    }

    fn node(&self, handle: i64) -> Result<u32, Failure> {
        let known = u32::try_from(handle).ok();
        let known = known.filter(|handle| self.nodes.contains_key(handle));
        known.ok_or_else(|| {
            MulticastError::InvalidNodeHandle.because(format!("there is no node {handle}"))
        })
    }

    fn group(&self, handle: i64) -> Result<u32, Failure> {
        let known = u32::try_from(handle).ok();
        let known = known.filter(|handle| self.members.contains_key(handle));
        known.ok_or_else(|| {
            MulticastError::InvalidGroupHandle.because(format!("there is no group {handle}"))
        })
    }

    /// Gives the groups of the pipeline the replicas that their nodes make. On an error
    /// nothing has changed in the pipeline.
    fn apply(&self, pipeline: &mut Pipeline) -> Result<(), Failure> {
        let before: Vec<(u32, Vec<Replica>)> = pipeline
            .multicast_groups()
            .map(|(id, replicas)| (id, replicas.to_vec()))
            .collect();
        for (position, (group, old)) in before.iter().enumerate() {
            let new = self.replicas(*group);
            if new == *old {
                continue;
            }
            if let Err(error) = pipeline.modify_multicast_group(*group, &new) {
                for (group, old) in &before[..position] {
                    // It was there a moment ago, so it is taken again.
                    let _ = pipeline.modify_multicast_group(*group, old);
                }
                return Err(MulticastError::Error.because(error.to_string()));
            }
        }
        Ok(())
    }

    fn to_json(&self, with_lags: bool) -> Json {
        let mut all = json!({
            "mgrps": self.members.iter().map(|(id, nodes)| {
                json!({ "id": id, "l1_handles": nodes })
            }).collect::<Vec<_>>(),
            "l1_handles": self.nodes.iter().map(|(handle, node)| {
                json!({ "handle": handle, "rid": node.instance, "l2_handle": handle })
            }).collect::<Vec<_>>(),
            "l2_handles": self.nodes.iter().map(|(handle, node)| {
                json!({ "handle": handle, "ports": node.ports, "lags": node.lags })
            }).collect::<Vec<_>>(),
        });
        if with_lags {
            let lags = self.lags.iter();
            let lags = lags.map(|(id, ports)| json!({ "id": id, "ports": ports }));
            all["lags"] = lags.collect();
        }
        all
    }
}

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
