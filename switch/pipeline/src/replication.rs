//! The packet replication engine: multicast groups and clone sessions.

use std::collections::{BTreeMap, BTreeSet};

use super::config::{PortId, limits};
use super::entry::{Backups, CloneSession, Replica};
use super::error::ControlError;

/// The replicas of a group or session, and those that are made while ports are down.
#[derive(Clone, Debug, Default)]
pub(super) struct Copies {
    replicas: Vec<Replica>,
    backups: Backups,
    live: Vec<Replica>,
}

impl Copies {
    fn new(replicas: &[Replica], backups: &Backups, down: &BTreeSet<PortId>) -> Self {
        let mut copies = Self {
            replicas: replicas.to_vec(),
            backups: backups.clone(),
            live: Vec::new(),
        };
        copies.refresh(down);
        copies
    }

    /// Chooses for each replica the first port of its own and its backups' that is up.
    fn refresh(&mut self, down: &BTreeSet<PortId>) {
        let is_up = |replica: &&Replica| !down.contains(&replica.port);
        self.live.clear();
        for replica in &self.replicas {
            let backups = self.backups.get(replica).into_iter().flatten();
            let chosen = std::iter::once(replica).chain(backups).find(is_up);
            self.live.push(*chosen.unwrap_or(replica));
        }
    }
}

/// A clone session ready to use.
#[derive(Clone, Debug)]
pub(super) struct Session {
    pub(super) described: CloneSession,
    copies: Copies,
}

impl Session {
    /// The copies to make now.
    #[inline]
    pub(super) fn live(&self) -> &[Replica] {
        &self.copies.live
    }
}

/// Groups and sessions by id.
#[derive(Debug, Default)]
pub(super) struct Replication {
    groups: BTreeMap<u32, Copies>,
    sessions: BTreeMap<u32, Session>,
}

impl Replication {
    /// The copies to make now for a group; none for one that does not exist.
    #[inline]
    pub(super) fn group(&self, id: u64) -> &[Replica] {
        let id = u32::try_from(id).ok();
        id.and_then(|id| self.groups.get(&id))
            .map_or(&[], |copies| copies.live.as_slice())
    }

    pub(super) fn session(&self, id: u32) -> Option<&Session> {
        self.sessions.get(&id)
    }

    pub(super) fn groups(&self) -> impl Iterator<Item = (u32, &[Replica])> {
        self.groups
            .iter()
            .map(|(&id, copies)| (id, copies.replicas.as_slice()))
    }

    pub(super) fn described_group(&self, id: u32) -> Option<(&[Replica], &Backups)> {
        let copies = self.groups.get(&id)?;
        Some((&copies.replicas, &copies.backups))
    }

    pub(super) fn sessions(&self) -> impl Iterator<Item = (u32, &CloneSession)> {
        self.sessions
            .iter()
            .map(|(&id, session)| (id, &session.described))
    }

    /// Chooses anew after a port has gone up or down.
    pub(super) fn refresh(&mut self, down: &BTreeSet<PortId>) {
        for copies in self.groups.values_mut() {
            if !copies.backups.is_empty() {
                copies.refresh(down);
            }
        }
        for session in self.sessions.values_mut() {
            if !session.copies.backups.is_empty() {
                session.copies.refresh(down);
            }
        }
    }

    pub(super) fn copy_of_group(&self, id: u32) -> Option<Copies> {
        self.groups.get(&id).cloned()
    }

    /// Brings a group to what it was; `None`: it was not there.
    pub(super) fn put_back_group(&mut self, id: u32, before: Option<Copies>) {
        match before {
            Some(copies) => self.groups.insert(id, copies),
            None => self.groups.remove(&id),
        };
    }

    /// Brings a session to what it was; `None`: it was not there.
    pub(super) fn put_back_session(&mut self, id: u32, before: Option<Session>) {
        match before {
            Some(session) => self.sessions.insert(id, session),
            None => self.sessions.remove(&id),
        };
    }

    pub(super) fn insert_group(
        &mut self,
        id: u32,
        (replicas, backups): (&[Replica], &Backups),
        down: &BTreeSet<PortId>,
    ) -> Result<(), ControlError> {
        check_replicas(replicas, backups)?;
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
        self.groups.insert(id, Copies::new(replicas, backups, down));
        Ok(())
    }

    pub(super) fn modify_group(
        &mut self,
        id: u32,
        (replicas, backups): (&[Replica], &Backups),
        down: &BTreeSet<PortId>,
    ) -> Result<(), ControlError> {
        check_replicas(replicas, backups)?;
        match self.groups.get_mut(&id) {
            Some(group) => {
                *group = Copies::new(replicas, backups, down);
                Ok(())
            }
            None => Err(no_group(id)),
        }
    }

    pub(super) fn delete_group(&mut self, id: u32) -> Result<(), ControlError> {
        match self.groups.remove(&id) {
            Some(_) => Ok(()),
            None => Err(no_group(id)),
        }
    }

