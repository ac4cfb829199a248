//! Names that are given once.

use super::error::{Problem, ProgramError};
use super::json::Node;

/// The name of an object that none of its kind has yet.
pub(super) fn unique_name(
    node: &Node<'_>,
    kind: &'static str,
    names: &[String],
) -> Result<String, ProgramError> {
    let name = node.member("name")?.string()?.to_string();
    if names.contains(&name) {
        return Err(node.error(Problem::Duplicate { kind, name }));
    }
    Ok(name)
}
