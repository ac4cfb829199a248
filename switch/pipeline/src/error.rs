//! Why a control-plane operation is refused.

/// A control-plane operation that was refused; nothing has changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ControlError {
    /// An insert of what is there already.
    #[error("{what} exists already")]
    AlreadyExists {
        /// What is there, in words.
        what: String,
    },
    /// A modify, delete or read of what is not there.
    #[error("{what} does not exist")]
    NotFound {
        /// What is not there, in words.
        what: String,
    },
    /// A value outside its bounds.
    #[error("{value} is not a valid {what}; valid: {bound}")]
    InvalidArgument {
        /// What the value is for.
        what: String,
        value: String,
        bound: String,
    },
    #[error("{what} is full: it holds at most {limit}")]
    ResourceExhausted { what: String, limit: usize },
    /// A deletion of what something else refers to.
    #[error("{what} cannot be deleted: {user} refers to it")]
    InUse {
        /// What is to be deleted, in words.
        what: String,
        /// What refers to it, in words.
        user: String,
    },
    /// The program fixes this: constant entries, a constant default action.
    #[error("fixed by the program: {what}")]
    Immutable { what: String },
}
