//! Entries by number: a name that stays as long as the entry.

use super::Pipeline;
use super::entry::{EntryHandle, TableEntry};
use super::error::ControlError;
use wormcast_switch_program::FieldMatch;
use wormcast_switch_program::TableId;

impl Pipeline {
    /// The handle of the entry with a key.
    ///
    /// # Errors
    /// `InvalidArgument`, `NotFound`.
    pub fn handle(
        &self,
        table: TableId,
        key: &[FieldMatch],
        priority: i32,
    ) -> Result<EntryHandle, ControlError> {
        let number = self.find_entry(table, key, priority)?;
        let generation = self.tables[table.index()].generations[number as usize];
        Ok(EntryHandle { number, generation })
    }

    /// The entry that has a number now, and its handle.
    pub fn entry_with_number(
        &self,
        table: TableId,
        number: u32,
    ) -> Option<(EntryHandle, &TableEntry)> {
        let state = self.tables.get(table.index())?;
        let stored = state.entries.get(number as usize)?.as_ref()?;
        let generation = state.generations[number as usize];
        Some((EntryHandle { number, generation }, &stored.entry))
    }

    /// Entries by ascending number; none for an unknown table.
    pub fn entries_by_number(
        &self,
        table: TableId,
    ) -> impl Iterator<Item = (EntryHandle, &TableEntry)> {
        let state = self.tables.get(table.index());
        let numbers = state.map_or(0, |state| state.entries.len() as u32);
        (0..numbers).filter_map(move |number| self.entry_with_number(table, number))
    }

    /// Has the next entries of a table without any have the handles that its first ones had.
    /// Nothing happens where there are entries.
    pub fn restart_handles(&mut self, table: TableId) {
        if let Some(state) = self.tables.get_mut(table.index()) {
            state.restart_generations();
        }
    }

    /// Entries in a table; 0 for an unknown one.
    pub fn entry_count(&self, table: TableId) -> usize {
        self.tables
            .get(table.index())
            .map_or(0, super::table::TableState::len)
    }
}
