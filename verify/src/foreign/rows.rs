//! Comma-separated values (RFC 4180): rows of fields, each with its place.

use std::borrow::Cow;

use super::syntax::syntax;
use crate::formats::FormatError;

/// A field and the byte at which it stands.
pub(super) struct Field<'a> {
    pub text: Cow<'a, str>,
    pub offset: usize,
}

/// A row that is not blank.
pub(super) struct Row<'a> {
    pub line: usize,
    pub fields: Vec<Field<'a>>,
}

/// Reads one row after the other.
pub(super) struct Rows<'a> {
    text: &'a str,
    at: usize,
    line: usize,
}

impl<'a> Rows<'a> {
    pub fn new(text: &'a str) -> Rows<'a> {
        Rows {
            text,
            at: 0,
            line: 1,
        }
    }

    /// The next row; `None` at the end.
    pub fn next_row(&mut self) -> Result<Option<Row<'a>>, FormatError> {
        loop {
            if self.at >= self.text.len() {
                return Ok(None);
            }
            let line = self.line;
            let mut fields = Vec::new();
            while self.field(&mut fields)? {}
            let is_blank = matches!(fields.as_slice(), [one] if one.text.trim().is_empty());
            if !is_blank {
                return Ok(Some(Row { line, fields }));
            }
        }
    }

    /// Reads a field; false if it is the last of its row.
    fn field(&mut self, fields: &mut Vec<Field<'a>>) -> Result<bool, FormatError> {
        let offset = self.at;
        let rest = &self.text[offset..];
        let text = match rest.strip_prefix('"') {
            Some(quoted) => self.quoted(quoted)?,
            None => {
                let end = rest.find([',', '\n', '"']).unwrap_or(rest.len());
                self.at += end;
                if rest[end..].starts_with('"') {
                    let reason =
                        "a quote stands in a field that does not begin with one".to_owned();
                    return Err(syntax(self.text, self.at, reason));
                }
                Cow::Borrowed(rest[..end].trim_end_matches('\r'))
            }
        };
        fields.push(Field { text, offset });
        let rest = &self.text[self.at..];
        let rest = rest
            .strip_prefix('\r')
            .filter(|rest| rest.starts_with('\n'))
            .unwrap_or(rest);
        self.at = self.text.len() - rest.len();
        match rest.bytes().next() {
            None => Ok(false),
            Some(b',') => {
                self.at += 1;
                Ok(true)
            }
            Some(b'\n') => {
                self.at += 1;
                self.line += 1;
                Ok(false)
            }
            Some(_) => {
                let reason =
                    "after a field in quotes comes a comma or the end of the line".to_owned();
                Err(syntax(self.text, self.at, reason))
            }
        }
    }

    /// A field in quotes; a quote in it stands twice.
    fn quoted(&mut self, quoted: &'a str) -> Result<Cow<'a, str>, FormatError> {
        let begin = self.at;
        let mut from = 0;
        loop {
            let Some(end) = quoted[from..].find('"').map(|end| from + end) else {
                let reason = "a field in quotes does not end".to_owned();
                return Err(syntax(self.text, begin, reason));
            };
            if quoted[end + 1..].starts_with('"') {
                from = end + 2;
                continue;
            }
            let inner = &quoted[..end];
            self.at = begin + end + 2;
            self.line += inner.matches('\n').count();
            return Ok(if inner.contains('"') {
                Cow::Owned(inner.replace("\"\"", "\""))
            } else {
                Cow::Borrowed(inner)
            });
        }
    }
}
