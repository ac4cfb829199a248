//! The control path: table entries and default actions.

use super::Pipeline;
use super::entry::{ActionCall, EntryAction, FieldMatch, TableEntry};
use super::error::ControlError;
use super::table::{Outcome, canonical_key, check_call};
use crate::program::{TableId, TableInfo};

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

    /// The entry as it is kept, and what it will lead to; `replaced` is what it leads to now.
    fn check_entry(
        &self,
        table: TableId,
        entry: &TableEntry,
        replaced: Option<&EntryAction>,
    ) -> Result<(TableEntry, Checked), ControlError> {
        let info = self.table_info(table)?;
        let key = canonical_key(&info.name, &info.key, &entry.key)?;
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
        let entry = TableEntry {
            key,
            priority: entry.priority,
            action: entry.action.clone(),
        };
        Ok((entry, checked))
    }

    /// What an entry leads to; makes its set, if it has one, into a group.
    fn settle(&mut self, table: TableId, entry: &TableEntry, checked: Checked) -> Outcome {
        let profile = self.program.tables()[table.index()].action_profile;
        match (checked, &entry.action, profile) {
            (Checked::Ready(outcome), _, _) => outcome,
            (Checked::Set, EntryAction::Set(set), Some(profile)) => {
                let state = &mut self.profiles[profile.index()];
                Outcome::Group(state.add_set(&self.program, set, &self.ports_down))
            }
            (Checked::Set, action, _) => unreachable!("{action:?} was checked to be a set"),
        }
    }

    /// Gives back the set of an entry that goes or changes, if it has one.
    pub(super) fn release(&mut self, table: TableId, action: &EntryAction, outcome: &Outcome) {
        let profile = self.program.tables()[table.index()].action_profile;
        if let (EntryAction::Set(_), Outcome::Group(group), Some(profile)) =
            (action, outcome, profile)
        {
            self.profiles[profile.index()].remove_set(*group);
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
    pub fn insert_entry(&mut self, table: TableId, entry: &TableEntry) -> Result<(), ControlError> {
        let info = self.mutable(table)?;
        let (entry, checked) = self.check_entry(table, entry, None)?;
        let state = &self.tables[table.index()];
        if state.find(entry.priority, &entry.key).is_some() {
            return Err(ControlError::AlreadyExists {
                what: format!("this entry of table {}", info.name),
            });
        }
        if state.len() >= info.size {
            return Err(ControlError::ResourceExhausted {
                what: format!("table {}", info.name),
                limit: info.size,
            });
        }
        let outcome = self.settle(table, &entry, checked);
        self.tables[table.index()].add(&self.program, entry, outcome);
        Ok(())
    }

    /// Changes the action of an entry; its direct counter goes on.
    ///
    /// # Errors
    /// `InvalidArgument`, `NotFound`, `Immutable`.
    pub fn modify_entry(&mut self, table: TableId, entry: &TableEntry) -> Result<(), ControlError> {
        self.mutable(table)?;
        let number = self.find_entry(table, &entry.key, entry.priority)?;
        let replaced = self.action_of(table, number);
        let (entry, checked) = self.check_entry(table, entry, replaced)?;
        let outcome = self.settle(table, &entry, checked);
        if let Some(stored) = self.tables[table.index()].entry_mut(number) {
            let action = std::mem::replace(&mut stored.entry, entry).action;
            let before = std::mem::replace(&mut stored.outcome, outcome);
            self.release(table, &action, &before);
        }
        Ok(())
    }

    fn action_of(&self, table: TableId, number: u32) -> Option<&EntryAction> {
        let stored = self.tables[table.index()].entries[number as usize].as_ref();
        stored.map(|stored| &stored.entry.action)
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
        if let Some(stored) = self.tables[table.index()].remove(number) {
            self.release(table, &stored.entry.action, &stored.outcome);
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
        self.tables[table.index()].put_default(&self.program, call);
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
