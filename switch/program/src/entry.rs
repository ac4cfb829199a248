//! What the entries of a table are made of: key fields and calls of actions.

use std::fmt;

use super::bits::Bits;
use super::description::ActionId;

/// What one field of a table key must be. The variant must suit the
/// [`MatchKind`](crate::MatchKind) of the field.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FieldMatch {
    /// Anything: a P4Runtime match field left out. For lpm, ternary, range and optional.
    Any,
    /// This value. For exact, optional and valid.
    Exact(Bits),
    /// The first `prefix_len` bits of the value. For lpm; bits past the prefix must be 0.
    Lpm {
        value: Bits,
        /// Bits compared, 0 to the width of the field.
        prefix_len: u32,
    },
    /// The bits of the value where the mask has ones. For ternary; other bits must be 0.
    Ternary {
        value: Bits,
        /// Ones where bits are compared.
        mask: Bits,
    },
    /// A value from low to high, both included. For range.
    Range {
        low: Bits,
        /// Greatest value, not below `low`.
        high: Bits,
    },
}

/// As P4 writes it (P4-16, "Select expressions"); a prefix by its length.
impl fmt::Display for FieldMatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => f.write_str("_"),
            Self::Exact(value) => value.fmt(f),
            Self::Lpm { value, prefix_len } => write!(f, "{value}/{prefix_len}"),
            Self::Ternary { value, mask } => write!(f, "{value} &&& {mask}"),
            Self::Range { low, high } => write!(f, "{low}..{high}"),
        }
    }
}

/// An action with its arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActionCall {
    /// One of the table's actions.
    pub action: ActionId,
    /// One argument for each parameter, in order.
    pub arguments: Vec<Bits>,
}
