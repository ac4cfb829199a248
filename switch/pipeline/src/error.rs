//! Why a control-plane operation is refused.

use std::fmt;

/// A control-plane operation that was refused; nothing has changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ControlError {
    /// An insert of what is there already.
    AlreadyExists {
        /// What is there, in words.
        what: String,
    },
    /// A modify, delete or read of what is not there.
    NotFound {
        /// What is not there, in words.
        what: String,
    },
    /// A value outside its bounds.
    InvalidArgument {
        /// What the value is for.
        what: String,
        /// The value.
        value: String,
        /// What is valid.
        bound: String,
    },
    /// No room.
    ResourceExhausted {
        /// What is full.
        what: String,
        /// How much it holds.
        limit: usize,
    },
    /// A deletion of what something else refers to.
    InUse {
        /// What is to be deleted, in words.
        what: String,
        /// What refers to it, in words.
        user: String,
    },
    /// The program fixes this: constant entries, a constant default action.
    Immutable {
        /// What is fixed.
        what: String,
    },
}

impl fmt::Display for ControlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ControlError::AlreadyExists { what } => write!(f, "{what} exists already"),
            ControlError::NotFound { what } => write!(f, "{what} does not exist"),
            ControlError::InvalidArgument { what, value, bound } => {
                write!(f, "{value} is not a valid {what}; valid: {bound}")
            }
            ControlError::ResourceExhausted { what, limit } => {
                write!(f, "{what} is full: it holds at most {limit}")
            }
            ControlError::InUse { what, user } => {
                write!(f, "{what} cannot be deleted: {user} refers to it")
            }
            ControlError::Immutable { what } => write!(f, "fixed by the program: {what}"),
        }
    }
}

impl std::error::Error for ControlError {}
