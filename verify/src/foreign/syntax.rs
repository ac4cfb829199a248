//! What cannot be read.

use crate::formats::FormatError;

/// The error at a place of the text.
pub(super) fn syntax(text: &str, offset: usize, reason: String) -> FormatError {
    FormatError::at(text, offset, "syntax", reason)
}
