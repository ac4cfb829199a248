//! Reading JSON with errors that say where and what was expected.

use serde_json::Value;

use super::error::{Problem, ProgramError};

/// Longest excerpt of a value in an error, in characters.
const EXCERPT_CHARS_MAX: usize = 60;
/// Most names listed as choices in an error.
const CHOICES_MAX: usize = 20;

/// A value of the document and the path to it.
#[derive(Clone)]
pub(super) struct Node<'a> {
    value: &'a Value,
    path: String,
}

/// A value that is read later than what is around it.
#[derive(Clone, Debug)]
pub(super) struct Kept {
    value: Value,
    path: String,
}

impl Kept {
    pub(super) fn node(&self) -> Node<'_> {
        Node {
            value: &self.value,
            path: self.path.clone(),
        }
    }
}

impl<'a> Node<'a> {
    pub(super) fn root(value: &'a Value) -> Self {
        Self {
            value,
            path: String::new(),
        }
    }

    /// The value and its path, to be read when more is known.
    pub(super) fn kept(&self) -> Kept {
        Kept {
            value: self.value.clone(),
            path: self.path.clone(),
        }
    }

    /// Every object inside the value that has a member `type` of this name.
    pub(super) fn all_of_type(&self, name: &str) -> Vec<Node<'a>> {
        let children: Vec<Node<'a>> = match self.value {
            Value::Array(items) => items.iter().map(|item| self.inside(item)).collect(),
            Value::Object(members) => members.values().map(|item| self.inside(item)).collect(),
            _ => Vec::new(),
        };
        let is_one = self.value.get("type").and_then(Value::as_str) == Some(name);
        let mut found: Vec<Node<'a>> = is_one.then(|| self.clone()).into_iter().collect();
        found.extend(children.iter().flat_map(|child| child.all_of_type(name)));
        found
    }

    fn inside(&self, value: &'a Value) -> Node<'a> {
        Node {
            value,
            path: self.path.clone(),
        }
    }

    pub(super) fn error(&self, problem: Problem) -> ProgramError {
        ProgramError {
            path: self.path.clone(),
            problem,
        }
    }

    pub(super) fn invalid(&self, expected: impl Into<String>) -> ProgramError {
        self.error(Problem::InvalidValue {
            value: self.excerpt(),
            expected: expected.into(),
        })
    }

    pub(super) fn unsupported(
        &self,
        feature: impl Into<String>,
        supported: impl Into<String>,
    ) -> ProgramError {
        self.error(Problem::Unsupported {
            feature: feature.into(),
            supported: supported.into(),
        })
    }

    pub(super) fn unknown<'n>(
        &self,
        kind: &'static str,
        name: impl Into<String>,
        choices: impl Iterator<Item = &'n str>,
    ) -> ProgramError {
        self.error(Problem::UnknownReference {
            kind,
            name: name.into(),
            choices: list_choices(choices),
        })
    }

    fn wrong_type(&self, expected: &str) -> ProgramError {
        self.error(Problem::WrongType {
            value: self.excerpt(),
            expected: expected.into(),
        })
    }

    /// The value as text, shortened.
    pub(super) fn excerpt(&self) -> String {
        let text = match self.value {
            Value::Array(items) => format!("an array of {}", items.len()),
            Value::Object(_) => "an object".to_string(),
            other => other.to_string(),
        };
        if text.chars().count() > EXCERPT_CHARS_MAX {
            let cut: String = text.chars().take(EXCERPT_CHARS_MAX).collect();
            format!("{cut}…")
        } else {
            text
        }
    }

    fn child_path(&self, name: &str) -> String {
        if self.path.is_empty() {
            name.to_string()
        } else {
            format!("{}.{name}", self.path)
        }
    }

    /// A member that must be there.
    pub(super) fn member(&self, name: &str) -> Result<Node<'a>, ProgramError> {
        match self.value {
            Value::Object(members) => match members.get(name) {
                Some(value) => Ok(Node {
                    value,
                    path: self.child_path(name),
                }),
                None => Err(self.error(Problem::Missing {
                    member: name.to_string(),
                })),
            },
            _ => Err(self.wrong_type("an object")),
        }
    }

    /// A member that may be absent or null.
    pub(super) fn optional(&self, name: &str) -> Result<Option<Node<'a>>, ProgramError> {
        match self.value {
            Value::Object(members) => {
                Ok(members
                    .get(name)
                    .filter(|value| !value.is_null())
                    .map(|value| Node {
                        value,
                        path: self.child_path(name),
                    }))
            }
            _ => Err(self.wrong_type("an object")),
        }
    }

    pub(super) fn member_names(&self) -> Result<Vec<&'a str>, ProgramError> {
        match self.value {
            Value::Object(members) => Ok(members.keys().map(String::as_str).collect()),
            _ => Err(self.wrong_type("an object")),
        }
    }

    pub(super) fn items(&self) -> Result<Vec<Node<'a>>, ProgramError> {
        match self.value {
            Value::Array(items) => Ok(items
                .iter()
                .enumerate()
                .map(|(index, value)| Node {
                    value,
                    path: format!("{}[{index}]", self.path),
                })
                .collect()),
            _ => Err(self.wrong_type("an array")),
        }
    }

    /// The items of a list that may be absent.
    pub(super) fn list(&self, name: &str) -> Result<Vec<Node<'a>>, ProgramError> {
        match self.optional(name)? {
            Some(list) => list.items(),
            None => Ok(Vec::new()),
        }
    }

    pub(super) fn tuple<const N: usize>(&self) -> Result<[Node<'a>; N], ProgramError> {
        self.items()?
            .try_into()
            .map_err(|_| self.wrong_type(&format!("an array of {N}")))
    }

    pub(super) fn string(&self) -> Result<&'a str, ProgramError> {
        self.value
            .as_str()
            .ok_or_else(|| self.wrong_type("a string"))
    }

    pub(super) fn boolean(&self) -> Result<bool, ProgramError> {
        self.value
            .as_bool()
            .ok_or_else(|| self.wrong_type("true or false"))
    }

    /// A truth value; p4c also writes 0 and 1.
    pub(super) fn truth(&self) -> Result<bool, ProgramError> {
        match self.value.as_u64() {
            Some(0) => Ok(false),
            Some(1) => Ok(true),
            _ => self.boolean(),
        }
    }

    pub(super) fn integer(&self) -> Result<i64, ProgramError> {
        self.value
            .as_i64()
            .ok_or_else(|| self.wrong_type("an integer"))
    }

    /// An integer from `low` to `high`, both included.
    pub(super) fn integer_in(&self, low: i64, high: i64) -> Result<i64, ProgramError> {
        let value = self.integer()?;
        if (low..=high).contains(&value) {
            Ok(value)
        } else {
            Err(self.invalid(format!("an integer from {low} to {high}")))
        }
    }

    pub(super) fn count(&self, high: usize) -> Result<usize, ProgramError> {
        Ok(self.integer_in(0, high as i64)? as usize)
    }

    pub(super) fn flag(&self, name: &str, default: bool) -> Result<bool, ProgramError> {
        match self.optional(name)? {
            Some(node) => node.boolean(),
            None => Ok(default),
        }
    }

    /// A member whose text is one of `choices`.
    pub(super) fn type_name(&self) -> Result<&'a str, ProgramError> {
        self.member("type")?.string()
    }

    /// An unsigned hexadecimal constant: `0x…`, big endian. Also says how many bytes were
    /// written.
    pub(super) fn hex_bytes(&self) -> Result<Vec<u8>, ProgramError> {
        let text = self.string()?;
        parse_hex(text.strip_prefix("0x").unwrap_or(text))
            .ok_or_else(|| self.invalid("hexadecimal digits after 0x"))
    }

    /// A hexadecimal constant with an optional minus sign: magnitude and sign.
    pub(super) fn signed_hex(&self) -> Result<(Vec<u8>, bool), ProgramError> {
        let text = self.string()?;
        let (negative, text) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let bytes = parse_hex(text.strip_prefix("0x").unwrap_or(text)).ok_or_else(|| {
            self.invalid("hexadecimal digits after 0x, with - in front if below 0")
        })?;
        Ok((bytes, negative))
    }
}

/// Names as a list for an error, cut after a number of them.
pub(super) fn list_choices<'n>(names: impl Iterator<Item = &'n str>) -> String {
    let names: Vec<&str> = names.collect();
    let mut text = names
        .iter()
        .take(CHOICES_MAX)
        .copied()
        .collect::<Vec<&str>>()
        .join(", ");
    if names.len() > CHOICES_MAX {
        text.push_str(&format!(" and {} more", names.len() - CHOICES_MAX));
    }
    if text.is_empty() {
        text.push_str("none");
    }
    text
}

fn parse_hex(digits: &str) -> Option<Vec<u8>> {
    if digits.is_empty() || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    let nibble = |digit: u8| (digit as char).to_digit(16).unwrap_or(0) as u8;
    let digits = digits.as_bytes();
    let (first, rest) = digits.split_at(digits.len() % 2);
    let mut bytes: Vec<u8> = first.iter().map(|&digit| nibble(digit)).collect();
    bytes.extend(
        rest.chunks_exact(2)
            .map(|pair| nibble(pair[0]) << 4 | nibble(pair[1])),
    );
    Some(bytes)
}
