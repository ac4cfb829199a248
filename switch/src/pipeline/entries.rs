//! The control path: table entries, default actions, action profiles, groups, sessions.

use super::Pipeline;
use super::entry::{ActionCall, CloneSession, EntryAction, FieldMatch, Replica, TableEntry};
use super::error::ControlError;
use super::profile::in_use;
use super::table::{Outcome, canonical_key, check_call};
use crate::program::{ActionProfileId, TableId, TableInfo};

impl Pipeline {
    pub(super) fn table_info(&self, table: TableId) -> Result<&TableInfo, ControlError> {
        let tables = self.program.tables();
        tables
            .get(table.index())
            .ok_or_else(|| ControlError::NotFound {
                what: format!("table {}", table.index()),
            })
    }

    fn mutable(&self, table: TableId) -> Result<&TableInfo, ControlError> {
        let info = self.table_info(table)?;
        if info.const_entries {
            return Err(ControlError::Immutable {
                what: format!("the entries of table {}", info.name),
            });
        }
        if info.key.is_empty() {
            return Err(ControlError::InvalidArgument {
                what: "table".to_string(),
                value: info.name.clone(),
                bound: "tables with a key; this one has only a default action".to_string(),
            });
        }
        Ok(info)
    }

    /// The entry as it is kept, and what it leads to.
    fn check_entry(
        &self,
        table: TableId,
        entry: TableEntry,
    ) -> Result<(TableEntry, Outcome), ControlError> {
        let info = self.table_info(table)?;
        let key = canonical_key(&info.name, &info.key, entry.key)?;
        check_priority(info, entry.priority)?;
        let outcome = match (&entry.action, info.action_profile) {
            (EntryAction::Call(call), None) => {
                check_call(&self.program, table.index(), call)?;
                Outcome::Call(self.tables[table.index()].bind(&self.program, call, true))
            }
            (EntryAction::Member(member), Some(profile)) => {
                let profile = &self.profiles[profile.index()];
                if profile.member(*member).is_none() {
                    return Err(ControlError::NotFound {
                        what: format!("member {member} of the action profile of {}", info.name),
                    });
                }
                Outcome::Member(*member)
            }
            (EntryAction::Group(group), Some(profile)) => {
                let profile = &self.profiles[profile.index()];
                if profile.group(*group).is_none() {
                    return Err(ControlError::NotFound {
                        what: format!("group {group} of the action profile of {}", info.name),
                    });
                }
                Outcome::Group(*group)
            }
            (action, _) => {
                return Err(ControlError::InvalidArgument {
                    what: format!("action of table {}", info.name),
                    value: format!("{action:?}"),
                    bound: if info.action_profile.is_some() {
                        "a member or a group of its action profile".to_string()
                    } else {
                        "an action: the table has no action profile".to_string()
                    },
                });
            }
        };
        Ok((TableEntry { key, ..entry }, outcome))
    }

    /// The number of the entry with a key.
    pub(super) fn find_entry(
        &self,
        table: TableId,
        key: &[FieldMatch],
        priority: i32,
    ) -> Result<u32, ControlError> {
        let info = self.table_info(table)?;
        let key = canonical_key(&info.name, &info.key, key.to_vec())?;
        let number = self.tables[table.index()].find(priority, &key);
        number.ok_or_else(|| ControlError::NotFound {
            what: format!("this entry of table {}", info.name),
        })
    }

    /// Adds an entry.
    ///
    /// # Errors
    /// `InvalidArgument`, `AlreadyExists`, `ResourceExhausted` when the table is full,
    /// `Immutable` for a table with constant entries.
    pub fn insert_entry(
        &mut self,
        table: TableId,
        entry: impl Into<TableEntry>,
    ) -> Result<(), ControlError> {
        self.mutable(table)?;
        let (entry, outcome) = self.check_entry(table, entry.into())?;
        let info = &self.program.tables()[table.index()];
        let exists = || ControlError::AlreadyExists {
            what: format!("this entry of table {}", info.name),
        };
        let state = &mut self.tables[table.index()];
        if state.len() >= info.size {
            return Err(match state.find(entry.priority, &entry.key) {
                Some(_) => exists(),
                None => ControlError::ResourceExhausted {
                    what: format!("table {}", info.name),
                    limit: info.size,
                },
            });
        }
        let added = state.add(&self.program, entry, outcome, self.now_us);
        let number = added.ok_or_else(exists)?;
        if self.journaling() {
            self.undo(move |pipeline| {
                pipeline.tables[table.index()].remove(number);
            });
        }
        Ok(())
    }

