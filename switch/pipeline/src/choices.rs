//! The control path: action profiles, multicast groups, clone sessions, the state of ports.

use super::Pipeline;
use super::config::PortId;
use super::entry::{Backups, CloneSession, EntryAction, GroupMember, Replica};
use super::error::ControlError;
use wormcast_switch_program::ActionCall;
use wormcast_switch_program::{ActionProfileId, ones};

impl Pipeline {
    /// Tells whether a port can send. Down, its replicas are made for their backups' ports
    /// instead, and members of groups that watch it are not chosen. Ports are up until
    /// this says otherwise.
    pub fn set_port_up(&mut self, port: PortId, up: bool) {
        let changed = if up {
            self.ports_down.remove(&port)
        } else {
            self.ports_down.insert(port)
        };
        if changed {
            self.replication.refresh(&self.ports_down);
            for profile in &mut self.profiles {
                profile.refresh(&self.ports_down);
            }
        }
    }

    /// Whether a port can send, as [`set_port_up`](Self::set_port_up) has set it.
    pub fn is_port_up(&self, port: PortId) -> bool {
        !self.ports_down.contains(&port)
    }

    fn profile_name(&self, profile: ActionProfileId) -> Result<String, ControlError> {
        let profiles = self.program.action_profiles();
        match profiles.get(profile.index()) {
            Some(info) => Ok(info.name.clone()),
            None => Err(ControlError::NotFound {
                what: format!("action profile {}", profile.index()),
            }),
        }
    }

    /// Adds a member to an action profile.
    ///
    /// # Errors
    /// `InvalidArgument` for an action that is not the profile's, or while entries have
    /// sets of actions; `AlreadyExists`, `NotFound`, `ResourceExhausted`.
    pub fn insert_member(
        &mut self,
        profile: ActionProfileId,
        id: u32,
        call: &ActionCall,
    ) -> Result<(), ControlError> {
        self.put_member(profile, id, call, false)
    }

    /// Changes the action of a member; all entries and groups that refer to it follow.
    ///
    /// # Errors
    /// `InvalidArgument`, `NotFound`.
    pub fn modify_member(
        &mut self,
        profile: ActionProfileId,
        id: u32,
        call: &ActionCall,
    ) -> Result<(), ControlError> {
        self.put_member(profile, id, call, true)
    }

    fn put_member(
        &mut self,
        profile: ActionProfileId,
        id: u32,
        call: &ActionCall,
        is_there: bool,
    ) -> Result<(), ControlError> {
        self.profile_name(profile)?;
        let place = profile.index();
        let before = self.profiles[place].member(id).cloned();
        self.profiles[place].put_member(&self.program, place, id, call, is_there)?;
        self.undo(move |pipeline| pipeline.profiles[place].put_back_member(id, before));
        Ok(())
    }

    /// Removes a member that nothing refers to.
    ///
    /// # Errors
    /// `NotFound`, `InUse` while an entry or group refers to it.
    pub fn delete_member(&mut self, profile: ActionProfileId, id: u32) -> Result<(), ControlError> {
        let name = self.profile_name(profile)?;
        if let Some(table) = self.user(profile, &EntryAction::Member(id)) {
            return Err(ControlError::InUse {
                what: format!("member {id} of action profile {name}"),
                user: format!("an entry of table {table}"),
            });
        }
        let place = profile.index();
        let before = self.profiles[place].member(id).cloned();
        self.profiles[place].delete_member(&name, id)?;
        self.undo(move |pipeline| pipeline.profiles[place].put_back_member(id, before));
        Ok(())
    }

    /// A table with an entry that refers to a member or group.
    fn user(&self, profile: ActionProfileId, action: &EntryAction) -> Option<&str> {
        let tables = self.program.tables().iter().zip(&self.tables);
        tables
            .filter(|(info, _)| info.action_profile == Some(profile))
            .find(|(_, state)| {
                let mut entries = state.unordered();
                entries.any(|stored| stored.entry.action == *action)
            })
            .map(|(info, _)| info.name.as_str())
    }

    /// Members of an action profile by ascending id; none while entries have sets.
    pub fn members(&self, profile: ActionProfileId) -> impl Iterator<Item = (u32, &ActionCall)> {
        let profile = self.profiles.get(profile.index());
        profile.into_iter().flat_map(|profile| profile.members())
    }

