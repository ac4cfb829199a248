//! What messages name: tables, priorities of their entries, externs.

use super::fit::Object;
use super::rejection::Rejection;
use super::schema::{Schema, TableSchema};

/// The table a message names.
pub fn find_table(schema: &Schema, id: u32) -> Result<&TableSchema, Rejection> {
    schema
        .table(id)
        .ok_or_else(|| schema.absent.rejection(Object::Table, id))
}

/// Priority of an entry: at least 1 where there are priorities, else 0.
pub fn parse_priority(table: &TableSchema, priority: i32) -> Result<i32, Rejection> {
    let valid = if table.has_priority {
        priority > 0
    } else {
        priority == 0
    };
    if valid {
        return Ok(priority);
    }
    let bound = if table.has_priority {
        "at least 1, because the key has a ternary, range or optional field"
    } else {
        "0, because the key has no ternary, range or optional field"
    };
    Err(Rejection::invalid(format!(
        "table `{}`: priority {priority} is not valid: {bound}",
        table.name
    )))
}

/// The rejection for an idle timeout of entries that have none.
pub fn no_ages(table: &TableSchema) -> Rejection {
    Rejection::invalid(format!(
        "table `{}`: there are idle timeouts only for entries, and only where the P4Info has \
         them",
        table.name
    ))
}

/// The rejection for an extern: v1model has none with entries of its own.
pub fn no_extern(type_id: u32) -> Rejection {
    Rejection::unimplemented(format!(
        "extern type {type_id} is not known: v1model has no externs with entries of their own"
    ))
}
