//! Why a script failed.

use std::fmt;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Line of the script, from 1; `None`: not one line's.
    pub line: Option<usize>,
    pub message: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "line {line}: {}", self.message),
            None => f.write_str(&self.message),
        }
    }
}
