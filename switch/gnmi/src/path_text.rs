//! Paths as people write them, for messages.

use crate::proto::gnmi::Path;

/// Characters of a path that a message shows.
const SHOWN_CHARS: usize = 200;

/// `/interfaces/interface[name=eth0]/state`, of a prefix and a path below it.
pub(crate) fn text_of(prefix: Option<&Path>, path: Option<&Path>) -> String {
    let mut text = String::new();
    for element in [prefix, path]
        .into_iter()
        .flatten()
        .flat_map(|path| &path.elem)
    {
        text.push('/');
        text.push_str(&element.name);
        for (key, value) in &element.key {
            text += &format!("[{key}={value}]");
        }
        if text.len() > SHOWN_CHARS {
            break;
        }
    }
    if text.is_empty() {
        text.push('/');
    }
    shortened(&text)
}

/// A text of a client, as far as a message shows it.
pub(crate) fn shortened(text: &str) -> String {
    match text.char_indices().nth(SHOWN_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
