//! Why a BMv2 JSON file cannot be loaded.

/// A BMv2 JSON file that is not well formed, contradicts itself, or uses something this
/// switch does not have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{problem}", if path.is_empty() { String::new() } else { format!("{path}: ") })]
pub struct ProgramError {
    /// Where: a path from the root such as `pipelines[0].tables[3].key[1].target`.
    pub path: String,
    pub problem: Problem,
}

/// What is wrong at the place a [`ProgramError`] names.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// The text is not JSON.
    #[error("not JSON at line {line}, column {column}: {message}")]
    Syntax {
        /// Line, from 1.
        line: usize,
        /// Column, from 1.
        column: usize,
        message: String,
    },
    /// A member that has to be there is not.
    #[error("member \"{member}\" is missing")]
    Missing { member: String },
    /// A value of another JSON type than this place takes.
    #[error("{value} is not valid here; expected {expected}")]
    WrongType {
        /// What stands there, shortened.
        value: String,
        expected: String,
    },
    /// A value that is not among those this place takes.
    #[error("{value} is not valid here; expected {expected}")]
    InvalidValue {
        /// What stands there, shortened.
        value: String,
        /// The values this place takes.
        expected: String,
    },
    /// A name or id that refers to nothing.
    #[error("there is no {kind} \"{name}\"; there are: {choices}")]
    UnknownReference {
        /// Kind of object referred to.
        kind: &'static str,
        name: String,
        /// The objects of that kind, shortened.
        choices: String,
    },
    /// Two objects of a kind with one name or id.
    #[error("two objects of kind {kind} are called \"{name}\"")]
    Duplicate {
        kind: &'static str,
        /// The name or id that appears twice.
        name: String,
    },
    /// Valid BMv2 JSON that this switch cannot run.
    #[error("{feature} is not supported; supported: {supported}")]
    Unsupported {
        feature: String,
        /// What it can run instead.
        supported: String,
    },
    /// More of something than this switch holds.
    #[error("{value} {what} are more than the limit of {limit}")]
    LimitExceeded {
        what: &'static str,
        /// How many the program has.
        value: usize,
        /// The most there can be.
        limit: usize,
    },
    /// The graph of tables and conditions, or of jumps in an action, has a cycle.
    #[error("\"{node}\" is on a cycle")]
    Cycle { node: String },
}
