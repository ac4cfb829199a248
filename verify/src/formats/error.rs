//! What can be wrong with a file.

use super::place::Place;
use wormcast_routing::topology::TopologyError;

/// Why a file is refused. The text says where, what is there and what may be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{reason}", place.map_or_else(String::new, |at| format!("line {}, column {}: ", at.line, at.column)))]
pub struct FormatError {
    pub place: Option<Place>,
    /// A word for programs, as of [`TopologyError::code`]; besides those `unknown-format`,
    /// `unsupported` for what a topology cannot have or a format cannot hold,
    /// `links-disagree` and `host-links` for net lists and graphs.
    pub code: &'static str,
    pub reason: String,
}

impl FormatError {
    pub(crate) fn new(code: &'static str, reason: String) -> FormatError {
        FormatError {
            place: None,
            code,
            reason,
        }
    }

    /// An error at a byte of the text.
    pub(crate) fn at(text: &str, offset: usize, code: &'static str, reason: String) -> FormatError {
        FormatError {
            place: Some(Place::of_offset(text, offset)),
            code,
            reason,
        }
    }
}

impl From<TopologyError> for FormatError {
    fn from(error: TopologyError) -> FormatError {
        FormatError::new(error.code(), error.to_string())
    }
}
