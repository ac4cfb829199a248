//! The control path: table entries and default actions.

use super::Pipeline;
use super::entry::{EntryAction, TableEntry};
use super::error::ControlError;
use super::table::{Outcome, canonical_key, check_call};
use wormcast_switch_program::{ActionCall, FieldMatch};
use wormcast_switch_program::{TableId, TableInfo};

/// What an entry that was checked will lead to.
enum Checked {
    Ready(Outcome),
    /// A set of actions, which is still to be made into a group.
    Set,
}

impl Pipeline {
    pub(super) fn table_info(&self, table: TableId) -> Result<&TableInfo, ControlError> {
        let tables = self.program.tables();
        tables
            .get(table.index())
            .ok_or_else(|| ControlError::NotFound {
                what: format!("table {}", table.index()),
            })
    }

    /// Lets the entries that the program brings be changed, and the table hold `size` of
    /// them if that is more; for a table without such entries it changes nothing. The JSON of
    /// p4c does not tell `entries` from `const entries`; the P4Info does.
    pub fn open_table(&mut self, table: TableId, size: usize) {
        if let Some(state) = self.tables.get_mut(table.index())
            && state.const_entries
        {
            state.const_entries = false;
            state.size = state.size.max(size);
        }
    }

    fn mutable(&self, table: TableId) -> Result<&TableInfo, ControlError> {
        let info = self.table_info(table)?;
        if self.tables[table.index()].const_entries {
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

    /// The entry as it is kept, and what it will lead to; `replaced` is what it leads to now.
    fn check_entry(
        &self,
        table: TableId,
        entry: TableEntry,
        replaced: Option<&EntryAction>,
    ) -> Result<(TableEntry, Checked), ControlError> {
        let info = self.table_info(table)?;
        let key = canonical_key(&info.name, &info.key, entry.key)?.into_owned();
        check_priority(info, entry.priority)?;
        let checked = match (&entry.action, info.action_profile) {
            (EntryAction::Call(call), None) => {
                check_call(&self.program, table.index(), call)?;
                let bound = self.tables[table.index()].bind(&self.program, call, true);
                Checked::Ready(Outcome::Call(bound))
            }
            (EntryAction::Member(member), Some(profile)) => {
                let profile = &self.profiles[profile.index()];
                if profile.has_sets() || profile.member(*member).is_none() {
                    return Err(ControlError::NotFound {
                        what: format!("member {member} of the action profile of {}", info.name),
                    });
                }
                Checked::Ready(Outcome::Member(*member))
            }
            (EntryAction::Group(group), Some(profile)) => {
                let profile = &self.profiles[profile.index()];
                if profile.has_sets() || profile.group(*group).is_none() {
                    return Err(ControlError::NotFound {
                        what: format!("group {group} of the action profile of {}", info.name),
                    });
                }
                Checked::Ready(Outcome::Group(*group))
            }
            (EntryAction::Set(set), Some(profile)) => {
                let freed = match replaced {
                    Some(EntryAction::Set(old)) => old.actions.len(),
                    _ => 0,
                };
                let state = &self.profiles[profile.index()];
                state.check_set(&self.program, profile.index(), set, freed)?;
                Checked::Set
            }
            (action, _) => {
                return Err(ControlError::InvalidArgument {
                    what: format!("action of table {}", info.name),
                    value: format!("{action:?}"),
                    bound: if info.action_profile.is_some() {
                        "a member, a group or a set of its action profile".to_string()
                    } else {
                        "an action: the table has no action profile".to_string()
                    },
                });
            }
        };
        Ok((TableEntry { key, ..entry }, checked))
    }

    /// What an entry leads to; makes its set, if it has one, into a group.
    fn settle(&mut self, table: TableId, action: &EntryAction, checked: Checked) -> Outcome {
        let profile = self.program.tables()[table.index()].action_profile;
        match (checked, action, profile) {
            (Checked::Ready(outcome), _, _) => outcome,
            (Checked::Set, EntryAction::Set(set), Some(profile)) => {
                let place = profile.index();
                let group = self.profiles[place].add_set(&self.program, set, &self.ports_down);
                self.undo(move |pipeline| {
                    pipeline.profiles[place].remove_set(group);
                });
                Outcome::Group(group)
            }
            (Checked::Set, action, _) => unreachable!("{action:?} was checked to be a set"),
        }
    }

    /// Gives back the set of an entry that goes or changes, if it has one.
    fn release(&mut self, table: TableId, action: &EntryAction, outcome: &Outcome) {
        let profile = self.program.tables()[table.index()].action_profile;
        if let (EntryAction::Set(_), Outcome::Group(group), Some(profile)) =
            (action, outcome, profile)
        {
            let (place, group) = (profile.index(), *group);
            if let Some(removed) = self.profiles[place].remove_set(group) {
                self.undo(move |pipeline| pipeline.profiles[place].put_back_set(group, removed));
            }
        }
    }

    /// The number of the entry with a key.
    pub(super) fn find_entry(
        &self,
        table: TableId,
        key: &[FieldMatch],
        priority: i32,
    ) -> Result<u32, ControlError> {
        let info = self.table_info(table)?;
        let key = canonical_key(&info.name, &info.key, key)?;
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
        let (entry, checked) = self.check_entry(table, entry.into(), None)?;
        let info = &self.program.tables()[table.index()];
        let exists = || ControlError::AlreadyExists {
            what: format!("this entry of table {}", info.name),
        };
        // A set is made only for an entry that can be added; its members are looked up
        // here, before there is anything to take back.
        let is_set = matches!(checked, Checked::Set);
        let state = &self.tables[table.index()];
        if is_set || state.len() >= state.size {
            if state.find(entry.priority, &entry.key).is_some() {
                return Err(exists());
            }
            if state.len() >= state.size {
                return Err(ControlError::ResourceExhausted {
                    what: format!("table {}", info.name),
                    limit: state.size,
                });
            }
        }
        let outcome = self.settle(table, &entry.action, checked);
        let info = &self.program.tables()[table.index()];
        let exists = || ControlError::AlreadyExists {
            what: format!("this entry of table {}", info.name),
        };
        let state = &mut self.tables[table.index()];
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
        let replaced = self.tables[table.index()].entries[number as usize].as_ref();
        let replaced = replaced.map(|stored| &stored.entry.action);
        let (entry, checked) = self.check_entry(table, entry, replaced)?;
        let outcome = self.settle(table, &entry.action, checked);
        if let Some(before) = self.put_action(table, number, entry.action, outcome) {
            self.release(table, &before.0, &before.1);
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
        if let Some(stored) = &removed {
            self.release(table, &stored.entry.action, &stored.outcome);
        }
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
            None if info.const_default => {
                return Err(ControlError::Immutable {
                    what: format!("the default action of table {}", info.name),
                });
            }
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
