//! The packet replication engine: multicast groups and clone sessions.

use std::collections::BTreeMap;

use super::config::limits;
use super::entry::{CloneSession, Replica};
use super::error::ControlError;

/// Groups and sessions by id.
#[derive(Debug, Default)]
pub(super) struct Replication {
    groups: BTreeMap<u16, Vec<Replica>>,
    sessions: BTreeMap<u16, CloneSession>,
}

impl Replication {
    #[inline]
    pub(super) fn group(&self, id: u64) -> &[Replica] {
        let id = u16::try_from(id).ok();
        id.and_then(|id| self.groups.get(&id))
            .map_or(&[], Vec::as_slice)
    }

    pub(super) fn session(&self, id: u16) -> Option<&CloneSession> {
        self.sessions.get(&id)
    }

    pub(super) fn groups(&self) -> impl Iterator<Item = (u16, &[Replica])> {
        self.groups
            .iter()
            .map(|(&id, replicas)| (id, replicas.as_slice()))
    }

    pub(super) fn sessions(&self) -> impl Iterator<Item = (u16, &CloneSession)> {
        self.sessions.iter().map(|(&id, session)| (id, session))
    }

    /// The replicas of a group that is there.
    pub(super) fn copy_of_group(&self, id: u16) -> Option<Vec<Replica>> {
        self.groups.get(&id).cloned()
    }

    /// Brings a group to what it was; `None`: it was not there.
    pub(super) fn put_back_group(&mut self, id: u16, before: Option<Vec<Replica>>) {
        match before {
            Some(replicas) => self.groups.insert(id, replicas),
            None => self.groups.remove(&id),
        };
    }

    /// Brings a session to what it was; `None`: it was not there.
    pub(super) fn put_back_session(&mut self, id: u16, before: Option<CloneSession>) {
        match before {
            Some(session) => self.sessions.insert(id, session),
            None => self.sessions.remove(&id),
        };
    }

    pub(super) fn insert_group(
        &mut self,
        id: u16,
        replicas: &[Replica],
    ) -> Result<(), ControlError> {
        check_id("multicast group id", id)?;
        check_replicas(replicas)?;
        if self.groups.contains_key(&id) {
            return Err(ControlError::AlreadyExists {
                what: format!("multicast group {id}"),
            });
        }
        if self.groups.len() >= limits::MULTICAST_GROUPS_MAX {
            return Err(ControlError::ResourceExhausted {
                what: "the table of multicast groups".to_string(),
                limit: limits::MULTICAST_GROUPS_MAX,
            });
        }
        self.groups.insert(id, replicas.to_vec());
        Ok(())
    }

    pub(super) fn modify_group(
        &mut self,
        id: u16,
        replicas: &[Replica],
    ) -> Result<(), ControlError> {
        check_replicas(replicas)?;
        match self.groups.get_mut(&id) {
            Some(group) => {
                *group = replicas.to_vec();
                Ok(())
            }
            None => Err(no_group(id)),
        }
    }

    pub(super) fn delete_group(&mut self, id: u16) -> Result<(), ControlError> {
        match self.groups.remove(&id) {
            Some(_) => Ok(()),
            None => Err(no_group(id)),
        }
    }

    pub(super) fn insert_session(
        &mut self,
        id: u16,
        session: &CloneSession,
    ) -> Result<(), ControlError> {
        check_id("clone session id", id)?;
        check_replicas(&session.replicas)?;
        if self.sessions.contains_key(&id) {
            return Err(ControlError::AlreadyExists {
                what: format!("clone session {id}"),
            });
        }
        if self.sessions.len() >= limits::CLONE_SESSIONS_MAX {
            return Err(ControlError::ResourceExhausted {
                what: "the table of clone sessions".to_string(),
                limit: limits::CLONE_SESSIONS_MAX,
            });
        }
        self.sessions.insert(id, session.clone());
        Ok(())
    }

    pub(super) fn modify_session(
        &mut self,
        id: u16,
        session: &CloneSession,
    ) -> Result<(), ControlError> {
        check_replicas(&session.replicas)?;
        match self.sessions.get_mut(&id) {
            Some(old) => {
                *old = session.clone();
                Ok(())
            }
            None => Err(no_session(id)),
        }
    }

    pub(super) fn delete_session(&mut self, id: u16) -> Result<(), ControlError> {
        match self.sessions.remove(&id) {
            Some(_) => Ok(()),
            None => Err(no_session(id)),
        }
    }
}

fn no_group(id: u16) -> ControlError {
    ControlError::NotFound {
        what: format!("multicast group {id}"),
    }
}

fn no_session(id: u16) -> ControlError {
    ControlError::NotFound {
        what: format!("clone session {id}"),
    }
}

fn check_id(what: &str, id: u16) -> Result<(), ControlError> {
    if id == 0 || u32::from(id) >= limits::SESSION_ID_END {
        return Err(ControlError::InvalidArgument {
            what: what.to_string(),
            value: id.to_string(),
            bound: format!("1 to {}", limits::SESSION_ID_END - 1),
        });
    }
    Ok(())
}

fn check_replicas(replicas: &[Replica]) -> Result<(), ControlError> {
    if replicas.len() > limits::REPLICAS_MAX {
        return Err(ControlError::ResourceExhausted {
            what: "a list of replicas".to_string(),
            limit: limits::REPLICAS_MAX,
        });
    }
    let mut sorted = replicas.to_vec();
    sorted.sort_unstable();
    if let Some(pair) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(ControlError::InvalidArgument {
            what: "list of replicas".to_string(),
            value: format!(
                "port {} with instance {} twice",
                pair[0].port.0, pair[0].instance
            ),
            bound: "each pair of port and instance once".to_string(),
        });
    }
    Ok(())
}
