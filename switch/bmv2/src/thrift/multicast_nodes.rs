//! The nodes that multicast groups are made of in BMv2: each a replica number with its ports and
//! link aggregation groups.
//!
//! The pipeline has the groups. Groups that came or changed over P4Runtime get nodes of their own,
//! one for each replica number.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value as Json, json};

use super::failure::{Failure, MulticastError};
use wormcast_switch_pipeline::{Pipeline, PortId, Replica};

/// What BMv2 takes for the hash that chooses the member of a link aggregation group.
const LAG_HASH: usize = 0xff;

/// A set of ports or of link aggregation groups.
pub(super) type Numbers = BTreeSet<u16>;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Node {
    pub(super) instance: u16,
    pub(super) ports: Numbers,
    pub(super) lags: Numbers,
    pub(super) group: Option<u32>,
}

/// Nodes and link aggregation groups.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Multicast {
    pub(super) nodes: BTreeMap<u32, Node>,
    /// Nodes of each group, in the order in which they joined.
    pub(super) members: BTreeMap<u32, Vec<u32>>,
    pub(super) lags: BTreeMap<u16, Numbers>,
}

impl Multicast {
    /// The replicas that the nodes of a group make.
    pub(super) fn replicas(&self, group: u32) -> Vec<Replica> {
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
    pub(super) fn reconcile(&mut self, pipeline: &Pipeline) {
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
    pub(super) fn forget(&mut self, group: u32) {
        for node in self.members.remove(&group).into_iter().flatten() {
            self.nodes.remove(&node);
        }
    }

    /// The lowest handle that no node has.
    pub(super) fn unused(&self) -> u32 {
        let mut unused = 0;
        for handle in self.nodes.keys() {
            if *handle != unused {
                break;
            }
            unused += 1;
        }
        unused
    }

    pub(super) fn node(&self, handle: i64) -> Result<u32, Failure> {
        let known = u32::try_from(handle).ok();
        let known = known.filter(|handle| self.nodes.contains_key(handle));
        known.ok_or_else(|| {
            MulticastError::InvalidNodeHandle.because(format!("there is no node {handle}"))
        })
    }

    pub(super) fn group(&self, handle: i64) -> Result<u32, Failure> {
        let known = u32::try_from(handle).ok();
        let known = known.filter(|handle| self.members.contains_key(handle));
        known.ok_or_else(|| {
            MulticastError::InvalidGroupHandle.because(format!("there is no group {handle}"))
        })
    }

    /// Gives the groups of the pipeline the replicas that their nodes make. On an error
    /// nothing has changed in the pipeline.
    pub(super) fn apply(&self, pipeline: &mut Pipeline) -> Result<(), Failure> {
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

    pub(super) fn to_json(&self, with_lags: bool) -> Json {
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