    pub(super) fn insert_session(
        &mut self,
        id: u32,
        session: &CloneSession,
        down: &BTreeSet<PortId>,
    ) -> Result<(), ControlError> {
        check_replicas(&session.replicas, &session.backups)?;
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
        self.sessions.insert(id, ready(session, down));
        Ok(())
    }

    pub(super) fn modify_session(
        &mut self,
        id: u32,
        session: &CloneSession,
        down: &BTreeSet<PortId>,
    ) -> Result<(), ControlError> {
        check_replicas(&session.replicas, &session.backups)?;
        match self.sessions.get_mut(&id) {
            Some(old) => {
                *old = ready(session, down);
                Ok(())
            }
            None => Err(no_session(id)),
        }
    }

    pub(super) fn delete_session(&mut self, id: u32) -> Result<(), ControlError> {
        match self.sessions.remove(&id) {
            Some(_) => Ok(()),
            None => Err(no_session(id)),
        }
    }
}

fn ready(session: &CloneSession, down: &BTreeSet<PortId>) -> Session {
    Session {
        copies: Copies::new(&session.replicas, &session.backups, down),
        described: session.clone(),
    }
}

fn no_group(id: u32) -> ControlError {
    ControlError::NotFound {
        what: format!("multicast group {id}"),
    }
}

fn no_session(id: u32) -> ControlError {
    ControlError::NotFound {
        what: format!("clone session {id}"),
    }
}

/// Every pair of port and instance once, backups included; no backup with the port of the
/// replica it stands in for (P4Runtime §"MulticastGroupEntry").
fn check_replicas(replicas: &[Replica], backups: &Backups) -> Result<(), ControlError> {
    let all = replicas.len() + backups.values().map(Vec::len).sum::<usize>();
    if all > limits::REPLICAS_MAX {
        return Err(ControlError::ResourceExhausted {
            what: "a list of replicas".to_string(),
            limit: limits::REPLICAS_MAX,
        });
    }
    let refuse = |value: String, bound: &str| {
        Err(ControlError::InvalidArgument {
            what: "list of replicas".to_string(),
            value,
            bound: bound.to_string(),
        })
    };
    let mut sorted = replicas.to_vec();
    sorted.extend(backups.values().flatten());
    sorted.sort_unstable();
    if let Some(pair) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
        return refuse(
            format!(
                "port {} with instance {} twice",
                pair[0].port.0, pair[0].instance
            ),
            "each pair of port and instance once",
        );
    }
    for (replica, backups) in backups {
        if !replicas.contains(replica) {
            return refuse(
                format!("a backup of port {}", replica.port.0),
                "backups of replicas in the list",
            );
        }
        let mut ports = BTreeSet::from([replica.port]);
        for backup in backups {
            if !ports.insert(backup.port) {
                return refuse(
                    format!(
                        "backup port {} of the replica to port {}",
                        backup.port.0, replica.port.0
                    ),
                    "backups with other ports than the replica and its other backups",
                );
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn replica(port: u16, instance: u16) -> Replica {
        Replica {
            port: PortId(port),
            instance,
        }
    }

    #[test]
    fn the_first_backup_whose_port_is_up_takes_over() {
        let mut replication = Replication::default();
        let primary = [replica(1, 0), replica(2, 0)];
        let backups = Backups::from([(primary[0], vec![replica(3, 7), replica(4, 8)])]);
        let mut down = BTreeSet::from([PortId(3)]);
        replication
            .insert_group(9, (&primary, &backups), &down)
            .unwrap();
        assert_eq!(replication.group(9), primary);
        let mut expect =
            |port, first: Replica, change: fn(&mut BTreeSet<PortId>, PortId) -> bool| {
                change(&mut down, PortId(port));
                replication.refresh(&down);
                assert_eq!(replication.group(9), [first, primary[1]]);
            };
        expect(1, replica(4, 8), BTreeSet::insert);
        expect(3, replica(3, 7), |down, port| down.remove(&port));
        expect(3, replica(4, 8), BTreeSet::insert);
        // All down: to the primary, whose port drops it.
        expect(4, primary[0], BTreeSet::insert);
        expect(1, primary[0], |down, port| down.remove(&port));
    }

    #[test]
    fn backups_that_contradict_the_list_are_refused() {
        let primary = [replica(1, 0), replica(2, 0)];
        let refuse = |of: Replica, backups: Vec<Replica>| {
            let backups = Backups::from([(of, backups)]);
            let error = check_replicas(&primary, &backups).unwrap_err();
            error.to_string()
        };
        assert_eq!(
            refuse(primary[0], vec![replica(2, 0)]),
            "port 2 with instance 0 twice is not a valid list of replicas; \
             valid: each pair of port and instance once"
        );
        assert_eq!(
            refuse(primary[0], vec![replica(1, 5)]),
            "backup port 1 of the replica to port 1 is not a valid list of replicas; valid: \
             backups with other ports than the replica and its other backups"
        );
        assert_eq!(
            refuse(replica(8, 0), vec![replica(1, 5)]),
            "a backup of port 8 is not a valid list of replicas; valid: \
             backups of replicas in the list"
        );
    }
}
