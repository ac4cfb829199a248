//! Whether objects of a P4Info fit a program.

use std::fmt;

use super::proto::p4::config::v1::{self as info, Preamble, match_field};
use wormcast_switch_program::MatchKind;

/// A kind of object that has an id in the P4Info.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Object {
    Table,
    Counter,
    Register,
    Meter,
    /// An action profile, with a selector or without.
    Profile,
    ValueSet,
    Digest,
}

impl fmt::Display for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Table => "table",
            Self::Counter => "counter",
            Self::Register => "register",
            Self::Meter => "meter",
            Self::Profile => "action profile",
            Self::ValueSet => "value set",
            Self::Digest => "digest",
        })
    }
}

/// Why a P4Info does not fit a program.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SchemaError {
    /// The program does not have an object of this id and name.
    #[error("the P4Info does not fit the program: {0} `{2}` is not in the program")]
    Absent(Object, u32, String),
    /// The two contradict one another, or the P4Info itself.
    #[error("the P4Info does not fit the program: {0}")]
    Misfit(String),
}

/// What fits, or why it does not.
pub type Bound<T> = Result<T, SchemaError>;

/// The error for something that does not fit.
pub fn misfit<T>(message: String) -> Bound<T> {
    Err(SchemaError::Misfit(message))
}

/// The error for an object that the program does not have.
pub fn absent<T>(object: Object, id: u32, name: &str) -> Bound<T> {
    Err(SchemaError::Absent(object, id, name.to_owned()))
}

pub fn identity<'a>(preamble: Option<&'a Preamble>, what: &str) -> Bound<(u32, &'a str)> {
    match preamble {
        Some(preamble) if preamble.id != 0 => Ok((preamble.id, &preamble.name)),
        Some(preamble) => misfit(format!("{what} `{}` has the id 0", preamble.name)),
        None => misfit(format!("a {what} has no preamble")),
    }
}

/// How a match field is compared; `None` for what only some architecture knows.
pub fn bind_match_kind(field: &info::MatchField) -> Option<MatchKind> {
    use match_field::MatchType;
    let Some(match_field::Match::MatchType(kind)) = &field.r#match else {
        return None;
    };
    match MatchType::try_from(*kind) {
        Ok(MatchType::Exact) => Some(MatchKind::Exact),
        Ok(MatchType::Lpm) => Some(MatchKind::Lpm),
        Ok(MatchType::Ternary) => Some(MatchKind::Ternary),
        Ok(MatchType::Range) => Some(MatchKind::Range),
        Ok(MatchType::Optional) => Some(MatchKind::Optional),
        Ok(MatchType::Unspecified) | Err(_) => None,
    }
}
