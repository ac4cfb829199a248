//! Taking back a series of control operations.

use std::fmt;

/// Brings back what one operation has changed.
pub(super) type Undo<T> = Box<dyn FnOnce(&mut T) + Send>;

/// What was changed in a state since the journal was opened.
pub(super) struct Journal<T>(pub(super) Option<Vec<Undo<T>>>);

impl<T> Default for Journal<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T> fmt::Debug for Journal<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            None => f.write_str("Journal(closed)"),
            Some(changes) => write!(f, "Journal({} changes)", changes.len()),
        }
    }
}

impl<T> Journal<T> {
    pub(super) fn is_open(&self) -> bool {
        self.0.is_some()
    }
}
