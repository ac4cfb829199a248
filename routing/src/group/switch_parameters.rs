//! How the switches replicate a group's messages, and what keeps them from deadlock.

use crate::structure::StructureError;

/// Where a switch learns which ports a message leaves by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SwitchMode {
    /// From the worm: TREE source routes (WORM §3, Fig. 2).
    #[default]
    Tree,
    /// From a table: GROUP worms, an entry at every switch of the group's tree.
    Table,
    /// From the spanning tree: BROADCAST worms to the root and down to every host;
    /// hosts that are no members filter.
    Broadcast,
}

impl SwitchMode {
    /// Names of all of them.
    pub const NAMES: &'static [&'static str] = &["tree", "table", "broadcast"];
    /// All of them, in the order of [`SwitchMode::NAMES`].
    pub const ALL: [SwitchMode; 3] = [SwitchMode::Tree, SwitchMode::Table, SwitchMode::Broadcast];

    /// The mode of that name.
    ///
    /// # Errors
    /// [`StructureError::UnknownName`].
    pub fn from_name(name: &str) -> Result<SwitchMode, StructureError> {
        find("mode", name, SwitchMode::NAMES, &SwitchMode::ALL)
    }

    /// Its name.
    pub const fn name(self) -> &'static str {
        SwitchMode::NAMES[self as usize]
    }
}

/// Which rule keeps multicast and unicast worms from waiting for each other for ever
/// (WORM §3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Guard {
    /// All worms, unicast too, keep to the spanning tree.
    #[default]
    A,
    /// Every multicast starts at the root; branches do not stop each other.
    B,
    /// Multicast takes legal paths; a unicast blocked by a port that is multicast-idle is
    /// flushed by a backward reset and sent again.
    C,
}

impl Guard {
    /// Names of all of them.
    pub const NAMES: &'static [&'static str] = &["A", "B", "C"];
    /// All of them, in the order of [`Guard::NAMES`].
    pub const ALL: [Guard; 3] = [Guard::A, Guard::B, Guard::C];

    /// The guard of that name.
    ///
    /// # Errors
    /// [`StructureError::UnknownName`].
    pub fn from_name(name: &str) -> Result<Guard, StructureError> {
        find("guard", name, Guard::NAMES, &Guard::ALL)
    }

    /// Its name.
    pub const fn name(self) -> &'static str {
        Guard::NAMES[self as usize]
    }
}

/// Parameters of the scheme `switch`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SwitchParameters {
    /// Where a switch learns its ports.
    pub mode: SwitchMode,
    /// What keeps worms from deadlock.
    pub guard: Guard,
    /// Mode `table`: number of the group in the entries, not 255.
    pub group: u16,
}

impl SwitchParameters {
    /// Reads both by name; what is absent is `tree` and `A`.
    ///
    /// # Errors
    /// [`StructureError::UnknownName`].
    pub fn from_names(
        mode: Option<&str>,
        guard: Option<&str>,
    ) -> Result<SwitchParameters, StructureError> {
        Ok(SwitchParameters {
            mode: mode.map_or(Ok(SwitchMode::default()), SwitchMode::from_name)?,
            guard: guard.map_or(Ok(Guard::default()), Guard::from_name)?,
            group: 0,
        })
    }
}

fn find<T: Copy>(
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
