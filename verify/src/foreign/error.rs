//! What can be wrong with somebody's tables or paths.

use crate::formats::FormatError;

/// Why files are refused, and which of them.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{error}")]
pub struct ForeignError {
    /// Number of the text that is wrong; `None`: the topology does not fit.
    pub text: Option<usize>,
    /// What is wrong with it, and where.
    pub error: FormatError,
}

impl ForeignError {
    pub(super) fn of(text: usize, error: FormatError) -> ForeignError {
        ForeignError {
            text: Some(text),
            error,
        }
    }

    pub(super) fn network(code: &'static str, reason: String) -> ForeignError {
        ForeignError {
            text: None,
            error: FormatError::new(code, reason),
        }
    }
}
