//! Places in a text.

/// A place in a file, as editors show it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Line, from 1.
    pub line: usize,
    /// Character of the line, from 1.
    pub column: usize,
}

impl Place {
    /// The place of a byte; the end of the text if it lies beyond.
    pub(super) fn of_offset(text: &str, offset: usize) -> Place {
        let mut offset = offset.min(text.len());
        while !text.is_char_boundary(offset) {
            offset -= 1;
        }
        let before = &text[..offset];
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        Place {
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
        }
    }
}

/// A line without its comment, its number's offset kept.
#[derive(Clone, Copy)]
pub(crate) struct Line<'a> {
    /// Byte of the text at which it starts.
    pub offset: usize,
    /// What it holds, its end excluded.
    pub text: &'a str,
}

/// Lines of a text, with their offsets.
pub(crate) fn lines(text: &str) -> impl Iterator<Item = Line<'_>> {
    let mut offset = 0;
    text.split_inclusive('\n').map(move |line| {
        let start = offset;
        offset += line.len();
        Line {
            offset: start,
            text: line.trim_end_matches(['\n', '\r']),
        }
    })
}

/// Byte at which the value of a path such as `links[3].a_port` starts in a JSON text;
/// `None` if there is no such value. The text has been parsed before, so it is well formed.
pub(super) fn find_json(text: &str, path: &str) -> Option<usize> {
    let mut at = skip_space(text, 0);
    for step in path.split(['.', '[']) {
        at = match step.strip_suffix(']') {
            Some(index) => find_element(text, at, index.parse().ok()?)?,
            None => find_field(text, at, step)?,
        };
    }
    Some(at)
}

fn skip_space(text: &str, at: usize) -> usize {
    let rest = &text[at..];
    at + rest.len() - rest.trim_start_matches([' ', '\t', '\r', '\n', ',']).len()
}

fn find_element(text: &str, array: usize, index: usize) -> Option<usize> {
    let mut at = skip_space(text, enter(text, array, b'[')?);
    for _ in 0..index {
        at = skip_space(text, skip_value(text, at)?);
    }
    (text.as_bytes().get(at)? != &b']').then_some(at)
}

/// The last field of that name, which is the one that a parser keeps.
fn find_field(text: &str, object: usize, field: &str) -> Option<usize> {
    let mut at = skip_space(text, enter(text, object, b'{')?);
    let mut found = None;
    while text.as_bytes().get(at)? == &b'"' {
        let end = skip_value(text, at)?;
        let colon = skip_space(text, end);
        let value = skip_space(text, colon + 1);
        if text.get(at + 1..end - 1) == Some(field) {
            found = Some(value);
        }
        at = skip_space(text, skip_value(text, value)?);
    }
    found
}

fn enter(text: &str, at: usize, bracket: u8) -> Option<usize> {
    (text.as_bytes().get(at) == Some(&bracket)).then_some(at + 1)
}

/// The byte behind a value.
fn skip_value(text: &str, from: usize) -> Option<usize> {
    let bytes = text.as_bytes();
    let (mut at, mut depth, mut quoted) = (from, 0usize, false);
    loop {
        let byte = *bytes.get(at)?;
        match byte {
            b'\\' if quoted => at += 1,
            b'"' => {
                quoted = !quoted;
                if !quoted && depth == 0 {
                    return Some(at + 1);
                }
            }
            _ if quoted => {}
            b'[' | b'{' => depth += 1,
            b']' | b'}' if depth == 0 => return Some(at),
            b']' | b'}' => {
                depth -= 1;
                if depth == 0 {
                    return Some(at + 1);
                }
            }
            b',' | b' ' | b'\t' | b'\r' | b'\n' if depth == 0 => return Some(at),
            _ => {}
        }
        at += 1;
    }
}
