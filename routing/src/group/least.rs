//! What trees have as little of as can be found.

use crate::structure::StructureError;

/// What a tree has as little of as can be found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Least {
    /// Links between switches: what a message costs the fabric.
    #[default]
    Links,
    /// Links from the top to the farthest member's switch: how long a message travels.
    Depth,
}

impl Least {
    pub const NAMES: &'static [&'static str] = &["links", "depth"];
    /// Both, in the order of [`Least::NAMES`].
    pub const ALL: [Least; 2] = [Least::Links, Least::Depth];

    /// The one of that name.
    ///
    /// # Errors
    /// [`StructureError::UnknownName`].
    pub fn from_name(name: &str) -> Result<Least, StructureError> {
        find("least", name, Least::NAMES, &Least::ALL)
    }

    pub const fn name(self) -> &'static str {
        Least::NAMES[self as usize]
    }
}

/// The choice of that name.
pub(super) fn find<T: Copy>(
    what: &'static str,
    name: &str,
    names: &'static [&'static str],
    all: &[T],
) -> Result<T, StructureError> {
    let place = names.iter().position(|known| *known == name);
    place
        .map(|place| all[place])
        .ok_or_else(|| StructureError::UnknownName {
            what,
            name: name.to_owned(),
            choices: names,
        })
}
