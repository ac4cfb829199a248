//! A series of control operations that is kept or taken back as a whole.

use super::Pipeline;

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
