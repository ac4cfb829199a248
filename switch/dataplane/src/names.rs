//! Names in messages.

/// Names that an error lists before it gives up.
const NAMES_LISTED: usize = 8;

/// The first few of many, and how many more there are.
pub fn list(mut names: impl ExactSizeIterator<Item = String>) -> String {
    let count = names.len();
    let mut text = Vec::from_iter(names.by_ref().take(NAMES_LISTED)).join(", ");
    if count > NAMES_LISTED {
        text += &format!(" and {} more", count - NAMES_LISTED);
    }
    text
}
