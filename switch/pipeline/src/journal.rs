//! Taking back a series of control operations.

use std::fmt;

use super::Pipeline;

/// Brings back what one operation has changed.
type Undo = Box<dyn FnOnce(&mut Pipeline) + Send>;

/// What was changed since [`Pipeline::begin`].
#[derive(Default)]
pub(super) struct Journal(Option<Vec<Undo>>);

impl fmt::Debug for Journal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            None => f.write_str("Journal(closed)"),
            Some(changes) => write!(f, "Journal({} changes)", changes.len()),
        }
    }
}

impl Journal {
    pub(super) fn is_open(&self) -> bool {
        self.0.is_some()
    }
}

impl Pipeline {
    /// From now on every control operation is recorded, until [`commit`](Self::commit) or
    /// [`rollback`](Self::rollback). What was recorded before is forgotten.
    pub fn begin(&mut self) {
        self.journal.0 = Some(Vec::new());
    }

    /// Keeps what was changed since [`begin`](Self::begin).
    pub fn commit(&mut self) {
        self.journal.0 = None;
    }

    /// Takes back what was changed since [`begin`](Self::begin), the last change first.
    /// What packets changed in between stays, but for cells that were written too.
    pub fn rollback(&mut self) {
        for undo in self.journal.0.take().into_iter().flatten().rev() {
            undo(self);
        }
    }

    /// Whether changes are recorded.
    pub(super) fn journaling(&self) -> bool {
        self.journal.is_open()
    }

    /// Records how to take back a change that was made just now.
    pub(super) fn undo(&mut self, undo: impl FnOnce(&mut Pipeline) + Send + 'static) {
        if let Some(changes) = &mut self.journal.0 {
            changes.push(Box::new(undo));
        }
    }
}
