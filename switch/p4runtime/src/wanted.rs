//! Which entries a filter of a read asks for.

use super::entry::parse_key;
use super::proto::p4::v1::{TableEntry, table_action};
use super::rejection::Rejection;
use super::schema::TableSchema;
use super::source::Source;
use super::tables::no_ages;
use wormcast_switch_program::FieldMatch;

/// What a filter asks for; what is not set takes anything.
pub struct Wanted<'a> {
    table: &'a TableSchema,
    key: Option<Vec<FieldMatch>>,
    action_id: Option<u32>,
    filter: &'a TableEntry,
}

impl<'a> Wanted<'a> {
    /// Checks a filter against its table.
    pub fn parse(table: &'a TableSchema, filter: &'a TableEntry) -> Result<Self, Rejection> {
        let key = if filter.r#match.is_empty() {
            None
        } else {
            Some(parse_key(table, &filter.r#match)?)
        };
        let action_id = match filter
            .action
            .as_ref()
            .and_then(|action| action.r#type.as_ref())
        {
            Some(table_action::Type::Action(action)) => Some(action.action_id),
            _ => None,
        };
        if filter.time_since_last_hit.is_some()
            && (filter.is_default_action || filter.table_id != 0 && !table.has_idle_timeout)
        {
            return Err(no_ages(table));
        }
        Ok(Self {
            table,
            key,
            action_id,
            filter,
        })
    }

    /// Entries with the key of the filter.
    pub fn candidates(&self, source: &Source<'_>) -> Vec<wormcast_switch_pipeline::TableEntry> {
        let priority = self.filter.priority;
        let table = self.table.table;
        match &self.key {
            // A key and, where there are priorities, a priority name one entry.
            Some(key) if !self.table.has_priority || priority != 0 => {
                let entry = source.pipeline.entry(table, key, priority);
                entry.into_iter().collect()
            }
            Some(key) => {
                let mut entries = source.pipeline.entries(table);
                entries.retain(|entry| entry.key == *key);
                entries
            }
            None => source.pipeline.entries(table),
        }
    }

    /// Entries that the filter names by key and priority.
    ///
    /// # Errors
    /// `NOT_FOUND` if it names a key that no entry has.
    pub fn entries(
        &self,
        source: &Source<'_>,
    ) -> Result<Vec<wormcast_switch_pipeline::TableEntry>, Rejection> {
        let priority = self.filter.priority;
        let mut entries = self.candidates(source);
        entries.retain(|entry| priority == 0 || entry.priority == priority);
        if entries.is_empty() && self.key.is_some() {
            return Err(Rejection::not_found(format!(
                "table `{}` has no such entry",
                self.table.name
            )));
        }
        Ok(entries)
    }

    /// Whether an entry, as a message, is among those that the filter asks for.
    #[allow(deprecated, reason = "controllers still filter by controller_metadata")]
    pub fn accepts(&self, entry: &TableEntry) -> bool {
        let filter = self.filter;
        let action_id = match entry
            .action
            .as_ref()
            .and_then(|action| action.r#type.as_ref())
        {
            Some(table_action::Type::Action(action)) => Some(action.action_id),
            _ => None,
        };
        (filter.priority == 0 || filter.priority == entry.priority)
            && (filter.controller_metadata == 0
                || filter.controller_metadata == entry.controller_metadata)
            && (filter.metadata.is_empty() || filter.metadata == entry.metadata)
            && (self.action_id.is_none() || self.action_id == action_id)
    }
}
