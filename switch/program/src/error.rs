//! Why a BMv2 JSON file cannot be loaded.

use std::fmt;

/// A BMv2 JSON file that is not well formed, contradicts itself, or uses something this
/// switch does not have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramError {
    /// Where: a path from the root such as `pipelines[0].tables[3].key[1].target`.
    pub path: String,
    /// What is wrong.
    pub problem: Problem,
}

/// What is wrong at the place a [`ProgramError`] names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Problem {
    /// The text is not JSON.
    Syntax {
        /// Line, from 1.
        line: usize,
        /// Column, from 1.
        column: usize,
        /// The parser's words.
        message: String,
    },
    /// A member that has to be there is not.
    Missing {
        /// Name of the member.
        member: String,
    },
    /// A value of another JSON type than this place takes.
    WrongType {
        /// What stands there, shortened.
        value: String,
        /// What this place takes.
        expected: String,
    },
    /// A value that is not among those this place takes.
    InvalidValue {
        /// What stands there, shortened.
        value: String,
        /// The values this place takes.
        expected: String,
    },
    /// A name or id that refers to nothing.
    UnknownReference {
        /// Kind of object referred to.
        kind: &'static str,
        /// The reference.
        name: String,
        /// The objects of that kind, shortened.
        choices: String,
    },
    /// Two objects of a kind with one name or id.
    Duplicate {
        /// Kind of object.
        kind: &'static str,
        /// The name or id that appears twice.
        name: String,
    },
    /// Valid BMv2 JSON that this switch cannot run.
    Unsupported {
        /// The construct.
        feature: String,
        /// What it can run instead.
        supported: String,
    },
    /// More of something than this switch holds.
    LimitExceeded {
        /// What is counted.
        what: &'static str,
        /// How many the program has.
        value: usize,
        /// The most there can be.
        limit: usize,
    },
    /// The graph of tables and conditions, or of jumps in an action, has a cycle.
    Cycle {
        /// A node on the cycle.
        node: String,
    },
}

impl fmt::Display for ProgramError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.path.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        match &self.problem {
            Problem::Syntax {
                line,
                column,
                message,
            } => write!(f, "not JSON at line {line}, column {column}: {message}"),
            Problem::Missing { member } => write!(f, "member \"{member}\" is missing"),
            Problem::WrongType { value, expected } | Problem::InvalidValue { value, expected } => {
                write!(f, "{value} is not valid here; expected {expected}")
            }
            Problem::UnknownReference {
                kind,
                name,
                choices,
            } => write!(f, "there is no {kind} \"{name}\"; there are: {choices}"),
            Problem::Duplicate { kind, name } => {
                write!(f, "two objects of kind {kind} are called \"{name}\"")
            }
            Problem::Unsupported { feature, supported } => {
                write!(f, "{feature} is not supported; supported: {supported}")
            }
            Problem::LimitExceeded { what, value, limit } => {
                write!(f, "{value} {what} are more than the limit of {limit}")
            }
            Problem::Cycle { node } => write!(f, "\"{node}\" is on a cycle"),
        }
    }
}

impl std::error::Error for ProgramError {}
