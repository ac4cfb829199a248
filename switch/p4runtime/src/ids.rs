//! Ids in messages for people.

/// `1 (port), 2 (pad)`, or `none`.
pub fn list<'a>(items: impl Iterator<Item = (u32, &'a String)>) -> String {
    let items: Vec<String> = items.map(|(id, name)| format!("{id} ({name})")).collect();
    if items.is_empty() {
        "none".to_owned()
    } else {
        items.join(", ")
    }
}
