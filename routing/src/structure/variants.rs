//! How circuits and rooted trees are used.

use super::error::StructureError;

/// How a circuit begins and ends (WORM §5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CircuitVariant {
    /// From the source to the host before it: the last hop is omitted.
    OmitLast,
    /// Back to the source, which confirms delivery.
    Return,
    /// The source sends to the first host of the order, which starts the multicast and
    /// so puts the messages of all sources into one order. The source gets its own back.
    Ordered,
}

/// How a rooted tree is used (WORM §6).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TreeVariant {
    /// The source floods the tree: every host passes on to all neighbours but the one
    /// it came from.
    Unordered,
    /// The source sends to the root, the root multicasts, to the source too.
    Ordered,
}

impl CircuitVariant {
    pub const NAMES: &'static [&'static str] = &["omit-last", "return", "ordered"];

    pub const fn name(self) -> &'static str {
        CircuitVariant::NAMES[self as usize]
    }

    /// The variant of that name.
    ///
    /// # Errors
    /// [`StructureError::UnknownName`].
    pub fn from_name(name: &str) -> Result<CircuitVariant, StructureError> {
        use CircuitVariant::{OmitLast, Ordered, Return};
        let mut all = [OmitLast, Return, Ordered].into_iter();
        let found = all.find(|variant| variant.name() == name);
        found.ok_or_else(|| unknown_variant(name, CircuitVariant::NAMES))
    }
}

impl TreeVariant {
    pub const NAMES: &'static [&'static str] = &["unordered", "ordered"];

    pub const fn name(self) -> &'static str {
        TreeVariant::NAMES[self as usize]
    }

    /// The variant of that name.
    ///
    /// # Errors
    /// [`StructureError::UnknownName`].
    pub fn from_name(name: &str) -> Result<TreeVariant, StructureError> {
        let mut all = [TreeVariant::Unordered, TreeVariant::Ordered].into_iter();
        let found = all.find(|variant| variant.name() == name);
        found.ok_or_else(|| unknown_variant(name, TreeVariant::NAMES))
    }
}

fn unknown_variant(name: &str, choices: &'static [&'static str]) -> StructureError {
    StructureError::UnknownName {
        what: "variant",
        name: name.to_owned(),
        choices,
    }
}