    /// Adds a group of members; `max_size` is kept and given back.
    ///
    /// # Errors
    /// `AlreadyExists`, `NotFound` when a member does not exist, `InvalidArgument` for a
    /// member twice or while entries have sets of actions.
    pub fn insert_group(
        &mut self,
        profile: ActionProfileId,
        id: u32,
        members: &[GroupMember],
        max_size: u32,
    ) -> Result<(), ControlError> {
        self.put_group(profile, id, (members, max_size), false)
    }

    /// Changes the members of a group.
    ///
    /// # Errors
    /// `NotFound` when the group or a member does not exist, `InvalidArgument` for another
    /// `max_size` than at the insertion or a member twice.
    pub fn modify_group(
        &mut self,
        profile: ActionProfileId,
        id: u32,
        members: &[GroupMember],
        max_size: u32,
    ) -> Result<(), ControlError> {
        self.put_group(profile, id, (members, max_size), true)
    }

    fn put_group(
        &mut self,
        profile: ActionProfileId,
        id: u32,
        group: (&[GroupMember], u32),
        is_there: bool,
    ) -> Result<(), ControlError> {
        let name = self.profile_name(profile)?;
        let place = profile.index();
        let before = self.profiles[place].group(id).cloned();
        self.profiles[place].put_group(&name, id, group, is_there, &self.ports_down)?;
        self.undo(move |pipeline| pipeline.profiles[place].put_back_group(id, before));
        Ok(())
    }

    /// Removes a group that no entry refers to.
    ///
    /// # Errors
    /// `NotFound`, `InUse` while an entry refers to it.
    pub fn delete_group(&mut self, profile: ActionProfileId, id: u32) -> Result<(), ControlError> {
        let name = self.profile_name(profile)?;
        if let Some(table) = self.user(profile, &EntryAction::Group(id)) {
            return Err(ControlError::InUse {
                what: format!("group {id} of action profile {name}"),
                user: format!("an entry of table {table}"),
            });
        }
        let place = profile.index();
        let before = self.profiles[place].group(id).cloned();
        self.profiles[place].delete_group(&name, id)?;
        self.undo(move |pipeline| pipeline.profiles[place].put_back_group(id, before));
        Ok(())
    }

    /// Groups of an action profile by ascending id: members and `max_size`; none while
    /// entries have sets.
    pub fn groups(
        &self,
        profile: ActionProfileId,
    ) -> impl Iterator<Item = (u32, &[GroupMember], u32)> {
        let profile = self.profiles.get(profile.index());
        profile.into_iter().flat_map(|profile| profile.groups())
    }

    /// Greatest id of a multicast group: what `mcast_grp` of the program can hold. Where there
    /// is no such field, as in programs of P4-14, clone sessions alone send to groups.
    pub fn multicast_group_max(&self) -> u32 {
        let field = self.program.intrinsics.mcast_grp;
        let greatest = field.map_or(u64::from(u16::MAX), |field| ones(field.width));
        u32::try_from(greatest).unwrap_or(u32::MAX)
    }

    fn check_group_id(&self, id: u32) -> Result<(), ControlError> {
        let greatest = self.multicast_group_max();
        if (1..=greatest).contains(&id) {
            return Ok(());
        }
        Err(ControlError::InvalidArgument {
            what: "multicast group id".to_string(),
            value: id.to_string(),
            bound: format!("1 to {greatest}"),
        })
    }

    /// Adds a multicast group.
    ///
    /// # Errors
    /// `InvalidArgument` for an id that is 0 or above
    /// [`multicast_group_max`](Self::multicast_group_max) or a replica twice,
    /// `AlreadyExists`, `ResourceExhausted`.
    pub fn insert_multicast_group(
        &mut self,
        id: u32,
        replicas: &[Replica],
    ) -> Result<(), ControlError> {
        self.insert_multicast_group_with(id, replicas, &Backups::new())
    }

    /// Adds a multicast group whose replicas have backups.
    ///
    /// # Errors
    /// Those of [`insert_multicast_group`](Self::insert_multicast_group); `InvalidArgument`
    /// too for a backup of no replica, or one with the port of its replica.
    pub fn insert_multicast_group_with(
        &mut self,
        id: u32,
        replicas: &[Replica],
        backups: &Backups,
    ) -> Result<(), ControlError> {
        self.check_group_id(id)?;
        let before = self.replication.copy_of_group(id);
        self.replication
            .insert_group(id, (replicas, backups), &self.ports_down)?;
        self.undo(move |pipeline| pipeline.replication.put_back_group(id, before));
        Ok(())
    }

