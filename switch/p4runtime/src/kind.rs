//! What an update does.

use super::rejection::Rejection;

/// What to do with an entity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It must not be there yet.
    Insert,
    /// It must be there.
    Modify,
    /// It must be there.
    Delete,
}

/// Refuses to insert or delete what is always there.
pub fn only_modify(what: &str, kind: Kind) -> Result<(), Rejection> {
    if kind == Kind::Modify {
        return Ok(());
    }
    Err(Rejection::invalid(format!("{what} can only be modified")))
}