    /// Changes the action of an entry; its direct counter goes on.
    ///
    /// # Errors
    /// `InvalidArgument`, `NotFound`, `Immutable`.
    pub fn modify_entry(
        &mut self,
        table: TableId,
        entry: impl Into<TableEntry>,
    ) -> Result<(), ControlError> {
        self.mutable(table)?;
        let entry = entry.into();
        let number = self.find_entry(table, &entry.key, entry.priority)?;
        let (entry, outcome) = self.check_entry(table, entry)?;
        if let Some(before) = self.put_action(table, number, entry.action, outcome) {
            self.undo(move |pipeline| {
                pipeline.put_action(table, number, before.0, before.1);
            });
        }
        Ok(())
    }

    fn put_action(
        &mut self,
        table: TableId,
        number: u32,
        action: EntryAction,
        outcome: Outcome,
    ) -> Option<(EntryAction, Outcome)> {
        let stored = self.tables[table.index()].entry_mut(number)?;
        Some((
            std::mem::replace(&mut stored.entry.action, action),
            std::mem::replace(&mut stored.outcome, outcome),
        ))
    }

    /// Removes an entry.
    ///
    /// # Errors
    /// `InvalidArgument`, `NotFound`, `Immutable`.
    pub fn delete_entry(
        &mut self,
        table: TableId,
        key: &[FieldMatch],
        priority: i32,
    ) -> Result<(), ControlError> {
        self.mutable(table)?;
        let number = self.find_entry(table, key, priority)?;
        let removed = self.tables[table.index()].remove(number);
        if let Some(stored) = removed.filter(|_| self.journaling()) {
            self.undo(move |pipeline| pipeline.tables[table.index()].put_back(number, stored));
        }
        Ok(())
    }

    /// The entry with a key.
    ///
    /// # Errors
    /// `InvalidArgument`, `NotFound`.
    pub fn entry(
        &self,
        table: TableId,
        key: &[FieldMatch],
        priority: i32,
    ) -> Result<TableEntry, ControlError> {
        let number = self.find_entry(table, key, priority)?;
        let stored = self.tables[table.index()].entries[number as usize].as_ref();
        stored
            .map(|stored| stored.entry.clone())
            .ok_or_else(|| ControlError::NotFound {
                what: format!("entry {number}"),
            })
    }

    /// All entries of a table by ascending priority, then key; none for an unknown table.
    pub fn entries(&self, table: TableId) -> Vec<TableEntry> {
        match self.tables.get(table.index()) {
            Some(state) => state.iter().map(|stored| stored.entry.clone()).collect(),
            None => Vec::new(),
        }
    }

    /// Sets the default action of a table, or with `None` the one the program gives it.
    ///
    /// # Errors
    /// `InvalidArgument`, `NotFound`, `Immutable` where the program fixes it.
    pub fn set_default(
        &mut self,
        table: TableId,
        call: Option<&ActionCall>,
    ) -> Result<(), ControlError> {
        let info = self.table_info(table)?;
        let call = match call {
            None => self.program.table_plans[table.index()].default.clone(),
            Some(call) => {
                if info.const_default {
                    return Err(ControlError::Immutable {
                        what: format!("the default action of table {}", info.name),
                    });
                }
                check_call(&self.program, table.index(), call)?;
                Some(call.clone())
            }
        };
        let state = &mut self.tables[table.index()];
        let before = state.default_call.clone();
        state.put_default(&self.program, call);
        self.undo(move |pipeline| {
            pipeline.tables[table.index()].put_default(&pipeline.program, before);
        });
        Ok(())
    }

