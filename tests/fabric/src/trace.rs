//! What happened in a run that was drawn.

use std::sync::{Arc, Mutex, PoisonError};

/// What happened, line by line, kept also when the run ends with a panic.
#[derive(Clone, Default)]
pub struct Trace(Arc<Mutex<Vec<String>>>);

impl Trace {
    pub fn note(&self, line: String) {
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        lines.push(line);
    }

    pub fn text(&self) -> String {
        let lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        lines.join("\n")
    }
}
