//! Groups, nodes and sessions as the commands of BMv2's command line make them.

use std::collections::BTreeMap;

use super::statement::Statement;
use wormcast_switch_pipeline::{CloneSession, Pipeline, PortId, Replica};

/// What has been made so far.
#[derive(Debug, Default)]
pub(super) struct Replication {
    /// Nodes of each group.
    groups: BTreeMap<u16, Vec<usize>>,
    nodes: Vec<(u16, Vec<u16>)>,
    sessions: BTreeMap<u16, Target>,
}

#[derive(Debug)]
enum Target {
    Port(u16),
    Group(u16),
}

impl Replication {
    /// Does what a statement says, if it is about replication; `Ok(false)` if it is not.
    pub(super) fn execute(
        &mut self,
        pipeline: &mut Pipeline,
        statement: &Statement,
    ) -> Result<bool, String> {
        match statement {
            Statement::MirroringAdd { session, port } => {
                self.add_session(pipeline, *session, Target::Port(*port))?;
            }
            Statement::MirroringAddGroup { session, group } => {
                self.known(*group)?;
                self.add_session(pipeline, *session, Target::Group(*group))?;
            }
            Statement::MirroringDelete { session } => {
                let deleted = pipeline.delete_clone_session((*session).into());
                deleted.map_err(|error| error.to_string())?;
                self.sessions.remove(session);
            }
            Statement::MirroringGet { session } => {
                if !self.sessions.contains_key(session) {
                    return Err(format!("there is no session {session}"));
                }
            }
            Statement::GroupCreate { group } => {
                let inserted = pipeline.insert_multicast_group((*group).into(), &[]);
                inserted.map_err(|error| error.to_string())?;
                self.groups.insert(*group, Vec::new());
            }
            Statement::NodeCreate { instance, ports } => {
                self.nodes.push((*instance, ports.clone()));
            }
            Statement::NodeUpdate { node, ports } => {
                let found = self.nodes.get_mut(*node);
                found.ok_or_else(|| format!("there is no node {node}"))?.1 = ports.clone();
                self.update(pipeline)?;
            }
            Statement::NodeAssociate { group, node } => {
                if *node >= self.nodes.len() {
                    return Err(format!("there is no node {node}"));
                }
                self.known(*group)?;
                self.groups.entry(*group).or_default().push(*node);
                self.update(pipeline)?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn known(&self, group: u16) -> Result<(), String> {
        if self.groups.contains_key(&group) {
            return Ok(());
        }
        Err(format!("there is no group {group}"))
    }

    fn replicas(&self, group: u16) -> Vec<Replica> {
        let nodes = self.groups.get(&group).map_or(&[][..], Vec::as_slice);
        let replicas = nodes.iter().flat_map(|node| {
            let (instance, ports) = &self.nodes[*node];
            ports.iter().map(|port| Replica {
                port: PortId(*port),
                instance: *instance,
            })
        });
        replicas.collect()
    }

    fn session(&self, target: &Target) -> CloneSession {
        CloneSession {
            replicas: match target {
                Target::Port(port) => vec![Replica {
                    port: PortId(*port),
                    instance: 0,
                }],
                Target::Group(group) => self.replicas(*group),
            },
            ..CloneSession::default()
        }
    }

    fn add_session(
        &mut self,
        pipeline: &mut Pipeline,
        session: u16,
        target: Target,
    ) -> Result<(), String> {
        let value = self.session(&target);
        // BMv2 replaces a session that is there.
        let put = match self.sessions.insert(session, target) {
            None => pipeline.insert_clone_session(session.into(), &value),
            Some(_) => pipeline.modify_clone_session(session.into(), &value),
        };
        put.map_err(|error| error.to_string())
    }

    /// Nodes have changed: so have groups, and sessions that copy to them.
    fn update(&mut self, pipeline: &mut Pipeline) -> Result<(), String> {
        for &group in self.groups.keys() {
            let modified = pipeline.modify_multicast_group(group.into(), &self.replicas(group));
            modified.map_err(|error| error.to_string())?;
        }
        for (&session, target) in &self.sessions {
            if matches!(target, Target::Group(_)) {
                let modified = pipeline.modify_clone_session(session.into(), &self.session(target));
                modified.map_err(|error| error.to_string())?;
            }
        }
        Ok(())
    }
}