    /// The default action of a table; `None` where a miss does nothing.
    pub fn default_action(&self, table: TableId) -> Option<ActionCall> {
        self.tables.get(table.index())?.default_call.clone()
    }

    // Action profiles.

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
    /// `InvalidArgument`, `AlreadyExists`, `NotFound`, `ResourceExhausted`.
    pub fn insert_member(
        &mut self,
        profile: ActionProfileId,
        id: u32,
        call: &ActionCall,
    ) -> Result<(), ControlError> {
        self.profile_name(profile)?;
        let place = profile.index();
        let before = self.profiles[place].member(id).cloned();
        self.profiles[place].put_member(&self.program, place, id, call, false)?;
        self.undo(move |pipeline| pipeline.profiles[place].put_back_member(id, before));
        Ok(())
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
        self.profile_name(profile)?;
        let place = profile.index();
        let before = self.profiles[place].member(id).cloned();
        self.profiles[place].put_member(&self.program, place, id, call, true)?;
        self.undo(move |pipeline| pipeline.profiles[place].put_back_member(id, before));
        Ok(())
    }

    /// Removes a member that nothing refers to.
    ///
    /// # Errors
    /// `NotFound`, `InvalidArgument` while an entry or group refers to it.
    pub fn delete_member(&mut self, profile: ActionProfileId, id: u32) -> Result<(), ControlError> {
        let name = self.profile_name(profile)?;
        if let Some(table) = self.user(profile, &EntryAction::Member(id)) {
            return Err(in_use(format!("member {id}"), format!("table {table}")));
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
                state
                    .unordered()
                    .any(|stored| stored.entry.action == *action)
            })
            .map(|(info, _)| info.name.as_str())
    }

    /// Members of an action profile by ascending id.
    pub fn members(&self, profile: ActionProfileId) -> impl Iterator<Item = (u32, &ActionCall)> {
        let profile = self.profiles.get(profile.index());
        profile.into_iter().flat_map(|profile| profile.members())
    }

    /// Adds a group of members. A member named twice is chosen twice as often.
    ///
    /// # Errors
    /// `AlreadyExists`, `NotFound` when a member does not exist.
    pub fn insert_group(
        &mut self,
        profile: ActionProfileId,
        id: u32,
        members: &[u32],
    ) -> Result<(), ControlError> {
        let name = self.profile_name(profile)?;
        let place = profile.index();
        let before = self.profiles[place].group(id).map(<[u32]>::to_vec);
        self.profiles[place].put_group(&name, id, members, false)?;
        self.undo(move |pipeline| pipeline.profiles[place].put_back_group(id, before));
        Ok(())
    }

    /// Changes the members of a group.
    ///
    /// # Errors
    /// `NotFound` when the group or a member does not exist.
    pub fn modify_group(
        &mut self,
        profile: ActionProfileId,
        id: u32,
        members: &[u32],
    ) -> Result<(), ControlError> {
        let name = self.profile_name(profile)?;
        let place = profile.index();
        let before = self.profiles[place].group(id).map(<[u32]>::to_vec);
        self.profiles[place].put_group(&name, id, members, true)?;
        self.undo(move |pipeline| pipeline.profiles[place].put_back_group(id, before));
        Ok(())
    }

    /// Removes a group that no entry refers to.
    ///
    /// # Errors
    /// `NotFound`, `InvalidArgument` while an entry refers to it.
    pub fn delete_group(&mut self, profile: ActionProfileId, id: u32) -> Result<(), ControlError> {
        let name = self.profile_name(profile)?;
        if let Some(table) = self.user(profile, &EntryAction::Group(id)) {
            return Err(in_use(format!("group {id}"), format!("table {table}")));
        }
        let place = profile.index();
        let before = self.profiles[place].group(id).map(<[u32]>::to_vec);
        self.profiles[place].delete_group(&name, id)?;
        self.undo(move |pipeline| pipeline.profiles[place].put_back_group(id, before));
        Ok(())
    }

    /// Groups of an action profile by ascending id.
    pub fn groups(&self, profile: ActionProfileId) -> impl Iterator<Item = (u32, &[u32])> {
        let profile = self.profiles.get(profile.index());
        profile.into_iter().flat_map(|profile| profile.groups())
    }

    // Packet replication.

    /// Adds a multicast group.
    ///
    /// # Errors
    /// `InvalidArgument` for an id that is 0 or not below
    /// [`SESSION_ID_END`](super::limits::SESSION_ID_END) or a replica twice,
    /// `AlreadyExists`, `ResourceExhausted`.
    pub fn insert_multicast_group(
        &mut self,
        id: u16,
        replicas: &[Replica],
    ) -> Result<(), ControlError> {
        let before = self.replication.copy_of_group(id);
        self.replication.insert_group(id, replicas)?;
        self.undo(move |pipeline| pipeline.replication.put_back_group(id, before));
        Ok(())
    }

    /// Changes the replicas of a multicast group.
    ///
    /// # Errors
    /// `InvalidArgument`, `NotFound`, `ResourceExhausted`.
    pub fn modify_multicast_group(
        &mut self,
        id: u16,
        replicas: &[Replica],
    ) -> Result<(), ControlError> {
        let before = self.replication.copy_of_group(id);
        self.replication.modify_group(id, replicas)?;
        self.undo(move |pipeline| pipeline.replication.put_back_group(id, before));
        Ok(())
    }

    /// Removes a multicast group.
    ///
    /// # Errors
    /// `NotFound`.
    pub fn delete_multicast_group(&mut self, id: u16) -> Result<(), ControlError> {
        let before = self.replication.copy_of_group(id);
        self.replication.delete_group(id)?;
        self.undo(move |pipeline| pipeline.replication.put_back_group(id, before));
        Ok(())
    }

    /// Multicast groups by ascending id.
    pub fn multicast_groups(&self) -> impl Iterator<Item = (u16, &[Replica])> {
        self.replication.groups()
    }

    /// Adds a clone session.
    ///
    /// # Errors
    /// Those of [`insert_multicast_group`](Self::insert_multicast_group).
    pub fn insert_clone_session(
        &mut self,
        id: u16,
        session: &CloneSession,
    ) -> Result<(), ControlError> {
        let before = self.replication.session(id).cloned();
        self.replication.insert_session(id, session)?;
        self.undo(move |pipeline| pipeline.replication.put_back_session(id, before));
        Ok(())
    }

    /// Changes a clone session.
    ///
    /// # Errors
    /// `InvalidArgument`, `NotFound`, `ResourceExhausted`.
    pub fn modify_clone_session(
        &mut self,
        id: u16,
        session: &CloneSession,
    ) -> Result<(), ControlError> {
        let before = self.replication.session(id).cloned();
        self.replication.modify_session(id, session)?;
        self.undo(move |pipeline| pipeline.replication.put_back_session(id, before));
        Ok(())
    }

    /// Removes a clone session.
    ///
    /// # Errors
    /// `NotFound`.
    pub fn delete_clone_session(&mut self, id: u16) -> Result<(), ControlError> {
        let before = self.replication.session(id).cloned();
        self.replication.delete_session(id)?;
        self.undo(move |pipeline| pipeline.replication.put_back_session(id, before));
        Ok(())
    }

    /// Clone sessions by ascending id.
    pub fn clone_sessions(&self) -> impl Iterator<Item = (u16, &CloneSession)> {
        self.replication.sessions()
    }
}

fn check_priority(info: &TableInfo, priority: i32) -> Result<(), ControlError> {
    let valid = if info.has_priority {
        priority > 0
    } else {
        priority == 0
    };
    if valid {
        return Ok(());
    }
    Err(ControlError::InvalidArgument {
        what: format!("priority in table {}", info.name),
        value: priority.to_string(),
        bound: if info.has_priority {
            format!("1 to {}", i32::MAX)
        } else {
            "0: the table has no ternary, range or optional field".to_string()
        },
    })
}