    /// Changes the replicas of a multicast group; it has no backups any more.
    ///
    /// # Errors
    /// `InvalidArgument`, `NotFound`, `ResourceExhausted`.
    pub fn modify_multicast_group(
        &mut self,
        id: u32,
        replicas: &[Replica],
    ) -> Result<(), ControlError> {
        self.modify_multicast_group_with(id, replicas, &Backups::new())
    }

    /// Changes the replicas of a multicast group and their backups.
    ///
    /// # Errors
    /// `InvalidArgument`, `NotFound`, `ResourceExhausted`.
    pub fn modify_multicast_group_with(
        &mut self,
        id: u32,
        replicas: &[Replica],
        backups: &Backups,
    ) -> Result<(), ControlError> {
        let before = self.replication.copy_of_group(id);
        self.replication
            .modify_group(id, (replicas, backups), &self.ports_down)?;
        self.undo(move |pipeline| pipeline.replication.put_back_group(id, before));
        Ok(())
    }

    /// Removes a multicast group.
    ///
    /// # Errors
    /// `NotFound`.
    pub fn delete_multicast_group(&mut self, id: u32) -> Result<(), ControlError> {
        let before = self.replication.copy_of_group(id);
        self.replication.delete_group(id)?;
        self.undo(move |pipeline| pipeline.replication.put_back_group(id, before));
        Ok(())
    }

    /// Multicast groups by ascending id.
    pub fn multicast_groups(&self) -> impl Iterator<Item = (u32, &[Replica])> {
        self.replication.groups()
    }

    pub fn multicast_group(&self, id: u32) -> Option<(&[Replica], &Backups)> {
        self.replication.described_group(id)
    }

    /// Greatest class of service of a clone session: what `standard_metadata.priority` can
    /// hold and there is a queue for; 0 in a program without that field.
    pub fn class_of_service_max(&self) -> u8 {
        let width = self.program.intrinsics.priority;
        let greatest = width.map_or(0, |field| ones(field.width));
        let queues = u64::from(self.config.priorities).saturating_sub(1);
        u8::try_from(greatest.min(queues)).unwrap_or(u8::MAX)
    }

    fn check_session(&self, session: &CloneSession) -> Result<(), ControlError> {
        let greatest = self.class_of_service_max();
        if session.class_of_service <= greatest {
            return Ok(());
        }
        Err(ControlError::InvalidArgument {
            what: "class of service".to_string(),
            value: session.class_of_service.to_string(),
            bound: format!("0 to {greatest}"),
        })
    }

    /// Adds a clone session.
    ///
    /// # Errors
    /// Those of [`insert_multicast_group_with`](Self::insert_multicast_group_with) for its
    /// replicas; `InvalidArgument` for a class of service without a queue. Every id is valid.
    pub fn insert_clone_session(
        &mut self,
        id: u32,
        session: &CloneSession,
    ) -> Result<(), ControlError> {
        self.check_session(session)?;
        let before = self.replication.session(id).cloned();
        self.replication
            .insert_session(id, session, &self.ports_down)?;
        self.undo(move |pipeline| pipeline.replication.put_back_session(id, before));
        Ok(())
    }

    /// Changes a clone session.
    ///
    /// # Errors
    /// `InvalidArgument`, `NotFound`, `ResourceExhausted`.
    pub fn modify_clone_session(
        &mut self,
        id: u32,
        session: &CloneSession,
    ) -> Result<(), ControlError> {
        self.check_session(session)?;
        let before = self.replication.session(id).cloned();
        self.replication
            .modify_session(id, session, &self.ports_down)?;
        self.undo(move |pipeline| pipeline.replication.put_back_session(id, before));
        Ok(())
    }

    /// Removes a clone session.
    ///
    /// # Errors
    /// `NotFound`.
    pub fn delete_clone_session(&mut self, id: u32) -> Result<(), ControlError> {
        let before = self.replication.session(id).cloned();
        self.replication.delete_session(id)?;
        self.undo(move |pipeline| pipeline.replication.put_back_session(id, before));
        Ok(())
    }

    /// Clone sessions by ascending id.
    pub fn clone_sessions(&self) -> impl Iterator<Item = (u32, &CloneSession)> {
        self.replication.sessions()
    }
}
